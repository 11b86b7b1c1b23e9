/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/pacemarks.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *kind, *word;
	bool bad;
} kinds[] = {
	{ "slow", "slow", true },	   { "slow-over", "slow is over", false },
	{ "accepted", "accepted", false }, { "order", "order", false },
	{ "restart", "restart", true },
};

static void add(struct pacemarks *marks, int64_t at_ns, const char *word, bool bad,
		const char *text)
{
	size_t i = marks->cnt;

	if (i >= PACEMARKS_MAX) {
		marks->left_out++;
		return;
	}
	marks->cnt++;
	marks->marks[i].at_ns = at_ns;
	marks->marks[i].word = word;
	marks->marks[i].bad = bad;
	(void)snprintf(marks->marks[i].text, sizeof(marks->marks[i].text), "%s", text);
}

void pacemarks_note_event(struct pacemarks *marks, const struct store_event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(event->kind, kinds[i].kind) == 0)
			add(marks, event->at_ns, kinds[i].word, kinds[i].bad, event->text);
	}
}

void pacemarks_note_report(struct pacemarks *marks, const struct store_report *report,
			   size_t finding_cnt)
{
	char text[160];

	if (finding_cnt == 0)
		return;
	(void)snprintf(text, sizeof(text), "report %" PRIu64 ": %.120s", report->number,
		       report->reason != NULL ? report->reason : "");
	add(marks, report->made_ns, "finding", true, text);
}

/* Between the points around it, in proportion; before or behind all of them: -1. */
static double step_at(const struct pacemarks_point *points, size_t cnt, int64_t at_ns)
{
	double at_s = (double)at_ns / NSEC_PER_SEC;

	for (size_t i = 1; i < cnt; i++) {
		const struct pacemarks_point *a = &points[i - 1], *b = &points[i];

		if (at_s < (double)a->at_s || at_s >= (double)b->at_s)
			continue;
		return (double)a->step + ((double)b->step - (double)a->step) *
						 (at_s - (double)a->at_s) /
						 (double)(b->at_s - a->at_s);
	}
	return cnt > 0 && at_s >= (double)points[cnt - 1].at_s ? (double)points[cnt - 1].step
							       : -1.0;
}

static int by_step(const void *a, const void *b)
{
	const struct report_pace_mark *x = a, *y = b;

	return (x->step > y->step) - (x->step < y->step);
}

size_t pacemarks_place(struct pacemarks *marks, const struct pacemarks_point *points, size_t cnt)
{
	size_t placed = 0;

	for (size_t i = 0; i < marks->cnt; i++) {
		double step = step_at(points, cnt, marks->marks[i].at_ns);

		if (step < 0.0)
			continue;
		marks->placed[placed++] = (struct report_pace_mark){ .step = step,
								     .word = marks->marks[i].word,
								     .text = marks->marks[i].text,
								     .bad = marks->marks[i].bad };
	}
	qsort(marks->placed, placed, sizeof(marks->placed[0]), by_step);
	return placed;
}
