/* SPDX-License-Identifier: Apache-2.0 */
#include "play_hostd.h"

#include "format/shared/message.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct hostd hostd;

void open_daemon(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)snprintf(hostd.folder, sizeof(hostd.folder), "/tmp/nccl-harness-XXXXXX");
	CHECK(mkdtemp(hostd.folder) != NULL);
	(void)snprintf(hostd.path, sizeof(hostd.path), "%s/socket", hostd.folder);
	memcpy(addr.sun_path, hostd.path, strlen(hostd.path));
	hostd.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(hostd.listener >= 0);
	CHECK(bind(hostd.listener, (const struct sockaddr *)&addr, sizeof(addr)) == 0);
	CHECK(listen(hostd.listener, 1) == 0);
}

void take_recorder(void)
{
	struct message message;
	struct iovec iov = { &message, sizeof(message) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	int fd;

	hostd.conn = accept(hostd.listener, NULL, NULL);
	CHECK(hostd.conn >= 0);
	CHECK(recvmsg(hostd.conn, &msg, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(message));
	CHECK(message.type == MSG_HELLO && control.head.cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	hostd.flight = mmap(NULL, sizeof(struct flight), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(hostd.flight != MAP_FAILED);
	(void)close(fd);
}

void close_daemon(void)
{
	(void)close(hostd.listener);
	(void)unlink(hostd.path);
	(void)rmdir(hostd.folder);
}

void order_window(uint64_t id, uint64_t slice_cnt)
{
	struct overhead_order *order = &hostd.flight->block.overhead;

	order->start_step = hostd.flight->block.worker_step + 1;
	while (overhead_slice_is_on(overhead_seed(id, order->start_step), 0))
		id++;
	order->slice_steps = 1;
	order->slice_cnt = slice_cnt;
	order->kind = OVERHEAD_WINDOW;
	order->id = id;
}
