/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text around the values of events. A writer repeats the same text between the values of
 * its events: braces, keys, spaces, the category, the thread. A text that was parsed once is
 * only compared from then on (shape_match.h), and its meaning is looked up.
 *
 * The texts form a tree. A shape is the text between the end of one value (or event) and the
 * begin of the next. The path from the root to a shape determines the place in the event:
 * which containers are open, and which phase, category, process and thread were read. Text
 * that matches no shape is parsed, and becomes a new shape.
 */
#pragma once

#include "read/common/build.h"
#include "read/kineto/category.h"
#include "read/kineto/scan.h"

#define SHAPE_TEXT_MAX 128u
#define SHAPE_MAX 1024u
#define SHAPE_STEPS_MAX 64u /* values of an event that are learned */
#define SHAPE_ROOT 0u	    /* before an event; as a child or sibling: none */

enum shape_value {
	SHAPE_NAME,
	SHAPE_TS,
	SHAPE_DUR,
	SHAPE_ARG,   /* of the key shape.arg in "args" */
	SHAPE_OTHER, /* of a key that the reader ignores */
	SHAPE_END    /* the event ended */
};

/* What the texts of an event determine. */
struct shape_facts {
	char phase; /* 0: none */
	const struct category *category;
	struct ident pid, tid;
};

struct karg;

struct shape {
	uint8_t text[SHAPE_TEXT_MAX];
	uint16_t len;
	uint16_t child, sibling; /* a shape that may follow; the next shape of the same place */
	uint16_t hint;		 /* the child that matched last; of an end: the root's */
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
	uint32_t refused;  /* steps dropped for lack of room since the last reset */
	/* The log of the event that is being parsed. */
	bool logging, opens_args, in_args;
	uint16_t parent;     /* the log continues after this shape */
	const uint8_t *buf;  /* scan->buf when the log began; the texts point into it */
	const uint8_t *from; /* begin of the text */
	uint64_t buf_off;
	uint64_t mended_cnt;
	size_t step_cnt;
	struct shape_step steps[SHAPE_STEPS_MAX];
};

/* Borrows scan. Returns 0 or -ENOMEM. */
_must_check_ int shapes_init(struct shapes *shapes, const struct scan *scan);
void shapes_done(struct shapes *shapes);

/* Begins the log of an event whose texts matched up to shape parent. */
void shapes_log(struct shapes *shapes, uint16_t parent);

/* Logs the text before the value at the scan; arg: of SHAPE_ARG. facts: so far. */
void shapes_log_value(struct shapes *shapes, enum shape_value value, const struct karg *arg,
		      const struct shape_facts *facts);

/* Begins the next text: the scan is behind a value. */
static inline void shapes_log_next(struct shapes *shapes)
{
	shapes->from = shapes->scan->p;
}

/* Drops the log of this event. */
static inline void shapes_log_drop(struct shapes *shapes)
{
	shapes->logging = false;
}

/* Logs that "args" begins, or has ended. */
void shapes_log_args(struct shapes *shapes, bool open);

/* Turns the log into shapes: the scan is behind the event. */
void shapes_learn(struct shapes *shapes, const struct shape_facts *facts);
