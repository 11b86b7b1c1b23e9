/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/greeting.h"

#include "base/brokerversion.h"
#include "base/clock.h"
#include "live/link/bus.h"

#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_NS (2 * NSEC_PER_SEC)
#define LINE_MAX_BYTES 32768u /* it lists all servers of a cluster */

/* Returns 0, -ETIMEDOUT or another -errno. */
static int await(int fd, short events, int64_t until_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	for (;;) {
		int64_t left_ns = until_ns - clock_mono_ns();
		int cnt = left_ns <= 0 ? 0 : poll(&poll_fd, 1, (int)(left_ns / NSEC_PER_MSEC) + 1);

		if (cnt > 0)
			return 0;
		if (cnt == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int connect_one(const struct addrinfo *to, int64_t until_ns)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret, error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -errno;
	ret = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : -errno;
	if (ret == -EINPROGRESS) {
		ret = await(fd, POLLOUT, until_ns);
		if (ret == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0)
			ret = -error;
	}
	if (ret == 0)
		return fd;
	(void)close(fd);
	return ret;
}

/* Returns a connected socket or -errno with a line in err. */
static int connect_to(const struct broker_address *address, int64_t until_ns, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int error = getaddrinfo(address->host, address->port, &hints, &found), fd = -ENOENT;

	if (error != 0)
		return err_set(err, EHOSTUNREACH, "%s: %s", address->host, gai_strerror(error));
	for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next)
		fd = connect_one(to, until_ns);
	freeaddrinfo(found);
	return fd >= 0 ? fd
		       : err_set(err, -fd, "no broker at %s port %s: %s", address->host,
				 address->port, strerror(-fd));
}

/* Reads up to a line's end. Returns its length, or -errno; -EPROTO without a line. */
static ssize_t read_line(int fd, char *line, size_t size, int64_t until_ns)
{
	size_t len = 0;

	while (len + 1 < size) {
		int ret = await(fd, POLLIN, until_ns);
		ssize_t got = ret < 0 ? ret : recv(fd, line + len, size - 1 - len, 0);

		if (ret < 0)
			return ret;
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EPROTO;
		line[len + (size_t)got] = '\0';
		if (strchr(line + len, '\n') != NULL)
			return (ssize_t)(len + (size_t)got);
		len += (size_t)got;
	}
	return -EPROTO;
}

int greeting_parse(const char *line, struct greeting *ret)
{
	struct greeting greeting = { .max_payload = 0 };
	const char *version;
	json_t *info;

	if (strncmp(line, "INFO ", 5) != 0)
		return -EPROTO;
	info = json_loads(line + 5, JSON_DISABLE_EOF_CHECK, NULL);
	version = json_string_value(json_object_get(info, "version"));
	if (version == NULL) {
		json_decref(info);
		return -EPROTO;
	}
	(void)snprintf(greeting.version, sizeof(greeting.version), "%s", version);
	greeting.tls_required = json_is_true(json_object_get(info, "tls_required"));
	greeting.tls_available = json_is_true(json_object_get(info, "tls_available"));
	greeting.max_payload = json_integer_value(json_object_get(info, "max_payload"));
	json_decref(info);
	*ret = greeting;
	return 0;
}

int greeting_read(const struct broker_address *address, struct greeting *ret, struct err *err)
{
	int64_t until_ns = clock_mono_ns() + WAIT_NS;
	_cleanup_free_ char *line = malloc(LINE_MAX_BYTES);
	ssize_t len;
	int fd;

	if (line == NULL)
		return err_set(err, ENOMEM, "out of memory");
	fd = connect_to(address, until_ns, err);
	if (fd < 0)
		return fd;
	len = read_line(fd, line, LINE_MAX_BYTES, until_ns);
	(void)close(fd);
	if (len >= 0)
		len = greeting_parse(line, ret);
	if (len == -EPROTO)
		return err_set(err, EPROTO, "what answers at %s port %s is no NATS broker",
			       address->host, address->port);
	return len == 0 ? 0
			: err_set(err, (int)-len, "the broker at %s port %s: %s", address->host,
				  address->port, strerror((int)-len));
}

static int judge(const struct greeting *greeting, const struct broker_address *address, bool tls,
		 bool any_version, struct err *err)
{
	char where[300];

	(void)snprintf(where, sizeof(where), "the broker at %s port %s", address->host,
		       address->port);
	if (!any_version && !brokerversion_is_recent(greeting->version))
		return err_set(err, ENOTSUP,
			       "%s is nats-server %.31s, in which strangers can get around "
			       "permissions: needed is " BROKER_LEAST " or later",
			       where, greeting->version);
	if (tls && !greeting->tls_required && !greeting->tls_available)
		return err_set(err, ENOTSUP, "%s has no TLS: expected for tls://", where);
	if (!tls && greeting->tls_required)
		return err_set(err, ENOTSUP, "%s wants TLS: use tls://", where);
	if (greeting->max_payload < BUS_MESSAGE_MAX)
		return err_set(err, ENOTSUP, "%s has max_payload %lld: needed is %u", where,
			       (long long)greeting->max_payload, BUS_MESSAGE_MAX);
	return 0;
}

int greeting_check(const struct brokerurl *url, bool any_version, struct err *err)
{
	struct err first = { "" }, other;
	struct greeting greeting;
	int ret = -ENOENT;

	for (size_t i = 0; i < url->cnt; i++) {
		int r = greeting_read(&url->addresses[i], &greeting, i == 0 ? &first : &other);

		if (r == -ETIMEDOUT)
			return 0; /* libnats says what becomes of it */
		if (r == 0)
			return judge(&greeting, &url->addresses[i], url->tls, any_version, err);
		if (i == 0)
			ret = r;
	}
	return err_set(err, -ret, "%s", first.text);
}
