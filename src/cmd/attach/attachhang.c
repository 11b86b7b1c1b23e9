/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/attachhang.h"

#include "base/clock.h"
#include "hang/hangdiagnosis.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>

enum { BETWEEN_MS = 2000 };

/* Twice: a thread in a loop has another stack then. */
static int read_twice(struct attachhang *hang, const struct jobranks *ranks, struct err *err)
{
	int error = 0;

	for (size_t i = 0; i < ranks->ranks.cnt && error == 0; i++)
		error = stackslist_add(&hang->list, ranks->ranks.data[i].pid,
				       ranks->ranks.data[i].rank);
	if (error < 0)
		return err_set(err, ENOMEM, "out of memory");
	error = stackssample_take(&hang->before, &hang->list, true, err);
	if (error == 0) {
		(void)poll(NULL, 0, BETWEEN_MS);
		error = stackssample_take(&hang->now, &hang->list, true, err);
	}
	if (error == 0)
		stackssample_compare(&hang->before, &hang->now);
	return error;
}

static int find_children(const struct attachhang *hang, struct arena *arena,
			 struct hang_record *ret)
{
	const struct stacks_process **children =
		arena_calloc(arena, hang->now.processes.cnt + 1, sizeof(*children));

	if (children == NULL)
		return -ENOMEM;
	ret->children = children;
	vec_foreach(process, &hang->now.processes) {
		if ((*process)->parent == ret->pid)
			children[ret->child_cnt++] = *process;
	}
	return 0;
}

static int fill_record(const struct attachhang *hang, size_t index, int64_t still_ns,
		       struct report *report, struct hang_record *ret)
{
	const struct stacks_process *process = hang->now.processes.data[index];

	*ret = (struct hang_record){
		.rank = hang->list.entries.data[index].rank,
		.world_size = report->world_size,
		.pid = process->pid,
		.host = "",
		.source = "live",
		.process = process->state,
		.silent_ns = still_ns,
		.stack = "",
		.leaf = "",
		.awaited = "",
		.ended = "",
		.says = "",
		.child = "",
		.stacks = process,
	};
	return find_children(hang, &report->arena, ret);
}

static int judge(const struct attachhang *hang, size_t rank_cnt, int64_t still_ns,
		 struct report *report)
{
	struct hang_record *records = arena_calloc(&report->arena, rank_cnt + 1, sizeof(*records));
	const struct hang_facts facts = { .records = records, .cnt = rank_cnt };
	int error = records != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < rank_cnt && error == 0; i++)
		error = fill_record(hang, i, still_ns, report, &records[i]);
	return error == 0 ? hangdiagnosis_make(&facts, report) : error;
}

/* A job that was not watched has no timeline: its stacks are all there is. */
static void advise(struct report *report)
{
	struct finding *findings = (struct finding *)(uintptr_t)report->findings;

	for (size_t i = 0; i < report->finding_cnt; i++)
		if (strstr(findings[i].advice, "perftracker timeline") != NULL)
			findings[i].advice =
				"See why this rank does not come to where the others wait: its stack is "
				"below, those of all threads are shown by `perftracker stacks --each "
				"PID`. Under `perftracker run` a timeline shows what came before.";
	if (report->verdict == VERDICT_STUCK)
		report->reason = "nothing moves, and nothing shows for which rank the others wait: "
				 "compare the stacks below";
}

static int add_note(int64_t still_ns, struct report *report)
{
	const char **notes = arena_calloc(&report->arena, report->note_cnt + 2, sizeof(*notes));

	if (notes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < report->note_cnt; i++)
		notes[i] = report->notes[i];
	notes[report->note_cnt] = arena_printf(
		&report->arena,
		"nothing moved in the %.0f s of sampling; a pause that is longer looks the same: "
		"repeat it with a longer --seconds if the job may pause",
		(double)still_ns / NSEC_PER_SEC);
	report->notes = notes;
	return notes[report->note_cnt++] != NULL ? 0 : -ENOMEM;
}

int attachhang_make(struct attachhang *hang, const struct jobranks *ranks, int64_t still_ns,
		    struct report *report, struct err *err)
{
	int error;

	*hang = (struct attachhang){ 0 };
	error = read_twice(hang, ranks, err);
	if (error < 0)
		return error;
	report->world_size = MAX(ranks->world_size, (int)ranks->ranks.cnt);
	report->workers_expected = report->world_size;
	report->rank_source = "the environments of the processes";
	report->iterations = report->iteration_ms = (double)NAN;
	error = judge(hang, ranks->ranks.cnt, still_ns, report);
	if (error == 0) {
		advise(report);
		error = add_note(still_ns, report);
	}
	return error < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

void attachhang_done(struct attachhang *hang)
{
	stackssample_done(&hang->before);
	stackssample_done(&hang->now);
	stackslist_done(&hang->list);
}
