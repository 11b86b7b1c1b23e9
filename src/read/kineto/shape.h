/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What events look like. A writer puts the same text between the values of its events
 * over and over: braces, keys, spaces, the category, the thread. Once such a text was
 * parsed, it need only be compared: what it said is known.
 *
 * The texts form a tree. A shape is the text between the end of one value (or event) and
 * the begin of the next, so the way from the root to it tells everything about the place
 * in the event: which containers are open, and which phase, category, process and thread
 * were read. Text that no shape fits is parsed, and learned from.
 */
#pragma once

#include "read/common/build.h"
#include "read/kineto/category.h"
#include "read/kineto/scan.h"

#include <string.h>

#define SHAPE_TEXT_MAX 128u
#define SHAPE_MAX 1024u
#define SHAPE_STEPS_MAX 64u /* values of an event that are learned */
#define SHAPE_ROOT 0u	    /* before an event; as a child or sibling: none */

enum shape_value {
	SHAPE_NAME,
	SHAPE_TS,
	SHAPE_DUR,
	SHAPE_ARG,   /* of the key shape.arg in "args" */
	SHAPE_OTHER, /* of a key that means nothing here */
	SHAPE_END    /* the event ended */
};

/* What texts say of an event. */
struct shape_facts {
	char phase; /* 0: none */
	const struct category *category;
	struct ident pid, tid;
};

struct karg;

struct shape {
	uint8_t text[SHAPE_TEXT_MAX];
	uint16_t len;
	uint16_t child, sibling; /* shapes that may follow, and that stand for the same place */
	uint16_t hint;		 /* the child that followed last; at an end, that of the root */
	uint8_t value;		 /* enum shape_value: what follows the text */
	bool opens_args;	 /* "args": { is in the text */
	bool in_args;		 /* the value is a member of "args" */
	const struct karg *arg;
	struct shape_facts facts; /* so far */
};

/* One text and value of the event that is being parsed. */
struct shape_step {
	const uint8_t *text;
	size_t len;
	const struct karg *arg;
	uint8_t value;
	bool opens_args, in_args;
	struct shape_facts facts;
};

struct shapes {
	const struct scan *scan;
	struct shape *list; /* list[0] is the root */
	size_t cnt;
	uint16_t last_end; /* shape of the last event's end */
	uint32_t refused;  /* steps that found no room since the list was begun */
	/* The log of the event that is being parsed. */
	bool logging, opens_args, in_args;
	uint16_t parent;     /* the log goes on behind this shape */
	const uint8_t *buf;  /* the window that the log's texts lie in */
	const uint8_t *from; /* begin of the text */
	uint64_t buf_off;
	uint64_t mended_cnt;
	size_t step_cnt;
	struct shape_step steps[SHAPE_STEPS_MAX];
};

/* scan stays the caller's. Returns 0 or -ENOMEM. */
_must_check_ int shapes_init(struct shapes *shapes, const struct scan *scan);
void shapes_done(struct shapes *shapes);

/* Whether text[len] is at p, of which at least len bytes may be read. */
static inline bool shape_fits(const uint8_t *text, const uint8_t *p, size_t len)
{
	size_t i = 0;

	if (len < RUN_WORD)
		return memcmp(text, p, len) == 0;
	if (len < RUN_BLOCK)
		return run_same_word(text, p) &&
		       run_same_word(text + len - RUN_WORD, p + len - RUN_WORD);
	for (; i + RUN_BLOCK <= len; i += RUN_BLOCK) {
		if (!run_same(text + i, p + i))
			return false;
	}
	return run_same(text + len - RUN_BLOCK, p + len - RUN_BLOCK);
}

/* The shape that the text at the scan's place has, behind shape at; SHAPE_ROOT: none. */
static inline uint16_t shapes_next(struct shapes *shapes, uint16_t at)
{
	const uint8_t *p = shapes->scan->p;
	size_t left = (size_t)(shapes->scan->end - p);
	uint16_t *hint = &shapes->list[at == SHAPE_ROOT ? shapes->last_end : at].hint;
	const struct shape *shape = &shapes->list[*hint];

	if (*hint != SHAPE_ROOT && shape->len <= left && shape_fits(shape->text, p, shape->len))
		return *hint;
	for (uint16_t i = shapes->list[at].child; i != SHAPE_ROOT; i = shape->sibling) {
		shape = &shapes->list[i];
		if (shape->len <= left && shape_fits(shape->text, p, shape->len)) {
			*hint = i;
			return i;
		}
	}
	return SHAPE_ROOT;
}

/* Begins the log of an event, of which the texts up to shape parent fitted. */
void shapes_log(struct shapes *shapes, uint16_t parent);

/* The scan is at a value; arg: of SHAPE_ARG. facts: of the event so far. */
void shapes_log_value(struct shapes *shapes, enum shape_value value, const struct karg *arg,
		      const struct shape_facts *facts);

/* The scan is behind a value. */
static inline void shapes_log_next(struct shapes *shapes)
{
	shapes->from = shapes->scan->p;
}

/* Nothing is learned of this event. */
static inline void shapes_log_drop(struct shapes *shapes)
{
	shapes->logging = false;
}

/* "args" begins, or ended. */
void shapes_log_args(struct shapes *shapes, bool open);

/* The scan is behind the event: its texts become shapes. */
void shapes_learn(struct shapes *shapes, const struct shape_facts *facts);
