/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Shapes for one place. shapes_next() tries them one by one. */
#define SIBLINGS_MAX 24u
/* After this many dropped steps the file has changed: its shapes are discarded. */
#define REFUSED_MAX 20000u

static void forget(struct shapes *shapes)
{
	shapes->cnt = 1;
	shapes->refused = 0;
	shapes->last_end = SHAPE_ROOT;
	memset(&shapes->list[SHAPE_ROOT], 0, sizeof(shapes->list[SHAPE_ROOT]));
}

int shapes_init(struct shapes *shapes, const struct scan *scan)
{
	shapes->scan = scan;
	shapes->logging = false;
	shapes->list = malloc(SHAPE_MAX * sizeof(*shapes->list));
	if (shapes->list == NULL)
		return -ENOMEM;
	forget(shapes);
	return 0;
}

void shapes_done(struct shapes *shapes)
{
	free(shapes->list);
	shapes->list = NULL;
}

void shapes_log(struct shapes *shapes, uint16_t parent)
{
	const struct scan *scan = shapes->scan;

	shapes->logging = true;
	shapes->opens_args = false;
	shapes->in_args = shapes->list[parent].in_args;
	shapes->parent = parent;
	shapes->buf = scan->buf;
	shapes->buf_off = scan->buf_off;
	shapes->mended_cnt = scan->bad_utf8_cnt;
	shapes->from = scan->p;
	shapes->step_cnt = 0;
}

void shapes_log_value(struct shapes *shapes, enum shape_value value, const struct karg *arg,
		      const struct shape_facts *facts)
{
	const struct scan *scan = shapes->scan;
	size_t len = (size_t)(scan->p - shapes->from);

	/* A refill has moved the texts. */
	if (!shapes->logging || shapes->step_cnt == SHAPE_STEPS_MAX || scan->buf != shapes->buf ||
	    scan->buf_off != shapes->buf_off || len > SHAPE_TEXT_MAX) {
		shapes->logging = false;
		return;
	}
	shapes->steps[shapes->step_cnt++] = (struct shape_step){
		.text = shapes->from,
		.len = len,
		.arg = arg,
		.value = (uint8_t)value,
		.opens_args = shapes->opens_args,
		.in_args = shapes->in_args,
		.facts = *facts,
	};
	shapes->opens_args = false;
}

void shapes_log_args(struct shapes *shapes, bool open)
{
	/* A text that opens and closes "args" is not learned: a shape has no order of the two. */
	if (!open && shapes->opens_args)
		shapes->logging = false;
	shapes->opens_args = open;
	shapes->in_args = open;
}

static bool is_step(const struct shape *shape, const struct shape_step *step)
{
	return shape->len == step->len && shape->value == step->value &&
	       memcmp(shape->text, step->text, step->len) == 0;
}

static uint16_t add_shape(struct shapes *shapes, uint16_t parent, const struct shape_step *step)
{
	uint16_t added = (uint16_t)shapes->cnt++;
	struct shape *shape = &shapes->list[added];

	shape->len = (uint16_t)step->len;
	shape->child = shape->hint = SHAPE_ROOT;
	shape->sibling = shapes->list[parent].child;
	shape->value = step->value;
	shape->opens_args = step->opens_args;
	shape->in_args = step->in_args;
	shape->arg = step->arg;
	shape->facts = step->facts;
	memcpy(shape->text, step->text, step->len);
	shapes->list[parent].child = added;
	return added;
}

/* The child of parent for this step, added if new; SHAPE_ROOT: no room. */
static uint16_t learn_step(struct shapes *shapes, uint16_t parent, const struct shape_step *step)
{
	uint32_t siblings = 0;

	for (uint16_t i = shapes->list[parent].child; i != SHAPE_ROOT;
	     i = shapes->list[i].sibling, siblings++) {
		if (is_step(&shapes->list[i], step))
			return i;
	}
	if (siblings < SIBLINGS_MAX && shapes->cnt < SHAPE_MAX)
		return add_shape(shapes, parent, step);
	shapes->refused++;
	return SHAPE_ROOT;
}

void shapes_learn(struct shapes *shapes, const struct shape_facts *facts)
{
	uint16_t at = shapes->parent;

	shapes_log_value(shapes, SHAPE_END, NULL, facts);
	if (!shapes->logging || shapes->scan->bad_utf8_cnt != shapes->mended_cnt)
		return;
	shapes->logging = false;
	if (shapes->refused > REFUSED_MAX) {
		forget(shapes);
		return;
	}
	for (size_t i = 0; i < shapes->step_cnt; i++) {
		at = learn_step(shapes, at, &shapes->steps[i]);
		if (at == SHAPE_ROOT)
			return;
	}
}
