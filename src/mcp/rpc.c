/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/rpc.h"

#include "report/jsonwriter.h"

#include <errno.h>
#include <string.h>

/* err_set() with a code of the protocol. */
static int refuse(struct err *err, int code, const char *why)
{
	(void)err_set(err, EINVAL, "%s", why);
	return code;
}

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

int rpc_parse(const char *text, size_t len, struct rpc_message *ret, struct err *err)
{
	const char *version;
	json_error_t wrong;
	const json_t *id, *method;

	*ret = (struct rpc_message){ .root = NULL };
	if (len > RPC_BYTES_MAX)
		return refuse(err, RPC_INVALID, "the message is longer than 1 MiB");
	ret->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong);
	if (ret->root == NULL) {
		(void)err_set(err, EINVAL, "byte %d: not JSON: %s", wrong.position, wrong.text);
		return RPC_PARSE;
	}
	if (json_is_array(ret->root))
		return refuse(err, RPC_INVALID, "a batch: send one message at a time");
	if (!json_is_object(ret->root))
		return refuse(err, RPC_INVALID, "expected an object of JSON-RPC 2.0");
	id = json_object_get(ret->root, "id");
	ret->id = is_id(id) ? id : NULL;
	version = json_string_value(json_object_get(ret->root, "jsonrpc"));
	if (version == NULL || strcmp(version, "2.0") != 0)
		return refuse(err, RPC_INVALID, "expected \"jsonrpc\": \"2.0\"");
	if (id != NULL && ret->id == NULL)
		return refuse(err, RPC_INVALID, "id: expected a text or an integer");
	method = json_object_get(ret->root, "method");
	if (method == NULL && (json_object_get(ret->root, "result") != NULL ||
			       json_object_get(ret->root, "error") != NULL))
		return 0;
	if (!json_is_string(method))
		return refuse(err, RPC_INVALID, "method: expected a text");
	ret->params = json_object_get(ret->root, "params");
	if (ret->params != NULL && !json_is_object(ret->params)) {
		ret->params = NULL;
		return refuse(err, RPC_PARAMS, "params: expected an object");
	}
	ret->method = json_string_value(method);
	return 0;
}

void rpc_done(struct rpc_message *message)
{
	json_decref(message->root);
	*message = (struct rpc_message){ .root = NULL };
}

static int append_chunk(const char *chunk, size_t len, void *data)
{
	struct str *out = data;

	str_append_len(out, chunk, len);
	return str_error(out) == 0 ? 0 : -1;
}

/* Takes root. */
static int print(json_t *root, int error, struct str *out)
{
	size_t start = out->len;

	if (root == NULL || error != 0 ||
	    json_dump_callback(root, append_chunk, out,
			       JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) != 0)
		out->error = -ENOMEM;
	json_decref(root);
	return str_finish(out, start);
}

static json_t *answer_to(struct json_writer *w, const json_t *id)
{
	json_t *root = json_object();

	jsonwriter_put_text(w, root, "jsonrpc", "2.0");
	if (id != NULL)
		jsonwriter_put(w, root, "id", json_deep_copy(id));
	return root;
}

int rpc_print_result(const json_t *id, json_t *result, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = answer_to(&w, id);

	jsonwriter_put(&w, root, "result", result);
	return print(root, w.error, out);
}

int rpc_print_error(const json_t *id, int code, const char *why, json_t *data, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = answer_to(&w, id), *error = json_object();

	jsonwriter_put(&w, error, "code", json_integer(code));
	jsonwriter_put_text(&w, error, "message", why);
	if (data != NULL)
		jsonwriter_put(&w, error, "data", data);
	if (id == NULL)
		jsonwriter_put(&w, root, "id", json_null());
	jsonwriter_put(&w, root, "error", error);
	return print(root, w.error, out);
}
