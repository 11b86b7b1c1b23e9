/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one rank from several files become one. */
#include "read/dumps/dumps_parts.h"

#include <stdlib.h>
#include <string.h>

/* Files without a rank in them or in their names: in order, from the first rank that is free. */
static void give_ranks(struct dumps *dumps)
{
	int next = 0;

	vec_foreach(record, &dumps->records)
		next = MAX(next, record->rank + 1);
	vec_foreach(record, &dumps->records)
		if (record->rank < 0)
			record->rank = next++;
}

static int by_rank(const void *a, const void *b)
{
	const struct hang_record *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->source, y->source);
}

static size_t python_frames(const struct stacks_process *process)
{
	size_t cnt = 0;

	for (size_t i = 0; process != NULL && i < process->thread_cnt; i++)
		for (size_t k = 0; k < process->threads[i].frame_cnt; k++)
			cnt += process->threads[i].frames[k].kind == STACKS_PYTHON;
	return cnt;
}

static const char *some(const char *own, const char *other)
{
	return own[0] != '\0' ? own : other;
}

/* What `from` knows and `to` does not. Of two stacks that with more Python in it counts. */
static void join(struct hang_record *to, const struct hang_record *from)
{
	if (from->stacks != NULL &&
	    (to->stacks == NULL || python_frames(from->stacks) > python_frames(to->stacks)))
		to->stacks = from->stacks;
	if (to->child_cnt == 0) {
		to->children = from->children;
		to->child_cnt = from->child_cnt;
	}
	if (to->entered_cnt == 0) {
		to->entered = from->entered;
		to->entered_cnt = from->entered_cnt;
		to->quiet_ns = from->quiet_ns;
	}
	if (!to->marks_known && from->marks_known) {
		to->marks_known = true;
		to->mark = from->mark;
		to->step = from->step;
		to->silent_ns = from->silent_ns;
		to->life = from->life;
	}
	to->pid = to->pid != 0 ? to->pid : from->pid;
	to->process = to->process != '\0' ? to->process : from->process;
	to->world_size = MAX(to->world_size, from->world_size);
	to->host = some(to->host, from->host);
	to->stack = some(to->stack, from->stack);
	to->leaf = some(to->leaf, from->leaf);
	to->awaited = some(to->awaited, from->awaited);
}

void dumps_join(struct dumps *dumps)
{
	size_t cnt = 0;

	give_ranks(dumps);
	if (dumps->records.cnt > 1)
		qsort(dumps->records.data, dumps->records.cnt, sizeof(*dumps->records.data),
		      by_rank);
	vec_foreach(record, &dumps->records) {
		struct hang_record *last = cnt > 0 ? &dumps->records.data[cnt - 1] : NULL;

		if (last != NULL && last->rank == record->rank)
			join(last, record);
		else
			dumps->records.data[cnt++] = *record;
	}
	dumps->records.cnt = cnt;
	vec_foreach(record, &dumps->records)
		if (record->stacks != NULL) /* in the arena of the dumps */
			((struct stacks_process *)(uintptr_t)record->stacks)->rank = record->rank;
}
