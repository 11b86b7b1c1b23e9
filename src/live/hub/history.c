/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/history.h"

#include <inttypes.h>

static struct history_slowdown *latest(struct history *history)
{
	return history->cnt > 0 ? &history->slowdowns[history->cnt - 1] : NULL;
}

const struct history_slowdown *history_open(const struct history *history)
{
	const struct history_slowdown *last =
		history->cnt > 0 ? &history->slowdowns[history->cnt - 1] : NULL;

	return last != NULL && last->until_step == 0 ? last : NULL;
}

/* If there is no room, the latest one makes way. */
static void begin(struct history *history, const struct jobstate_pace *pace)
{
	if (history->cnt == HISTORY_MAX) {
		history->cnt--;
		history->dropped++;
	}
	history->slowdowns[history->cnt++] = (struct history_slowdown){
		.since_step = pace->slow_since_step,
		.baseline_ns = pace->baseline_ns,
		.now_ns = pace->now_ns,
	};
}

void history_pace(struct history *history, bool slow, const struct jobstate_pace *pace,
		  uint64_t step)
{
	bool open = history_open(history) != NULL;

	if (slow && !open)
		begin(history, pace);
	else if (slow)
		latest(history)->now_ns = MAX(latest(history)->now_ns, pace->now_ns);
	else if (open)
		latest(history)->until_step = MAX(step, UINT64_C(1));
}

void history_report(struct history *history, uint64_t number, enum verdict verdict)
{
	struct history_slowdown *last = latest(history);

	/* A window without a finding does not hide one with a finding. */
	if (last == NULL || (last->verdict == VERDICT_ABNORMAL && verdict != VERDICT_ABNORMAL))
		return;
	last->reported = true;
	last->report = number;
	last->verdict = verdict;
}

void history_append(const struct history *history, struct str *out)
{
	for (size_t i = 0; i < history->cnt; i++) {
		const struct history_slowdown *s = &history->slowdowns[i];

		if (s->until_step == 0 || !s->reported)
			continue;
		str_printf(out,
			   "; a slowdown from step %" PRIu64 " to %" PRIu64
			   " (%.1f -> %.1f ms) is over%s: report-%" PRIu64 ".html",
			   s->since_step, s->until_step, (double)s->baseline_ns / NSEC_PER_MSEC,
			   (double)s->now_ns / NSEC_PER_MSEC,
			   s->verdict == VERDICT_ABNORMAL ? "" : ", its cause was not found",
			   s->report);
	}
	if (history->dropped > 0)
		str_printf(out, "; %" PRIu64 " more slowdowns", history->dropped);
}
