/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/taskenv.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct taskenv_changes changes;

static const char *changed(const char *name)
{
	for (size_t i = 0; i < changes.cnt; i++) {
		if (strcmp(changes.list[i].name, name) == 0)
			return changes.list[i].value;
	}
	return NULL;
}

static void decide(bool all, enum taskenv_choice choice, const char *own, const char *path)
{
	struct taskenv_settings settings = { .all = all, .hook = "/hook", .hostd = "/sock" };

	taskenv_decide(&settings, choice, own, path, NULL, &changes);
}

static void a_task_that_did_not_ask_is_not_changed(void **state)
{
	(void)state;
	decide(false, TASKENV_UNSAID, NULL, "/own");
	assert_int_equal(changes.cnt, 0);
}

static void the_option_counts_more_than_the_variable_and_that_more_than_the_site(void **state)
{
	/* the site's, the option, the variable; what PERFTRACKER becomes, whether the hook is given */
	static const struct {
		bool all;
		enum taskenv_choice choice;
		const char *own, *becomes;
		bool hook;
	} cases[] = {
		{ false, TASKENV_UNSAID, "1", NULL, true },
		{ false, TASKENV_UNSAID, "0", NULL, false },
		{ false, TASKENV_YES, NULL, "1", true },
		{ false, TASKENV_YES, "0", "1", true },
		{ false, TASKENV_NO, "1", "0", false },
		{ true, TASKENV_UNSAID, NULL, "1", true },
		{ true, TASKENV_UNSAID, "no", NULL, false },
		{ true, TASKENV_NO, NULL, "0", false },
		{ true, TASKENV_UNSAID, "x", NULL, false },
		{ true, TASKENV_UNSAID, "ON", NULL, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		decide(cases[i].all, cases[i].choice, cases[i].own, NULL);
		if (cases[i].becomes == NULL)
			assert_null(changed("PERFTRACKER"));
		else
			assert_string_equal(changed("PERFTRACKER"), cases[i].becomes);
		assert_int_equal(changed("PYTHONPATH") != NULL, cases[i].hook);
		assert_int_equal(changed("PERFTRACKER_HOSTD") != NULL, cases[i].hook);
	}
}

static void the_hook_comes_first_and_once(void **state)
{
	static const char *const there[] = { "/hook", "/a:/hook", "/hook:/a", "/a:/hook:/b" };
	static const char *const others[] = { "/hooks", "/a/hook", "/a:/hook2:/b", ":", "/a:" };
	char expected[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		decide(true, TASKENV_UNSAID, NULL, there[i]);
		assert_null(changed("PYTHONPATH"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		decide(true, TASKENV_UNSAID, NULL, others[i]);
		(void)snprintf(expected, sizeof(expected), "/hook:%s", others[i]);
		assert_string_equal(changed("PYTHONPATH"), expected);
	}
	decide(true, TASKENV_UNSAID, NULL, "");
	assert_string_equal(changed("PYTHONPATH"), "/hook");
}

static void a_path_that_would_not_fit_stays(void **state)
{
	char path[TASKENV_VALUE_MAX];

	(void)state;
	memset(path, 'a', sizeof(path));
	for (size_t len = TASKENV_VALUE_MAX - 10; len < TASKENV_VALUE_MAX; len++) {
		path[len] = '\0';
		decide(true, TASKENV_UNSAID, NULL, path);
		assert_int_equal(changed("PYTHONPATH") != NULL,
				 len + strlen("/hook:") < TASKENV_VALUE_MAX);
		assert_string_equal(changed("PERFTRACKER"), "1");
		path[len] = 'a';
	}
}

static void words_of_the_configuration_are_read_and_others_named(void **state)
{
	const char *words[] = { "all", "hook=/x", "hostd=/y" },
		   *wrong[] = { "hook=relative", "bad", "all" };
	struct taskenv_settings settings;

	(void)state;
	assert_null(taskenv_parse_words(3, words, &settings));
	assert_true(settings.all);
	assert_string_equal(settings.hook, "/x");
	assert_string_equal(settings.hostd, "/y");
	assert_string_equal(taskenv_parse_words(3, wrong, &settings), "hook=relative");
	assert_true(settings.all);
	assert_string_equal(settings.hook, "/usr/lib/perftracker/python");
	assert_null(taskenv_parse_words(0, NULL, &settings));
	assert_false(settings.all);
}

static void a_value_of_the_option_is_yes_or_no(void **state)
{
	enum taskenv_choice choice = TASKENV_UNSAID;

	(void)state;
	assert_int_equal(taskenv_parse_choice(NULL, &choice), 0);
	assert_int_equal(choice, TASKENV_YES);
	assert_int_equal(taskenv_parse_choice("No", &choice), 0);
	assert_int_equal(choice, TASKENV_NO);
	assert_int_equal(taskenv_parse_choice("", &choice), -EINVAL);
	assert_int_equal(taskenv_parse_choice("yes ", &choice), -EINVAL);
	assert_int_equal(choice, TASKENV_NO);
}

static void a_socket_of_the_task_is_kept(void **state)
{
	struct taskenv_settings settings = { .all = true, .hook = "/hook", .hostd = "/sock" };

	(void)state;
	taskenv_decide(&settings, TASKENV_UNSAID, NULL, NULL, "/own.sock", &changes);
	assert_null(changed("PERFTRACKER_HOSTD"));
	assert_string_equal(changed("PERFTRACKER"), "1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_that_did_not_ask_is_not_changed),
		cmocka_unit_test(
			the_option_counts_more_than_the_variable_and_that_more_than_the_site),
		cmocka_unit_test(the_hook_comes_first_and_once),
		cmocka_unit_test(a_path_that_would_not_fit_stays),
		cmocka_unit_test(words_of_the_configuration_are_read_and_others_named),
		cmocka_unit_test(a_value_of_the_option_is_yes_or_no),
		cmocka_unit_test(a_socket_of_the_task_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
