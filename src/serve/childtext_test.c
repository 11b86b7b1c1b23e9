/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/childtext.h"

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

static struct childtext *make(const char *text, struct childtext_options options)
{
	struct childtext *childtext;

	write_program(text);
	options.program = program;
	if (options.place == NULL)
		options.place = "";
	childtext = childtext_new(&options);
	assert_non_null(childtext);
	return childtext;
}

static int ask(struct childtext *childtext, const char *before, const char *after, struct str *body,
	       struct str *why)
{
	const struct childtext_question question = {
		{ "diff", "--format", "html", "--", before, after },
		"the comparison",
		"do it yourself",
	};

	return childtext_ask(childtext, &question, body, why);
}

static int wait_for(struct childtext *childtext, const char *before, const char *after,
		    struct str *body, struct str *why)
{
	int ret;

	while ((ret = ask(childtext, before, after, body, why)) == CHILDTEXT_WAITS)
		(void)poll(NULL, 0, 5);
	return ret;
}

static void expect(struct childtext *childtext, int state, const char *body, const char *why)
{
	struct str is = { 0 }, said = { 0 };

	assert_int_equal(wait_for(childtext, "a", "-b; id", &is, &said), state);
	assert_string_equal(str_borrow(&is), body);
	if (strstr(str_borrow(&said), why) == NULL)
		assert_string_equal(str_borrow(&said), why);
	str_done(&is);
	str_done(&said);
	assert_null(childtext_free(childtext));
}

static void the_child_gets_words_behind_two_dashes(void **state _unused_)
{
	expect(make("for i in \"$@\"; do printf '[%s]' \"$i\"; done",
		    (struct childtext_options){ 0 }),
	       CHILDTEXT_DONE, "[diff][--format][html][--][a][-b; id]", "");
}

static void the_store_is_in_the_childs_environment_and_on_no_command_line(void **state _unused_)
{
	assert_int_equal(setenv("PERFTRACKER_STORE", "of the caller", 1), 0);
	expect(make("printf %s \"$PERFTRACKER_STORE\"",
		    (struct childtext_options){ .place = "postgresql://u:secret@h/d" }),
	       CHILDTEXT_DONE, "postgresql://u:secret@h/d", "");
	expect(make("printf %s \"$PERFTRACKER_STORE\"", (struct childtext_options){ 0 }),
	       CHILDTEXT_DONE, "none", "");
	assert_int_equal(unsetenv("PERFTRACKER_STORE"), 0);
}

static void messages_are_kept_beside_a_page_and_explain_a_failure(void **state _unused_)
{
	expect(make("echo left out >&2; printf page; exit 1", (struct childtext_options){ 0 }),
	       CHILDTEXT_DONE, "page", "left out");
	expect(make("echo no such file >&2; exit 1", (struct childtext_options){ 0 }),
	       CHILDTEXT_FAILED, "", "no such file");
	expect(make("exit 7", (struct childtext_options){ 0 }), CHILDTEXT_FAILED, "",
	       "failed with exit status 7");
	expect(make("kill -SEGV $$", (struct childtext_options){ 0 }), CHILDTEXT_FAILED, "",
	       "the comparison ended by signal 11; do it yourself");
}

static void a_child_ends_at_its_limit_of_time(void **state _unused_)
{
	expect(make("exec sleep 100000", (struct childtext_options){ .limit_ms = 100 }),
	       CHILDTEXT_FAILED, "", "took longer than");
	/* One that has closed its output, too. */
	expect(make("exec sleep 100000 >&- 2>&-", (struct childtext_options){ .limit_ms = 100 }),
	       CHILDTEXT_FAILED, "", "took longer than");
}

static void a_child_ends_at_its_limit_of_output(void **state _unused_)
{
	expect(make("exec yes", (struct childtext_options){ .bytes_max = 100000 }),
	       CHILDTEXT_FAILED, "", "is longer than 97 KiB");
	expect(make("yes | head -c 100000 >&2; exit 1", (struct childtext_options){ 0 }),
	       CHILDTEXT_FAILED, "", "y\ny\n");
}

