/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server listens: ADDR:PORT, [ADDR]:PORT, PORT alone, which means 127.0.0.1, or unix:PATH
 * where that is allowed.
 * Source: RFC 3986 (brackets), unix(7).
 */
#pragma once

#include "base/err.h"

struct netaddress {
	char host[64];	/* a number, without brackets; "": none, or a Unix socket */
	uint16_t port;	/* 0: any that is free */
	char path[108]; /* of a Unix socket; "": none */
};

/* Returns 0, or -EINVAL with a line in err. "localhost" is the only name that is resolved. */
_must_check_ int netaddress_parse(const char *text, struct netaddress *ret, struct err *err);

/* The same, and unix:PATH. */
_must_check_ int netaddress_parse_any(const char *text, struct netaddress *ret, struct err *err);

/* Whether only this machine reaches it: 127.0.0.0/8, ::1, a Unix socket. */
bool netaddress_is_local(const struct netaddress *address);

/*
 * A socket that listens there, nonblocking; a Unix socket is for its user only, and takes the place
 * of one that is left over. Returns it, or -errno with a line in err; -EADDRINUSE: another process
 * listens there.
 */
_must_check_ int netaddress_listen(const struct netaddress *address, struct err *err);

/* "127.0.0.1:9400", "[::1]:9400", "unix:/run/x": where fd listens. */
void netaddress_describe(int fd, char *ret, size_t size);
