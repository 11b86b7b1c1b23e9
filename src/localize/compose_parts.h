/* SPDX-License-Identifier: Apache-2.0 */
/* What compose.c and evidence.c share: a finding while it is put together. Not for other files. */
#pragma once

#include "localize/cause.h"
#include "localize/compose.h"

#define MAX_EVIDENCE 12
#define EVIDENCE_WIDER_WORDS "of the gain are in other functions that the same fault makes longer"
#define EVIDENCE_WIDER_GAIN "%.1f ms " EVIDENCE_WIDER_WORDS

/* What is put together for one finding. */
struct draft {
	const struct job *job;
	const struct blame *blame;
	const struct accusation *a;
	const struct expect_table *expect;
	struct arena *arena;
	struct cause_facts facts;
	enum cause cause;
	double *scratch;
	double *waited_ns; /* by worker: for the accused */
	const char **evidence;
	struct finding *out;
	bool no_memory;
};

/* Adds a line to the evidence of a draft. */
#define EVIDENCE(d, ...)                                                    \
	do {                                                                \
		const char *_line = arena_printf((d)->arena, __VA_ARGS__);  \
		(d)->no_memory |= _line == NULL;                            \
		if (_line != NULL && (d)->out->evidence_cnt < MAX_EVIDENCE) \
			(d)->evidence[(d)->out->evidence_cnt++] = _line;    \
	} while (0)

/* A copy in the arena; "" without memory. */
const char *draft_text(struct draft *d, const char *s);

/* Ranks as "0-3,7". */
const char *draft_ranks_text(struct draft *d, const int *ranks, size_t cnt);

bool draft_accused(const struct draft *d, size_t w);

/* Time per iteration of worker w's training thread at the place of the accusation. */
double draft_thread_ms(const struct draft *d, size_t w);

/* Time per iteration that worker w waited for the accused. */
double draft_waited_ms(const struct draft *d, size_t w);

/* The frame that the finding names, and the name of a place where a thread is idle. */
uint32_t draft_named_frame(const struct draft *d);
const char *draft_idle_name(struct draft *d, uint32_t frame);

/* Whether another thread was seen that may hold the interpreter's lock. */
bool draft_holder_known(const struct draft *d);

/*
 * Whether what is slow is a wait for others, and for whom: the worker processes of a DataLoader,
 * also if nothing is known of them, or who was seen at work meanwhile.
 */
bool draft_awaits(const struct draft *d, enum awaited_by *ret);

/* Adds all lines of evidence; needs the numbers, victims and names of the finding. */
void evidence_add(struct draft *d);

/* How sure the finding is, by its evidence. */
enum confidence evidence_confidence(const struct draft *d);
