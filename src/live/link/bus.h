/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the daemons of a job: small, bounded, at most once. On one
 * machine they are handed over inside the process, between hosts by a NATS broker.
 * The contract is what both keep:
 *
 *  - publishing never blocks; a full queue drops the message and counts it;
 *  - messages of one publisher arrive in order, each at most once;
 *  - a handler is never called from within bus_pub(), only from bus_run().
 *
 * Subjects are tokens of [A-Za-z0-9_-] joined by dots. A pattern is a subject,
 * or ends in ">" for one or more further tokens.
 * Not thread-safe: one loop owns a bus.
 */
#pragma once

#include "base/base.h"

#define BUS_SUBJECT_MAX 128u	   /* bytes with the NUL */
#define BUS_MESSAGE_MAX (1u << 20) /* bytes of one payload */
#define BUS_PENDING_CNT 4096u	   /* messages waiting for bus_run() */
#define BUS_PENDING_BYTES (16u << 20)
#define BUS_REQUEST_CNT 256u /* requests without an answer */

struct bus;
struct bus_sub;
struct err;

/* How to reach a broker and who asks. All texts are borrowed while the bus is open; NULL: none. */
struct bus_login {
	const char *url; /* nats://HOST:PORT, tls://HOST:PORT; several with commas between them */
	const char *user, *password, *token;
	const char *credentials_file; /* a JWT and its seed */
	const char *nkey_public, *nkey_seed_file;
	const char *ca_file; /* of the broker's certificate; NULL: the system's */
	const char *certificate_file, *key_file; /* of this client */
	const char *broker_name;		 /* in its certificate; NULL: the host of url */
	bool insecure;				 /* nats:// to other hosts is allowed */
	bool any_version; /* of the broker, also before BROKER_LEAST: for tests */
};

/* Borrowed: valid during the handler's call. */
struct bus_message {
	const char *subject;
	const char *reply; /* subject for the answer; NULL: none expected */
	const void *data;
	size_t len;
};

typedef void bus_handler(void *arg, const struct bus_message *message);

/* message is NULL when no answer came in time. */
typedef void bus_answer(void *arg, const struct bus_message *message);

struct bus_stats {
	uint64_t sent, received; /* published; handed to handlers */
	uint64_t dropped;	 /* for a full queue */
	uint64_t unheard;	 /* without a subscriber */
	uint64_t timeouts;
	uint64_t reconnects;
	size_t pending_cnt, pending_bytes;
};

/*
 * url: "inproc:". Returns 0, -EPROTONOSUPPORT for another scheme, -ENOMEM.
 * wake(wake_arg), may be NULL, is called when bus_run() has something to do.
 */
_must_check_ int bus_open(const char *url, void (*wake)(void *arg), void *wake_arg,
			  struct bus **ret);

/*
 * The same over a broker. Returns at once and connects in the background; what is published before
 * waits. unheard is not known then. Returns 0, or -errno with a line in err: -ENOPKG (libnats is
 * not installed), -EPERM (plain text to another host), -EINVAL (url), -ENOMEM.
 */
_must_check_ int bus_connect(const struct bus_login *login, void (*wake)(void *arg), void *wake_arg,
			     struct bus **ret, struct err *err);

/* Whether the broker answers; else a line about the latest attempt in why, "" before the first. */
bool bus_is_connected(struct bus *bus, char *why, size_t size);

/* Frees it with all subscriptions; pending messages are lost. Returns NULL. */
struct bus *bus_close(struct bus *bus);

/*
 * Copies data; what is dropped is counted. Returns 0, -EINVAL (subject),
 * -EMSGSIZE, or -ENOBUFS (dropped: the queue or memory is full).
 */
int bus_pub(struct bus *bus, const char *subject, const void *data, size_t len);

/* Returns 0, -EINVAL (pattern) or -ENOMEM. ret_sub may be NULL. */
_must_check_ int bus_sub(struct bus *bus, const char *pattern, bus_handler *handler, void *arg,
			 struct bus_sub **ret_sub);

/* May be called from a handler. Returns NULL. */
struct bus_sub *bus_unsub(struct bus *bus, struct bus_sub *sub);

/*
 * Publishes and waits for one answer: answer(arg, ...) is called exactly once,
 * with NULL when none came by deadline_ns (on the clock of bus_run()). Errors
 * as bus_pub(), -ENOBUFS also when too many requests wait; then never called.
 */
_must_check_ int bus_req(struct bus *bus, const char *subject, const void *data, size_t len,
			 int64_t deadline_ns, bus_answer *answer, void *arg);

/* Answers a message that has a reply subject; -EDESTADDRREQ when it has none. */
_must_check_ int bus_reply(struct bus *bus, const struct bus_message *message, const void *data,
			   size_t len);

/*
 * Hands over what is pending when it is called (not what handlers add
 * meanwhile) and ends overdue requests. Returns how many messages it took.
 */
size_t bus_run(struct bus *bus, int64_t now_ns);

/* The same, but not more than so many of them. */
size_t bus_run_some(struct bus *bus, int64_t now_ns, size_t most);

struct bus_stats bus_stats(struct bus *bus);
