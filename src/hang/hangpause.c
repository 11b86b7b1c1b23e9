/* SPDX-License-Identifier: Apache-2.0 */
/* What looks like a hang and may only take long, or be a moment of a job that goes on. */
#include "base/str.h"
#include "hang/hang_parts.h"
#include "hang/longcalls.h"

#include <errno.h>
#include <string.h>

/* How long the job is quiet, at most, for a rank whose dump has no collective; 0: unknown. */
static int64_t others_quiet(const struct blocked *b)
{
	int64_t least_ns = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		const int64_t quiet_ns = b->records[i].quiet_ns;

		if (quiet_ns > 0 && (least_ns == 0 || quiet_ns < least_ns))
			least_ns = quiet_ns;
	}
	return least_ns;
}

/* The longest that it can be silent; 0: a dump without times. */
static int64_t silent_at_most(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];

	if (record->silent_ns > 0)
		return record->silent_ns;
	return record->quiet_ns > 0 ? record->quiet_ns : others_quiet(b);
}

/* Of one sample, or of a dump without times: whether the training thread may be at work. */
static bool may_work(const struct blocked *b, size_t i)
{
	const struct stacks_process *stacks = b->records[i].stacks;

	if (stacks == NULL)
		return false;
	if (stacks->twice)
		return (b->stackfacts[i].facts & HANG_MOVES) != 0;
	return longcalls_find(hang_stack(b, i)) != NULL ||
	       (stacks->thread_cnt > 0 && stacks->threads[0].state == 'R' &&
		(b->stackfacts[i].facts & HANG_GPU) == 0);
}

bool hang_may_pause(const struct blocked *b, size_t i)
{
	const struct hang_record *record = &b->records[i];
	const int64_t silent_ns = silent_at_most(b, i);
	const bool unseen = *hang_stack(b, i) == '\0' && record->silent_ns == 0;

	if (silent_ns > 0)
		return silent_ns < HANG_PAUSE_NS &&
		       (unseen || longcalls_find(hang_stack(b, i)) != NULL);
	if (record->marks_known || strcmp(record->source, "live") == 0)
		return false;
	return may_work(b, i);
}

/* Whether most dumps were written shortly after a collective was launched. Returns the rank; -1: no. */
static int goes_on(const struct blocked *b)
{
	size_t cnt = 0, fresh = 0;
	int rank = -1;

	for (size_t i = 0; i < b->cnt; i++) {
		const int64_t quiet_ns = b->records[i].quiet_ns;

		cnt += quiet_ns > 0;
		if (quiet_ns <= 0 || quiet_ns >= HANG_QUIET_NS)
			continue;
		fresh++;
		rank = rank < 0 ? b->records[i].rank : rank;
	}
	return 2 * fresh > cnt ? rank : -1;
}

bool hang_is_pause(const struct blocked *b, size_t *ret_first)
{
	size_t cnt = 0;

	if (goes_on(b) >= 0)
		return true;
	for (size_t i = 0; i < b->cnt; i++) {
		if (b->rules[i] == HANG_NO_RULE)
			continue;
		if (!hangrules[b->rules[i]].pause)
			return false;
		*ret_first = cnt++ == 0 ? i : *ret_first;
	}
	return cnt > 0;
}

static const char *why(const struct blocked *b, size_t first)
{
	const struct hang_record *record = &b->records[first];
	const char *does = longcalls_find(hang_stack(b, first));
	const int64_t silent_ns = silent_at_most(b, first);

	if (does != NULL && silent_ns > 0)
		return arena_printf(
			b->arena,
			"rank %d %s since %.0f s, which may only take long: a hang is reported after %d s",
			record->rank, does, (double)silent_ns / NSEC_PER_SEC,
			(int)(HANG_PAUSE_NS / NSEC_PER_SEC));
	if (does != NULL)
		return arena_printf(
			b->arena,
			"rank %d %s, which may only take long: the dumps do not say how "
			"long it has taken",
			record->rank, does);
	if (b->all_move)
		return "no iteration ends, but all ranks run, and their stacks move";
	if (silent_ns > 0)
		return arena_printf(
			b->arena,
			"rank %d has not entered a collective that others are in for %.0f s, which may "
			"only take long: a hang is reported after %d s, and its stack shows what it does",
			record->rank, (double)silent_ns / NSEC_PER_SEC,
			(int)(HANG_PAUSE_NS / NSEC_PER_SEC));
	return arena_printf(
		b->arena,
		"rank %d is at work in %s while others wait: the dumps do not say for how "
		"long; perftracker stacks --twice 2, or a flight recorder, shows more",
		record->rank, hang_innermost(b, first));
}

int hang_say_pause(const struct blocked *b, size_t first, struct report *report)
{
	const int rank = goes_on(b);

	report->verdict = VERDICT_INCONCLUSIVE;
	report->finding_cnt = 0;
	if (rank >= 0)
		report->reason = arena_printf(
			b->arena,
			"most ranks, such as rank %d, have launched a collective in the %d s before "
			"their dumps were written: the job may go on",
			rank, (int)(HANG_QUIET_NS / NSEC_PER_SEC));
	else
		report->reason = why(b, first);
	return report->reason != NULL ? 0 : -ENOMEM;
}
