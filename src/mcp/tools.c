/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools: what an agent may call, with which arguments. */
#include "base/text/nearest.h"
#include "mcp/mcp_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define TEXT(named, text) { .name = (named), .about = (text) }
#define NEEDED(named, text) { .name = (named), .about = (text), .required = true }
#define WORDS(named, list, text) { .name = (named), .words = (list), .about = (text) }
#define NUMBER(named, least, most, text) { .name = (named), .low = (least), .high = (most), .about = (text) }
#define REPORT TEXT("report", "Id of a report, as list_jobs has them; or JOB/NUMBER, a job's name, or a part of the path. Absent: the newest.")
#define CURSOR NUMBER("cursor", 0, INT32_MAX, "cursor of the answer before.")

static const struct tool_param list_params[] = {
	TEXT("filter", "A part of name, path, host, owner, command or verdict, in any case."),
	TEXT("state", "Jobs in this state only: running, slow, ended, failed, lost, ..."),
	TEXT("cursor", "cursor of the answer before."),
};
static const struct tool_param job_params[] = {
	NEEDED("job", "Key of a job, its beginning, or its name."),
};
static const struct tool_param report_params[] = {
	REPORT,
	WORDS("part", "summary|findings|functions|kernels|collectives|waits|growth|notes", "summary (absent): verdict and findings in short. The others are lists in full."),
	CURSOR,
};
static const struct tool_param explain_params[] = {
	REPORT,
	TEXT("finding", "F1, F2, ... in the order of get_report, or an id such as PT-103. Absent: F1."),
};
static const struct tool_param rank_params[] = {
	REPORT,
	WORDS("measure", "iteration_ms|late_ms|compute_ms|memory_ms|comm_ms|host_ms|idle_ms|gpu_busy_pct|gpu_starved_pct|launch_delay_us", "What to compare, a mean over the window. Absent: iteration_ms."),
	TEXT("ranks", "Only these ranks, each by itself: \"0-3,7\". Absent: quantiles, and ranks far from the median."),
	CURSOR,
};
static const struct tool_param tree_params[] = {
	REPORT,
	NUMBER("node", 0, INT32_MAX, "Number of a function in an answer before: what it calls. Absent: the outermost."),
	TEXT("function", "A part of a function's name: where it is, its callers and callees."),
	CURSOR,
};
static const struct tool_param stacks_params[] = { REPORT, CURSOR };
static const struct tool_param compare_params[] = {
	NEEDED("before", "The report before a change, as for get_report."),
	NEEDED("after", "The report after it."),
};
static const struct tool_param host_params[] = {
	TEXT("host", "A host, or a part of its name. Absent: those accused in most jobs."),
	CURSOR,
};
static const struct tool_param profile_params[] = {
	TEXT("job", "Name of a running job of this user, or its folder. Absent: the newest."),
};
#define PARAMS(list) .params = (list), .param_cnt = ARRAY_SIZE(list)

static const struct tool tools[] = {
	{ "list_jobs", "Jobs and reports", "Begin here. Jobs of the store, the newest first, then reports in folders; each with verdict and the id of its report.", tool_list_jobs, PARAMS(list_params) },
	{ "get_job", "One job", "A job of the store: state, pace, its reports and latest events.", tool_get_job, PARAMS(job_params) },
	{ "get_report", "A report", "What is wrong with a job: verdict, findings (function, ranks, hosts, gain, confidence), coverage.", tool_get_report, PARAMS(report_params) },
	{ "explain_finding", "A finding", "One finding: evidence, what speaks against it, what is not known, advice, and what would refute it.", tool_explain_finding, PARAMS(explain_params) },
	{ "rank_table", "Ranks compared", "One measure over all ranks: quantiles, and ranks far from the median as sets with their hosts.", tool_rank_table, PARAMS(rank_params) },
	{ "call_tree", "Call tree of the culprit", "Time per iteration of a flagged rank beside its peers, one level of callers and callees for a call.", tool_call_tree, PARAMS(tree_params) },
	{ "stacks", "Stacks of a job that hangs", "Merged stacks of all threads with the ranks that are in them, and the ranks that are absent.", tool_stacks, PARAMS(stacks_params) },
	{ "compare_runs", "Two reports compared", "Whether a change helped: findings that are gone, smaller or still there, and milliseconds that came back.", tool_compare_runs, PARAMS(compare_params) },
	{ "host_history", "Accused hosts", "How often findings accused a host, in how many jobs, of what.", tool_host_history, PARAMS(host_params) },
	{ "request_profile", "Profile now", "Asks a running job for a profile of all ranks. It costs the job a little time; a report follows.", tool_request_profile, PARAMS(profile_params), .writes = true },
};
/* clang-format on */

