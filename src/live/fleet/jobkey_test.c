/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/jobkey.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct joborigin origin = { .pid = 77,
					 .start = 1234,
					 .command = "/usr/bin/python3 gpt/train.py --lr 1" };

static void make(const char *variables, uid_t uid, struct jobkey *ret)
{
	struct attachment attachment;
	char text[2048];

	(void)snprintf(text, sizeof(text), ATTACHMENT_ASKS "\n%s", variables);
	assert_int_equal(attachment_parse(text, strlen(text), &attachment), 0);
	assert_int_equal(jobkey_make("east", uid, &attachment, &origin, ret), 0);
}

static void a_job_is_named_by_what_started_it(void **state)
{
	static const char *const rows[][2] = {
		{ "PERFTRACKER_JOB=llama\nSLURM_JOB_ID=3\n", "east/u1000/llama" },
		{ "SLURM_JOB_ID=3\nSLURM_STEP_ID=0\nRANK=1\n", "east/u1000/slurm-3.0" },
		{ "SLURM_JOB_ID=3\nSLURM_STEP_ID=0\nSLURM_RESTART_COUNT=2\n",
		  "east/u1000/slurm-3.0#2" },
		/* two torchruns of one batch script */
		{ "SLURM_JOB_ID=3\nTORCHELASTIC_RUN_ID=abc\n", "east/u1000/slurm-3+abc" },
		{ "TORCHELASTIC_RUN_ID=9f-2\nMASTER_ADDR=h\nMASTER_PORT=1\nRANK=0\n",
		  "east/u1000/9f-2" },
		{ "TORCHELASTIC_RUN_ID=none\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=29500\nRANK=0\n",
		  "east/u1000/10.0.0.1:29500" },
		{ "JOBSET_NAME=pretrain\nJOBSET_RESTART_ATTEMPT=1\n", "east/u1000/pretrain#1" },
		{ "PMIX_NAMESPACE=prterun-h-99@1\n", "east/u1000/prterun-h-99@1" },
		{ "MASTER_ADDR=h\n", "east/u1000/train-77-1234" }, /* left by another program */
		{ "", "east/u1000/train-77-1234" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct jobkey key;

		make(rows[i][0], 1000, &key);
		assert_string_equal(key.text, rows[i][1]);
		assert_int_equal(key.is_plain, strstr(key.text, "-77-") != NULL);
	}
}

static void users_and_jobs_are_told_apart(void **state)
{
	struct jobkey a, b;

	(void)state;
	make("PERFTRACKER_JOB=x\n", 1, &a);
	make("PERFTRACKER_JOB=x\n", 2, &b);
	assert_string_not_equal(a.text, b.text);
	make("PERFTRACKER_JOB=x/y\n", 1, &a);
	make("PERFTRACKER_JOB=x y\n", 1, &b);
	assert_string_not_equal(a.text, b.text);
	assert_non_null(strstr(a.job, "x_y-"));
	make("PERFTRACKER_JOB=../../etc\n", 1, &a);
	assert_null(strchr(a.job, '/'));
	assert_int_not_equal(a.job[0], '.');
}

static void a_long_name_is_cut_and_stays_unique(void **state)
{
	char long_a[400] = "PERFTRACKER_JOB=", long_b[400];
	struct jobkey a, b;

	(void)state;
	memset(long_a + strlen(long_a), 'x', 300);
	memcpy(long_b, long_a, sizeof(long_b));
	long_a[315] = 'y';
	make(long_a, 1, &a);
	make(long_b, 1, &b);
	assert_string_not_equal(a.text, b.text);
	assert_true(strlen(a.job) < JOBKEY_JOB_MAX);
}

static void what_a_key_is_made_of_is_read_back(void **state)
{
	static const char *const wrong[] = {
		"",	      "east",	     "east/u1",	    "east/u1/",
		"east/u/x",   "east/ux/x",   "west/u1/x",   "eastern/u1/x",
		"east/u1/.x", "east/u1/x/y", "east/u1/x y", "east/u99999999999/x",
		"east/u-1/x",
	};
	const char *job = NULL;
	unsigned uid = 0;
	struct jobkey key;
	char digest[17];

	(void)state;
	make("SLURM_JOB_ID=3\nSLURM_STEP_ID=0\n", 1000, &key);
	assert_true(jobkey_split(key.text, "east", &uid, &job));
	assert_int_equal(uid, 1000);
	assert_string_equal(job, "slurm-3.0");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(jobkey_split(wrong[i], "east", &uid, &job));
	jobkey_digest(key.text, digest);
	assert_int_equal(strlen(digest), 16);
}

static void without_memory_there_is_no_key(void **state)
{
	static const char text[] = ATTACHMENT_ASKS "\nSLURM_JOB_ID=3\nTORCHELASTIC_RUN_ID=abc\n";
	struct attachment attachment;
	struct jobkey key;
	int error = -ENOMEM;

	(void)state;
	assert_int_equal(attachment_parse(text, strlen(text), &attachment), 0);
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = jobkey_make("east", 1, &attachment, &origin, &key);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_string_equal(key.job, "slurm-3+abc");
}

static void a_request_is_checked(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int error;
	} rows[] = {
		{ "", 0, -EPROTO },
		{ "perftracker-attach 2\n", 21, -EPROTO },
		{ ATTACHMENT_ASKS, strlen(ATTACHMENT_ASKS), -EPROTO },
		{ ATTACHMENT_ASKS "\nA=1\nB", 26, -EINVAL },
		{ ATTACHMENT_ASKS "\nA\nB=1\n", 27, -EINVAL },
		{ ATTACHMENT_ASKS "\nA=\0\n", 25, -EINVAL },
		{ ATTACHMENT_ASKS "\nA=1=2\nB=\nC=07", 34, 0 },
	};
	static char large[ATTACHMENT_BYTES_MAX];
	struct attachment a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(attachment_parse(rows[i].text, rows[i].len, &a), rows[i].error);
	assert_string_equal(attachment_find(&a, "A"), "1=2");
	assert_null(attachment_find(&a, "B"));
	assert_int_equal(attachment_number(&a, "C"), 7);
	assert_int_equal(attachment_number(&a, "A"), -1);
	assert_int_equal(attachment_number(&a, "D"), -1);
	assert_int_equal(attachment_parse(large, sizeof(large), &a), -EMSGSIZE);
}

static void answers_are_lines(void **state)
{
	char text[200], small[10];

	(void)state;
	assert_int_equal(attachment_write_yes(text, sizeof(text), "/s", "/d", "/a"), 49);
	assert_string_equal(text, "perftracker-attached 1\nsocket=/s\ndir=/d\nagent=/a\n");
	assert_int_equal(attachment_write_no(small, sizeof(small), "no"), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_named_by_what_started_it),
		cmocka_unit_test(users_and_jobs_are_told_apart),
		cmocka_unit_test(a_long_name_is_cut_and_stays_unique),
		cmocka_unit_test(what_a_key_is_made_of_is_read_back),
		cmocka_unit_test(without_memory_there_is_no_key),
		cmocka_unit_test(a_request_is_checked),
		cmocka_unit_test(answers_are_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
