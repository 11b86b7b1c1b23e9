/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/threadwaits.h"

#include "stacks/proc/denial.h"
#include "stacks/proc/socketnames.h"
#include "stacks/region.h"
#include "stacks/roles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static void the_owner_of_a_contended_mutex_is_told(void **state)
{
	const uint32_t contended[] = { 2, 0, 77, 1, 0 }, recursive[] = { 2, 3, 77, 1, 1 };
	const uint32_t free_one[] = { 0, 0, 77, 1, 0 }, no_owner[] = { 2, 0, 0, 1, 0 };
	const uint32_t not_used[] = { 2, 0, 77, 0, 0 }, no_kind[] = { 2, 0, 77, 1, 0x12345 };

	(void)state;
	assert_int_equal(threadwaits_mutex_owner(contended), 77);
	assert_int_equal(threadwaits_mutex_owner(recursive), 77);
	assert_int_equal(threadwaits_mutex_owner(free_one), 0);
	assert_int_equal(threadwaits_mutex_owner(no_owner), 0);
	assert_int_equal(threadwaits_mutex_owner(not_used), 0);
	assert_int_equal(threadwaits_mutex_owner(no_kind), 0);
}

static bool lives(void *context, uint32_t tid)
{
	return tid == *(uint32_t *)context;
}

/* A call of this process, as the kernel would tell it. */
static void find(int64_t number, uint64_t first, uint64_t second, uint64_t third, uint32_t alive,
		 struct threadwaits *ret)
{
	const struct taskfiles_syscall call = {
		.where = TASK_SYSCALL,
		.number = number,
		.args = { first, second, third },
	};
	int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	threadwaits_find(proc, getpid(), &call, lives, &alive, ret);
	(void)close(proc);
}

static void a_futex_tells_its_owner_only_if_that_is_certain(void **state)
{
	static uint32_t words[] = { 2, 0, 77, 1, 0 };
	const uint64_t addr = (uint64_t)(uintptr_t)words;
	struct threadwaits waits;

	(void)state;
	find(SYS_futex, addr, FUTEX_WAIT_PRIVATE, 2, 77, &waits);
	assert_string_equal(waits.call, "futex");
	assert_true(waits.futex);
	assert_int_equal(waits.owner, 77);
	find(SYS_futex, addr, FUTEX_WAIT_PRIVATE, 2, 78, &waits); /* no such thread */
	assert_int_equal(waits.owner, 0);
	find(SYS_futex, addr, FUTEX_WAIT_PRIVATE, 0, 77, &waits); /* a condition variable */
	assert_int_equal(waits.owner, 0);
	find(SYS_futex, 8, FUTEX_WAIT_PRIVATE, 2, 77, &waits); /* no memory there */
	assert_int_equal(waits.owner, 0);
	words[0] = 77 | FUTEX_WAITERS;
	find(SYS_futex, addr, FUTEX_LOCK_PI_PRIVATE, 0, 77, &waits);
	assert_int_equal(waits.owner, 77);
}

static void calls_on_files_name_the_file(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char expected[64];
	struct threadwaits waits;

	(void)state;
	find(SYS_read, (uint64_t)fd, 0, 0, 0, &waits);
	(void)snprintf(expected, sizeof(expected), "descriptor %d: /dev/null", fd);
	assert_string_equal(waits.call, "read");
	assert_string_equal(waits.text, expected);
	find(SYS_read, 4000, 0, 0, 0, &waits);
	assert_string_equal(waits.text, "descriptor 4000");
	find(SYS_wait4, 12, 0, 0, 0, &waits);
	assert_string_equal(waits.text, "process 12");
	find(99999, 0, 0, 0, 0, &waits);
	assert_string_equal(waits.call, "system call 99999");
	(void)close(fd);
}

