/* SPDX-License-Identifier: Apache-2.0 */
/* The tool that says whether a change helped, from two reports. */
#include "mcp/mcp_parts.h"
#include "repair/repair.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static void put_side(struct tool_call *call, const char *key, const struct repair_side *side)
{
	static const char *const keys[] = { "verdict", "reason", NULL };
	static const char *const of_job[] = { "world_size", "iterations", "iteration_ms", NULL };
	json_t *object = json_object();

	jsonwriter_put_text(&call->answer->w, object, "report", side->name);
	toolanswer_copy(&call->answer->w, object, side->root, keys);
	toolanswer_copy(&call->answer->w, object, json_object_get(side->root, "job"), of_job);
	toolanswer_put(call->answer, key, object);
}

static void push_finding(struct tool_call *call, const char *state, const json_t *before,
			 const json_t *after)
{
	static const char *const keys[] = { "id", "cause", "title", "ranks", NULL };
	struct json_writer *w = &call->answer->w;
	json_t *object = json_object();

	jsonwriter_put_text(w, object, "state", state);
	toolanswer_copy(w, object, before != NULL ? before : after, keys);
	jsonwriter_put(w, object, "before_ms",
		       json_incref(before != NULL ? json_object_get(before, "gain_ms_per_iteration")
						  : json_null()));
	jsonwriter_put(w, object, "after_ms",
		       json_incref(after != NULL ? json_object_get(after, "gain_ms_per_iteration")
						 : json_null()));
	(void)toolanswer_push(call->answer, "findings", object);
}

static void put_repair(struct tool_call *call, const struct repair *repair)
{
	toolanswer_put(call->answer, "verdict",
		       jsonwriter_text(repair_verdict_name(repair->verdict)));
	toolanswer_put(call->answer, "why", jsonwriter_text(repair->reason));
	toolanswer_put(call->answer, "promised_ms", jsonwriter_number(repair->promised_ms));
	toolanswer_put(call->answer, "returned_ms", jsonwriter_number(repair->returned_ms));
	toolanswer_put(call->answer, "chance_ms", jsonwriter_number(repair->chance_ms));
	put_side(call, "before", &repair->before);
	put_side(call, "after", &repair->after);
	toolanswer_put(call->answer, "findings", json_array());
	for (size_t i = 0; i < repair->findings.cnt; i++)
		push_finding(call, repair_state_name(repair->findings.data[i].state),
			     repair->findings.data[i].before, repair->findings.data[i].after);
	vec_foreach(one, &repair->appeared)
		push_finding(call, "new", NULL, *one);
	str_printf(&call->answer->says, "%s: %s.", repair_verdict_name(repair->verdict),
		   repair->reason);
}

int tool_compare_runs(struct tool_call *call)
{
	struct repair_side before = { .name = NULL }, after = { .name = NULL };
	struct openreport *open = &call->mcp->report, first = { .root = NULL };
	struct archive *archive = call->mcp->options.archive;
	struct repair repair = { .judged = 0 };
	int r = openreport_find(&first, archive, tool_text(call, "before"), call->err);

	if (r == 0)
		r = tool_open_report(call, "after", &after.root);
	if (r == 0) {
		before.name = first.id;
		before.root = first.root;
		after.name = open->id;
		r = repair_judge(&before, &after, NULL, &repair, call->err);
		if (r == 0)
			put_repair(call, &repair);
		repair_done(&repair);
	}
	if (r == 0)
		toolanswer_next(call->answer, "get_report", "report", open->id, NULL, NULL);
	openreport_done(&first);
	return r;
}
