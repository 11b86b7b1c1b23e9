/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that each worker sends and receives over TCP, seen from outside: the kernel lists all TCP
 * sockets of the network namespace with their byte counters, and /proc/PID/fd shows which of them a
 * worker holds. So ranks on one host are distinguished, also when they communicate over its
 * loopback device.
 *
 * Bytes are payload as the application wrote it, each counted once: no headers,
 * no retransmissions. What a socket has sent stays counted after it is closed.
 *
 * A list of all sockets walks the kernel's whole hash table, however few there are: 0.2 ms and 0.7
 * us a socket here, more on larger machines. So it is made only now and then, to find new sockets;
 * in between the workers' own are queried one by one, 2 us each. Both slow down as they cost more,
 * so that together they take about 1 % of a core at most.
 * Source: proc(5).
 */
#pragma once

#include "host/network/flows.h"

#define SOCKETS_MAX 65536u		    /* of a host; more are counted, not followed */
#define SOCKETS_LOOK_NS (8 * NSEC_PER_MSEC) /* called every 10 ms: one call late, not two */
#define SOCKETS_LIST_NS (100 * NSEC_PER_MSEC)
#define SOCKETS_SINGLE_MAX 128u		     /* workers' sockets; with more a list is as cheap */
#define SOCKETS_LOOK_DIVISOR 125	     /* single questions take 0.8 % of a core, */
#define SOCKETS_LIST_DIVISOR 500	     /* a list and a search for holders 0.2 % each */
#define SOCKETS_FIND_NS (50 * NSEC_PER_MSEC) /* descriptors are listed no more often */
#define SOCKETS_LINK_MAX 65536u		     /* descriptors read at once */

enum { SOCKET_OWNER_UNKNOWN = -1, SOCKET_OWNER_OTHER = -2 };

/* A socket that is followed; counters as of the last look that had it. */
struct socket_known {
	struct sockdiag_socket seen;
	int32_t owner; /* index in owners, or one of the above */
	bool counted;  /* in a flow of its owner */
};

struct socket_owner {
	uint32_t pid;
	uint64_t tx_bytes, rx_bytes; /* of all its sockets, closed ones too: never decreases */
	uint64_t look_tx_bytes;	     /* tx of the last look, sockets known before only */
	bool followed;		     /* a look has begun its totals: at 0 */
	struct flows flows;	     /* what it sent since then, by address */
};

struct sockets {
	const char *root; /* prefix before /proc; borrowed */
	struct sockdiag diag;
	VEC(struct socket_owner) owners;
	VEC(struct socket_known) known, next; /* by cookie */
	VEC(size_t) unknown;		      /* indices in known, by inode */
	sockdiag_sockets seen;
	int64_t look_ns, due_ns, list_due_ns;
	int64_t find_due_ns;	      /* when descriptors may be listed */
	double peak_tx_bytes_per_sec; /* highest of one owner between two looks */
	uint64_t dropped;	      /* sockets beyond SOCKETS_MAX */
	int error;		      /* -errno: no counters, see sockets_why() */
};

/* The first look returns errors. sockets_close() may be called twice. */
void sockets_open(struct sockets *sockets, const char *root);
void sockets_close(struct sockets *sockets);

/* Follows the sockets of pid from the next look on. Returns 0 or -ENOMEM; known: nothing. */
_must_check_ int sockets_follow(struct sockets *sockets, uint32_t pid);

/*
 * Looks when it is time (due_ns). Returns 1 after a look, 0 when it is not time yet, or -errno:
 * there will be no counters. cost_clock returns the calling thread's CPU time: on a busy host
 * elapsed time does not measure the cost.
 */
int sockets_look(struct sockets *sockets, int64_t now_ns, int64_t (*cost_clock)(void));

/* Counters of a followed process as of the last look; NULL when it isn't followed. */
struct socket_owner *sockets_find(struct sockets *sockets, uint32_t pid);

/* Why there are no counters, for a person; "" while there are. */
const char *sockets_why(const struct sockets *sockets);
