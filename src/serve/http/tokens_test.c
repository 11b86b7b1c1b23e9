/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/tokens.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define VIEWER "0123456789abcdef"
#define OPERATOR "fedcba9876543210"

static void roles_are_found_by_token(void **state)
{
	static const char text[] = "# who may ask\n\n  viewer " VIEWER " on-call\r\n"
				   "operator\t" OPERATOR "\nviewer " OPERATOR;
	char name[TOKEN_NAME_BYTES];
	struct tokens *tokens = NULL;
	struct err err;

	(void)state;
	assert_int_equal(tokens_parse("t", text, strlen(text), &tokens, &err), 0);
	assert_int_equal(tokens_role(tokens, VIEWER), ROLE_VIEWER);
	assert_int_equal(tokens_role(tokens, OPERATOR), ROLE_OPERATOR);
	assert_int_equal(tokens_role(tokens, ""), ROLE_NONE);
	assert_int_equal(tokens_role(tokens, "0123456789abcde"), ROLE_NONE);
	assert_int_equal(tokens_role(tokens, VIEWER "0"), ROLE_NONE);
	tokens_name(tokens, VIEWER, name);
	assert_string_equal(name, "on-call");
	tokens_name(tokens, OPERATOR, name);
	assert_string_equal(name, "");
	assert_null(tokens_free(tokens));
	assert_null(tokens_free(NULL));
}

static void a_wrong_line_is_named(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "viewer " VIEWER "\nadmin " OPERATOR "\n",
		  "t line 2: expected viewer or operator, found admin" },
		{ "viewer short\n", "t line 1: expected a token of 16 to 200 characters, found 5" },
		{ "viewer\n", "found 0" },
		{ "# nothing\n", "t: expected lines such as" },
		{ "", "t: expected lines such as" },
	};
	struct tokens *tokens = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = rows[i].text;

		assert_int_equal(tokens_parse("t", text, strlen(text), &tokens, &err), -EINVAL);
		if (strstr(err.text, rows[i].said) == NULL)
			fail_msg("%s: %s", rows[i].said, err.text);
		assert_null(tokens);
	}
	assert_int_equal(tokens_parse("t", "viewer\0x", 8, &tokens, &err), -EINVAL);
}

static void a_file_that_others_can_read_is_refused(void **state)
{
	char path[] = "/tmp/tokens_test.XXXXXX";
	static const char text[] = "viewer " VIEWER "\n";
	int fd = mkstemp(path);
	struct tokens *tokens = NULL;
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(tokens_read(path, &tokens, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 600"));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(tokens_read(path, &tokens, &err), 0);
	assert_int_equal(tokens_role(tokens, VIEWER), ROLE_VIEWER);
	(void)tokens_free(tokens);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(tokens_read(path, &tokens, &err), -ENOENT);
}

/* As a volume of a Secret gives it: root's, and readable for the group of a program without root. */
static void a_file_of_root_may_be_for_a_group(void **state)
{
	char path[] = "/tmp/tokens_test.XXXXXX";
	static const char text[] = "viewer " VIEWER "\n";
	struct tokens *tokens = NULL;
	struct err err;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchown(fd, 0, 65534), 0);
	assert_int_equal(setegid(65534), 0);
	assert_int_equal(fchmod(fd, 0440), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(tokens_read(path, &tokens, &err), 0);
	(void)tokens_free(tokens);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(fchmod(fd, i == 0 ? 0460 : 0444), 0);
		assert_int_equal(seteuid(65534), 0);
		assert_int_equal(tokens_read(path, &tokens, &err), -EPERM);
	}
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
	(void)close(fd);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_are_found_by_token),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(a_file_that_others_can_read_is_refused),
		cmocka_unit_test(a_file_of_root_may_be_for_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
