/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hang/hang.h"

#include "base/file.h"
#include "base/log.h"
#include "format/shared/block.h"
#include "hang/hangdiagnosis.h"
#include "live/hub/jobstate.h"
#include "report/stacks/hangjson.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum hang_mark mark_of(uint32_t mark)
{
	switch (mark) {
	case MARK_DATALOADER:
		return HANG_MARK_LOADER;
	case MARK_DATALOADER_END:
		return HANG_MARK_BATCH;
	case MARK_OPTIMIZER_BEGIN:
		return HANG_MARK_OPTIMIZER;
	case MARK_OPTIMIZER:
		return HANG_MARK_STEP;
	case MARK_BACKWARD:
		return HANG_MARK_BACKWARD;
	default:
		return HANG_MARK_NONE;
	}
}

static enum hang_life life_of(uint32_t phase)
{
	if (phase == PHASE_GONE)
		return HANG_GONE;
	return phase == PHASE_BLOCKED ? HANG_BLOCKED : HANG_RUNNING;
}

static struct hang_record record_of(const struct wire_state *state, int64_t now_ns)
{
	return (struct hang_record){
		.rank = state->rank,
		.world_size = state->world_size,
		.pid = state->pid,
		.host = state->host,
		.source = "live",
		.life = life_of(state->phase),
		.process = state->process,
		.bye = state->bye != 0,
		.exit_known = state->exit_known != 0,
		.exit_status = state->exit_status,
		.marks_known = true,
		.mark = mark_of(state->last_mark),
		.step = state->step,
		.silent_ns = now_ns - state->last_ns,
		.stack = "",
		.leaf = "",
		.awaited = "",
		.ended = "",
		.says = "",
		.child = "",
	};
}

bool hang_job_is_ending(const struct wire_state *states, size_t cnt)
{
	uint64_t front = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct hang_record record = record_of(&states[i], 0);

		front = MAX(front, hangdiagnosis_progress(&record));
	}
	for (size_t i = 0; i < cnt; i++) {
		const struct hang_record record = record_of(&states[i], 0);

		if (states[i].bye && hangdiagnosis_progress(&record) == front)
			return true;
	}
	return false;
}

static int by_worker(const void *a, const void *b)
{
	const struct wire_where *x = *(const struct wire_where *const *)a;
	const struct wire_where *y = *(const struct wire_where *const *)b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* The worker's stack of its current step; a stack of an earlier step is ignored. NULL: unknown. */
static const struct wire_where *find_where(const struct wire_where **sorted, size_t cnt,
					   const struct wire_state *state)
{
	const struct wire_where like = { .worker = state->worker, .step = state->step };
	const struct wire_where *key = &like, **found;

	found = bsearch(&key, sorted, cnt, sizeof(*sorted), by_worker);
	return found != NULL ? *found : NULL;
}

static int add_entered(struct arena *arena, const struct wire_where *where, struct hang_record *ret)
{
	const size_t cnt = MIN(where->entered_cnt, WIRE_GROUPS);
	struct hang_entered *entered = arena_calloc(arena, cnt + 1, sizeof(*entered));

	if (entered == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_entered *from = &where->entered[i];

		entered[i] = (struct hang_entered){
			.group = from->group,
			.name = from->name,
			.number = from->number,
			.by_name = from->by_name != 0,
			.size = from->size,
			.time_ns = from->time_ns,
			.members = "",
			.caller = "",
			.last_finished = -1,
		};
	}
	ret->entered = entered;
	ret->entered_cnt = cnt;
	return 0;
}

static int add_where(struct arena *arena, const struct wire_where *where, struct hang_record *ret)
{
	ret->stack = where->stack;
	ret->leaf = where->leaf;
	ret->awaited = where->awaited;
	ret->by = (enum awaited_by)where->awaited_by;
	ret->ended = where->ended;
	ret->ended_ago_ns = where->ended_ago_ns;
	ret->shown = where->shown;
	ret->in_collective = where->in_collective != 0;
	ret->says = where->says;
	ret->child = where->child;
	return add_entered(arena, where, ret);
}

/*
 * Records of the workers whose hook is on: a disabled hook is no evidence. kept: their states.
 * Returns 0 or -ENOMEM.
 */
static int make_records(const struct hang_input *input, struct arena *arena,
			struct hang_record *records, struct wire_state *kept, size_t *ret_cnt)
{
	const struct wire_where **sorted =
		arena_calloc(arena, input->where_cnt + 1, sizeof(*sorted));
	size_t cnt = 0;
	int error = sorted != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < input->where_cnt; i++)
		sorted[i] = &input->wheres[i];
	if (error == 0)
		qsort(sorted, input->where_cnt, sizeof(*sorted), by_worker);
	for (size_t i = 0; error == 0 && i < input->cnt; i++) {
		const struct wire_where *where =
			find_where(sorted, input->where_cnt, &input->states[i]);

		if (input->states[i].phase == PHASE_SILENT)
			continue;
		kept[cnt] = input->states[i];
		records[cnt] = record_of(&kept[cnt], input->now_ns);
		if (where != NULL)
			error = add_where(arena, where, &records[cnt]);
		cnt++;
	}
	*ret_cnt = cnt;
	return error;
}

/* Stacks of a process of this host that were read from outside: those of the same process. */
static void add_read(const struct hang_input *input, struct hang_record *ret)
{
	for (size_t i = 0; i < input->read_cnt; i++) {
		const struct hang_record *read = &input->read[i];

		if (read->rank != ret->rank || read->pid != ret->pid)
			continue;
		ret->stacks = read->stacks;
		ret->children = read->children;
		ret->child_cnt = read->child_cnt;
	}
}

/* For `perftracker analyze` later; a job goes on without. */
static void keep_records(const struct hang_input *input, const struct hang_facts *facts)
{
	struct str text = { 0 };
	int error = 0;

	if (input->record_path == NULL)
		return;
	error = hangjson_print(facts->records, facts->cnt, &text);
	if (error == 0)
		error = file_replace(input->record_path, str_borrow(&text), text.len, 0644);
	if (error < 0)
		log_line(LOG_WARNING, "event=record-not-written file=\"%s\" why=\"%s\"",
			 input->record_path, strerror(-error));
	str_done(&text);
}

int hang_report(const struct hang_input *input, struct report *ret)
{
	struct report report = { 0 };
	struct hang_facts facts = { .blind = input->blind };
	struct hang_record *records;
	struct wire_state *kept;
	int r;

	arena_init(&report.arena);
	records = arena_calloc(&report.arena, input->cnt + 1, sizeof(*records));
	kept = arena_calloc(&report.arena, input->cnt + 1, sizeof(*kept));
	r = records != NULL && kept != NULL
		    ? make_records(input, &report.arena, records, kept, &facts.cnt)
		    : -ENOMEM;
	facts.records = records;
	for (size_t i = 0; r == 0 && i < facts.cnt; i++)
		add_read(input, &records[i]);
	if (r == 0)
		keep_records(input, &facts);
	if (r == 0)
		r = hangdiagnosis_make(&facts, &report);
	if (r < 0) {
		arena_done(&report.arena);
		return r;
	}
	jobstate_fill_report(kept, facts.cnt, &report);
	report.job_id = "live";
	report.rank_source = "the job's environment";
	report.trigger.baseline_iteration_ms = report.iteration_ms;
	*ret = report;
	return 0;
}