static void a_program_that_is_not_there_is_said(void **state _unused_)
{
	struct childtext *childtext = make("", (struct childtext_options){ 0 });

	assert_int_equal(unlink(program), 0);
	expect(childtext, CHILDTEXT_FAILED, "", "can't be started: No such file");
}

static void too_many_words_are_refused(void **state _unused_)
{
	struct childtext *childtext = make("", (struct childtext_options){ 0 });
	struct childtext_question question = { .what = "", .instead = "" };
	struct str body = { 0 }, why = { 0 };

	for (size_t i = 0; i < CHILDTEXT_WORDS_MAX; i++)
		question.words[i] = "word";
	assert_int_equal(childtext_ask(childtext, &question, &body, &why), -E2BIG);
	/* "ab", "c" is another question than "a", "bc". */
	assert_int_equal(ask(childtext, "ab", "c", &body, &why), CHILDTEXT_WAITS);
	assert_int_equal(wait_for(childtext, "ab", "c", &body, &why), CHILDTEXT_FAILED);
	assert_int_equal(ask(childtext, "a", "bc", &body, &why), CHILDTEXT_WAITS);
	str_done(&why);
	assert_null(childtext_free(childtext));
}

/* Each child adds a line to a file: the same question starts one. */
static void viewers_share_a_result_and_further_questions_wait_in_line(void **state _unused_)
{
	struct childtext *childtext;
	struct str body = { 0 }, why = { 0 };
	char text[256], word[16];

	(void)snprintf(text, sizeof(text), "echo x >>%s/runs; cat %s/gate; wc -l <%s/runs", folder,
		       folder, folder);
	(void)snprintf(program, sizeof(program), "%s/gate", folder);
	assert_int_equal(mkfifo(program, 0600), 0);
	childtext = make(text, (struct childtext_options){ 0 });
	for (unsigned i = 0; i < CHILDTEXT_ENTRIES; i++) {
		(void)snprintf(word, sizeof(word), "%u", i);
		for (int viewer = 0; viewer < 3; viewer++)
			assert_int_equal(ask(childtext, word, "b", &body, &why), CHILDTEXT_WAITS);
	}
	assert_int_equal(ask(childtext, "one too many", "b", &body, &why), -EBUSY);
	(void)snprintf(text, sizeof(text), "%s/gate", folder);
	/* Children in order, one at a time: each reads the gate's end once it is opened. */
	for (unsigned i = 0; i < CHILDTEXT_ENTRIES; i++) {
		int fd = open(text, O_WRONLY | O_CLOEXEC);
		char number[16];

		assert_true(fd >= 0);
		(void)close(fd);
		(void)snprintf(word, sizeof(word), "%u", i);
		assert_int_equal(wait_for(childtext, word, "b", &body, &why), CHILDTEXT_DONE);
		(void)snprintf(number, sizeof(number), "%u\n", i + 1);
		assert_string_equal(str_borrow(&body), number);
		str_done(&body);
		body = (struct str){ 0 };
	}
	/* Kept, and given up for a new question. */
	assert_int_equal(ask(childtext, "7", "b", &body, &why), CHILDTEXT_DONE);
	assert_string_equal(str_borrow(&body), "8\n");
	assert_int_equal(ask(childtext, "new", "b", &body, &why), CHILDTEXT_WAITS);
	assert_null(childtext_free(childtext)); /* kills the child that waits at the gate */
	str_done(&body);
	str_done(&why);
}

static int setup(void **state _unused_)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/pt-childtext-XXXXXX");
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
		cmocka_unit_test(too_many_words_are_refused),
		cmocka_unit_test(viewers_share_a_result_and_further_questions_wait_in_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
