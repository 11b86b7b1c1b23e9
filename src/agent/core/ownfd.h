/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor that the agent keeps open in the job's process. A job that closes descriptors it
 * never opened (os.closerange, as daemons do) closes the agent's too, and its next file gets the
 * number. So device and inode are kept as well, and compared before each use of the number: one
 * system call of 0.3 us.
 */
#pragma once

#include "base/base.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct own_fd {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

#define OWN_FD_NONE              \
	{                        \
		-1, (dev_t)0, 0, \
	}

/* By number: fstat is a symbol from glibc 2.33 on only. */
static inline bool own_fd_stat(int fd, struct stat *ret)
{
	return fd >= 0 && syscall(SYS_fstat, fd, ret) == 0;
}

/*
 * Takes over fd, which was just opened. Invalid (-1) for a negative fd, or where fstat is refused.
 */
static inline struct own_fd own_fd_take(int fd)
{
	struct stat now;

	if (own_fd_stat(fd, &now))
		return (struct own_fd){ .fd = fd, .dev = now.st_dev, .ino = now.st_ino };
	if (fd >= 0)
		(void)close(fd);
	return (struct own_fd)OWN_FD_NONE;
}

/* The number, or -1 if there is none or the job's file has it now. */
static inline int own_fd_get(const struct own_fd *own)
{
	struct stat now;

	return own_fd_stat(own->fd, &now) && now.st_dev == own->dev && now.st_ino == own->ino
		       ? own->fd
		       : -1;
}

/* Closes the descriptor if it is still the agent's, and resets it. */
static inline void own_fd_close(struct own_fd *own)
{
	int fd = own_fd_get(own);

	if (fd >= 0)
		(void)close(fd);
	*own = (struct own_fd)OWN_FD_NONE;
}
