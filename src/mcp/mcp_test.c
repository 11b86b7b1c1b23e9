/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of both eras to a server with the golden reports, and what each answer has to be. */
#include "mcp/mcp.h"

#include "base/test_alloc.h"
#include "mcp/rpc.h"
#include "mcp/toolanswer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define TEXT_BYTES_MAX 8000u /* 2,000 tokens of 4 bytes */
#define MODERN                                                                   \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

static struct archive archive;
static struct mcp *mcp;

static int set_up(void **state)
{
	static const char *const folders[] = { GOLDEN_DIR };
	const struct mcp_options options = { .archive = &archive };

	(void)state;
	archive = (struct archive){ .catalog = catalog_new(folders, 1) };
	mcp = mcp_new(&options);
	assert_non_null(archive.catalog);
	assert_non_null(mcp);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	mcp = mcp_free(mcp);
	archive_done(&archive);
	return 0;
}

/* The answer to a message; NULL: none. */
static json_t *ask(const char *text, const struct mcp_headers *headers, unsigned *ret_status)
{
	struct str out = { 0 };
	json_t *ret = NULL;

	assert_int_equal(mcp_answer(mcp, text, strlen(text), headers, &out, ret_status), 0);
	if (out.len > 0) {
		assert_null(memchr(out.data, '\n', out.len));
		ret = json_loadb(out.data, out.len, 0, NULL);
		assert_non_null(ret);
	}
	str_done(&out);
	return ret;
}

static json_int_t code_of(const char *text)
{
	json_t *answer = ask(text, NULL, NULL);
	json_int_t code =
		json_integer_value(json_object_get(json_object_get(answer, "error"), "code"));

	json_decref(answer);
	return code;
}

static json_t *result_of(const char *method, const char *params, bool modern)
{
	struct str text = { 0 };
	json_t *answer, *result;

	str_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{%s%s%s}}",
		   method, params, modern && params[0] != '\0' ? "," : "", modern ? MODERN : "");
	answer = ask(str_borrow(&text), NULL, NULL);
	assert_int_equal(json_integer_value(json_object_get(answer, "id")), 7);
	result = json_incref(json_object_get(answer, "result"));
	assert_non_null(result);
	json_decref(answer);
	str_done(&text);
	return result;
}

/* The data of a tool's answer, which is checked for its form. */
static json_t *call(const char *tool, const char *arguments)
{
	struct str params = { 0 };
	json_t *result, *data;
	const char *text;

	str_printf(&params, "\"name\":\"%s\",\"arguments\":{%s}", tool, arguments);
	result = result_of("tools/call", str_borrow(&params), false);
	assert_true(json_is_false(json_object_get(result, "isError")));
	text = json_string_value(
		json_object_get(json_array_get(json_object_get(result, "content"), 0), "text"));
	assert_true(strlen(text) <= TEXT_BYTES_MAX);
	/* One fence, which nothing in it closes. */
	assert_non_null(strstr(text, "\n```json\n"));
	assert_string_equal(strrchr(text, '\n') - 4, "\n```\n");
	assert_ptr_equal(strstr(strstr(text, "```json") + 3, "```"), text + strlen(text) - 4);
	data = json_incref(json_object_get(result, "structuredContent"));
	assert_true(json_is_object(data));
	json_decref(result);
	str_done(&params);
	return data;
}

static const char *text_at(const json_t *data, const char *list, const char *key)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(data, list), 0), key));
}

/* --- protocol --- */

static void wrong_messages_get_the_codes_of_the_protocol(void **state)
{
	(void)state;
	assert_int_equal(code_of("{"), RPC_PARSE);
	assert_int_equal(code_of("\xff"), RPC_PARSE);
	assert_int_equal(code_of("[]"), RPC_INVALID);
	assert_int_equal(code_of("3"), RPC_INVALID);
	assert_int_equal(code_of("{\"id\":1,\"method\":\"ping\"}"), RPC_INVALID);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"),
			 RPC_INVALID);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}"),
			 RPC_INVALID);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}"), RPC_INVALID);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}"), RPC_NO_METHOD);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
				 "\"params\":[]}"),
			 RPC_PARAMS);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				 "\"params\":{\"name\":\"rm\"}}"),
			 RPC_PARAMS);
	/* Without _meta there is no modern method. */
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}"),
			 RPC_PARAMS);
}

