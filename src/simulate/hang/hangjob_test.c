/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/hang/hangjob.h"

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

static struct err err;

static struct hangjob *open_job(const char *scenario, int worker_cnt, uint64_t seed)
{
	const struct hangjob_options options = { .scenario = scenario,
						 .worker_cnt = worker_cnt,
						 .seed = seed,
						 .dumps = HANGJOB_RECORDER };
	struct hangjob *job = NULL;

	assert_int_equal(hangjob_open(&options, &job, &err), 0);
	return job;
}

static void each_scenario_opens_and_its_truth_has_its_name(void **state)
{
	const char *help, *name = hangjob_name(0, &help);

	(void)state;
	for (size_t i = 0; name != NULL; name = hangjob_name(++i, &help)) {
		struct hangjob *job = open_job(name, 4, i);
		struct str truth = { 0 }, dump = { 0 };

		assert_true(hangjob_is(name));
		hangjob_truth(job, &truth);
		assert_non_null(strstr(str_borrow(&truth), name));
		for (int rank = 0; rank < hangjob_worker_cnt(job); rank++) {
			hangjob_recorder(job, rank, &dump);
			hangjob_stacks(job, rank, &dump);
			hangjob_pyspy(job, rank, &dump);
		}
		assert_int_equal(str_error(&dump), 0);
		str_done(&truth);
		str_done(&dump);
		hangjob_close(job);
	}
}

static void a_rank_that_has_ended_leaves_no_dump(void **state)
{
	struct hangjob *job = open_job("hang-exited", 16, 3);
	int without = 0;

	(void)state;
	for (int rank = 0; rank < 16; rank++)
		without += !hangjob_has_worker(job, rank);
	assert_int_equal(without, 1);
	hangjob_close(job);
}

/* The begin of a pickle of protocol 2, and its end. */
static void a_dump_is_a_pickle(void **state)
{
	struct hangjob *job = open_job("hang-size", 8, 5);
	struct str dump = { 0 };

	(void)state;
	hangjob_recorder(job, 3, &dump);
	assert_memory_equal(str_borrow(&dump), "\x80\x02}(X\x07\0\0\0version", 16);
	assert_int_equal(str_borrow(&dump)[dump.len - 1], '.');
	str_done(&dump);
	hangjob_close(job);
}

static bool has_text(const struct str *in, const char *text)
{
	return memmem(in->data, in->len, text, strlen(text)) != NULL;
}

/* Of two ranks the first stage sends and receives; each side writes its own name of a transfer. */
static void stages_write_their_sides_of_a_transfer(void **state)
{
	struct hangjob *job = open_job("hang-transfer", 2, 3);
	struct str first = { 0 }, second = { 0 };

	(void)state;
	hangjob_recorder(job, 0, &first);
	hangjob_recorder(job, 1, &second);
	assert_true(has_text(&first, "nccl:send 0->1") || has_text(&first, "nccl:recv 0<-1"));
	assert_true(has_text(&second, "nccl:send 1->0") || has_text(&second, "nccl:recv 1<-0"));
	assert_false(has_text(&first, "nccl:send 1->0") || has_text(&first, "nccl:recv 1<-0"));
	assert_true(has_text(&first, "PIPELINE_MODEL_PARALLEL_GROUP"));
	str_done(&first);
	str_done(&second);
	hangjob_close(job);
}

static void one_rank_alone_is_in_the_state_of_a_stopped_one(void **state)
{
	struct hangjob *job = open_job("hang-stopped", 8, 3);
	int stopped = 0;

	(void)state;
	for (int rank = 0; rank < 8; rank++) {
		struct str stacks = { 0 };

		hangjob_stacks(job, rank, &stacks);
		stopped += has_text(&stacks, "\"state\": \"T\"");
		str_done(&stacks);
	}
	assert_int_equal(stopped, 1);
	hangjob_close(job);
}

static void numbers_out_of_range_are_refused(void **state)
{
	struct hangjob_options options = { .scenario = "hang-lock", .worker_cnt = 1 };
	struct hangjob *job;

	(void)state;
	assert_int_equal(hangjob_open(&options, &job, &err), -EINVAL);
	options.worker_cnt = HANGJOB_WORKERS_MAX + 1;
	assert_int_equal(hangjob_open(&options, &job, &err), -EINVAL);
	options = (struct hangjob_options){ .scenario = "hang-what" };
	assert_int_equal(hangjob_open(&options, &job, &err), -ENOENT);
	assert_non_null(strstr(err.text, "hang-what"));
}

static void missing_memory_is_reported_at_every_allocation(void **state)
{
	const struct hangjob_options options = { .scenario = "hang-loader", .worker_cnt = 4 };
	struct hangjob *job = NULL;
	int error = -ENOMEM;

	(void)state;
	for (int n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = hangjob_open(&options, &job, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	hangjob_close(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_scenario_opens_and_its_truth_has_its_name),
		cmocka_unit_test(a_rank_that_has_ended_leaves_no_dump),
		cmocka_unit_test(a_dump_is_a_pickle),
		cmocka_unit_test(stages_write_their_sides_of_a_transfer),
		cmocka_unit_test(one_rank_alone_is_in_the_state_of_a_stopped_one),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(missing_memory_is_reported_at_every_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
