/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message of JSON-RPC 2.0 in, one out. Answers are one line of JSON in ASCII, so that a line is
 * a message on standard output.
 * Source: JSON-RPC 2.0; Model Context Protocol 2026-07-28, "Messages", "Error Codes".
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>

#define RPC_BYTES_MAX ((size_t)1 << 20) /* of a message */

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_HEADERS = -32020, /* of HTTP: not those of the body */
	RPC_VERSION = -32022,
	RPC_OLD_NO_RESOURCE = -32002, /* 2025-11-25 and before; since then RPC_PARAMS */
};

struct rpc_message {
	json_t *root;	      /* owns the others; NULL: not JSON */
	const json_t *id;     /* a text or an integer; NULL: a notification, or not known */
	const json_t *params; /* an object; NULL: none */
	const char *method;   /* NULL: a response of the client */
};

/*
 * Takes text[len] apart. Returns 0, or an enum rpc_code with a line in err; then ret has the id, if
 * it could be read. The caller ends with rpc_done() in either case.
 */
_must_check_ int rpc_parse(const char *text, size_t len, struct rpc_message *ret, struct err *err);
void rpc_done(struct rpc_message *message);

/* Append an answer without a line end; they take result and data. id NULL: not known. 0 or -ENOMEM. */
_must_check_ int rpc_print_result(const json_t *id, json_t *result, struct str *out);
_must_check_ int rpc_print_error(const json_t *id, int code, const char *why, json_t *data,
				 struct str *out);
