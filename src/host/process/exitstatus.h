/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process that is no child ended: its exit code or signal. Its parent, a launcher, takes that
 * away within moments. Linux 6.15 keeps it for who holds a pidfd from before; earlier, it is in
 * /proc/PID/stat until the parent has waited.
 * Source: pidfd_open(2); proc(5), field 52 of stat; the kernel's include/uapi/linux/pidfd.h.
 */
#pragma once

#include "base/base.h"

/* A descriptor that becomes readable when the process has ended. Returns it or -errno. */
_must_check_ int exitstatus_open(uint32_t pid);

/* Returns whether the process has ended. */
bool exitstatus_has_ended(int pidfd);

/*
 * The status as of waitpid(). root: before "/proc", "" on a machine. Returns 0, -ESRCH if the
 * process runs, or -ENODATA if it has ended and its parent was faster.
 */
_must_check_ int exitstatus_read(const char *root, int pidfd, uint32_t pid, int *ret);
