/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process sends over TCP, by pair of addresses. The kernel counts for each socket the time
 * in which data was on the way. So the rate while sending is known, however short the bursts are: it
 * is that of the link, also where the process waits for other links most of the time.
 * Source: tcp_info's tcpi_busy_time and tcpi_rwnd_limited; PerfTracker section 3, figures 3-5.
 */
#pragma once

#include "base/vec.h"
#include "format/sidecar/sidecar_flow.h"
#include "host/network/sockdiag.h"

#define FLOWS_MAX 256u /* of a process; what is sent on others is counted */

/* A zeroed one is empty and valid. */
struct flows {
	VEC(struct sidecar_flow) list;
	uint64_t dropped_bytes; /* of flows beyond FLOWS_MAX, or without memory */
};

/*
 * Adds what a socket sent since it was seen before, NULL: ever. counted: whether the socket is in
 * the flow's number of sockets already; set once it has sent something.
 */
void flows_add(struct flows *flows, const struct sockdiag_socket *before,
	       const struct sockdiag_socket *now, bool *counted);
/* Fills in which card has the local address of each. Costs a dump of the host's addresses. */
void flows_name_cards(struct flows *flows);
void flows_done(struct flows *flows);
