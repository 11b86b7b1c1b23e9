/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server in a thread of its own, for pages, an API and streams of events. It decides who
 * may ask (request.h, tokens.h, peer.h), bounds what a client can take (connections, bytes, time),
 * and adds the headers that each answer needs; a handler makes the answers. A slow client delays
 * no other.
 * Source: libmicrohttpd, CSP level 3, Fetch standard (Cross-Origin-Resource-Policy), HTML Living
 * Standard (server-sent events).
 */
#pragma once

#include "base/str.h"
#include "serve/http/netaddress.h"
#include "serve/http/request.h"
#include "serve/http/tokens.h"

#define SERVER_CONNECTION_MAX 256u
#define SERVER_STREAM_MAX 128u
#define SERVER_AGE_MAX_NS (60 * NSEC_PER_SEC)	     /* of a request, or between two */
#define SERVER_CROWDED_AGE_MAX_NS (5 * NSEC_PER_SEC) /* the same while connections are scarce */
#define SERVER_REQUEST_BYTES 32768u
#define SERVER_HEARTBEAT_NS (15 * NSEC_PER_SEC)

struct server;

/*
 * What follows in a stream after the event number *after, at most about max bytes; sets *after.
 * Nothing appended: nothing is new. On the server's thread.
 */
typedef void (*server_follow_fn)(void *arg, uint64_t *after, size_t max, struct str *out);

struct answer {
	unsigned status;	 /* 0: 200 */
	const char *type;	 /* a constant; NULL: of a page */
	const char *policy;	 /* Content-Security-Policy, a constant; NULL: the strict one */
	struct str body;	 /* the server frees it */
	server_follow_fn follow; /* not NULL: a stream of events after the body */
	void *follow_arg;
	uint64_t after;
	char location[64];  /* "": none; of a 303 */
	unsigned refresh_s; /* a browser asks again then; 0: not */
	char file_name[64]; /* a download has it, letters, digits, "-" and "."; "": none */
	bool opens_windows; /* and talks to them, of any origin: when its reader clicks */
};

/* Makes the answer of a GET or HEAD, or of a POST (request.writes, of_agent); on the server's thread. */
typedef void (*server_answer_fn)(void *arg, const struct request *request, struct answer *ret);
/* Makes the answer for a request that the server refuses with this status and line. */
typedef void (*server_refuse_fn)(void *arg, const struct request *request, unsigned status,
				 const char *why, struct answer *ret);

struct server_options {
	struct netaddress address;
	const struct tokens *tokens; /* NULL: only the user's own processes of this machine */
	const char *name;	     /* a further name in Host headers; NULL: none */
	const char *post_path;	     /* takes POST of JSON and nothing else; NULL: none */
	server_answer_fn answer;
	server_refuse_fn refuse;
	void *arg;
};

/* Binds and serves. Returns 0 or -errno with a line in err. */
_must_check_ int server_open(const struct server_options *options, struct server **ret,
			     struct err *err);

/* Ends the thread; connections are cut. A Unix socket's file is removed. */
struct server *server_close(struct server *server);

/* Cuts connections that are too old; call it once a second. */
void server_tick(struct server *server, int64_t now_ns);

/* Streams look whether something is new. */
void server_wake(struct server *server);

/* "127.0.0.1:8790" or "unix:PATH". Valid while server is. */
const char *server_borrow_address(const struct server *server);
