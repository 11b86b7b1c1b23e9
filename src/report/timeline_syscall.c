/* SPDX-License-Identifier: Apache-2.0 */
/* System calls in which threads of a training job are found waiting. */
#include "report/timeline_parts.h"

#include <sys/syscall.h>

#define NAMED(call)               \
	{                         \
		SYS_##call, #call \
	}

static const struct {
	int number;
	const char *name;
} syscalls[] = {
#ifdef SYS_poll /* the old ones, which newer machines never had */
	NAMED(poll),	    NAMED(select),	 NAMED(epoll_wait), NAMED(open),
	NAMED(stat),	    NAMED(pause),
#endif
	NAMED(read),	    NAMED(write),	 NAMED(readv),	    NAMED(writev),
	NAMED(pread64),	    NAMED(pwrite64),	 NAMED(openat),	    NAMED(close),
	NAMED(fsync),	    NAMED(fdatasync),	 NAMED(getdents64), NAMED(statx),
	NAMED(recvfrom),    NAMED(recvmsg),	 NAMED(sendto),	    NAMED(sendmsg),
	NAMED(connect),	    NAMED(accept4),	 NAMED(ppoll),	    NAMED(pselect6),
	NAMED(epoll_pwait), NAMED(futex),	 NAMED(nanosleep),  NAMED(clock_nanosleep),
	NAMED(sched_yield), NAMED(wait4),	 NAMED(waitid),	    NAMED(ioctl),
	NAMED(flock),	    NAMED(io_getevents), NAMED(sendfile),   NAMED(mmap),
	NAMED(munmap),	    NAMED(madvise),	 NAMED(brk),	    NAMED(copy_file_range),
};

const char *timeline_syscall_name(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscalls); i++) {
		if (syscalls[i].number == number)
			return syscalls[i].name;
	}
	return NULL;
}
