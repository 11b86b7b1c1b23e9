/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/flows.h"

#include "base/clock.h"

#include <string.h>
#include <sys/socket.h>

static const struct sockdiag_socket never_seen;

static uint64_t growth(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* An address of IPv4 as IPv6 writes it. */
static void write_address(uint8_t family, const uint32_t address[4], unsigned char ret[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (family == AF_INET) {
		memcpy(ret, mapped, sizeof(mapped));
		memcpy(ret + sizeof(mapped), address, 4);
	} else {
		memcpy(ret, address, 16);
	}
}

/* NULL: the table is full, or no memory. */
static struct sidecar_flow *find_flow(struct flows *flows, const struct sockdiag_socket *socket)
{
	struct sidecar_flow new = { .tx_bytes = 0 };

	write_address(socket->family, socket->id.idiag_src, new.local);
	write_address(socket->family, socket->id.idiag_dst, new.remote);
	vec_foreach(flow, &flows->list) {
		if (memcmp(flow->remote, new.remote, sizeof(new.remote)) == 0 &&
		    memcmp(flow->local, new.local, sizeof(new.local)) == 0)
			return flow;
	}
	if (flows->list.cnt >= FLOWS_MAX || vec_push(&flows->list, new) < 0)
		return NULL;
	return &flows->list.data[flows->list.cnt - 1];
}

void flows_add(struct flows *flows, const struct sockdiag_socket *before,
	       const struct sockdiag_socket *now, bool *counted)
{
	const struct sockdiag_socket *since = before != NULL ? before : &never_seen;
	uint64_t tx_bytes = growth(since->tx_bytes, now->tx_bytes);
	struct sidecar_flow *flow;

	if (tx_bytes == 0 && now->busy_us <= since->busy_us)
		return;
	flow = find_flow(flows, now);
	if (flow == NULL) {
		flows->dropped_bytes += tx_bytes;
		return;
	}
	flow->tx_bytes += tx_bytes;
	flow->busy_ns += growth(since->busy_us, now->busy_us) * NSEC_PER_USEC;
	flow->limited_ns += growth(since->limited_us, now->limited_us) * NSEC_PER_USEC;
	flow->retransmitted_bytes += growth(since->retransmitted_bytes, now->retransmitted_bytes);
	flow->rtt_us = now->rtt_us;
	flow->socket_cnt += !*counted;
	*counted = true;
}

void flows_done(struct flows *flows)
{
	vec_done(&flows->list);
	*flows = (struct flows){ .dropped_bytes = 0 };
}
