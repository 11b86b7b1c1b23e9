/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/jobname.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORDS_MAX 12

/* The name of a command given as one text. */
static const char *name_of(const char *command)
{
	static char name[JOBNAME_BYTES];
	char text[256], *words[WORDS_MAX] = { NULL }, *rest = text;
	size_t cnt = 0;

	(void)strncpy(text, command, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	while (cnt < WORDS_MAX - 1 && (words[cnt] = strsep(&rest, " ")) != NULL)
		cnt++;
	jobname_of_command(words, name);
	return name;
}

static void a_job_is_named_by_its_script_or_module(void **state)
{
	static const char *const cases[][2] = {
		{ "python train.py", "train" },
		{ "torchrun --nproc-per-node 4 src/gpt/train_gpt.py --config c.py", "train_gpt" },
		{ "python -u -m mypackage.train --lr 1", "mypackage.train" },
		{ "python -m torch.distributed.run --nnodes 2 train.py", "train" },
		{ "python -m torch.distributed.run --module mine.train", "mine.train" },
		{ "./train.py", "train" },
		{ "/opt/bin/start.sh a b", "start.sh" },
		{ "python -c import_x.py", "python" },
		{ "python -m", "python" },
		{ "dir/", "dir-" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(name_of(cases[i][0]), cases[i][1]);
}

static void a_name_is_safe_as_the_name_of_a_folder(void **state)
{
	char name[JOBNAME_BYTES], longest[2 * JOBNAME_BYTES];

	(void)state;
	jobname_clean("../a b/\xc3\xa4", name);
	assert_string_equal(name, "-.-a-b---");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	jobname_clean(longest, name);
	assert_int_equal(strlen(name), JOBNAME_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_named_by_its_script_or_module),
		cmocka_unit_test(a_name_is_safe_as_the_name_of_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
