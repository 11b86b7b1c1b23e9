/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/netaddress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static int parse_port(const char *text, uint16_t *ret)
{
	unsigned long value = 0;

	if (*text == '\0')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9' && value <= UINT16_MAX; text++)
		value = value * 10 + (unsigned)(*text - '0');
	if (*text != '\0' || value > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)value;
	return 0;
}

static bool is_number(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

int netaddress_parse(const char *text, struct netaddress *ret, struct err *err)
{
	static const char expected[] =
		"expected PORT (this machine only), ADDR:PORT or [ADDR]:PORT with a number as "
		"ADDR (0.0.0.0: all of this machine's)";
	struct netaddress address = { .host = "127.0.0.1" };
	const char *colon = strrchr(text, ':'), *host = text;
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;

	if (colon != NULL && len > 2 && text[0] == '[' && colon[-1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(text, ':', len) != NULL) {
		len = 0; /* ::1:80 is ambiguous */
	}
	if (colon != NULL && (len == 0 || len >= sizeof(address.host)))
		return err_set(err, EINVAL, "%s, found %s", expected, text);
	if (colon != NULL && !(len == strlen("localhost") && memcmp(host, "localhost", len) == 0)) {
		memcpy(address.host, host, len);
		address.host[len] = '\0';
	}
	if (!is_number(address.host) ||
	    parse_port(colon != NULL ? colon + 1 : text, &address.port) < 0)
		return err_set(err, EINVAL, "%s, found %s", expected, text);
	*ret = address;
	return 0;
}

int netaddress_parse_any(const char *text, struct netaddress *ret, struct err *err)
{
	static const char unix_prefix[] = "unix:";
	const char *path = text + strlen(unix_prefix);
	struct netaddress address = { .host = "" };

	if (strncmp(text, unix_prefix, strlen(unix_prefix)) != 0)
		return netaddress_parse(text, ret, err);
	if (*path == '\0' || strlen(path) >= sizeof(address.path))
		return err_set(err, EINVAL,
			       "expected unix:PATH with a path of up to %zu bytes, found %s",
			       sizeof(address.path) - 1, text);
	memcpy(address.path, path, strlen(path) + 1);
	*ret = address;
	return 0;
}

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static socklen_t fill_address(const struct netaddress *address, union any_address *ret)
{
	*ret = (union any_address){ 0 };
	if (address->path[0] != '\0') {
		ret->local.sun_family = AF_UNIX;
		memcpy(ret->local.sun_path, address->path, strlen(address->path) + 1);
		return sizeof(ret->local);
	}
	if (inet_pton(AF_INET, address->host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(address->port);
		return sizeof(ret->v4);
	}
	(void)inet_pton(AF_INET6, address->host, &ret->v6.sin6_addr);
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(address->port);
	return sizeof(ret->v6);
}

bool netaddress_is_local(const struct netaddress *address)
{
	union any_address where;

	(void)fill_address(address, &where);
	if (where.any.sa_family == AF_UNIX)
		return true;
	if (where.any.sa_family == AF_INET)
		return ntohl(where.v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&where.v6.sin6_addr);
}

void netaddress_describe(int fd, char *ret, size_t size)
{
	union any_address address = { 0 };
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";

	(void)getsockname(fd, &address.any, &len);
	if (address.any.sa_family == AF_UNIX) {
		(void)snprintf(ret, size, "unix:%s", address.local.sun_path);
		return;
	}
	if (address.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
		(void)snprintf(ret, size, "[%s]:%u", host, ntohs(address.v6.sin6_port));
		return;
	}
	(void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
	(void)snprintf(ret, size, "%s:%u", host, ntohs(address.v4.sin_port));
}

/* Removes a socket that a process left, never one that answers, nor a file of another kind. */
static void remove_left_over(const union any_address *where, socklen_t len)
{
	struct stat info;
	int fd;

	if (lstat(where->local.sun_path, &info) < 0 || !S_ISSOCK(info.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, &where->any, len) < 0 && errno == ECONNREFUSED)
		(void)unlink(where->local.sun_path);
	if (fd >= 0)
		(void)close(fd);
}

static int bind_to(int fd, const union any_address *where, socklen_t len)
{
	mode_t old;
	int on = 1, ret;

	if (where->any.sa_family != AF_UNIX) {
		ret = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		return ret == 0 ? bind(fd, &where->any, len) : ret;
	}
	remove_left_over(where, len);
	old = umask(0177);
	ret = bind(fd, &where->any, len);
	(void)umask(old);
	return ret;
}

int netaddress_listen(const struct netaddress *address, struct err *err)
{
	union any_address where;
	socklen_t len = fill_address(address, &where);
	int fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error;

	if (fd >= 0 && bind_to(fd, &where, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	if (fd >= 0)
		(void)close(fd);
	if (address->path[0] != '\0')
		return err_set(err, error, "%s: %s", address->path, strerror(error));
	return err_set(err, error, "%s port %u: %s", address->host, address->port, strerror(error));
}
