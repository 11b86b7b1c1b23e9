/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what the server parses by itself: headers, cursors, ids, paths, and files of tokens. */
#include "serve/http/request.h"

#include "serve/archive.h"
#include "serve/http/netaddress.h"
#include "serve/http/tokens.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was taken prints as what was given. */
static void check_places(const char *text)
{
	struct store_job_place place;
	char again[48], id[ARCHIVE_ID_BYTES], job[STORE_KEY_BYTES];
	uint64_t number;

	if (archive_parse_place(text, &place) == 0) {
		archive_print_place(&place, again);
		assert(place.started_ns >= 0 && strlen(again) <= strlen(text));
	}
	if (archive_parse_id(text, job, &number) == 0) {
		archive_print_id(job, number, id);
		assert(strlen(id) <= strlen(text) &&
		       strspn(job, "0123456789abcdef") == strlen(job));
	}
}

static void check_headers(const char *text)
{
	const struct request_names names = { "node", "proxy.example" };
	struct request request = { .path = text, .query = { { "n", text } }, .query_cnt = 1 };
	char token[REQUEST_TOKEN_MAX], part[32], value_text[24];
	uint64_t value = 0;
	struct err err;

	if (request_host_is_ours(text, &names))
		assert(strchr(text, '/') == NULL && strchr(text, ' ') == NULL);
	(void)request_origin_is_ours(text, &names);
	if (request_token(text, token))
		assert(strlen(token) > 0 && strlen(token) < REQUEST_TOKEN_MAX);
	(void)request_is_json(text);
	(void)request_has_tag(text, "\"0123456789abcdef\"");
	if (request_path_fits(text, "/api/v1/jobs/{job}/history", part, sizeof(part)))
		assert(part[0] != '\0' && strchr(part, '/') == NULL);
	(void)request_form(text, "n", value_text, sizeof(value_text));
	assert(strlen(value_text) < sizeof(value_text) && strlen(value_text) <= strlen(text));
	request.headers[HEADER_HOST] = "127.0.0.1:1";
	request.headers[HEADER_ORIGIN] = text;
	if (request_may_write(&request))
		assert(strlen(text) >= strlen("://127.0.0.1:1"));
	if (request_number(&request, "n", 1000, &value, &err) == 0)
		assert(value <= 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1); /* of this length, so that no byte behind it is read */
	struct netaddress address;
	struct tokens *tokens = NULL;
	struct err err;

	if (text == NULL)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check_headers(text);
	check_places(text);
	(void)!netaddress_parse_any(text, &address, &err);
	if (tokens_parse("tokens", (const char *)data, size, &tokens, &err) == 0)
		assert(tokens_role(tokens, "") == ROLE_NONE);
	(void)tokens_free(tokens);
	free(text);
	return 0;
}