static void notifications_and_responses_get_no_answer(void **state)
{
	(void)state;
	assert_null(
		ask("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", NULL, NULL));
	assert_null(ask("{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}", NULL, NULL));
	assert_null(ask("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}", NULL, NULL));
}

static void each_version_is_spoken_as_it_is(void **state)
{
	static const char *const known[] = { "2024-11-05", "2025-03-26", "2025-06-18",
					     "2025-11-25" };
	json_t *result;
	char params[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		(void)snprintf(params, sizeof(params), "\"protocolVersion\":\"%s\"", known[i]);
		result = result_of("initialize", params, false);
		assert_string_equal(json_string_value(json_object_get(result, "protocolVersion")),
				    known[i]);
		assert_null(json_object_get(result, "resultType"));
		json_decref(result);
	}
	result = result_of("initialize", "\"protocolVersion\":\"1999-01-01\"", false);
	assert_string_equal(json_string_value(json_object_get(result, "protocolVersion")),
			    "2025-11-25");
	json_decref(result);
	result = result_of("server/discover", "", true);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(result, "supportedVersions"), 0)),
		"2026-07-28");
	assert_string_equal(json_string_value(json_object_get(result, "resultType")), "complete");
	assert_true(json_is_integer(json_object_get(result, "ttlMs")));
	assert_true(strlen(json_string_value(json_object_get(result, "instructions"))) <= 1500);
	json_decref(result);
	result = result_of("ping", "", false);
	assert_int_equal(json_object_size(result), 0);
	json_decref(result);
}

static void an_unknown_version_is_refused_with_those_that_are_known(void **state)
{
	json_t *answer = ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
			     "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2030-01-01\""
			     "}}}",
			     NULL, NULL);
	const json_t *error = json_object_get(answer, "error");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(error, "code")), RPC_VERSION);
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(error, "data"), "supported")), 5);
	json_decref(answer);
	/* A field of _meta that each request needs. */
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\","
				 "\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
				 "protocolVersion\":\"2026-07-28\"}}}"),
			 RPC_PARAMS);
}

static void headers_must_say_what_the_body_says(void **state)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				   "\"params\":{\"name\":\"list_jobs\"," MODERN "}}";
	static const struct {
		struct mcp_headers headers;
		unsigned status;
	} rows[] = {
		{ { "2026-07-28", "tools/call", "list_jobs" }, 200 },
		{ { " 2026-07-28 ", "tools/call ", "\tlist_jobs  " }, 200 },
		{ { "2026-07-28", "tools/call", "get_report" }, 400 },
		{ { "2026-07-28", "tools/call", NULL }, 400 },
		{ { "2026-07-28", "tools/list", "list_jobs" }, 400 },
		{ { "2025-11-25", "tools/call", "list_jobs" }, 400 },
		{ { NULL, NULL, NULL }, 400 },
	};
	unsigned status = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *answer = ask(body, &rows[i].headers, &status);
		json_t *error = json_object_get(answer, "error");

		assert_int_equal(status, rows[i].status);
		if (error != NULL)
			assert_int_equal(json_integer_value(json_object_get(error, "code")),
					 RPC_HEADERS);
		json_decref(answer);
	}
	json_decref(ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{" MODERN "}}",
			&(struct mcp_headers){ "2026-07-28", "x", NULL }, &status));
	assert_int_equal(status, 404);
	json_decref(ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{" MODERN
			"}}",
			&(struct mcp_headers){ "2026-07-28", "ping", NULL }, &status));
	assert_int_equal(status, 404);
	assert_null(ask("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
			&(struct mcp_headers){ NULL, NULL, NULL }, &status));
	assert_int_equal(status, 202);
}

/* --- tools --- */

static void a_set_of_ranks_is_cut_between_ranks(void **state)
{
	struct str ranks = { 0 };
	json_t *cut;
	const char *text;

	(void)state;
	for (int i = 0; i < 500; i++)
		str_printf(&ranks, "%s%d", i > 0 ? "," : "", 1000 + 2 * i);
	cut = toolanswer_text_of("victim_ranks", str_borrow(&ranks));
	text = json_string_value(cut);
	assert_true(strlen(text) <= TOOLANSWER_TEXT_BYTES + 3);
	assert_string_equal(text + strlen(text) - 4, ",...");
	assert_memory_equal(text, str_borrow(&ranks), strlen(text) - 3);
	json_decref(cut);
	cut = toolanswer_text_of("ranks_missing", "0-2,7");
	assert_string_equal(json_string_value(cut), "0-2,7");
	json_decref(cut);
	str_done(&ranks);
}

