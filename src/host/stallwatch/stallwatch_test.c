/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a stall window reads: names of the kernel, tracepoints, limits, counters, stacks. */
#include "host/stallwatch/cpuquota.h"
#include "host/stallwatch/hostcounters.h"
#include "host/stallwatch/kernelnames.h"
#include "host/stallwatch/tracepoints.h"
#include "host/stallwatch/watchedthreads.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char KALLSYMS[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000300 d some_data\n"
			       "ffffffff81000200 t smap_gather_stats.part.0\n"
			       "ffffffff81000100 W show_smap\t[fs]\n"
			       "not a line\n";

static void names_are_found_however_the_text_is_cut(void **state)
{
	const size_t len = strlen(KALLSYMS);

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		struct kernelnames names = { 0 };

		arena_init(&names.arena);
		assert_int_equal(kernelnames_add(&names, KALLSYMS, cut), 0);
		assert_int_equal(kernelnames_add(&names, KALLSYMS + cut, len - cut), 0);
		kernelnames_sort(&names);
		assert_int_equal(names.list.cnt, 3);
		assert_null(kernelnames_find(&names, 0xffffffff80ffffff));
		assert_string_equal(kernelnames_find(&names, 0xffffffff81000150), "show_smap");
		assert_string_equal(kernelnames_find(&names, 0xffffffff810fffff),
				    "smap_gather_stats");
		kernelnames_done(&names);
	}
}

static void a_tracepoint_has_its_number_and_fields(void **state)
{
	static const char TEXT[] = "name: sched_switch\nID: 372\nformat:\n"
				   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
				   "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
				   "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n";
	struct tracepoint point = { 0 };

	(void)state;
	assert_int_equal(tracepoints_parse(TEXT, TRACEPOINT_SWITCH, &point), 0);
	assert_int_equal(point.id, 372);
	assert_int_equal(point.pid_off, 24);
	assert_int_equal(point.value_off, 32);
	assert_int_equal(point.value_size, 8);
	/* common_pid is not the field pid. */
	assert_int_equal(tracepoints_parse(TEXT, TRACEPOINT_WAKING, &point), -EINVAL);
	assert_int_equal(tracepoints_parse("", TRACEPOINT_SWITCH, &point), -EINVAL);
	assert_int_equal(tracepoints_parse("ID: 0\n", TRACEPOINT_SWITCH, &point), -EINVAL);
}

static void the_cgroup_of_the_cpu_controller_is_found(void **state)
{
	static const char TEXT[] = "12:cpuset:/wrong\n4:cpu,cpuacct:/a/b\n0::/c\n";
	char path[64];

	(void)state;
	assert_int_equal(cpuquota_find(TEXT, false, path, sizeof(path)), 0);
	assert_string_equal(path, "/a/b");
	assert_int_equal(cpuquota_find(TEXT, true, path, sizeof(path)), 0);
	assert_string_equal(path, "/c");
	assert_int_equal(cpuquota_find("1:cpuset:/x\n", false, path, sizeof(path)), -ENOENT);
	assert_int_equal(cpuquota_find(TEXT, false, path, 3), -ENAMETOOLONG);
	assert_int_equal(cpuquota_find("", true, path, sizeof(path)), -ENOENT);
	assert_int_equal(cpuquota_find("x", true, path, sizeof(path)), -ENOENT);
}

static void throttling_is_read_of_both_versions(void **state)
{
	uint64_t cnt = 0, ns = 0;

	(void)state;
	cpuquota_parse("nr_periods 9\nnr_throttled 3\nthrottled_time 5000\n", &cnt, &ns);
	assert_int_equal(cnt, 3);
	assert_int_equal(ns, 5000);
	cpuquota_parse("usage_usec 1\nnr_throttled 2\nthrottled_usec 7\n", &cnt, &ns);
	assert_int_equal(cnt, 5);
	assert_int_equal(ns, 12000);
}

static void counters_of_the_host_are_read(void **state)
{
	struct stall_counters counters = { 0 };

	(void)state;
	hostcounters_parse_stat("cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", &counters);
	assert_int_equal(counters.total_ticks, 36);
	assert_int_equal(counters.irq_ticks, 13);
	assert_int_equal(counters.steal_ticks, 8);
	hostcounters_parse_vmstat("allocstall_dma 1\nallocstall_normal 2\ncompact_stall 5\nx 9\n",
				  &counters);
	assert_int_equal(counters.reclaim_stalls, 3);
	assert_int_equal(counters.compact_stalls, 5);
}

static void a_stack_of_proc_is_a_chain(void **state)
{
	char chain[64];

	(void)state;
	watchedthreads_parse_stack("[<0>] futex_wait.isra.0+0xa2/0x140\n[<0>] do_futex+0x1/0x2\n",
				   chain, sizeof(chain));
	assert_string_equal(chain, "futex_wait<do_futex");
	watchedthreads_parse_stack("", chain, sizeof(chain));
	assert_string_equal(chain, "");
	watchedthreads_parse_stack("[<0>] a_name_that_is_long+0x1\n[<0>] another+0x2\n", chain, 24);
	assert_string_equal(chain, "a_name_that_is_long");
	watchedthreads_parse_stack("no bracket\n[<0>]", chain, sizeof(chain));
	assert_string_equal(chain, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_however_the_text_is_cut),
		cmocka_unit_test(a_tracepoint_has_its_number_and_fields),
		cmocka_unit_test(the_cgroup_of_the_cpu_controller_is_found),
		cmocka_unit_test(throttling_is_read_of_both_versions),
		cmocka_unit_test(counters_of_the_host_are_read),
		cmocka_unit_test(a_stack_of_proc_is_a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
