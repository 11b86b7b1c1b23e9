/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a sidecar file about what a worker sent to other addresses; see sidecar_file.h. */
#pragma once

#include "base/base.h"

/*
 * What the worker sent over TCP in the window from one address to another, by all its sockets
 * between the two. Addresses are of IPv6; those of IPv4 are mapped (::ffff:a.b.c.d). One record
 * without addresses sums up what was sent to more of them.
 */
struct sidecar_flow {
	unsigned char local[16], remote[16];
	uint64_t tx_bytes;
	uint64_t busy_ns;    /* with data on the way: the sum over the sockets */
	uint64_t limited_ns; /* of it, while the receiver had no room */
	uint64_t retransmitted_bytes;
	uint32_t rtt_us; /* smoothed, the latest */
	uint32_t socket_cnt;
	char card[16]; /* that has the local address: "eth0"; "": unknown; NUL-terminated */
};
_Static_assert(sizeof(struct sidecar_flow) == 88, "on disk");