/* --- their description --- */

static json_t *words_of(struct json_writer *w, const char *words)
{
	json_t *ret = json_array();

	while (*words != '\0') {
		size_t len = strcspn(words, "|");

		jsonwriter_push(w, ret, json_stringn(words, len));
		words += len + (words[len] == '|');
	}
	return ret;
}

static json_t *schema_of(struct json_writer *w, const struct tool *tool)
{
	json_t *ret = json_object(), *properties = json_object(), *required = json_array();

	for (size_t i = 0; i < tool->param_cnt; i++) {
		const struct tool_param *param = &tool->params[i];
		json_t *one = json_object();

		jsonwriter_put_text(w, one, "type", param->high != 0 ? "integer" : "string");
		if (param->high != 0)
			jsonwriter_put(w, one, "minimum", json_integer(param->low));
		if (param->words != NULL)
			jsonwriter_put(w, one, "enum", words_of(w, param->words));
		jsonwriter_put_text(w, one, "description", param->about);
		jsonwriter_put(w, properties, param->name, one);
		if (param->required)
			jsonwriter_push(w, required, jsonwriter_text(param->name));
	}
	jsonwriter_put_text(w, ret, "type", "object");
	jsonwriter_put(w, ret, "properties", properties);
	jsonwriter_put(w, ret, "required", required);
	jsonwriter_put(w, ret, "additionalProperties", json_false());
	return ret;
}

static json_t *describe(struct json_writer *w, const struct tool *tool)
{
	json_t *ret = json_object(), *hints = json_object();

	jsonwriter_put(w, hints, "readOnlyHint", json_boolean(!tool->writes));
	jsonwriter_put(w, hints, "destructiveHint", json_false());
	jsonwriter_put(w, hints, "openWorldHint", json_false());
	jsonwriter_put_text(w, ret, "name", tool->name);
	jsonwriter_put_text(w, ret, "title", tool->title);
	jsonwriter_put_text(w, ret, "description", tool->about);
	jsonwriter_put(w, ret, "inputSchema", schema_of(w, tool));
	jsonwriter_put(w, ret, "annotations", hints);
	return ret;
}

static bool is_on(const struct mcp *mcp, const struct tool *tool)
{
	return !tool->writes || mcp->options.profile != NULL;
}

json_t *tools_list(struct mcp_request *request)
{
	json_t *ret = json_object(), *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (is_on(request->mcp, &tools[i]))
			jsonwriter_push(&request->w, list, describe(&request->w, &tools[i]));
	}
	jsonwriter_put(&request->w, ret, "tools", list);
	return ret;
}

/* --- arguments --- */

const char *tool_text(const struct tool_call *call, const char *name)
{
	const char *text = json_string_value(json_object_get(call->arguments, name));

	return text != NULL && text[0] != '\0' ? text : NULL;
}

int64_t tool_number(const struct tool_call *call, const char *name, int64_t preset)
{
	const json_t *value = json_object_get(call->arguments, name);

	return json_is_integer(value) ? json_integer_value(value) : preset;
}

static const struct tool_param *find_param(const struct tool *tool, const char *name)
{
	for (size_t i = 0; i < tool->param_cnt; i++) {
		if (strcmp(tool->params[i].name, name) == 0)
			return &tool->params[i];
	}
	return NULL;
}

