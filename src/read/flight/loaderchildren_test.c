/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/loaderchildren.h"

#include "base/test_alloc.h"
#include "read/common/test_events.h"

#include <errno.h>

#define POLL 7 /* numbers of system calls: x86-64 */
#define NANOSLEEP 230

static struct flight_place found;

/* The stack of a child's loop; it was forked inside main. */
static uint32_t loop_of(struct fixture *x)
{
	uint32_t start =
		child(x, x->main, "/py/lib/python3.11/multiprocessing/process.py", "start");

	return child(x, start, "/py/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py",
		     "_worker_loop");
}

static void child_at(struct fixture *x, uint32_t pid, int64_t ms, uint32_t node, uint32_t call)
{
	struct ring_record record = { .time_ns = T0 + ms * MS,
				      .kind = FLIGHT_CHILD,
				      .detail = call != 0 ? flight_sample_call(call) : 0,
				      .extra = (uint64_t)pid << 32 | node };

	ring_push(x->f->samples, FLIGHT_SAMPLE_CNT, &x->f->sample_head, &record);
}

/* Looks at the first 100 ms. */
static int look(struct fixture *x)
{
	const struct flight *reader;
	struct flightlog log;
	int ret;

	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, false), 0);
	assert_int_equal(log.drops.invalid, 0);
	flight_unmap(reader);
	ret = flight_children(&log, T0, T0 + 100 * MS, &found);
	flightlog_done(&log);
	return ret;
}

static uint32_t fetch_of(struct fixture *x, uint32_t loop)
{
	return child(x, loop, "/py/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py",
		     "fetch");
}

static void the_function_that_most_samples_share_is_named_with_its_callers(void **state)
{
	struct fixture *x = *state;
	uint32_t fetch, collate, decode;

	sample_at(x, 1, x->step); /* names the script's folder */
	fetch = fetch_of(x, loop_of(x));
	collate = child(x, fetch, "/job/train.py", "collate");
	decode = child(x, collate, "/job/train.py", "decode");
	for (int ms = 0; ms < 16; ms++)
		child_at(x, 80 + (uint32_t)ms % 2, ms, decode, NANOSLEEP);
	child_at(x, 80, 17, collate, 0);
	child_at(x, 80, 18, child(x, fetch, "/job/train.py", "__getitem__"), 0);
	child_at(x, 80, 19, fetch, 0);
	child_at(x, 80, 20, fetch, 0);
	child_at(x, 80, 200, fetch, 0); /* later */
	assert_int_equal(look(x), 0);
	assert_int_equal(found.sample_cnt, 20);
	assert_float_equal(found.frac, 0.8, 1e-9);
	assert_string_equal(found.place, "train.py(5): collate > train.py(5): decode > "
					 "<system call clock_nanosleep>");
}

static void children_that_wait_for_work_or_start_have_no_part_in_it(void **state)
{
	struct fixture *x = *state;
	uint32_t loop = loop_of(x), get, item;

	get = child(x, loop, "/py/lib/python3.11/multiprocessing/queues.py", "Queue.get");
	item = child(x, fetch_of(x, loop), "/job/train.py", "Set.__getitem__");
	for (int ms = 0; ms < 50; ms++)
		child_at(x, 80, ms, child(x, get, "/py/lib/python3.11/selectors.py", "select"),
			 POLL);
	child_at(x, 81, 1, x->main, 0);
	assert_int_equal(look(x), 0);
	assert_int_equal(found.sample_cnt, 0);
	child_at(x, 82, 60, item, 0);
	assert_int_equal(look(x), 0);
	assert_int_equal(found.sample_cnt, 1);
	assert_string_equal(found.place, "/job/train.py(5): __getitem__");
}

static void without_a_function_of_the_user_the_librarys_is_named(void **state)
{
	struct fixture *x = *state;

	child_at(x, 80, 1, fetch_of(x, loop_of(x)), 0);
	assert_int_equal(look(x), 0);
	assert_string_equal(found.place, "torch/utils/data/_utils/fetch.py(5): fetch");
}

static void a_long_path_keeps_its_ends_and_a_long_text_whole_characters(void **state)
{
	struct fixture *x = *state;
	uint32_t node = fetch_of(x, loop_of(x));
	char name[240];

	for (int c = 'a'; c <= 'f'; c++)
		node = child(x, node, "/job/d.py", (char[]){ (char)c, '\0' });
	child_at(x, 80, 1, node, 0);
	assert_int_equal(look(x), 0);
	assert_string_equal(found.place,
			    "/job/d.py(5): a > ... > /job/d.py(5): e > /job/d.py(5): f");
	/* Libraries below the user's innermost function do not hide it. */
	for (int c = 'g'; c <= 'k'; c++)
		node = child(x, node, "json/decoder.py", (char[]){ (char)c, '\0' });
	for (int ms = 2; ms < 5; ms++)
		child_at(x, 80, ms, node, 0);
	assert_int_equal(look(x), 0);
	assert_string_equal(found.place, "/job/d.py(5): a > ... > /job/d.py(5): f > ... > "
					 "json/decoder.py(5): j > json/decoder.py(5): k");
	for (size_t i = 0; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa9", 3);
	for (int i = 0; i < 3; i++)
		node = child(x, node, "/job/of/a/name/long/enough/d.py", name);
	for (int ms = 5; ms < 19; ms++)
		child_at(x, 80, ms, node, 0);
	assert_int_equal(look(x), 0);
	assert_in_range(strlen(found.place), FLIGHT_PLACE_MAX - 2, FLIGHT_PLACE_MAX - 1);
	assert_memory_equal(found.place + strlen(found.place) - 2, "\xc3\xa9", 2);
}

static void a_failed_allocation_changes_nothing(void **state)
{
	struct fixture *x = *state;
	const struct flight *reader;
	struct flightlog log;
	int ret = -ENOMEM;

	child_at(x, 80, 1, fetch_of(x, loop_of(x)), 0);
	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, false), 0);
	flight_unmap(reader);
	found.sample_cnt = 77;
	for (int n = 0; ret == -ENOMEM; n++) {
		assert_int_equal(found.sample_cnt, 77);
		allocations_left = n;
		ret = flight_children(&log, T0, T0 + 100 * MS, &found);
		allocations_left = -1;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(found.sample_cnt, 1);
	flightlog_done(&log);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
	const struct CMUnitTest tests[] = {
		TEST(the_function_that_most_samples_share_is_named_with_its_callers),
		TEST(children_that_wait_for_work_or_start_have_no_part_in_it),
		TEST(without_a_function_of_the_user_the_librarys_is_named),
		TEST(a_long_path_keeps_its_ends_and_a_long_text_whole_characters),
		TEST(a_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
