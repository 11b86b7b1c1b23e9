/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/commandline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void assert_line(const char *const *argv, const char *expected)
{
	struct str out = { 0 };

	commandline_append(&out, (char *const *)(uintptr_t)argv);
	assert_int_equal(str_error(&out), 0);
	assert_string_equal(str_borrow(&out), expected);
	str_done(&out);
}

static void words_are_joined_and_quoted_as_a_shell_needs_them(void **state)
{
	(void)state;
	assert_line(WORDS("torchrun", "--nproc-per-node", "4", "train.py"),
		    "torchrun --nproc-per-node 4 train.py");
	assert_line(WORDS("python", "-c", "print('a b')"), "python -c 'print('\\''a b'\\'')'");
	assert_line(WORDS("run", "", "$HOME"), "run '' '$HOME'");
}

static void values_of_secrets_are_hidden(void **state)
{
	(void)state;
	assert_line(WORDS("env", "WANDB_API_KEY=abc", "train.py"),
		    "env WANDB_API_KEY=*** train.py");
	assert_line(WORDS("train.py", "--hf_token", "hf_abc", "--lr", "1"),
		    "train.py --hf_token *** --lr 1");
	assert_line(WORDS("train.py", "--Password=x y"), "train.py --Password=***");
	assert_line(WORDS("srun", "--export=ALL,WANDB_API_KEY=abc", "t.py"),
		    "srun --export=ALL,WANDB_API_KEY=*** t.py");
	assert_line(WORDS("docker", "run", "--env=HF_TOKEN=abc"), "docker run --env=HF_TOKEN=***");
	assert_line(WORDS("sh", "-c", "cd /job; X=1 HF_TOKEN=abc python t.py"),
		    "sh -c 'cd /job; X=1 HF_TOKEN'=***");
}

static void options_that_only_sound_like_secrets_stay(void **state)
{
	(void)state;
	assert_line(WORDS("train.py", "--num-tokens", "512", "--keys", "a"),
		    "train.py --num-tokens 512 --keys a");
	assert_line(WORDS("train.py", "--use-auth", "--lr", "1"), "train.py --use-auth --lr 1");
}

static void a_long_command_and_a_long_word_end_with_dots(void **state)
{
	char word[COMMANDLINE_WORD + 10];
	const char *words[COMMANDLINE_BYTES / COMMANDLINE_WORD + 4];
	struct str out = { 0 };

	(void)state;
	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	for (size_t i = 0; i + 1 < ARRAY_SIZE(words); i++)
		words[i] = word;
	words[ARRAY_SIZE(words) - 1] = NULL;
	commandline_append(&out, (char *const *)(uintptr_t)words);
	assert_int_equal(str_error(&out), 0);
	assert_in_range(out.len, COMMANDLINE_BYTES, COMMANDLINE_BYTES + COMMANDLINE_WORD + 20);
	assert_string_equal(str_borrow(&out) + out.len - 8, "a... ...");
	str_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_joined_and_quoted_as_a_shell_needs_them),
		cmocka_unit_test(values_of_secrets_are_hidden),
		cmocka_unit_test(options_that_only_sound_like_secrets_stay),
		cmocka_unit_test(a_long_command_and_a_long_word_end_with_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