static bool is_word(const char *words, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = strstr(words, text); at != NULL && len > 0;
	     at = strstr(at + 1, text)) {
		if ((at == words || at[-1] == '|') && (at[len] == '|' || at[len] == '\0') &&
		    strchr(text, '|') == NULL)
			return true;
	}
	return false;
}

static int check_value(const struct tool_param *param, const json_t *value, struct err *err)
{
	const char *text = json_string_value(value);

	if (param->high != 0) {
		if (json_is_integer(value) && json_integer_value(value) >= param->low &&
		    json_integer_value(value) <= param->high)
			return 0;
		return err_set(err, EINVAL, "%s: expected an integer from %" PRId64 " on",
			       param->name, param->low);
	}
	if (text == NULL)
		return err_set(err, EINVAL, "%s: expected a text", param->name);
	if (param->words != NULL && text[0] != '\0' && !is_word(param->words, text))
		return err_set(err, EINVAL, "%s: expected %s", param->name, param->words);
	return 0;
}

static int no_param(const struct tool *tool, const char *name, struct err *err)
{
	struct nearest nearest;
	char names[160] = "";

	nearest_init(&nearest, name, strnlen(name, 64));
	for (size_t i = 0; i < tool->param_cnt; i++) {
		size_t used = strlen(names);

		nearest_offer(&nearest, tool->params[i].name);
		(void)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
			       tool->params[i].name);
	}
	if (nearest.best != NULL)
		return err_set(err, EINVAL, "no argument is called so: did you mean %s?",
			       nearest.best);
	return err_set(err, EINVAL, "no argument is called so: %s takes %s", tool->name, names);
}

/* The names of arguments come from the agent; a line does not repeat what is no name. */
static int check_arguments(const struct tool *tool, const json_t *arguments, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
	{
		const struct tool_param *param = find_param(tool, key);
		int r = param != NULL ? 0 : no_param(tool, key, err);

		if (r == 0 && !json_is_null(value))
			r = check_value(param, value, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < tool->param_cnt; i++) {
		const struct tool_param *param = &tool->params[i];
		const char *text = json_string_value(json_object_get(arguments, param->name));

		if (param->required && (text == NULL || text[0] == '\0'))
			return err_set(err, EINVAL, "%s is missing: %s", param->name, param->about);
	}
	return 0;
}

/* --- a call --- */

static json_t *no_tool(struct mcp_request *request, const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name, strnlen(name, 64));
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (is_on(request->mcp, &tools[i]))
			nearest_offer(&nearest, tools[i].name);
	}
	if (nearest.best != NULL)
		return mcp_refuse(request, RPC_PARAMS, "no tool is called so: did you mean %s?",
				  nearest.best);
	return mcp_refuse(request, RPC_PARAMS, "no tool is called so: tools/list has them");
}

json_t *tools_call(struct mcp_request *request)
{
	const char *name = json_string_value(json_object_get(request->params, "name"));
	const json_t *arguments = json_object_get(request->params, "arguments");
	const struct tool *tool = NULL;
	struct toolanswer answer;
	struct tool_call call = { request->mcp, arguments, &answer, request->err };
	json_t *ret;
	int r;

	if (name == NULL)
		return mcp_refuse(request, RPC_PARAMS, "name: expected the name of a tool");
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (strcmp(tools[i].name, name) == 0)
			tool = &tools[i];
	}
	if (tool != NULL && !is_on(request->mcp, tool))
		return mcp_refuse(request, RPC_PARAMS,
				  "%s is off: it is for who starts the server to allow it",
				  tool->name);
	if (tool == NULL)
		return no_tool(request, name);
	if (arguments != NULL && !json_is_object(arguments))
		return mcp_refuse(request, RPC_PARAMS, "arguments: expected an object");
	toolanswer_init(&answer);
	r = check_arguments(tool, arguments, request->err);
	if (r == 0)
		r = tool->make(&call);
	ret = r == 0 ? toolanswer_take(&answer)
		     : toolanswer_failure(request->err->text[0] != '\0' ? request->err->text
									: strerror(-r));
	toolanswer_done(&answer);
	return ret;
}
