/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the records of a thread's lane into intervals, in order. */
#include "model/elements.h"
#include "read/flight/flight_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool in_window(const struct flight_pass *pass, const struct flight_item *item)
{
	return item->start_ns < pass->end_ns && item->start_ns + item->dur_ns > pass->start_ns;
}

/* Collectives are compared between workers, so they are not cut at the window's ends. */
static void cut_item(const struct flight_pass *pass, struct flight_item *item)
{
	int64_t end_ns = MIN(item->start_ns + item->dur_ns, pass->end_ns);

	if (item->kind == FLIGHT_COLLECTIVE)
		return;
	item->start_ns = MAX(item->start_ns, pass->start_ns);
	item->dur_ns = end_ns - item->start_ns;
}

const char *flight_collective(const char *name)
{
	static const char *const backends[] = { "gloo:", "nccl:", "mpi:", "ucc:", "xccl:" };

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
		if (flight_has_prefix(name, backends[i]))
			return name + strlen(backends[i]);
	}
	return NULL;
}

static int note_backend(struct trace *trace, const char *name)
{
	const char *colon = strchr(name, ':');

	if (trace->meta.backend != NULL || flight_collective(name) == NULL)
		return 0;
	trace->meta.backend = strndup(name, (size_t)(colon - name));
	return trace->meta.backend != NULL ? 0 : -ENOMEM;
}

#define RANKS_LISTED 30 /* and the last: as torch.profiler does */

/* "[0, 8, 16]"; "" if the ARGS and GROUP records do not determine it. */
static void write_ranks(const struct ring_record *records, char *text, size_t size)
{
	int64_t first = records[0].detail, stride = records[1].detail;
	int64_t cnt = records[1].value >> 32, last = first + (cnt - 1) * stride;
	size_t len = 0;

	text[0] = '\0';
	if (stride == 0 || cnt <= 0)
		return;
	for (int64_t i = 0; i < MIN(cnt - 1, (int64_t)RANKS_LISTED); i++)
		len += (size_t)snprintf(text + len, size - len, "%s%" PRId64, i > 0 ? ", " : "[",
					first + i * stride);
	(void)snprintf(text + len, size - len, "%s%s%" PRId64 "]", cnt > 1 ? ", " : "[",
		       cnt - 1 > RANKS_LISTED ? "..., " : "", last);
}

int flight_collective_args(struct flight_pass *pass, const struct ring_record *records, size_t cnt,
			   uint32_t *ret)
{
	const struct flightlog *log = pass->log;
	const char *name = log->strings.data[records[0].extra], *group = "", *what = "";
	char ranks[16 * RANKS_LISTED] = "";
	struct event_args args = { .bytes = -1, .elements = -1, .seq = -1, .group_size = -1 };

	if (cnt > 2 && records[1].kind == FLIGHT_COLLECTIVE_ARGS &&
	    records[2].kind == FLIGHT_COLLECTIVE_GROUP) {
		int64_t size = records[2].value >> 32;

		args.bytes = records[1].value;
		args.seq = (int64_t)records[1].extra;
		args.group_size = size > 0 ? (int32_t)size : -1;
		group = log->strings.data[(uint32_t)records[2].value];
		what = log->strings.data[records[2].extra];
		write_ranks(&records[1], ranks, sizeof(ranks));
	}
	if (what[0] == '\0' && flight_collective(name) != NULL)
		what = flight_collective(name);
	args.group = flight_intern(pass->trace, group);
	args.collective = flight_intern(pass->trace, what);
	if (ranks[0] != '\0')
		args.group_ranks = flight_intern(pass->trace, ranks);
	if (args.group == STRTAB_NONE || args.group_ranks == STRTAB_NONE ||
	    args.collective == STRTAB_NONE || note_backend(pass->trace, name) < 0)
		return -ENOMEM;
	return build_args(pass->build, &args, ret);
}

/* Args that say how many elements an operator was given: one for each code. */
static int elements_args(struct flight_pass *pass, uint16_t code, uint32_t *ret)
{
	struct event_args args = {
		.elements = elements_decode(code), .bytes = -1, .seq = -1, .group_size = -1
	};

	if (args.elements < 0)
		return 0;
	if (pass->args_of_code == NULL)
		pass->args_of_code = calloc(UINT16_MAX + 1, sizeof(*pass->args_of_code));
	if (pass->args_of_code == NULL)
		return -ENOMEM;
	*ret = pass->args_of_code[code];
	if (*ret != 0)
		return 0;
	if (build_args(pass->build, &args, ret) < 0)
		return -ENOMEM;
	pass->args_of_code[code] = *ret;
	return 0;
}

