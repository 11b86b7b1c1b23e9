/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a NATS broker for bus.c, by libnats, which is loaded at the first use. All its
 * functions that can wait are called by a thread of this module, so nothing here blocks: what is
 * published waits in a queue of BUS_PENDING_CNT messages; so do those that came, until they are
 * taken. What does not fit is dropped and counted.
 */
#pragma once

#include "base/err.h"
#include "live/link/bus.h"

/* A message that came. The receiver frees it. */
struct natslink_message {
	struct natslink_message *next;
	uint64_t sub; /* as in natslink_subscribe() */
	char subject[BUS_SUBJECT_MAX], reply[BUS_SUBJECT_MAX];
	size_t len;
	unsigned char data[];
};

struct natslink_counts {
	uint64_t dropped; /* in both directions */
	uint64_t reconnects;
	size_t pending_cnt, pending_bytes; /* that came and are not taken */
};

struct natslink;

/*
 * Returns at once and connects, again and again, in the background. wake(wake_arg) is called by
 * other threads when a message came. Returns 0, or -errno with a line in err: -ENOPKG (no libnats),
 * -EPERM (plain text to another host), -EINVAL (the login cannot be used).
 */
_must_check_ int natslink_open(const struct bus_login *login, void (*wake)(void *arg),
			       void *wake_arg, struct natslink **ret, struct err *err);

/*
 * What waits to be sent is sent, for at most a second. Takes some seconds more where the broker
 * hangs. Returns NULL.
 */
struct natslink *natslink_close(struct natslink *link);

/* Copies. reply: "": no answer is expected. Returns 0 or -ENOBUFS (dropped). */
int natslink_publish(struct natslink *link, const char *subject, const char *reply,
		     const void *data, size_t len);

/* id: chosen by the caller, not 0. Returns 0 or -ENOMEM. */
int natslink_subscribe(struct natslink *link, const char *pattern, uint64_t id);
void natslink_unsubscribe(struct natslink *link, uint64_t id);

/* All that came since the last call, the oldest first; NULL: nothing. */
struct natslink_message *natslink_take(struct natslink *link);

/* Whether the broker answers. Else *why, of at least 256 bytes, says why not, "" if unknown. */
bool natslink_is_connected(struct natslink *link, char *why, size_t size);
struct natslink_counts natslink_counts(struct natslink *link);
