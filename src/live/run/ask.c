/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/ask.h"

#include "base/clock.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_LIMIT_S 5 /* while the daemon does not accept */

static int connect_to(const char *path, struct err *err)
{
	static const struct timeval limit = { .tv_sec = CONNECT_LIMIT_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: path too long for a socket", path);
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
		ret = err_set(err, errno, "%s: cannot connect: %s", path,
			      errno == EAGAIN ? "the daemon does not accept connections"
					      : strerror(errno));
		(void)close(fd);
		return ret;
	}
	return fd;
}

int ask_open_text(const char *socket_path, enum message_type type, uint64_t window_ns,
		  const char *text, struct err *err)
{
	struct message message = { .magic = MESSAGE_MAGIC,
				   .version = MESSAGE_VERSION,
				   .type = (uint16_t)type,
				   .pid = (uint32_t)getpid(),
				   .rank = -1,
				   .window_ns = window_ns,
				   .mono_ns = clock_mono_ns(),
				   .wall_ns = clock_wall_ns() };
	char newest[128];
	int fd;

	(void)snprintf(message.text, sizeof(message.text), "%s", text);
	if (socket_path == NULL) {
		int ret = rundir_newest(newest, sizeof(newest), err);

		if (ret < 0)
			return ret;
		socket_path = newest;
	}
	fd = connect_to(socket_path, err);
	if (fd < 0)
		return fd;
	if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) != (ssize_t)sizeof(message)) {
		int ret = err_set(err, errno, "%s: cannot send: %s", socket_path, strerror(errno));

		(void)close(fd);
		return ret;
	}
	return fd;
}

int ask_open(const char *socket_path, enum message_type type, uint64_t window_ns, struct err *err)
{
	return ask_open_text(socket_path, type, window_ns, "", err);
}

int ask_next(int fd, int timeout_ms, struct message *ret, struct err *err)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct message message;
	ssize_t len;
	int got;

	do {
		got = poll(&poll_fd, 1, timeout_ms);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (got == 0)
		return err_set(err, ETIMEDOUT, "no answer within %d s", timeout_ms / 1000);
	len = recv(fd, &message, sizeof(message), 0);
	if (len != (ssize_t)sizeof(message) || message.magic != MESSAGE_MAGIC ||
	    message.type != MSG_REPLY)
		return err_set(err, ECONNRESET,
			       "the job ended or its daemon is of another release");
	message.text[MESSAGE_TEXT - 1] = '\0';
	*ret = message;
	return 0;
}
