/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/comparer.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static char folder[64], program[128];

/* Stands for `perftracker`: a script whose arguments are those of the child. */
static void write_program(const char *text)
{
	FILE *file;

	assert_true(snprintf(program, sizeof(program), "%s/program", folder) > 0);
	(void)unlink(program);
	file = fopen(program, "we");
	assert_non_null(file);
	(void)fprintf(file, "#!/bin/sh\n%s\n", text);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0700), 0);
}

static struct comparer *make(const char *text, struct comparer_options options)
{
	struct comparer *comparer;

	write_program(text);
	options.program = program;
	if (options.place == NULL)
		options.place = "";
	comparer = comparer_new(&options);
	assert_non_null(comparer);
	return comparer;
}

static int wait_for(struct comparer *comparer, const char *before, const char *after,
		    struct str *body, struct str *why)
{
	int ret;

	while ((ret = comparer_ask(comparer, before, after, body, why)) == COMPARER_WAITS)
		(void)poll(NULL, 0, 5);
	return ret;
}

static void expect(struct comparer *comparer, int state, const char *body, const char *why)
{
	struct str is = { 0 }, said = { 0 };

	assert_int_equal(wait_for(comparer, "a", "-b; id", &is, &said), state);
	assert_string_equal(str_borrow(&is), body);
	if (strstr(str_borrow(&said), why) == NULL)
		assert_string_equal(str_borrow(&said), why);
	str_done(&is);
	str_done(&said);
	assert_null(comparer_free(comparer));
}

static void the_child_gets_words_behind_two_dashes(void **state _unused_)
{
	expect(make("for i in \"$@\"; do printf '[%s]' \"$i\"; done",
		    (struct comparer_options){ 0 }),
	       COMPARER_DONE, "[diff][--format][html][--jobs][1][--][a][-b; id]", "");
}

static void the_store_is_in_the_childs_environment_and_on_no_command_line(void **state _unused_)
{
	assert_int_equal(setenv("PERFTRACKER_STORE", "of the caller", 1), 0);
	expect(make("printf %s \"$PERFTRACKER_STORE\"",
		    (struct comparer_options){ .place = "postgresql://u:secret@h/d" }),
	       COMPARER_DONE, "postgresql://u:secret@h/d", "");
	expect(make("printf %s \"$PERFTRACKER_STORE\"", (struct comparer_options){ 0 }),
	       COMPARER_DONE, "none", "");
	assert_int_equal(unsetenv("PERFTRACKER_STORE"), 0);
}

static void messages_are_kept_beside_a_page_and_explain_a_failure(void **state _unused_)
{
	expect(make("echo left out >&2; printf page; exit 1", (struct comparer_options){ 0 }),
	       COMPARER_DONE, "page", "left out");
	expect(make("echo no such file >&2; exit 1", (struct comparer_options){ 0 }),
	       COMPARER_FAILED, "", "no such file");
	expect(make("exit 7", (struct comparer_options){ 0 }), COMPARER_FAILED, "",
	       "failed with exit status 7");
	expect(make("kill -SEGV $$", (struct comparer_options){ 0 }), COMPARER_FAILED, "",
	       "ended by signal 11");
}

static void a_child_ends_at_its_limit_of_time(void **state _unused_)
{
	expect(make("exec sleep 100000", (struct comparer_options){ .limit_ms = 100 }),
	       COMPARER_FAILED, "", "took longer than");
	/* One that has closed its output, too. */
	expect(make("exec sleep 100000 >&- 2>&-", (struct comparer_options){ .limit_ms = 100 }),
	       COMPARER_FAILED, "", "took longer than");
}

static void a_child_ends_at_its_limit_of_output(void **state _unused_)
{
	expect(make("exec yes", (struct comparer_options){ .bytes_max = 100000 }), COMPARER_FAILED,
	       "", "is longer than 97 KiB");
	expect(make("yes | head -c 100000 >&2; exit 1", (struct comparer_options){ 0 }),
	       COMPARER_FAILED, "", "y\ny\n");
}

static void a_program_that_is_not_there_is_said(void **state _unused_)
{
	struct comparer *comparer = make("", (struct comparer_options){ 0 });

	assert_int_equal(unlink(program), 0);
	expect(comparer, COMPARER_FAILED, "", "can't be started: No such file");
}

/* Each child adds a line to a file: the same question starts one. */
static void viewers_share_a_result_and_further_questions_wait_in_line(void **state _unused_)
{
	struct comparer *comparer;
	struct str body = { 0 }, why = { 0 };
	char text[256], word[16];

	(void)snprintf(text, sizeof(text), "echo x >>%s/runs; cat %s/gate; wc -l <%s/runs", folder,
		       folder, folder);
	(void)snprintf(program, sizeof(program), "%s/gate", folder);
	assert_int_equal(mkfifo(program, 0600), 0);
	comparer = make(text, (struct comparer_options){ 0 });
	for (unsigned i = 0; i < COMPARER_ENTRIES; i++) {
		(void)snprintf(word, sizeof(word), "%u", i);
		for (int viewer = 0; viewer < 3; viewer++)
			assert_int_equal(comparer_ask(comparer, word, "b", &body, &why),
					 COMPARER_WAITS);
	}
	assert_int_equal(comparer_ask(comparer, "one too many", "b", &body, &why), -EBUSY);
	(void)snprintf(text, sizeof(text), "%s/gate", folder);
	/* Children in order, one at a time: each reads the gate's end once it is opened. */
	for (unsigned i = 0; i < COMPARER_ENTRIES; i++) {
		int fd = open(text, O_WRONLY | O_CLOEXEC);
		char number[16];

		assert_true(fd >= 0);
		(void)close(fd);
		(void)snprintf(word, sizeof(word), "%u", i);
		assert_int_equal(wait_for(comparer, word, "b", &body, &why), COMPARER_DONE);
		(void)snprintf(number, sizeof(number), "%u\n", i + 1);
		assert_string_equal(str_borrow(&body), number);
		str_done(&body);
		body = (struct str){ 0 };
	}
	/* Kept, and given up for a new question. */
	assert_int_equal(comparer_ask(comparer, "7", "b", &body, &why), COMPARER_DONE);
	assert_string_equal(str_borrow(&body), "8\n");
	assert_int_equal(comparer_ask(comparer, "new", "b", &body, &why), COMPARER_WAITS);
	assert_null(comparer_free(comparer)); /* kills the child that waits at the gate */
	str_done(&body);
	str_done(&why);
}

static int setup(void **state _unused_)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/pt-comparer-XXXXXX");
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state _unused_)
{
	static const char *const names[] = { "program", "gate", "runs" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_child_gets_words_behind_two_dashes),
		cmocka_unit_test(the_store_is_in_the_childs_environment_and_on_no_command_line),
		cmocka_unit_test(messages_are_kept_beside_a_page_and_explain_a_failure),
		cmocka_unit_test(a_child_ends_at_its_limit_of_time),
		cmocka_unit_test(a_child_ends_at_its_limit_of_output),
		cmocka_unit_test(a_program_that_is_not_there_is_said),
		cmocka_unit_test(viewers_share_a_result_and_further_questions_wait_in_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
