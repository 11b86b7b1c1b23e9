/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/perfrecord.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* A record of words behind its header. */
struct bytes {
	uint64_t words[64];
	size_t cnt;
};

static struct bytes begin(uint32_t type, uint16_t misc)
{
	struct bytes bytes = { .cnt = 1 };
	struct perf_event_header header = { .type = type, .misc = misc };

	memcpy(bytes.words, &header, sizeof(header));
	return bytes;
}

static void push(struct bytes *bytes, uint64_t word)
{
	bytes->words[bytes->cnt++] = word;
}

static int parse(struct bytes *bytes, bool regs, struct perfrecord *ret)
{
	return perfrecord_parse((const unsigned char *)bytes->words, bytes->cnt * 8, regs, ret);
}

static uint64_t thread(uint32_t pid, uint32_t tid)
{
	return (uint64_t)tid << 32 | pid;
}

static struct bytes sample(void)
{
	struct bytes bytes = begin(PERF_RECORD_SAMPLE, 1);

	push(&bytes, 78); /* id */
	push(&bytes, thread(100, 101));
	push(&bytes, 5000);
	push(&bytes, 1);	      /* CPU */
	push(&bytes, 3);	      /* functions */
	push(&bytes, (uint64_t)-128); /* PERF_CONTEXT_KERNEL */
	push(&bytes, 0xffffffff81000001);
	push(&bytes, 0xffffffff81000002);
	push(&bytes, 12 | 0x1111111100000000); /* 12 bytes of a tracepoint */
	push(&bytes, 0x3333333322222222);
	return bytes;
}

static void a_sample_has_stack_fields_and_register(void **state)
{
	struct bytes bytes = sample();
	struct perfrecord record;
	int64_t number;

	(void)state;
	push(&bytes, 2); /* ABI */
	push(&bytes, 0x7f001234);
	assert_int_equal(parse(&bytes, true, &record), 0);
	assert_int_equal(record.kind, PERFRECORD_SAMPLE);
	assert_int_equal(record.id, 78);
	assert_int_equal(record.pid, 100);
	assert_int_equal(record.tid, 101);
	assert_int_equal(record.time_ns, 5000);
	assert_int_equal(record.chain_cnt, 2);
	assert_true(record.chain[0] == 0xffffffff81000001);
	assert_true(perfrecord_number(&record, 0, 4, &number));
	assert_int_equal(number, 0x11111111);
	assert_true(perfrecord_number(&record, 4, 8, &number));
	assert_true(number == 0x3333333322222222);
	assert_false(perfrecord_number(&record, 8, 8, &number));
	assert_int_equal(record.reg, 0x7f001234);
}

static void a_thread_without_user_space_has_no_register(void **state)
{
	struct bytes bytes = sample();
	struct perfrecord record;

	(void)state;
	push(&bytes, 0); /* ABI: none */
	assert_int_equal(parse(&bytes, true, &record), 0);
	assert_int_equal(record.reg, 0);
}

static void a_sample_that_is_cut_is_an_error(void **state)
{
	struct bytes whole = sample();
	struct perfrecord record;

	(void)state;
	for (size_t cnt = 1; cnt < whole.cnt; cnt++) {
		struct bytes bytes = whole;

		bytes.cnt = cnt;
		assert_int_equal(parse(&bytes, false, &record), -EINVAL);
	}
	whole.words[5] = UINT64_MAX; /* functions */
	assert_int_equal(parse(&whole, false, &record), -EINVAL);
}

static void switches_say_whether_the_thread_was_preempted(void **state)
{
	static const struct {
		uint16_t misc;
		bool out, preempted;
	} CASES[] = { { 0, false, false },
		      { PERF_RECORD_MISC_SWITCH_OUT, true, false },
		      { PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, true,
			true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		struct bytes bytes = begin(PERF_RECORD_SWITCH, CASES[i].misc);
		struct perfrecord record;

		push(&bytes, thread(100, 101));
		push(&bytes, 7000);
		push(&bytes, 3);
		push(&bytes, 78);
		assert_int_equal(parse(&bytes, false, &record), 0);
		assert_int_equal(record.kind, PERFRECORD_SWITCH);
		assert_int_equal(record.out, CASES[i].out);
		assert_int_equal(record.preempted, CASES[i].preempted);
		assert_int_equal(record.time_ns, 7000);
		assert_int_equal(record.cpu, 3);
	}
}

static void lost_records_are_counted(void **state)
{
	struct bytes bytes = begin(PERF_RECORD_LOST, 0);
	struct perfrecord record;

	(void)state;
	push(&bytes, 78);
	push(&bytes, 42);
	for (int i = 0; i < 4; i++)
		push(&bytes, 0);
	assert_int_equal(parse(&bytes, false, &record), 0);
	assert_int_equal(record.kind, PERFRECORD_LOST);
	assert_int_equal(record.lost, 42);
}

static void a_new_name_has_an_end(void **state)
{
	struct bytes bytes = begin(PERF_RECORD_COMM, 0);
	struct perfrecord record;

	(void)state;
	push(&bytes, thread(100, 100));
	push(&bytes, 0x6161616161616161); /* no NUL */
	push(&bytes, 0x6161616161616161);
	push(&bytes, 0x6161616161616161);
	for (int i = 0; i < 4; i++)
		push(&bytes, 0);
	assert_int_equal(parse(&bytes, false, &record), 0);
	assert_int_equal(record.kind, PERFRECORD_COMM);
	assert_string_equal(record.comm, "aaaaaaaaaaaaaaa");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_has_stack_fields_and_register),
		cmocka_unit_test(a_thread_without_user_space_has_no_register),
		cmocka_unit_test(a_sample_that_is_cut_is_an_error),
		cmocka_unit_test(switches_say_whether_the_thread_was_preempted),
		cmocka_unit_test(lost_records_are_counted),
		cmocka_unit_test(a_new_name_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