static void sockets_are_named_by_their_addresses(void **state)
{
	static const char TCP[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
		"timeout inode\n"
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0    "
		"    0 111 1 0000000000000000 100 0 0 10 0\n"
		"   1: 0100007F:1F90 0200007F:0050 01 00000000:00000000 00:00000000 00000000     0    "
		"    0 222 1 0000000000000000 100 0 0 10 0\n";
	static const char TCP6[] = "   0: 00000000000000000000000001000000:0050 "
				   "0000000000000000FFFF00000100007F:0051 01 00000000:00000000 "
				   "00:00000000 00000000 0 0 333 1\n";
	static const char UNIX[] = "Num RefCount Protocol Flags Type St Inode Path\n"
				   "0: 00000002 00000000 00010000 0001 01 444 /run/x y\n"
				   "0: 00000002 00000000 00010000 0001 01 555\n";
	char text[96] = "as it was";

	(void)state;
	assert_false(socketnames_parse_tcp(TCP, 1, text, sizeof(text)));
	assert_string_equal(text, "as it was");
	assert_true(socketnames_parse_tcp(TCP, 111, text, sizeof(text)));
	assert_string_equal(text, "tcp listening at 127.0.0.1:8080");
	assert_true(socketnames_parse_tcp(TCP, 222, text, sizeof(text)));
	assert_string_equal(text, "tcp 127.0.0.1:8080 to 127.0.0.2:80");
	assert_true(socketnames_parse_tcp(TCP6, 333, text, sizeof(text)));
	assert_string_equal(text, "tcp [::1]:80 to 127.0.0.1:81");
	assert_true(socketnames_parse_unix(UNIX, 444, text, sizeof(text)));
	assert_string_equal(text, "unix socket /run/x y");
	assert_false(socketnames_parse_unix(UNIX, 555, text, sizeof(text)));
}

static void threads_have_a_role_by_name_or_beginning(void **state)
{
	struct stacks_frame frame = { .function = "_ZN4c10d16ProcessGroupGloo7runLoopEi" };
	struct stacks_thread thread = { .name = "pt_autograd_0" };

	(void)state;
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "autograd");
	roles_assign(&thread, true, "python");
	assert_string_equal(thread.role, "main");
	thread = (struct stacks_thread){ .name = "python", .frames = &frame, .frame_cnt = 1 };
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "gloo worker");
	frame.function = NULL;
	frame.file = "/usr/lib/libgomp.so.1";
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "OpenMP worker");
	frame.file = NULL;
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "native thread");
	thread.runs_python = true;
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "Python thread");
	(void)snprintf(thread.name, sizeof(thread.name), "pool-12");
	roles_assign(&thread, false, "python");
	assert_string_equal(thread.role, "pool");
}

static void denials_say_what_to_do(void **state)
{
	struct denial denial = {
		.pid = 5, .error = EPERM, .uid = 1000, .own_uid = 1001, .yama = -1
	};
	char text[400];

	(void)state;
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, "belongs to another user (uid 1000)"));
	denial.own_uid = 1000;
	denial.yama = 1;
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, "sudo sysctl kernel.yama.ptrace_scope=0"));
	denial.yama = 3;
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, "until the next boot"));
	denial = (struct denial){ .pid = 5, .error = ENOSYS, .yama = -1, .seccomp = 2 };
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, "seccomp filter"));
	denial.seccomp = 0;
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, "CAP_SYS_PTRACE is missing"));
	denial.error = EIO;
	denial_explain(&denial, text, sizeof(text));
	assert_non_null(strstr(text, strerror(EIO)));
	denial_look(&denial);
	assert_int_equal(denial.own_uid, geteuid());
}

static void a_region_that_is_full_counts_what_it_refused(void **state)
{
	struct region *region = region_new(4096);
	char *first;

	(void)state;
	assert_non_null(region);
	first = region_alloc(region, 100);
	assert_non_null(first);
	assert_int_equal(first[99], 0);
	assert_string_equal(region_text(region, "abcdef", 3), "abc");
	assert_null(region_alloc(region, 4096));
	assert_null(region_alloc(region, SIZE_MAX));
	assert_int_equal(region->refused, 2);
	assert_null(region_free(region));
	assert_null(region_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_of_a_contended_mutex_is_told),
		cmocka_unit_test(a_futex_tells_its_owner_only_if_that_is_certain),
		cmocka_unit_test(calls_on_files_name_the_file),
		cmocka_unit_test(sockets_are_named_by_their_addresses),
		cmocka_unit_test(threads_have_a_role_by_name_or_beginning),
		cmocka_unit_test(denials_say_what_to_do),
		cmocka_unit_test(a_region_that_is_full_counts_what_it_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
