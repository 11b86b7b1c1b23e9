/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/exitstatus.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* struct pidfd_info of <linux/pidfd.h>, as of Linux 6.13: headers of builds are older. */
struct pidfd_info_v0 {
	uint64_t mask, cgroup_id;
	uint32_t ids[11]; /* pid, tgid, ppid, and those of users and groups */
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "the kernel's PIDFD_INFO_SIZE_VER0");

#define PIDFD_INFO_EXIT_BIT (UINT64_C(1) << 3)
#define PIDFD_GET_INFO_V0 _IOWR(0xFF, 11, struct pidfd_info_v0)

int exitstatus_open(uint32_t pid)
{
	long fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

bool exitstatus_has_ended(int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN) != 0;
}

/* The kernel fills the field once the parent has waited. */
static bool ask_pidfd(int pidfd, int *ret)
{
	struct pidfd_info_v0 info = { .mask = PIDFD_INFO_EXIT_BIT };

	if (ioctl(pidfd, PIDFD_GET_INFO_V0, &info) != 0 || (info.mask & PIDFD_INFO_EXIT_BIT) == 0)
		return false;
	*ret = info.exit_code;
	return true;
}

int exitstatus_read(const char *root, int pidfd, uint32_t pid, int *ret)
{
	struct procfs_stat stat;

	if (!exitstatus_has_ended(pidfd))
		return -ESRCH;
	if (ask_pidfd(pidfd, ret))
		return 0;
	if (procfs_read_stat(root, pid, 0, &stat) == 0 && stat.state == 'Z') {
		*ret = stat.exit_status;
		return 0;
	}
	return ask_pidfd(pidfd, ret) ? 0 : -ENODATA; /* the parent may have waited in between */
}
