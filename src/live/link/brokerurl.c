/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/brokerurl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const char nats[] = "nats://", tls[] = "tls://";

static bool is_port(const char *text, size_t len)
{
	unsigned value = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	return len > 0 && len < 6 && value > 0 && value <= UINT16_MAX;
}

/* Characters of names and of addresses of both families. */
static bool is_host(const char *text, size_t len)
{
	return len > 0 && len < sizeof((struct broker_address){ "" }.host) &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "-._:%") >= len;
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool parse_address(const char *text, size_t len, struct broker_address *ret)
{
	const char *host = text, *end = text + len, *rest;
	size_t host_len;

	if (len > 0 && text[0] == '[') {
		rest = memchr(++host, ']', len - 1);
		if (rest == NULL)
			return false;
		host_len = (size_t)(rest++ - host);
	} else {
		rest = memchr(text, ':', len);
		if (rest == NULL)
			rest = end;
		host_len = (size_t)(rest - host);
	}
	if (!is_host(host, host_len))
		return false;
	(void)snprintf(ret->host, sizeof(ret->host), "%.*s", (int)host_len, host);
	(void)snprintf(ret->port, sizeof(ret->port), "4222");
	if (rest == end)
		return true;
	if (*rest++ != ':' || !is_port(rest, (size_t)(end - rest)))
		return false;
	(void)snprintf(ret->port, sizeof(ret->port), "%.*s", (int)(end - rest), rest);
	return true;
}

int brokerurl_parse(const char *text, struct brokerurl *ret, struct err *err)
{
	struct brokerurl url = { .tls = strncmp(text, tls, strlen(tls)) == 0 };
	const char *scheme = url.tls ? tls : nats;

	if (strchr(text, '@') != NULL)
		return err_set(err, EINVAL,
			       "the address of a broker has a user or password, which others can "
			       "see: give them in a file");
	for (const char *at = text;;) {
		size_t len = strcspn(at, ","), skip = strlen(scheme);

		if (url.cnt == BROKERURL_MAX || len < skip || memcmp(at, scheme, skip) != 0 ||
		    !parse_address(at + skip, len - skip, &url.addresses[url.cnt++]))
			return err_set(err, EINVAL,
				       "%s: expected nats://HOST:PORT or tls://HOST:PORT, at most "
				       "%u of one kind with commas between them",
				       text, BROKERURL_MAX);
		at += len;
		if (*at++ == '\0')
			break;
	}
	*ret = url;
	return 0;
}

static bool address_is_local(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcmp(host, "localhost") == 0;
}

bool brokerurl_is_local(const struct brokerurl *url)
{
	for (size_t i = 0; i < url->cnt; i++) {
		if (!address_is_local(url->addresses[i].host))
			return false;
	}
	return true;
}
