/* SPDX-License-Identifier: Apache-2.0 */
#include "model/syscall.h"

#include "base/base.h"

#include <sys/syscall.h>

#define NAMED(call)               \
	{                         \
		SYS_##call, #call \
	}

static const struct {
	int number;
	const char *name;
} syscalls[] = {
#ifdef SYS_poll /* older system calls, which newer architectures lack */
	NAMED(poll),
	NAMED(select),
	NAMED(epoll_wait),
	NAMED(pause),
	NAMED(open),
	NAMED(stat),
	NAMED(unlink),
	NAMED(rename),
	NAMED(mkdir),
	NAMED(fork),
	NAMED(vfork),
#endif
#ifdef SYS_newfstatat
	NAMED(newfstatat),
#endif
	NAMED(read),
	NAMED(write),
	NAMED(readv),
	NAMED(writev),
	NAMED(pread64),
	NAMED(pwrite64),
	NAMED(preadv),
	NAMED(openat),
	NAMED(close),
	NAMED(fsync),
	NAMED(fdatasync),
	NAMED(sync),
	NAMED(ftruncate),
	NAMED(getdents64),
	NAMED(statx),
	NAMED(recvfrom),
	NAMED(recvmsg),
	NAMED(sendto),
	NAMED(sendmsg),
	NAMED(connect),
	NAMED(accept),
	NAMED(accept4),
	NAMED(ppoll),
	NAMED(pselect6),
	NAMED(epoll_pwait),
	NAMED(futex),
	NAMED(nanosleep),
	NAMED(clock_nanosleep),
	NAMED(sched_yield),
	NAMED(wait4),
	NAMED(waitid),
	NAMED(ioctl),
	NAMED(flock),
	NAMED(fcntl),
	NAMED(io_getevents),
	NAMED(semop),
	NAMED(semtimedop),
	NAMED(msgrcv),
	NAMED(mq_timedreceive),
	NAMED(rt_sigtimedwait),
	NAMED(rt_sigsuspend),
	NAMED(splice),
	NAMED(sendfile),
	NAMED(copy_file_range),
	NAMED(mmap),
	NAMED(munmap),
	NAMED(madvise),
	NAMED(brk),
	NAMED(mprotect),
	NAMED(msync),
	NAMED(mremap),
	NAMED(process_vm_readv),
	NAMED(restart_syscall),
	NAMED(clone),
	NAMED(execve),
	NAMED(fallocate),
	NAMED(unlinkat),
	NAMED(exit),
	NAMED(exit_group),
	NAMED(msgsnd),
#ifdef SYS_clone3
	NAMED(clone3),
#endif
#ifdef SYS_io_uring_enter
	NAMED(io_uring_enter),
#endif
};

const char *syscall_name(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++) {
		if (syscalls[i].number == number)
			return syscalls[i].name;
	}
	return NULL;
}
