/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/taskfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char STATUS[] = "Name:\tpt_main (x)\nState:\tD (disk sleep)\nTgid:\t70\nPid:\t71\n"
			     "PPid:\t5\nTracerPid:\t9\nUid:\t1000\t1001\t1000\t1000\n"
			     "NSpid:\t71\t12\t3\nVmSize:\t  100 kB\nThreads:\t4\nSeccomp:\t2\n";

static void a_status_has_all_its_fields(void **state)
{
	struct taskfiles_status status;

	(void)state;
	assert_int_equal(taskfiles_parse_status(STATUS, &status), 0);
	assert_string_equal(status.name, "pt_main (x)");
	assert_int_equal(status.state, 'D');
	assert_int_equal(status.tgid, 70);
	assert_int_equal(status.pid, 71);
	assert_int_equal(status.ppid, 5);
	assert_int_equal(status.tracer, 9);
	assert_int_equal(status.uid, 1001);
	assert_int_equal(status.own_pid, 3);
	assert_int_equal(status.own_depth, 3);
	assert_int_equal(status.threads, 4);
	assert_int_equal(status.seccomp, 2);
	assert_true(status.has_memory);
}

static void a_status_without_a_state_is_refused(void **state)
{
	struct taskfiles_status status = { .pid = 7 };

	(void)state;
	assert_int_equal(taskfiles_parse_status("", &status), -EINVAL);
	assert_int_equal(taskfiles_parse_status("Name:\tx\nPid:\t1\n", &status), -EINVAL);
	assert_int_equal(taskfiles_parse_status("Name:\tx\nState:\tS\n", &status), -EINVAL);
	assert_int_equal(status.pid, 7);
}

static void an_old_kernel_has_one_pid(void **state)
{
	struct taskfiles_status status;

	(void)state;
	assert_int_equal(taskfiles_parse_status("Name:\tx\nState:\tS\nPid:\t8", &status), 0);
	assert_int_equal(status.own_pid, 8);
	assert_int_equal(status.own_depth, 1);
	assert_false(status.has_memory);
}

static void a_blocked_thread_has_its_call_and_stack(void **state)
{
	struct taskfiles_syscall call;

	(void)state;
	assert_int_equal(taskfiles_parse_syscall("202 0x1 0x80 0x2 0x0 0x0 0xffffffffffffffff "
						 "0x7ffe0000 0x7f001234\n",
						 &call),
			 0);
	assert_int_equal(call.where, TASK_SYSCALL);
	assert_int_equal(call.number, 202);
	assert_int_equal(call.args[1], 0x80);
	assert_true(call.args[5] == UINT64_MAX);
	assert_int_equal(call.sp, 0x7ffe0000);
	assert_int_equal(call.pc, 0x7f001234);
}

static void running_and_faulting_threads_are_told_apart(void **state)
{
	struct taskfiles_syscall call;

	(void)state;
	assert_int_equal(taskfiles_parse_syscall("running\n", &call), 0);
	assert_int_equal(call.where, TASK_RUNS);
	assert_int_equal(taskfiles_parse_syscall("-1 0x7ffe0000 0x401000\n", &call), 0);
	assert_int_equal(call.where, TASK_BLOCKED);
	assert_int_equal(call.pc, 0x401000);
	assert_int_equal(taskfiles_parse_syscall("202 0x1 0x2\n", &call), -EINVAL);
	assert_int_equal(taskfiles_parse_syscall("", &call), -EINVAL);
}

static void a_kernel_stack_is_its_names(void **state)
{
	static const char TEXT[] = "[<0>] futex_wait+0xa2/0x140\n[<0>] do_futex+0x1/0x2\n"
				   "[<0>] 0xffffffffc0001234\n[<0>] entry+0x1/0x2 [module]\n";
	char names[64], small[14];

	(void)state;
	assert_int_equal(taskfiles_parse_kernel(TEXT, names, sizeof(names), 8), 3);
	assert_string_equal(names, "futex_wait\ndo_futex\nentry\n");
	assert_int_equal(taskfiles_parse_kernel(TEXT, names, sizeof(names), 1), 1);
	assert_int_equal(taskfiles_parse_kernel(TEXT, small, sizeof(small), 8), 1);
	assert_string_equal(small, "futex_wait\n");
	assert_int_equal(taskfiles_parse_kernel("", names, sizeof(names), 8), 0);
}

static void a_variable_is_found_by_its_whole_name(void **state)
{
	static const char TEXT[] = "LOCAL_RANK=3\0RANK=12\0EMPTY=\0CUT=ab";
	size_t len = 99;
	const char *value;

	(void)state;
	value = taskfiles_find_variable(TEXT, sizeof(TEXT) - 1, "RANK", &len);
	assert_non_null(value);
	assert_int_equal(len, 2);
	assert_memory_equal(value, "12", 2);
	assert_non_null(taskfiles_find_variable(TEXT, sizeof(TEXT) - 1, "EMPTY", &len));
	assert_int_equal(len, 0);
	assert_non_null(taskfiles_find_variable(TEXT, sizeof(TEXT) - 2, "CUT", &len));
	assert_int_equal(len, 1);
	assert_null(taskfiles_find_variable(TEXT, sizeof(TEXT) - 1, "NONE", &len));
}

static void a_file_is_read_up_to_the_room_for_it(void **state)
{
	char text[8];
	int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(dir >= 0);
	assert_int_equal(taskfiles_read(dir, "status", text, sizeof(text)), 7);
	assert_memory_equal(text, "Name:\t", 6);
	assert_int_equal(text[7], '\0');
	assert_int_equal(taskfiles_read(dir, "no-such-file", text, sizeof(text)), -ENOENT);
	(void)close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_has_all_its_fields),
		cmocka_unit_test(a_status_without_a_state_is_refused),
		cmocka_unit_test(an_old_kernel_has_one_pid),
		cmocka_unit_test(a_blocked_thread_has_its_call_and_stack),
		cmocka_unit_test(running_and_faulting_threads_are_told_apart),
		cmocka_unit_test(a_kernel_stack_is_its_names),
		cmocka_unit_test(a_variable_is_found_by_its_whole_name),
		cmocka_unit_test(a_file_is_read_up_to_the_room_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
