/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* ftruncate() beyond the limit of the job would also raise SIGXFSZ, which kills. */
static bool may_have_size(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= size;
}

/*
 * By number: the wrappers exist from glibc 2.27 on, and a preloaded library with a missing symbol
 * keeps every program from starting, in any container that inherits the environment.
 */
static int make_memory(const char *name)
{
	return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static int seal(int fd)
{
	return (int)syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int map_flight(int fd, struct flight **ret_flight)
{
	size_t size = sizeof(struct flight);
	struct flight *flight;

	if (!may_have_size(size))
		return -EFBIG;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	if (seal(fd) < 0)
		return -errno;
	flight = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (flight == MAP_FAILED)
		return -errno;
	flight->block.magic = BLOCK_MAGIC;
	flight->block.version = BLOCK_VERSION;
	flight->block.ring_cnt = MARK_RING_CNT;
	flight->layout_bytes = (uint32_t)size;
	*ret_flight = flight;
	return 0;
}

int link_create_flight(struct flight **ret_flight, struct own_fd *ret_fd)
{
	int fd = make_memory("perftracker-worker");
	int err;

	if (fd < 0)
		return -errno;
	err = map_flight(fd, ret_flight);
	if (err < 0) {
		(void)close(fd);
		return err;
	}
	*ret_fd = own_fd_take(fd);
	return 0;
}

int link_connect(const char *socket_path, struct own_fd *ret_fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(socket_path);
	int fd, err;

	if (len == 0 || len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, socket_path, len);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		err = -errno;
		(void)close(fd);
		return err;
	}
	*ret_fd = own_fd_take(fd);
	return 0;
}

int link_send(const struct own_fd *own, const struct message *message, int pass_fd)
{
	struct message copy = *message;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = own_fd_get(own);

	if (fd < 0)
		return -EBADF;
	if (pass_fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &pass_fd, sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}