static void tools_are_listed_in_one_order_without_the_one_that_writes(void **state)
{
	json_t *result = result_of("tools/list", "", true), *tool, *list;
	size_t i;

	(void)state;
	list = json_object_get(result, "tools");
	json_array_foreach(list, i, tool)
	{
		const json_t *hints = json_object_get(tool, "annotations");

		assert_true(json_is_true(json_object_get(hints, "readOnlyHint")));
	}
	assert_string_equal(text_at(result, "tools", "name"), "list_jobs");
	json_decref(result);
	assert_int_equal(code_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				 "\"params\":{\"name\":\"request_profile\"}}"),
			 RPC_PARAMS);
}

static int take_profile(void *arg, const char *job, struct str *ret, struct err *err)
{
	if (strcmp(job, "busy") == 0)
		return err_set(err, EBUSY, "busy: try again");
	str_printf(arg, "%s", job);
	str_append(ret, "begun");
	return 0;
}

static void the_tool_that_writes_is_there_when_it_is_allowed(void **state)
{
	struct str asked = { 0 };
	const struct mcp_options options = { .archive = &archive,
					     .profile = take_profile,
					     .arg = &asked };
	struct mcp *other = mcp;
	json_t *result, *last;

	(void)state;
	mcp = mcp_new(&options);
	result = result_of("tools/list", "", false);
	last = json_array_get(json_object_get(result, "tools"), 9);
	assert_string_equal(json_string_value(json_object_get(last, "name")), "request_profile");
	assert_true(json_is_false(
		json_object_get(json_object_get(last, "annotations"), "readOnlyHint")));
	json_decref(result);
	result = result_of("tools/call",
			   "\"name\":\"request_profile\",\"arguments\":{\"job\":\"busy\"}", false);
	assert_true(json_is_true(json_object_get(result, "isError")));
	json_decref(result);
	json_decref(call("request_profile", "\"job\":\"train\""));
	assert_string_equal(str_borrow(&asked), "train");
	str_done(&asked);
	(void)mcp_free(mcp);
	mcp = other;
}

static void wrong_arguments_are_answered_with_what_to_do(void **state)
{
	static const struct {
		const char *tool, *arguments, *says;
	} rows[] = {
		{ "get_report", "\"reprt\":\"x\"", "did you mean report?" },
		{ "get_report", "\"report\":3", "expected a text" },
		{ "get_report", "\"cursor\":\"3\"", "expected an integer" },
		{ "get_report", "\"cursor\":-1", "expected an integer" },
		{ "get_report", "\"part\":\"find\"", "expected summary|findings" },
		{ "get_report", "\"part\":\"summary|findings\"", "expected summary|findings" },
		{ "get_report", "\"report\":\"nothing\"", "list_jobs has the ids" },
		{ "get_job", "", "job is missing" },
		{ "explain_finding", "\"report\":\"figure7.json\",\"finding\":\"F9\"", "it has 3" },
		{ "rank_table", "\"report\":\"figure7.json\",\"ranks\":\"x\"", "x" },
		{ "list_jobs", "\"cursor\":\"f:x\"", "cursor" },
		{ "list_jobs", "\"cursor\":\"j:x\"", "cursor" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char params[256];
		json_t *result;
		const char *text;

		(void)snprintf(params, sizeof(params), "\"name\":\"%s\",\"arguments\":{%s}",
			       rows[i].tool, rows[i].arguments);
		result = result_of("tools/call", params, false);
		assert_true(json_is_true(json_object_get(result, "isError")));
		text = json_string_value(json_object_get(
			json_array_get(json_object_get(result, "content"), 0), "text"));
		assert_non_null(strstr(text, rows[i].says));
		json_decref(result);
	}
}

static void a_report_is_found_by_id_path_and_as_the_newest(void **state)
{
	json_t *data = call("get_report", "\"report\":\"figure7.json\"");
	char arguments[80], id[40];

	(void)state;
	assert_string_equal(text_at(data, "findings", "id"), "PT-102");
	assert_string_equal(text_at(data, "findings", "ranks"), "0-15");
	(void)snprintf(id, sizeof(id), "%s", json_string_value(json_object_get(data, "report")));
	json_decref(data);
	(void)snprintf(arguments, sizeof(arguments), "\"report\":\"%s\",\"finding\":\"F3\"", id);
	data = call("explain_finding", arguments);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(data, "finding"), "id")),
		"PT-202");
	json_decref(data);
	json_decref(call("get_report", ""));
}