static bool is_item(const struct ring_record *record)
{
	return record->kind == FLIGHT_OPERATOR || record->kind == FLIGHT_ANNOTATION ||
	       record->kind == FLIGHT_COLLECTIVE || record->kind == FLIGHT_PYTHON ||
	       record->kind == FLIGHT_C_CALL;
}

/* records[0] becomes an item if it is one and lies in the window. */
static int add_item(struct flight_pass *pass, const struct ring_record *records, size_t cnt,
		    item_vec *items)
{
	struct flight_item item = {
		.start_ns = records[0].time_ns,
		.dur_ns = records[0].value,
		.kind = records[0].kind,
		.what = (uint32_t)records[0].extra,
		.order = (uint32_t)items->cnt,
	};
	int ret = 0;

	if (!is_item(&records[0]) || flight_is_nccl(records, cnt) || !in_window(pass, &item))
		return 0;
	if (item.kind == FLIGHT_COLLECTIVE)
		ret = flight_collective_args(pass, records, cnt, &item.args);
	else if (item.kind == FLIGHT_OPERATOR)
		ret = elements_args(pass, records[0].detail, &item.args);
	cut_item(pass, &item);
	return ret == 0 ? vec_push(items, item) : ret;
}

/* By time, outer ones first: those written later enclose those written earlier. */
static int by_nesting(const void *a, const void *b)
{
	const struct flight_item *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->dur_ns != y->dur_ns)
		return x->dur_ns > y->dur_ns ? -1 : 1;
	return x->order > y->order ? -1 : 1;
}

/* Removes duplicates: a collective may be in both rings of a lane. items: collectives, sorted. */
static void drop_doubles(item_vec *items)
{
	size_t kept = 0;

	for (size_t i = 0; i < items->cnt; i++) {
		const struct flight_item *item = &items->data[i];
		const struct flight_item *before = kept > 0 ? &items->data[kept - 1] : NULL;

		if (before == NULL || before->start_ns != item->start_ns ||
		    before->dur_ns != item->dur_ns || before->what != item->what)
			items->data[kept++] = *item;
	}
	items->cnt = kept;
}

bool flight_is_exact(const item_vec *items)
{
	vec_foreach(item, items) {
		if (item->kind == FLIGHT_PYTHON)
			return true;
	}
	return false;
}

static int64_t end_of(const struct flight_item *item)
{
	return item->start_ns + item->dur_ns;
}

/* The latest end first; of one interval outer ones first. */
static int by_end(const void *a, const void *b)
{
	const struct flight_item *x = a, *y = b;

	if (end_of(x) != end_of(y))
		return end_of(x) > end_of(y) ? -1 : 1;
	return -by_nesting(a, b);
}

/*
 * Operators are recorded in the order of their ends. Backwards, outer ones come before inner ones
 * of the same interval: the trace is sorted later, so that is all they need, and millions of
 * them are not sorted twice. Collectives, sorted by_end, are merged into them.
 */
static void merge_backwards(const item_vec *operators, const item_vec *collectives, item_vec *ret)
{
	size_t i = operators->cnt, j = 0;

	while (i > 0 || j < collectives->cnt) {
		bool collective =
			i == 0 || (j < collectives->cnt && end_of(&collectives->data[j]) >=
								   end_of(&operators->data[i - 1]));

		ret->data[ret->cnt++] = collective ? collectives->data[j++] : operators->data[--i];
	}
}

static int arrange(const item_vec *operators, item_vec *collectives, item_vec *ret)
{
	if (collectives->cnt > 0) {
		qsort(collectives->data, collectives->cnt, sizeof(*collectives->data), by_nesting);
		drop_doubles(collectives);
		qsort(collectives->data, collectives->cnt, sizeof(*collectives->data), by_end);
	}
	if (vec_reserve(ret, operators->cnt + collectives->cnt) < 0)
		return -ENOMEM;
	merge_backwards(operators, collectives, ret);
	if (flight_is_exact(ret))
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_nesting);
	return 0;
}

int flight_items(struct flight_pass *pass, const struct flightlog_lane *lane, item_vec *items)
{
	const record_vec *rings[] = { &lane->records, &lane->window };
	item_vec operators = { 0 }, collectives = { 0 };
	int ret = 0;

	for (size_t r = 0; r < ARRAY_SIZE(rings); r++) {
		const record_vec *ring = rings[r];

		for (size_t i = 0; i < ring->cnt && ret == 0; i++)
			ret = add_item(pass, &ring->data[i], ring->cnt - i,
				       ring->data[i].kind == FLIGHT_COLLECTIVE ? &collectives
									       : &operators);
	}
	if (ret == 0)
		ret = arrange(&operators, &collectives, items);
	vec_done(&operators);
	vec_done(&collectives);
	return ret;
}
