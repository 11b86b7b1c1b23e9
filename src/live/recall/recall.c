/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recall/recall.h"

#include "base/clock.h"
#include "memory/machinecause.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* Appends to the report's notes. */
static void add_note(struct report *report, const struct str *text)
{
	const char **notes;

	if (str_error(text) < 0 || text->len == 0)
		return;
	notes = arena_calloc(&report->arena, report->note_cnt + 1, sizeof(*notes));
	if (notes == NULL)
		return;
	if (report->note_cnt > 0)
		memcpy(notes, report->notes, report->note_cnt * sizeof(*notes));
	notes[report->note_cnt] = arena_strdup(&report->arena, str_borrow(text));
	if (notes[report->note_cnt] == NULL)
		return;
	report->notes = notes;
	report->note_cnt++;
}

static void append_day(struct str *out, int64_t at_ns)
{
	time_t at_s = at_ns / NSEC_PER_SEC;
	char text[16];
	struct tm tm;

	(void)gmtime_r(&at_s, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%d", &tm);
	str_append(out, text);
}

static void append_compared(const struct earlier_answer *answer, const char *key, struct str *out)
{
	str_append(out, "Its pace is ");
	earlier_append_clause(answer, out);
	str_append(out, ". They are those since ");
	append_day(out, answer->since_ns);
	str_append(out, " with the same command, number of ranks and kind of machine; what the "
			"command line does not say, such as a batch size in a file, is not seen.");
	if (answer->verdict == EARLIER_SLOWER)
		str_printf(out,
			   " `perftracker history %s` compares its fingerprints with those of %s.",
			   key, answer->like);
}

void recall_note_pace(struct report *report, const struct earlier_answer *answer, const char *key)
{
	struct str text = { 0 };

	if (answer->verdict == EARLIER_NONE)
		return;
	if (answer->verdict == EARLIER_UNKNOWN) {
		str_printf(&text,
			   "Its pace was not compared with that of %zu earlier run%s of "
			   "this name: ",
			   answer->run_cnt, plural((double)answer->run_cnt));
		earlier_append_whys(answer, &text);
		str_append(&text, ".");
	} else {
		append_compared(answer, key, &text);
	}
	add_note(report, &text);
	str_done(&text);
}

void recall_append_slower(const struct earlier_answer *answer, const char *before, struct str *out)
{
	if (answer == NULL || answer->verdict != EARLIER_SLOWER)
		return;
	str_append(out, before);
	earlier_append_clause(answer, out);
}

/* "3fa9d1e0b2c4/2 on 2026-11-20" */
static void append_place(struct str *out, const struct pastfinding *finding)
{
	if (finding->number == 0)
		str_printf(out, "%s/end on ", finding->job);
	else
		str_printf(out, "%s/%" PRIu64 " on ", finding->job, finding->number);
	append_day(out, finding->made_ns);
}

void recall_note_returned(struct report *report, const struct pastfindings *past,
			  const struct earlier *earlier)
{
	for (size_t i = 0; i < report->finding_cnt; i++) {
		const struct finding *finding = &report->findings[i];
		struct pastfinding_seen seen;
		struct str text = { 0 };

		pastfindings_find(past, earlier, finding->cause, finding->key, &seen);
		if (seen.last == NULL)
			continue;
		str_printf(&text,
			   "F%zu was here before: in %zu earlier run%s of this name, last in ",
			   i + 1, seen.job_cnt, plural((double)seen.job_cnt));
		append_place(&text, seen.last);
		str_printf(&text, " (%.1f ms per iteration then)", seen.last->gain_ms);
		if (seen.without != NULL) {
			str_printf(&text, "; it was gone in %s on ", seen.without->key);
			append_day(&text, seen.without->started_ns);
			str_append(&text, " and has returned");
		}
		str_append_char(&text, '.');
		add_note(report, &text);
		str_done(&text);
	}
}

static void append_gone(const struct pastfinding *finding, const struct earlier *earlier,
			const struct earlier_answer *answer, uint32_t workers, struct str *out)
{
	double ms = 0;

	str_printf(out, "%s (%s), of ", finding->title, finding->cause);
	append_place(out, finding);
	str_append(out, ", is gone: ");
	switch (pastfindings_back(finding, earlier, workers, &answer->pace, &ms)) {
	case PASTFINDING_BACK:
		str_printf(out,
			   "%.1f -> %.1f ms an iteration, %.1f ms came back (%.1f were expected)",
			   finding->iteration_ms, finding->iteration_ms - ms, ms, finding->gain_ms);
		break;
	case PASTFINDING_NOT_BACK:
		str_printf(out, "but its time did not come back, %.1f -> %.1f ms an iteration",
			   finding->iteration_ms, finding->iteration_ms - ms);
		break;
	case PASTFINDING_INCOMPARABLE:
		str_append(out, "what came back is not known, the runs differ in command, ranks or "
				"machine");
		break;
	}
}

void recall_note_gone(struct report *report, const struct pastfindings *past,
		      const struct earlier *earlier, const struct earlier_answer *answer,
		      struct str *closed)
{
	uint32_t workers = (uint32_t)MAX(report->workers_expected, 0);
	const struct pastfinding *finding;
	size_t at = 0;

	if (report->verdict != VERDICT_HEALTHY || report->finding_cnt > 0)
		return;
	while ((finding = pastfindings_next_gone(past, earlier, at, &at)) != NULL) {
		struct str text = { 0 };

		append_gone(finding, earlier, answer, workers, &text);
		if (closed->len == 0)
			str_append(closed, str_borrow(&text));
		str_append_char(&text, '.');
		add_note(report, &text);
		str_done(&text);
	}
}

static bool has_host(const struct report *report, size_t finding_idx, size_t host_idx)
{
	const char *name = report->findings[finding_idx].hosts[host_idx];

	for (size_t i = 0; i <= finding_idx; i++) {
		const struct finding *finding = &report->findings[i];
		size_t end = i == finding_idx ? host_idx : finding->host_cnt;

		for (size_t h = 0; h < end; h++) {
			if (machinecause_is(finding->cause) && strcmp(finding->hosts[h], name) == 0)
				return true;
		}
	}
	return false;
}

static void note_host(struct report *report, const struct hosttally_host *host)
{
	struct str text = { 0 };

	str_printf(&text, "Host %s was accused in %zu other jobs (", host->name, host->jobs.cnt);
	for (size_t i = 0; i < host->kind_cnt; i++)
		str_printf(&text, "%s%s %zu", i > 0 ? ", " : "", host->kinds[i].cause,
			   host->kinds[i].cnt);
	str_append(&text, "), last on ");
	append_day(&text, host->last_ns);
	str_append(&text, ": `perftracker hosts` lists them.");
	add_note(report, &text);
	str_done(&text);
}

void recall_note_hosts(struct report *report, const struct hosttally *tally)
{
	for (size_t i = 0; i < report->finding_cnt; i++) {
		const struct finding *finding = &report->findings[i];

		for (size_t h = 0; h < finding->host_cnt && machinecause_is(finding->cause); h++) {
			const struct hosttally_host *host =
				hosttally_find(tally, finding->hosts[h]);

			if (host != NULL && host->jobs.cnt >= HOSTTALLY_JOBS_MIN &&
			    !has_host(report, i, h))
				note_host(report, host);
		}
	}
}
