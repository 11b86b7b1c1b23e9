/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/flows.h"

#include "base/clock.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const struct sockdiag_socket never_seen;

static uint64_t growth(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* An address of IPv4 as IPv6 writes it. address: of 4 or 16 bytes. */
static void write_address(int family, const void *address, unsigned char ret[16])
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

/* False: no address of IP. */
static bool address_of(const struct ifaddrs *of, unsigned char ret[16])
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (of->ifa_addr == NULL)
		return false;
	if (of->ifa_addr->sa_family == AF_INET) {
		memcpy(&in, of->ifa_addr, sizeof(in));
		write_address(AF_INET, &in.sin_addr, ret);
	} else if (of->ifa_addr->sa_family == AF_INET6) {
		memcpy(&in6, of->ifa_addr, sizeof(in6));
		write_address(AF_INET6, &in6.sin6_addr, ret);
	} else {
		return false;
	}
	return true;
}

void flows_name_cards(struct flows *flows)
{
	struct ifaddrs *all = NULL;
	unsigned char address[16];

	if (flows->list.cnt == 0 || getifaddrs(&all) != 0)
		return;
	for (const struct ifaddrs *of = all; of != NULL; of = of->ifa_next) {
		if (!address_of(of, address))
			continue;
		vec_foreach(flow, &flows->list) {
			if (memcmp(flow->local, address, sizeof(address)) == 0)
				(void)snprintf(flow->card, sizeof(flow->card), "%s", of->ifa_name);
		}
	}
	freeifaddrs(all);
}

void flows_done(struct flows *flows)
{
	vec_done(&flows->list);
	*flows = (struct flows){ .dropped_bytes = 0 };
}
