/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recall/recall.h"

#include "base/clock.h"

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

static void append_compared(const struct earlier_answer *answer, struct str *out)
{
	str_append(out, "Its pace is ");
	earlier_append_clause(answer, out);
	str_append(out, ". They are those since ");
	append_day(out, answer->since_ns);
	str_append(out, " with the same command, number of ranks and kind of machine; what the "
			"command line does not say, such as a batch size in a file, is not seen.");
	if (answer->verdict == EARLIER_SLOWER)
		str_printf(out, " `perftracker diff %s %s` compares fingerprints, once this run is "
				"in the store as well.",
			   answer->like, "THIS-JOB");
}

void recall_note_pace(struct report *report, const struct earlier_answer *answer)
{
	struct str text = { 0 };

	if (answer->verdict == EARLIER_NONE)
		return;
	if (answer->verdict == EARLIER_UNKNOWN) {
		str_printf(&text, "Its pace was not compared with that of %zu earlier run%s of "
				  "this name: ",
			   answer->run_cnt, plural((double)answer->run_cnt));
		earlier_append_whys(answer, &text);
		str_append(&text, ".");
	} else {
		append_compared(answer, &text);
	}
	add_note(report, &text);
	str_done(&text);
}

void recall_append_slower(const struct earlier_answer *answer, const char *before,
			  struct str *out)
{
	if (answer == NULL || answer->verdict != EARLIER_SLOWER)
		return;
	str_append(out, before);
	earlier_append_clause(answer, out);
}
