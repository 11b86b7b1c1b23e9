/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker sent over TCP during its window, by pair of addresses. busy_ns is the time with data
 * on the way, so tx_bytes / (busy_ns - limited_ns) is the rate of the path while it was used,
 * whatever share of the window that was. struct fingerprint (fingerprint.h) owns these records.
 */
#pragma once

#include "base/base.h"

#include <stddef.h>

#define FP_FLOWS_MAX 64u /* the largest; the bytes of more are summed */

struct fp_flow {
	const char *local, *remote; /* addresses as text: "10.0.0.7", "fe80::1" */
	const char *card;	    /* that has the local address: "eth0"; "": unknown */
	uint64_t tx_bytes, retransmitted_bytes;
	int64_t busy_ns, limited_ns; /* limited: of it, while the receiver had no room */
	int64_t rtt_ns;
	uint32_t socket_cnt; /* busy_ns is a sum over these */
};

struct fp_flows {
	struct fp_flow *list; /* by tx_bytes, largest first */
	size_t cnt;
	uint64_t rest_bytes; /* of flows that are not listed */
};
