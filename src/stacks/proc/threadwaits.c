/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/threadwaits.h"

#include "model/syscall.h"
#include "pyread/selfmem.h"
#include "stacks/proc/socketnames.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls whose first argument is a descriptor. */
static const int64_t WITH_FILE[] = {
	SYS_read,	    SYS_write,	     SYS_readv,	     SYS_writev,   SYS_pread64,
	SYS_pwrite64,	    SYS_preadv,	     SYS_pwritev,    SYS_recvfrom, SYS_recvmsg,
	SYS_sendto,	    SYS_sendmsg,     SYS_accept,     SYS_accept4,  SYS_connect,
	SYS_ioctl,	    SYS_fsync,	     SYS_fdatasync,  SYS_flock,	   SYS_fcntl,
	SYS_sendfile,	    SYS_splice,	     SYS_getdents64, SYS_close,	   SYS_fallocate,
	SYS_ftruncate,	    SYS_epoll_pwait,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_io_uring_enter
	SYS_io_uring_enter,
#endif
};

static bool has_file(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(WITH_FILE); i++)
		if (WITH_FILE[i] == number)
			return true;
	return false;
}

/* struct __pthread_mutex_s: lock, count, owner, users, kind. */
uint32_t threadwaits_mutex_owner(const uint32_t words[static 5])
{
	enum { CONTENDED = 2, KINDS = 0x1ff, TYPE = 3, ADAPTIVE = 3 };
	const uint32_t lock = words[0], owner = words[2], users = words[3], kind = words[4];

	/* The types are 0 to 3; above are flags for robust, priorities, shared, elision. */
	if (lock != CONTENDED || owner == 0 || owner > 1 << 22 || users == 0 ||
	    (kind & ~(uint32_t)KINDS) != 0 || (kind & TYPE) > ADAPTIVE)
		return 0;
	return owner;
}

static void find_futex(pid_t tid, const struct taskfiles_syscall *call,
		       bool (*lives)(void *context, uint32_t own_tid), void *context,
		       struct threadwaits *ret)
{
	const struct selfmem mem = { .pid = tid, .fd = -1 };
	const uint32_t op = (uint32_t)call->args[1] & FUTEX_CMD_MASK;
	uint32_t words[5], owner = 0;

	ret->futex = true;
	ret->futex_addr = (uintptr_t)call->args[0];
	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2) {
		if (selfmem_read(&mem, ret->futex_addr, words, sizeof(words[0])))
			owner = words[0] & FUTEX_TID_MASK;
	} else if (op == FUTEX_WAIT && call->args[2] == 2 &&
		   selfmem_read(&mem, ret->futex_addr, words, sizeof(words))) {
		owner = threadwaits_mutex_owner(words);
	}
	if (owner != 0 && lives(context, owner))
		ret->owner = owner;
}

static void find_file(int proc, pid_t tid, int64_t fd, struct threadwaits *ret)
{
	char name[64], target[PATH_MAX], socket[96] = "";
	ssize_t len;
	unsigned long inode;

	if (fd < 0)
		return;
	(void)snprintf(name, sizeof(name), "task/%d/fd/%" PRId64, (int)tid, fd);
	len = readlinkat(proc, name, target, sizeof(target) - 1);
	if (len < 0) {
		(void)snprintf(ret->text, sizeof(ret->text), "descriptor %" PRId64, fd);
		return;
	}
	target[len] = '\0';
	if (sscanf(target, "socket:[%lu]", &inode) == 1)
		socketnames_describe(proc, inode, socket, sizeof(socket));
	(void)snprintf(ret->text, sizeof(ret->text), "descriptor %" PRId64 ": %.120s", fd,
		       socket[0] != '\0' ? socket : target);
}

void threadwaits_find(int proc, pid_t tid, const struct taskfiles_syscall *call,
		      bool (*lives)(void *context, uint32_t own_tid), void *context,
		      struct threadwaits *ret)
{
	const char *name;

	*ret = (struct threadwaits){ .futex = false };
	if (call->where == TASK_BLOCKED)
		(void)snprintf(ret->call, sizeof(ret->call), "page fault");
	if (call->where != TASK_SYSCALL)
		return;
	name = syscall_name(call->number);
	if (name != NULL)
		(void)snprintf(ret->call, sizeof(ret->call), "%s", name);
	else
		(void)snprintf(ret->call, sizeof(ret->call), "system call %" PRId64, call->number);
	if (call->number == SYS_futex)
		find_futex(tid, call, lives, context, ret);
	else if (has_file(call->number))
		find_file(proc, tid, (int32_t)call->args[0], ret);
	else if (call->number == SYS_wait4 && (int32_t)call->args[0] > 0)
		(void)snprintf(ret->text, sizeof(ret->text), "process %d", (int32_t)call->args[0]);
}
