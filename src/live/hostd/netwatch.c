/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/netwatch.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

void netwatch_open(struct netwatch *watch, const char *root)
{
	netwatch_close(watch);
	sockets_open(&watch->sockets, root);
	if (netdevs_open(&watch->netdevs, root) < 0)
		netdevs_close(&watch->netdevs); /* out of memory: no cards */
	if (ibports_open(&watch->ibports, root) < 0)
		ibports_close(&watch->ibports);
	pressure_open(&watch->pressure, root);
	watch->open = true;
}

void netwatch_close(struct netwatch *watch)
{
	if (!watch->open)
		return;
	sockets_close(&watch->sockets);
	netdevs_close(&watch->netdevs);
	ibports_close(&watch->ibports);
	pressure_close(&watch->pressure);
	watch->open = false;
}

static int64_t thread_cpu_ns(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int look_sockets(struct sockets *sockets, const struct netwatch_worker *workers, size_t cnt,
			int64_t (*clock)(void))
{
	int ret = 0;

	for (size_t i = 0; i < cnt && ret == 0; i++)
		ret = sockets_follow(sockets, workers[i].pid);
	if (ret < 0 || sockets_look(sockets, clock(), thread_cpu_ns) != 1)
		return ret; /* netwatch_finish() reports that sockets cannot be listed */
	for (size_t i = 0; i < cnt && ret == 0; i++) {
		const struct socket_owner *owner = sockets_find(sockets, workers[i].pid);
		struct sidecar_socket sample = { sockets->look_ns, owner->tx_bytes,
						 owner->rx_bytes };

		ret = vec_push(&workers[i].side->socket_samples, sample);
	}
	return ret;
}

static int look_host(struct netwatch *watch, const struct netwatch_worker *workers, size_t cnt,
		     int64_t (*clock)(void))
{
	bool cards = netdevs_look(&watch->netdevs, clock) == 1;
	struct sidecar_pressure pressure;
	bool pressed = pressure_look(&watch->pressure, clock(), &pressure) == 1;
	int ret = 0;

	(void)ibports_look(&watch->ibports, clock);
	for (size_t i = 0; i < cnt && ret == 0; i++) {
		if (cards)
			ret = netdevs_record(&watch->netdevs, workers[i].side);
		if (pressed && ret == 0)
			ret = vec_push(&workers[i].side->pressures, pressure);
	}
	return ret;
}

int netwatch_look(struct netwatch *watch, const struct netwatch_worker *workers, size_t cnt,
		  int64_t (*clock)(void))
{
	int ret;

	if (!watch->open || cnt == 0)
		return 0;
	ret = look_sockets(&watch->sockets, workers, cnt, clock);
	return ret == 0 ? look_host(watch, workers, cnt, clock) : ret;
}

static int add_flows(struct sockets *sockets, uint32_t pid, struct sidecar *side)
{
	struct socket_owner *owner = sockets_find(sockets, pid);

	if (owner == NULL)
		return 0;
	flows_name_cards(&owner->flows);
	vec_foreach(flow, &owner->flows.list) {
		int ret = vec_push(&side->flows, *flow);

		if (ret < 0)
			return ret;
	}
	/* Without addresses: what was sent to more of them. */
	return owner->flows.dropped_bytes == 0
		       ? 0
		       : vec_push(&side->flows,
				  (struct sidecar_flow){ .tx_bytes = owner->flows.dropped_bytes });
}

/*
 * The scale is the highest rate of any worker so far. Windows of one order end at
 * the same step, so that a worker still in its window adds little.
 */
int netwatch_finish(struct netwatch *watch, uint32_t pid, struct sidecar *side)
{
	struct sidecar_network network = { 0 };

	if (!watch->open)
		return 0;
	network.peak_bytes_per_sec = watch->sockets.peak_tx_bytes_per_sec;
	vec_foreach(owner, &watch->sockets.owners)
		network.host_tx_bytes += owner->tx_bytes;
	(void)snprintf(network.why, sizeof(network.why), "%s", sockets_why(&watch->sockets));
	vec_foreach(device, &watch->netdevs.devices) {
		int ret = vec_push(&side->nics, device->nic);

		if (ret < 0)
			return ret;
	}
	ibports_look_now(&watch->ibports);
	if (ibports_record(&watch->ibports, side) < 0 || add_flows(&watch->sockets, pid, side) < 0)
		return -ENOMEM;
	return vec_push(&side->networks, network);
}
