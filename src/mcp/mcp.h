/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol: jobs and reports for an AI agent. Messages in, messages out; who
 * carries them, standard input or HTTP, is the caller's. Both eras are spoken at once: a request with
 * a protocol version in its _meta is of 2026-07-28, any other one of the versions with a handshake,
 * 2024-11-05 to 2025-11-25. Nothing is remembered between requests but the last report as read.
 * Source: modelcontextprotocol.io/specification/2026-07-28, "Versioning and Compatibility".
 */
#pragma once

#include "serve/archive.h"

#define MCP_VERSION "2026-07-28"

/*
 * Asks a job for a profile now. job: what the agent named; NULL: the user's newest. Returns 0 with a
 * line in ret, or -errno with a line in err.
 */
typedef int (*mcp_profile_fn)(void *arg, const char *job, struct str *ret, struct err *err);

struct mcp_options {
	struct archive *archive; /* borrowed */
	const char *url;	/* of a server with pages, without a slash at its end; NULL: none */
	mcp_profile_fn profile; /* NULL: the tool that writes is off */
	void *arg;
};

struct mcp;

/* NULL: out of memory. */
struct mcp *mcp_new(const struct mcp_options *options);
struct mcp *mcp_free(struct mcp *mcp);

/* Of a request by HTTP; NULL: absent. */
struct mcp_headers {
	const char *version, *method, *name;
	const char *host; /* the server's own, for links where no url was given */
};

/*
 * Answers text[len], one message: appends the answer, or nothing to a notification. headers NULL: not
 * by HTTP. ret_status, which may be NULL: of HTTP. Returns 0 or -ENOMEM.
 */
_must_check_ int mcp_answer(struct mcp *mcp, const char *text, size_t len,
			    const struct mcp_headers *headers, struct str *out,
			    unsigned *ret_status);
