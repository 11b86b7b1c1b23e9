/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, and the parts of it that decide who may ask: each function takes text from outside
 * and answers without an error, so that whatever is odd is refused.
 * Source: RFC 9110 (Host, Origin, ETag), RFC 6750 (Bearer), RFC 7617 (Basic), Fetch Metadata
 * (Sec-Fetch-Site), URL standard (application/x-www-form-urlencoded).
 */
#pragma once

#include "base/err.h"
#include "serve/http/tokens.h"

#define REQUEST_QUERY_MAX 16
#define REQUEST_TOKEN_MAX 256

enum request_header {
	HEADER_HOST,
	HEADER_ORIGIN,
	HEADER_AUTHORIZATION,
	HEADER_IF_NONE_MATCH,
	HEADER_LAST_EVENT_ID,
	HEADER_CONTENT_TYPE,
	HEADER_FETCH_SITE,
	HEADER_MCP_VERSION,
	HEADER_MCP_METHOD,
	HEADER_MCP_NAME,
	HEADER_ACCEPT,
	HEADER_CNT
};
extern const char *const request_header_names[HEADER_CNT];

struct request_value {
	const char *name, *value; /* value "": none */
};

/* Texts are borrowed until the answer is queued. */
struct request {
	const char *path;		 /* decoded, without the query */
	const char *headers[HEADER_CNT]; /* NULL: absent */
	struct request_value query[REQUEST_QUERY_MAX];
	size_t query_cnt;
	bool writes;	  /* a POST: by an operator, and not from a page of another site */
	bool of_agent;	  /* to the path of agents, which only ask */
	const char *body; /* of a POST, NUL-terminated; NULL: none, or too long */
	size_t body_len;
	char user[TOKEN_NAME_BYTES]; /* of one that writes: who asks, for the log */
};

/* The first value of that name in the query; NULL: none. */
const char *request_query(const struct request *request, const char *name);

/* A count in the query; absent: preset. Returns 0, or -EINVAL with a line in err. */
_must_check_ int request_number(const struct request *request, const char *name, uint64_t high,
				uint64_t *value, struct err *err);

/* Names by which a server is reached: numbers and "localhost" always are. */
struct request_names {
	const char *own;   /* of this machine; also with a domain behind it */
	const char *given; /* by --host; NULL: none */
};

/*
 * Whether a Host header ("name", "name:port", "[::1]:port") means this server. A page of another
 * site whose name was made to point here has that site's name in it, so only numbers and known
 * names are taken. NULL is refused.
 */
bool request_host_is_ours(const char *host, const struct request_names *names);

/* The same for an Origin header; NULL, as on most requests, is ours; "null" is not. */
bool request_origin_is_ours(const char *origin, const struct request_names *names);

/*
 * Whether a request that writes is not one that a page of another origin made: this server's pages say so,
 * and programs that are no browser have neither Sec-Fetch-Site nor Origin. A page at another port of this
 * machine is another origin.
 */
bool request_may_write(const struct request *request);

/*
 * A value of a body as forms send it ("reason=slow+again&x=1"), decoded; cut to size - 1 bytes. Returns
 * whether there is one; else ret is "".
 */
bool request_form(const char *body, const char *name, char *ret, size_t size);

/*
 * The token of "Bearer TOKEN", or the password of "Basic BASE64(any:TOKEN)", which is how browsers
 * ask for it. Returns false for anything else.
 */
bool request_token(const char *authorization, char ret[static REQUEST_TOKEN_MAX]);

/* Whether an If-None-Match header names this tag, which has its quotes. NULL: no. */
bool request_has_tag(const char *if_none_match, const char *tag);

/* Whether a Content-Type header says JSON, with or without parameters. NULL: no. */
bool request_is_json(const char *content_type);

/*
 * Whether path fits a pattern such as "/api/v1/jobs/{job}": each {name} takes one part that is not
 * empty. ret[size] gets the part of the first one.
 */
bool request_path_fits(const char *path, const char *pattern, char *ret, size_t size);
