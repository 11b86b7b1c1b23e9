/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server in a thread of its own: one page at one path. A slow or invalid client
 * delays no other: connections are few, each answers one request, and each is cut after
 * HTTP_AGE_MAX_NS.
 * Source: libmicrohttpd.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "serve/http/netaddress.h"

#define HTTP_CONNECTION_MAX 32u
#define HTTP_AGE_MAX_NS (15 * NSEC_PER_SEC)
#define HTTP_REQUEST_BYTES 16384u /* headers of a request; a longer one is refused */

struct http;

/* The source of pages. */
struct http_source {
	/*
	 * Makes the page for a request with this Accept header (NULL: none) and names its type.
	 * On the server's thread. Returns 0 or -errno.
	 */
	int (*render)(void *arg, const char *accept, struct str *ret, const char **ret_type);
	void *arg;
	const char *path; /* "/metrics" */
};

/*
 * Binds and serves. Returns 0 or -errno with a line in err; -ENOPKG: libmicrohttpd, which is
 * loaded here first, is not installed.
 */
_must_check_ int http_open(const struct netaddress *address, const struct http_source *source,
			   struct http **ret, struct err *err);

/* Ends the thread; connections are cut. */
struct http *http_close(struct http *http);

/* Cuts connections that are too old; call it now and then. Never waits for a client. */
void http_tick(struct http *http, int64_t now_ns);

/* "127.0.0.1:9400", "[::1]:9400": the address it listens on. Valid while http is. */
const char *http_borrow_address(const struct http *http);
