/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/mcp share: one request, tools, and where their answers are made. */
#pragma once

#include "mcp/mcp.h"
#include "mcp/openreport.h"
#include "mcp/rpc.h"
#include "mcp/toolanswer.h"

struct mcp {
	struct mcp_options options;
	struct openreport report; /* the last one */
	const char *url;	  /* for links of this answer; NULL: none */
};

/* One request. A method returns its result, or NULL with code and err. */
struct mcp_request {
	struct mcp *mcp;
	const json_t *params; /* an object; NULL: none */
	bool modern;	      /* of 2026-07-28 */
	int code;	      /* enum rpc_code */
	json_t *data;	      /* of an error; taken */
	struct err *err;
	struct json_writer w;
};

/* Sets code and err. Returns NULL. */
json_t *mcp_refuse(struct mcp_request *request, int code, const char *fmt, ...) _printf_(3, 4);

/* --- tools --- */

struct tool_param {
	const char *name, *about;
	const char *words; /* "summary|full": the values; NULL: any */
	int64_t low, high; /* high not 0: an integer */
	bool required;
};

struct tool_call {
	struct mcp *mcp;
	const json_t *arguments; /* checked; an object, or NULL */
	struct toolanswer *answer;
	struct err *err;
};

/* Fills the answer, or fails with -errno and a line that says what to do. */
typedef int (*tool_fn)(struct tool_call *call);

struct tool {
	const char *name, *title, *about;
	tool_fn make;
	const struct tool_param *params;
	size_t param_cnt;
	bool writes;
};

/* The value of an argument; NULL, or preset: not given. */
const char *tool_text(const struct tool_call *call, const char *name);
int64_t tool_number(const struct tool_call *call, const char *name, int64_t preset);

/* tools/list and tools/call. */
json_t *tools_list(struct mcp_request *request);
json_t *tools_call(struct mcp_request *request);

int tool_list_jobs(struct tool_call *call);
int tool_get_job(struct tool_call *call);
int tool_host_history(struct tool_call *call);
int tool_request_profile(struct tool_call *call);
int tool_get_report(struct tool_call *call);
int tool_explain_finding(struct tool_call *call);
int tool_rank_table(struct tool_call *call);
int tool_call_tree(struct tool_call *call);
int tool_stacks(struct tool_call *call);
int tool_compare_runs(struct tool_call *call);

/* Opens the report that the argument of this name means, and puts coverage and url. 0 or -errno. */
_must_check_ int tool_open_report(struct tool_call *call, const char *argument,
				  const json_t **ret_root);

/* --- resources and prompts --- */

json_t *resources_list(struct mcp_request *request);
json_t *resources_templates(struct mcp_request *request);
json_t *resources_read(struct mcp_request *request);
json_t *prompts_list(struct mcp_request *request);
json_t *prompts_get(struct mcp_request *request);
