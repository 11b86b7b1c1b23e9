/* SPDX-License-Identifier: Apache-2.0 */
#include "stalls/kernelrules.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 24 };

/* Beginnings of names. A rule holds if one of `first` and, where there are any, of `second` is there. */
struct rule {
	enum stall_class class;
	const char *first[WORDS_MAX], *second[WORDS_MAX];
};

#define RWSEM_WORDS "rwsem_down_", "__down_read", "__down_write", "down_read", "down_write"

/* The first one that holds. */
static const struct rule BLOCKED[] = {
	{ STALL_FROZEN, { "__refrigerator", "do_freezer_trap", "cgroup_enter_frozen" }, { NULL } },
	{ STALL_TRACED, { "ptrace_stop" }, { NULL } },
	{ STALL_STOPPED, { "do_signal_stop" }, { NULL } },
	/* Until a child of vfork() or posix_spawn() runs its own program. */
	{ STALL_CHILD, { "wait_for_vfork_done", "__x64_sys_vfork", "__do_sys_vfork" }, { NULL } },
	{ STALL_COMPACTION, { "compact_zone", "try_to_compact_pages" }, { NULL } },
	{ STALL_RECLAIM,
	  { "try_to_free_", "shrink_node", "reclaim_throttle", "throttle_direct_reclaim",
	    "mem_cgroup_handle_over_high", "__alloc_pages_direct_reclaim", "congestion_wait" },
	  { NULL } },
	{ STALL_MMAP_LOCK,
	  { RWSEM_WORDS, "mmap_read_lock", "mmap_write_lock" },
	  { "vm_mmap_pgoff",
	    "__vm_munmap",
	    "vm_munmap",
	    "__do_sys_munmap",
	    "do_mprotect_pkey",
	    "__do_sys_brk",
	    "do_madvise",
	    "madvise_lock",
	    "lock_mm_and_find_vma",
	    "do_user_addr_fault",
	    "exc_page_fault",
	    "__do_page_fault",
	    "do_page_fault",
	    "__do_sys_mremap",
	    "do_mlock",
	    "vm_brk_flags",
	    "dup_mmap",
	    "do_mem_abort",
	    "fixup_user_fault",
	    "get_user_pages",
	    "pin_user_pages",
	    "internal_get_user_pages",
	    "mmap_region" } },
	/* Also inside a file system: the one who has the lock is to blame, not the disk. */
	{ STALL_KERNEL_LOCK, { RWSEM_WORDS, "__mutex_lock", "mutex_lock" }, { NULL } },
	{ STALL_NETWORK_FILE,
	  { "rpc_", "nfs_", "nfs4_", "nfs3_", "request_wait_answer", "fuse_", "ceph_", "ll_",
	    "cl_io_", "ptlrpc_", "cifs_", "smb2_", "SMB2_", "p9_", "v9fs_", "gpfs", "cxi",
	    "wekafs" },
	  { NULL } },
	{ STALL_DISK,
	  { "io_schedule",
	    "folio_wait_",
	    "wait_on_page",
	    "wait_on_buffer",
	    "__wait_on_buffer",
	    "blk_",
	    "submit_bio_wait",
	    "jbd2_",
	    "btrfs_",
	    "xfs_",
	    "ext4_",
	    "balance_dirty_pages",
	    "wait_for_completion_io",
	    "filemap_fault",
	    "swap_read",
	    "do_swap_page",
	    "iomap_",
	    "__wait_on_bit",
	    "dio_",
	    "blkdev_",
	    "sync_inodes",
	    "f2fs_",
	    "erofs_" },
	  { NULL } },
	{ STALL_FUTEX, { "futex_", "do_futex", "__futex_" }, { NULL } },
	{ STALL_GPU,
	  { "nv_", "nvidia", "uvm_", "amdgpu_", "kfd_", "drm_", "dma_fence_", "_nv", "os_acquire" },
	  { NULL } },
	{ STALL_SLEEP,
	  { "hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "__do_sys_pause", "sigsuspend",
	    "do_sigtimedwait" },
	  { NULL } },
	{ STALL_POLL,
	  { "ep_poll", "do_epoll_wait", "do_poll", "do_sys_poll", "do_select", "core_sys_select",
	    "io_cqring_wait", "read_events" },
	  { NULL } },
	{ STALL_CHANNEL,
	  { "pipe_", "anon_pipe_", "unix_stream_", "unix_dgram_", "__skb_wait", "sk_wait_data",
	    "tcp_recvmsg", "tcp_sendmsg", "sk_stream_wait", "inet_csk_accept",
	    "inet_stream_connect", "__inet_stream_connect", "eventfd_read", "n_tty_read", "vsock_",
	    "sock_alloc_send", "inotify_read", "signalfd", "timerfd_read" },
	  { NULL } },
	{ STALL_CHILD, { "do_wait", "kernel_wait4", "kernel_waitid" }, { NULL } },
	{ STALL_KERNEL_LOCK,
	  { "__down", "percpu_rwsem_wait", "synchronize_rcu", "wait_rcu_exp_gp", "__wait_rcu_gp" },
	  { NULL } },
};

