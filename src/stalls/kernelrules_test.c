/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/kernelrules.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Stacks as kernels 5.15 to 6.18 have them. */
static void stacks_have_their_class(void **state)
{
	static const struct {
		const char *chain;
		enum stall_class class;
	} CASES[] = {
		{ "__schedule<schedule<schedule_preempt_disabled<rwsem_down_read_slowpath<down_read_"
		  "killable<lock_mm_and_find_vma<do_user_addr_fault<exc_page_fault",
		  STALL_MMAP_LOCK },
		{ "__schedule<schedule<rwsem_down_write_slowpath<down_write<ext4_file_write_iter",
		  STALL_KERNEL_LOCK },
		{ "__schedule<schedule<rwsem_down_write_slowpath<down_write<do_something",
		  STALL_KERNEL_LOCK },
		{ "__schedule<schedule<schedule_timeout<reclaim_throttle<shrink_node<try_to_free_pages",
		  STALL_RECLAIM },
		{ "__schedule<schedule<rpc_wait_bit_killable<__wait_on_bit<nfs4_proc_getattr",
		  STALL_NETWORK_FILE },
		{ "__schedule<schedule<request_wait_answer<__fuse_simple_request<fuse_do_readpage",
		  STALL_NETWORK_FILE },
		{ "__schedule<schedule<io_schedule<folio_wait_bit_common<filemap_fault<exc_page_fault",
		  STALL_DISK },
		{ "__schedule<schedule<jbd2_log_wait_commit<ext4_sync_file<do_fsync", STALL_DISK },
		{ "__schedule<schedule<futex_wait_queue_me<futex_wait<do_futex", STALL_FUTEX },
		{ "__schedule<schedule<do_nanosleep<hrtimer_nanosleep", STALL_SLEEP },
		{ "__schedule<schedule<schedule_hrtimeout_range<ep_poll<do_epoll_wait",
		  STALL_POLL },
		{ "__schedule<schedule<pipe_read<vfs_read", STALL_CHANNEL },
		{ "__schedule<schedule<schedule_timeout<sk_wait_data<tcp_recvmsg_locked",
		  STALL_CHANNEL },
		{ "__schedule<schedule<do_wait<kernel_wait4", STALL_CHILD },
		{ "__schedule<__wait_for_common<wait_for_completion_state<kernel_clone<__x64_sys_vfork",
		  STALL_CHILD },
		{ "__schedule<schedule<nv_wait_event<nvidia_ioctl", STALL_GPU },
		{ "__schedule<schedule<__mutex_lock<do_epoll_ctl", STALL_KERNEL_LOCK },
		{ "__schedule<schedule<do_freezer_trap<get_signal", STALL_FROZEN },
		{ "", STALL_UNKNOWN_WAIT },
		{ "__schedule<schedule<what_is_this", STALL_UNKNOWN_WAIT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
		assert_int_equal(kernelrules_blocked(CASES[i].chain, 'S'), CASES[i].class);
}

static void a_state_comes_before_the_stack(void **state)
{
	(void)state;
	assert_int_equal(kernelrules_blocked("__schedule<do_nanosleep", 'T'), STALL_STOPPED);
	assert_int_equal(kernelrules_blocked("", 't'), STALL_TRACED);
	assert_int_equal(kernelrules_blocked("__schedule<schedule<what_is_this", 'D'),
			 STALL_UNKNOWN);
}

static void the_function_is_the_first_that_is_no_plumbing(void **state)
{
	char name[STALL_FUNCTION_BYTES];

	(void)state;
	kernelrules_function(
		"__schedule<schedule<schedule_preempt_disabled<rwsem_down_write_slowpath<"
		"down_write_killable<__vm_munmap<do_syscall_64",
		name);
	assert_string_equal(name, "__vm_munmap");
	kernelrules_function("rwsem_down_write_slowpath", name);
	assert_string_equal(name, "rwsem_down_write_slowpath");
	kernelrules_function("", name);
	assert_string_equal(name, "");
}

static void the_most_telling_holder_wins(void **state)
{
	char name[STALL_FUNCTION_BYTES];
	uint32_t general, telling;

	(void)state;
	kernelrules_holder("rwsem_wake<up_read<m_stop<seq_read_iter", name, &general);
	assert_string_equal(name, "m_stop");
	kernelrules_holder("walk_page_range<smap_gather_stats<show_smap<seq_read_iter", name,
			   &telling);
	assert_string_equal(name, "smap_gather_stats");
	assert_true(telling > general);
	kernelrules_holder("vfs_read<ksys_read", name, &general);
	assert_int_equal(general, 0);
	assert_string_equal(name, "");
}

static void a_part_of_a_name_is_no_name(void **state)
{
	(void)state;
	assert_true(kernelrules_has("a<futex_wait<b", "futex_"));
	assert_false(kernelrules_has("a<xfutex_wait<b", "futex_"));
	assert_false(kernelrules_has("", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_have_their_class),
		cmocka_unit_test(a_state_comes_before_the_stack),
		cmocka_unit_test(the_function_is_the_first_that_is_no_plumbing),
		cmocka_unit_test(the_most_telling_holder_wins),
		cmocka_unit_test(a_part_of_a_name_is_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
