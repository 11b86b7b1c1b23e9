/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/doubt.h"

#include "base/str.h"

#include <string.h>

static bool same_ranks(const struct finding *a, const struct finding *b)
{
	if (a->all_workers || b->all_workers)
		return a->all_workers == b->all_workers;
	return a->rank_cnt == b->rank_cnt &&
	       memcmp(a->ranks, b->ranks, a->rank_cnt * sizeof(*a->ranks)) == 0;
}

/* The function may differ: one window sees the leaf, another its caller. */
static bool agree(const struct report *a, const struct report *b)
{
	const struct finding *x = &a->findings[0], *y = &b->findings[0];

	return same_ranks(x, y) &&
	       (strcmp(x->cause, y->cause) == 0 || strcmp(x->name, y->name) == 0);
}

static bool same_report_ranks(const struct doubt *doubt, const struct report *report)
{
	return same_ranks(&doubt->report.findings[0], &report->findings[0]);
}

static bool accuses(const struct report *report)
{
	return report->verdict == VERDICT_ABNORMAL && report->finding_cnt > 0;
}

/* Replaces the reason and frees the text. False: memory is short, and the report is as it was. */
static bool set_reason(struct report *report, struct str *reason)
{
	const char *text = NULL;

	if (str_error(reason) == 0)
		text = arena_strdup(&report->arena, str_borrow(reason));
	if (text != NULL)
		report->reason = text;
	str_done(reason);
	return text != NULL;
}

/* Whether a window cannot contradict the one before: it lacks ranks, or names the same one. */
static bool leaves_open(const struct finding *before, const struct report *report)
{
	if (report->verdict == VERDICT_INCOMPLETE)
		return true;
	return report->verdict == VERDICT_INCONCLUSIVE && report->has_suspect &&
	       before->rank_cnt == 1 && before->ranks[0] == report->suspect;
}

/*
 * A window that names the rank which the one before accused, but may mean chance, tells what that
 * one had found: a place to look at, though no finding. So does one that lacks ranks.
 */
static void join(const struct doubt *doubt, struct report *report)
{
	const struct finding *f;
	struct str reason = { 0 };

	if (!doubt->present)
		return;
	f = &doubt->report.findings[0];
	if (!leaves_open(f, report))
		return;
	str_printf(&reason, "%s; the window before had: %s", report->reason, f->title);
	(void)set_reason(report, &reason);
}

/* What one window alone shows is weak evidence. */
static void weaken(struct report *report)
{
	struct finding *copy = arena_calloc(&report->arena, report->finding_cnt + 1, sizeof(*copy));

	if (copy == NULL)
		return;
	memcpy(copy, report->findings, report->finding_cnt * sizeof(*copy));
	for (size_t i = 0; i < report->finding_cnt; i++)
		copy[i].confidence = CONFIDENCE_LOW;
	report->findings = copy;
}

/* Keeps the finding without a word if memory is short. */
static void call_it_chance(struct report *report, const struct report *before)
{
	struct str reason = { 0 };

	str_printf(
		&reason,
		"the check-ups of a job that was not found slow contradict one another (%s; then "
		"%s): other programs on the hosts may disturb it",
		before->findings[0].title, report->findings[0].title);
	if (!set_reason(report, &reason))
		return;
	report->verdict = VERDICT_INCONCLUSIVE;
	report->finding_cnt = 0;
}

/* What a machine shows that is busy with other programs. */
static bool may_be_a_moment(const struct finding *finding)
{
	return strcmp(finding->cause, "more-than-before") == 0 ||
	       strcmp(finding->cause, "cpu-starvation") == 0 ||
	       strcmp(finding->cause, "unexplained-difference") == 0;
}

bool moment_waits(const struct moment *moment, const struct report *report, int64_t slow_ns)
{
	if (report->failure_cnt > 0)
		return false;
	if (report->verdict == VERDICT_SLOW && report->alike_factor > 0)
		return slow_ns < MOMENT_ALIKE_NS;
	if (moment->seen)
		return false;
	for (size_t i = 0; i < report->finding_cnt; i++) {
		if (!may_be_a_moment(&report->findings[i]))
			return false;
	}
	return report->verdict == VERDICT_ABNORMAL || report->verdict == VERDICT_SLOW ||
	       report->verdict == VERDICT_INCONCLUSIVE;
}

void doubt_drop(struct doubt *doubt)
{
	if (doubt->present)
		arena_done(&doubt->report.arena);
	*doubt = (struct doubt){ 0 };
}

bool doubt_keeps(struct doubt *doubt, struct report *report, uint64_t number)
{
	unsigned window_cnt = doubt->window_cnt + 1;
	bool same;

	if (!accuses(report) || (doubt->present && agree(&doubt->report, report))) {
		join(doubt, report);
		doubt_drop(doubt);
		return false;
	}
	if (window_cnt == DOUBT_WINDOW_CNT && doubt->same && same_report_ranks(doubt, report)) {
		doubt_drop(doubt);
		return false;
	}
	if (window_cnt == DOUBT_WINDOW_CNT) {
		call_it_chance(report, &doubt->report);
		doubt_drop(doubt);
		return false;
	}
	same = !doubt->present || same_report_ranks(doubt, report);
	doubt_drop(doubt);
	*doubt = (struct doubt){ true, same, window_cnt, *report, number };
	return true;
}

bool doubt_take(struct doubt *doubt, struct report *ret, uint64_t *ret_number)
{
	const char *text;

	if (!doubt->present)
		return false;
	*ret = doubt->report;
	ret->verdict = VERDICT_INCONCLUSIVE;
	weaken(ret);
	text = arena_printf(&ret->arena,
			    "one window only, which no second one confirmed before the end: %s",
			    ret->findings[0].title);
	ret->reason = text != NULL ? text : ret->reason;
	*ret_number = doubt->number;
	*doubt = (struct doubt){ 0 };
	return true;
}

void moment_keep(struct moment *moment, const struct report *report, uint64_t number)
{
	doubt_drop(&moment->first);
	*moment = (struct moment){ true, { true, true, 1, *report, number } };
}

bool moment_take(struct moment *moment, struct report *ret, uint64_t *ret_number)
{
	if (!moment->first.present)
		return false;
	*ret = moment->first.report;
	*ret_number = moment->first.number;
	moment->first = (struct doubt){ 0 };
	return true;
}

void moment_end(struct moment *moment)
{
	doubt_drop(&moment->first);
	moment->seen = false;
}
