/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/request.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void numbers_and_known_names_are_this_server(void **state)
{
	static const char *const ours[] = { "127.0.0.1",       "127.0.0.1:8790", "[::1]:8790",
					    "[::1]",	       "localhost",	 "LOCALHOST:1",
					    "node7",	       "node7:80",	 "Node7.site.x",
					    "tracker.example", "10.1.2.3:9" };
	static const char *const others[] = { "",
					      "evil.com",
					      "node77",
					      "node7./x",
					      "localhost.evil.com",
					      "127.0.0.1.x",
					      "tracker.example.evil",
					      "a:b",
					      "localhost:8x",
					      "[::1",
					      "[::1]x",
					      ":80",
					      "127.0.0.1 ",
					      "evil.com:80" };
	const struct request_names names = { "node7", "tracker.example" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (!request_host_is_ours(ours[i], &names))
			fail_msg("%s is refused", ours[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (request_host_is_ours(others[i], &names))
			fail_msg("%s is taken", others[i]);
	}
	assert_false(request_host_is_ours(NULL, &names));
	assert_false(request_host_is_ours("", &(struct request_names){ "", NULL }));
}

static void a_page_of_another_site_is_not_ours(void **state)
{
	const struct request_names names = { "node7", NULL };

	(void)state;
	assert_true(request_origin_is_ours(NULL, &names));
	assert_true(request_origin_is_ours("http://127.0.0.1:8790", &names));
	assert_true(request_origin_is_ours("https://node7", &names));
	assert_false(request_origin_is_ours("null", &names));
	assert_false(request_origin_is_ours("http://evil.com", &names));
	assert_false(request_origin_is_ours("file://", &names));
	assert_false(request_origin_is_ours("127.0.0.1", &names));
	assert_false(request_origin_is_ours("", &names));
}

static void only_pages_of_this_server_may_write(void **state)
{
	static const struct {
		const char *site, *origin;
		bool may;
	} rows[] = {
		{ NULL, NULL, true }, /* curl */
		{ NULL, "http://127.0.0.1:8790", true },
		{ NULL, "https://127.0.0.1:8790", true }, /* a proxy with TLS */
		{ NULL, "http://127.0.0.1:9999", false }, /* a page of another user's server */
		{ NULL, "http://127.0.0.1", false },
		{ NULL, "http://evil.com", false },
		{ NULL, "null", false },
		{ NULL, "", false },
		{ "same-origin", "http://127.0.0.1:8790", true },
		{ "same-origin", "https://node7", true }, /* a proxy that has another name */
		{ "same-site", "http://127.0.0.1:8790", false },
		{ "cross-site", NULL, false },
		{ "none", NULL, false },
		{ "", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct request request = { .headers = { [HEADER_HOST] = "127.0.0.1:8790",
							      [HEADER_ORIGIN] = rows[i].origin,
							      [HEADER_FETCH_SITE] =
								      rows[i].site } };

		if (request_may_write(&request) != rows[i].may)
			fail_msg("row %zu", i);
	}
}

static void values_of_forms_are_decoded(void **state)
{
	static const struct {
		const char *body, *value; /* NULL: there is none */
	} rows[] = {
		{ "reason=slow+again%21", "slow again!" },
		{ "x=1&reason=a%26b&reason=c", "a&b" },
		{ "reason=", "" },
		{ "reason", NULL },
		{ "", NULL },
		{ "treason=x", NULL },
		{ "x=reason=1", NULL },
		{ "reason=%", "%" },
		{ "reason=%4", "%4" },
		{ "reason=%zz%41", "%zzA" },
		{ "reason=a%00b", "ab" },
		{ "&&reason=x&", "x" },
		{ "reason=0123456789abcdefghij", "0123456789abcde" },
		{ "reason=%E2%82%AC", "\xe2\x82\xac" },
	};
	char value[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool found = request_form(rows[i].body, "reason", value, sizeof(value));

		if (found != (rows[i].value != NULL))
			fail_msg("%s", rows[i].body);
		assert_string_equal(value, found ? rows[i].value : "");
	}
}

static void tokens_come_as_bearer_or_password(void **state)
{
	static const struct {
		const char *header, *token; /* NULL: refused */
	} rows[] = {
		{ "Bearer 0123456789abcdef", "0123456789abcdef" },
		{ "bearer   x", "x" },
		{ "Basic dXNlcjpwYTpzcw==", "pa:ss" }, /* user:pa:ss */
		{ "Basic OnQ=", "t" },		       /* :t */
		{ "Basic dXNlcg==", NULL },	       /* user */
		{ "Basic dXNlcjo=", NULL },	       /* user: */
		{ "Basic dXNl!jpw", NULL },
		{ "Basic AHg6eQ==", NULL }, /* \0x:y */
		{ "Bearer ", NULL },
		{ "Bearer", NULL },
		{ "Bearerx y", NULL },
		{ "Digest x", NULL },
		{ "", NULL },
	};
	char token[REQUEST_TOKEN_MAX], longest[4 * REQUEST_TOKEN_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool taken = request_token(rows[i].header, token);

		if (taken != (rows[i].token != NULL))
			fail_msg("%s: %d", rows[i].header, taken);
		if (taken)
			assert_string_equal(token, rows[i].token);
	}
	assert_false(request_token(NULL, token));
	memset(longest, 'A', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "Bearer ", 7);
	assert_false(request_token(longest, token));
	memcpy(longest, "Basic  ", 7);
	assert_false(request_token(longest, token));
}

static void a_tag_is_found_in_a_list(void **state)
{
	(void)state;
	assert_true(request_has_tag("\"a1\"", "\"a1\""));
	assert_true(request_has_tag("\"b\", W/\"a1\" , \"c\"", "\"a1\""));
	assert_true(request_has_tag("*", "\"a1\""));
	assert_false(request_has_tag("\"a12\"", "\"a1\""));
	assert_false(request_has_tag("a1", "\"a1\""));
	assert_false(request_has_tag("", "\"a1\""));
	assert_false(request_has_tag(NULL, "\"a1\""));
}

static void paths_fit_patterns(void **state)
{
	char part[8];

	(void)state;
	assert_true(request_path_fits("/", "/", part, sizeof(part)));
	assert_true(request_path_fits("/jobs/3fa9", "/jobs/{job}", part, sizeof(part)));
	assert_string_equal(part, "3fa9");
	assert_true(
		request_path_fits("/jobs/a/history", "/jobs/{job}/history", part, sizeof(part)));
	assert_string_equal(part, "a");
	assert_false(request_path_fits("/jobs/", "/jobs/{job}", part, sizeof(part)));
	assert_false(request_path_fits("/jobs/a/", "/jobs/{job}", part, sizeof(part)));
	assert_false(request_path_fits("/jobs/a/b", "/jobs/{job}", part, sizeof(part)));
	assert_false(request_path_fits("/jobs", "/jobs/{job}", part, sizeof(part)));
	assert_false(request_path_fits("/jobs/12345678", "/jobs/{job}", part, sizeof(part)));
	assert_false(request_path_fits("", "/", part, sizeof(part)));
	assert_false(request_path_fits("//", "/", part, sizeof(part)));
}

static int number(const char *text, uint64_t *ret)
{
	struct request request = { .path = "/", .query = { { "n", text } }, .query_cnt = 1 };
	struct err err;

	return request_number(&request, "n", 1000, ret, &err);
}

static void counts_are_whole_and_bounded(void **state)
{
	static const char *const bad[] = {
		"1001", "-1", "1.5", "x", " 1", "1 ", "99999999999999999999"
	};
	struct request none = { .path = "/" };
	uint64_t value = 7;
	struct err err;

	(void)state;
	assert_int_equal(number("1000", &value), 0);
	assert_int_equal(value, 1000);
	value = 7;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (number(bad[i], &value) != -EINVAL)
			fail_msg("%s is taken", bad[i]);
	}
	assert_int_equal(number("", &value), 0);
	assert_int_equal(request_number(&none, "n", 1000, &value, &err), 0);
	assert_int_equal(value, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_known_names_are_this_server),
		cmocka_unit_test(a_page_of_another_site_is_not_ours),
		cmocka_unit_test(only_pages_of_this_server_may_write),
		cmocka_unit_test(values_of_forms_are_decoded),
		cmocka_unit_test(tokens_come_as_bearer_or_password),
		cmocka_unit_test(a_tag_is_found_in_a_list),
		cmocka_unit_test(paths_fit_patterns),
		cmocka_unit_test(counts_are_whole_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
