/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's TCP sockets with their byte counters, over netlink: all of this
 * network namespace, or some that are known already. No privilege is needed.
 * Nothing here waits: the kernel has answered before the question returns.
 * Source: sock_diag(7); include/uapi/linux/inet_diag.h; struct tcp_info.
 */
#pragma once

#include "base/vec.h"

#include <linux/inet_diag.h>

#define SOCKDIAG_ASK_MAX 32 /* sockets asked for in one message */

/*
 * One TCP socket as the kernel describes it. Bytes are payload, each counted
 * once: no headers, no retransmissions.
 */
struct sockdiag_socket {
	uint64_t cookie; /* the kernel's own id: never used again, unlike inode */
	uint32_t inode;	 /* 0: no process holds it (not accepted yet, or closed) */
	uint64_t tx_bytes, rx_bytes;
	/*
	 * Time with data on the way, and the part of it in which the receiver had no room. 0 before
	 * Linux 4.10.
	 */
	uint64_t busy_us, limited_us;
	uint64_t retransmitted_bytes;
	uint32_t rtt_us; /* smoothed */
	uint8_t family;	 /* with id: how to ask for this one alone */
	struct inet_diag_sockid id;
};

typedef VEC(struct sockdiag_socket) sockdiag_sockets;

struct sockdiag {
	int fd;
	uint32_t seq; /* of the last question */
};

/* Returns 0 or -errno: no netlink here. After that only sockdiag_close() may be called. */
_must_check_ int sockdiag_open(struct sockdiag *diag);
void sockdiag_close(struct sockdiag *diag);

/*
 * Appends all sockets that can carry data, in no order. Walks the kernel's hash table: 0.2 ms here
 * without any socket, 0.7 us for each. Returns 0, -ENOMEM, -EIO when the list broke off, or the
 * kernel's error; out is then incomplete.
 */
_must_check_ int sockdiag_list(struct sockdiag *diag, sockdiag_sockets *out);

/*
 * Asks for batch[cnt], at most SOCKDIAG_ASK_MAX, again and appends those that are
 * still there. 2 us each. Errors as above.
 */
_must_check_ int sockdiag_ask(struct sockdiag *diag, const struct sockdiag_socket *const *batch,
			      size_t cnt, sockdiag_sockets *out);

/*
 * Appends the sockets in one answer data[len] of the kernel to question `seq`.
 * Answers to others and attributes of other kinds are skipped, sockets without
 * counters too. Returns 0 when more answers may follow, 1 at the end of the list,
 * -EINVAL for lengths that make no sense, -ENOMEM, or the kernel's refusal.
 */
_must_check_ int sockdiag_parse(const void *data, size_t len, uint32_t seq, sockdiag_sockets *out);
