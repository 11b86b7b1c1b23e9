/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a tool within its budget: a sentence of PerfTracker's own words, and data of the job
 * as one JSON object, fenced. Lists stop where the budget ends, and a cursor goes on there. A token
 * is counted as four bytes.
 */
#pragma once

#include "report/jsonwriter.h"

#define TOOLANSWER_TOKENS_MAX 2000u
#define TOOLANSWER_TOKEN_BYTES 4u
#define TOOLANSWER_TEXT_BYTES 240u /* of a text of the job */

struct toolanswer {
	struct json_writer w;
	json_t *data;
	struct str says; /* no names of the job in it */
	size_t used;	 /* bytes of data */
};

void toolanswer_init(struct toolanswer *answer);
void toolanswer_done(struct toolanswer *answer);

/* All take value, which may be NULL when memory ran out. */
void toolanswer_put(struct toolanswer *answer, const char *key, json_t *value);

/* Appends value to the list under key, if it fits; false: it does not. The list is made if needed. */
bool toolanswer_push(struct toolanswer *answer, const char *key, json_t *value);

/* The call that an agent may make next: tool, and one argument, or two. value NULL: none. */
void toolanswer_next(struct toolanswer *answer, const char *tool, const char *key,
		     const char *value, const char *key2, const char *value2);

/* A text of the job, cut; NULL: null. */
json_t *toolanswer_text(const char *text);

/* A set of ranks "0-2,7", cut behind a comma: "0-2,7,...". NULL: null. */
json_t *toolanswer_ranks(const char *text);

/* One of both: keys that end in "ranks" or "ranks_missing" have sets of ranks. */
json_t *toolanswer_text_of(const char *key, const char *text);

/*
 * Copies texts, numbers, truths and nulls of those keys into an object: the last key is NULL. A
 * nested object or list is left out.
 */
void toolanswer_copy(struct json_writer *w, json_t *to, const json_t *from,
		     const char *const *keys);

/* The result of tools/call. NULL: out of memory. Empties the answer. */
json_t *toolanswer_take(struct toolanswer *answer);
/* The same for a call that failed: why, and what to do. */
json_t *toolanswer_failure(const char *why);