static const struct rule BUSY[] = {
	{ STALL_INTERRUPTS,
	  { "handle_softirqs", "__do_softirq", "do_softirq", "asm_common_interrupt",
	    "asm_sysvec_call_function" },
	  { NULL } },
	{ STALL_COMPACTION,
	  { "compact_zone", "try_to_compact_pages", "isolate_migratepages" },
	  { NULL } },
	{ STALL_RECLAIM, { "try_to_free_", "shrink_node", "shrink_lruvec" }, { NULL } },
	{ STALL_MIGRATION,
	  { "migrate_misplaced", "do_numa_page", "do_huge_pmd_numa_page", "task_numa_work" },
	  { NULL } },
	{ STALL_SHOOTDOWN,
	  { "smp_call_function_many_cond", "flush_tlb_mm_range", "native_flush_tlb" },
	  { NULL } },
	{ STALL_SPIN,
	  { "native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath", "rwsem_spin_on_owner",
	    "osq_lock", "mutex_spin_on_owner", "rwsem_optimistic_spin" },
	  { NULL } },
	{ STALL_FAULTS,
	  { "exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "do_anonymous_page",
	    "clear_page", "do_page_fault", "do_mem_abort", "clear_huge_page", "folio_zero_user" },
	  { NULL } },
};

/* Functions between the caller of the kernel and the scheduler that say nothing of the purpose. */
static const char *const PLUMBING[] = {
	"__schedule",
	"schedule",
	"preempt_schedule",
	"rwsem_",
	"__down_",
	"down_",
	"__mutex_lock",
	"mutex_lock",
	"io_schedule",
	"bit_wait",
	"__wait_on_bit",
	"wait_for_",
	"__wait_for_",
	"do_wait_intr",
	"futex_wait_queue",
	"futex_do_wait",
	"prepare_to",
	"finish_wait",
	"cond_resched",
	"__cond_resched",
	"osq_",
	"folio_wait_",
	"wait_on_",
	"out_of_line_wait",
	"percpu_rwsem_wait",
	"?",
};

/* Of a process that reads the memory of another one, from telling to general. */
static const char *const HOLDERS[] = {
	"smap_gather_stats",
	"smaps_pte_range",
	"smaps_rollup",
	"show_smap",
	"show_numa_map",
	"gather_pte_stats",
	"pagemap_read",
	"pagemap_",
	"clear_refs_",
	"process_vm_rw",
	"access_remote_vm",
	"__access_remote_vm",
	"mem_rw",
	"khugepaged",
	"collapse_huge_page",
	"ptrace_",
	"do_procmap_query",
	"show_map",
	"m_stop",
	"m_next",
	"m_start",
	"get_cmdline",
	"environ_read",
	"ksm_",
	"damon_",
	"process_madvise",
	"move_pages",
	"do_migrate_pages",
	"dup_mmap",
	"task_numa_work",
};

/* Length of the name at this place. */
static size_t name_length(const char *at)
{
	return strcspn(at, "<");
}

static const char *next_name(const char *at)
{
	at += name_length(at);
	return *at == '<' ? at + 1 : at;
}

static bool begins(const char *name, const char *word)
{
	return strncmp(name, word, strlen(word)) == 0;
}

bool kernelrules_has(const char *chain, const char *word)
{
	for (const char *name = chain; *name != '\0'; name = next_name(name))
		if (begins(name, word))
			return true;
	return false;
}

static bool has_any(const char *chain, const char *const words[WORDS_MAX])
{
	for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++)
		if (kernelrules_has(chain, words[i]))
			return true;
	return false;
}

static enum stall_class match(const struct rule *rules, size_t cnt, const char *chain)
{
	for (size_t i = 0; i < cnt; i++)
		if (has_any(chain, rules[i].first) &&
		    (rules[i].second[0] == NULL || has_any(chain, rules[i].second)))
			return rules[i].class;
	return STALL_UNKNOWN;
}

enum stall_class kernelrules_blocked(const char *chain, char state)
{
	if (state == 'T')
		return STALL_STOPPED;
	if (state == 't')
		return STALL_TRACED;
	const enum stall_class class = match(BLOCKED, ARRAY_SIZE(BLOCKED), chain);

	return class == STALL_UNKNOWN && state != 'D' ? STALL_UNKNOWN_WAIT : class;
}

enum stall_class kernelrules_busy(const char *chain)
{
	return match(BUSY, ARRAY_SIZE(BUSY), chain);
}

bool kernelrules_interrupt(const char *chain)
{
	static const char *const WORDS[] = { "asm_sysvec_",	"asm_common_interrupt",
					     "handle_softirqs", "__do_softirq",
					     "hrtimer_wakeup",	"hrtimer_interrupt",
					     "process_timeout", "call_timer_fn",
					     "do_IRQ",		"el1_interrupt" };

	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++)
		if (kernelrules_has(chain, WORDS[i]))
			return true;
	return false;
}

static bool is_plumbing(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(PLUMBING); i++)
		if (begins(name, PLUMBING[i]))
			return true;
	return false;
}

static void copy_name(const char *name, char ret[static STALL_FUNCTION_BYTES])
{
	(void)snprintf(ret, STALL_FUNCTION_BYTES, "%.*s", (int)name_length(name), name);
}

void kernelrules_function(const char *chain, char ret[static STALL_FUNCTION_BYTES])
{
	ret[0] = '\0';
	for (const char *name = chain; *name != '\0'; name = next_name(name)) {
		if (is_plumbing(name))
			continue;
		copy_name(name, ret);
		return;
	}
	if (*chain != '\0') /* plumbing alone, as wchan has it */
		copy_name(chain, ret);
}

void kernelrules_holder(const char *chain, char ret[static STALL_FUNCTION_BYTES],
			uint32_t *ret_weight)
{
	ret[0] = '\0';
	*ret_weight = 0;
	for (size_t i = 0; i < ARRAY_SIZE(HOLDERS); i++) {
		for (const char *name = chain; *name != '\0'; name = next_name(name)) {
			if (!begins(name, HOLDERS[i]))
				continue;
			copy_name(name, ret);
			*ret_weight = (uint32_t)(ARRAY_SIZE(HOLDERS) - i);
			return;
		}
	}
}