/* All pages together are the list, without a gap or a repetition. */
static void pages_of_a_list_are_the_list(void **state)
{
	json_int_t from = 0, pages = 0;
	size_t cnt = 0;

	(void)state;
	do {
		char arguments[96];
		json_t *data;

		(void)snprintf(arguments, sizeof(arguments),
			       "\"report\":\"many.json\",\"part\":\"findings\",\"cursor\":%d",
			       (int)from);
		data = call("get_report", arguments);
		assert_int_equal(from, cnt);
		cnt += json_array_size(json_object_get(data, "findings"));
		from = json_integer_value(json_object_get(data, "cursor"));
		json_decref(data);
		assert_true(++pages < 20);
	} while (from != 0);
	assert_int_equal(cnt, 12);
	assert_true(pages > 1);
}

static void every_tool_keeps_its_budget_on_every_report(void **state)
{
	static const char *const reports[] = { "figure7",      "stall",	  "healthy",
					       "inconclusive", "blocked", "many",
					       "hostile",      "slow",	  "failed" };
	static const char *const parts[] = { "summary",	    "findings", "functions", "kernels",
					     "collectives", "waits",	"growth",    "notes" };
	char arguments[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
			(void)snprintf(arguments, sizeof(arguments),
				       "\"report\":\"/%s.json\",\"part\":\"%s\"", reports[i],
				       parts[k]);
			json_decref(call("get_report", arguments));
		}
		(void)snprintf(arguments, sizeof(arguments), "\"report\":\"/%s.json\"", reports[i]);
		json_decref(call("rank_table", arguments));
		json_decref(call("call_tree", arguments));
		json_decref(call("stacks", arguments));
	}
	json_decref(call("list_jobs", ""));
	json_decref(call("host_history", ""));
}

static void stacks_of_a_hang_name_the_ranks_that_are_absent(void **state)
{
	json_t *data = call("stacks", "\"report\":\"/blocked.json\"");
	const json_t *lines = json_object_get(data, "lines");
	bool found = false;

	(void)state;
	for (size_t i = 0; i < json_array_size(lines); i++)
		found = found || strcmp(json_string_value(json_array_get(lines, i)),
					"3: main (train.py:40) @ 3|0-1") == 0;
	assert_true(found);
	json_decref(data);
}

/* Each allocation of a call fails once, jansson's, too. */
static void without_memory_a_call_fails_and_leaks_nothing(void **state)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
				   "\"params\":{\"name\":\"explain_finding\",\"arguments\":{"
				   "\"report\":\"/figure7.json\"}}}";
	bool done = false;
	int n = 0;

	(void)state;
	json_set_alloc_funcs(malloc, free);
	for (; !done; n++) {
		struct str out = { 0 };
		int r;

		allocations_left = n;
		r = mcp_answer(mcp, text, strlen(text), NULL, &out, NULL);
		allocations_left = -1;
		done = r == 0 && strstr(str_borrow(&out), "\"isError\":false") != NULL;
		assert_true(r == -ENOMEM || out.len > 0);
		str_done(&out);
		assert_true(n < 100000);
	}
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_messages_get_the_codes_of_the_protocol),
		cmocka_unit_test(notifications_and_responses_get_no_answer),
		cmocka_unit_test(each_version_is_spoken_as_it_is),
		cmocka_unit_test(an_unknown_version_is_refused_with_those_that_are_known),
		cmocka_unit_test(headers_must_say_what_the_body_says),
		cmocka_unit_test(a_set_of_ranks_is_cut_between_ranks),
		cmocka_unit_test(tools_are_listed_in_one_order_without_the_one_that_writes),
		cmocka_unit_test(the_tool_that_writes_is_there_when_it_is_allowed),
		cmocka_unit_test(wrong_arguments_are_answered_with_what_to_do),
		cmocka_unit_test(a_report_is_found_by_id_path_and_as_the_newest),
		cmocka_unit_test(pages_of_a_list_are_the_list),
		cmocka_unit_test(every_tool_keeps_its_budget_on_every_report),
		cmocka_unit_test(stacks_of_a_hang_name_the_ranks_that_are_absent),
		cmocka_unit_test(without_memory_a_call_fails_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
