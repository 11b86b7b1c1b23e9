/* SPDX-License-Identifier: Apache-2.0 */
#include "live/stallnotes/stallnotes.h"

#include <errno.h>
#include <string.h>

void stallnotes_keep(struct stallnotes *notes, const struct report *report, uint64_t number)
{
	stallnotes_drop(notes);
	*notes = (struct stallnotes){ true, *report, number };
}

void stallnotes_drop(struct stallnotes *notes)
{
	if (notes->present)
		arena_done(&notes->report.arena);
	*notes = (struct stallnotes){ 0 };
}

/* The texts with the lines behind them, in the arena. NULL: out of memory. */
static const char **extend(struct arena *arena, const char *const *texts, size_t cnt,
			   const struct wire_stalls *stalls)
{
	const size_t line_cnt = MIN(stalls->line_cnt, WIRE_STALL_LINES);
	const char **ret = arena_calloc(arena, cnt + line_cnt, sizeof(*ret));

	if (ret == NULL)
		return NULL;
	if (cnt > 0)
		memcpy(ret, texts, cnt * sizeof(*ret));
	for (size_t i = 0; i < line_cnt; i++) {
		ret[cnt + i] = arena_printf(arena, "stall window after this report: %.*s",
					    (int)sizeof(stalls->lines[0]) - 1, stalls->lines[i]);
		if (ret[cnt + i] == NULL)
			return NULL;
	}
	return ret;
}

static int add_to_finding(struct report *report, size_t index, const struct wire_stalls *stalls)
{
	struct finding *findings =
		arena_calloc(&report->arena, report->finding_cnt, sizeof(*findings));
	struct finding *finding;
	const char **evidence;

	if (findings == NULL)
		return -ENOMEM;
	memcpy(findings, report->findings, report->finding_cnt * sizeof(*findings));
	finding = &findings[index];
	evidence = extend(&report->arena, finding->evidence, finding->evidence_cnt, stalls);
	if (evidence == NULL)
		return -ENOMEM;
	finding->evidence = evidence;
	finding->evidence_cnt += MIN(stalls->line_cnt, WIRE_STALL_LINES);
	report->findings = findings;
	return 0;
}

int stallnotes_add(struct stallnotes *notes, const struct wire_stalls *stalls)
{
	struct report *report = &notes->report;
	const char **lines;

	if (!notes->present || notes->number != stalls->number)
		return -ENOENT;
	for (size_t i = 0; i < report->finding_cnt; i++)
		if (stalls_may_explain(report->findings[i].cause))
			return add_to_finding(report, i, stalls);
	lines = extend(&report->arena, report->notes, report->note_cnt, stalls);
	if (lines == NULL)
		return -ENOMEM;
	report->notes = lines;
	report->note_cnt += MIN(stalls->line_cnt, WIRE_STALL_LINES);
	return 0;
}
