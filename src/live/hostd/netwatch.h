/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is watched of a host while workers of it are in a window, beside their
 * threads and the strangers: TCP traffic of each worker, the network cards and
 * the pressure. Each source has its own pace and bounds its own cost.
 */
#pragma once

#include "host/network/infiniband.h"
#include "host/network/netdev.h"
#include "host/network/sockets.h"
#include "host/process/pressure.h"

/* A worker whose window is sampled, and the sidecar it fills. Both borrowed. */
struct netwatch_worker {
	uint32_t pid;
	struct sidecar *side;
};

/* Zeroed: closed. */
struct netwatch {
	bool open;
	struct sockets sockets;
	struct netdevs netdevs;
	struct ibports ibports;
	struct pressure pressure;
};

/* root: prefix before /proc and /sys, borrowed. What can't be opened is absent. */
void netwatch_open(struct netwatch *watch, const char *root);
void netwatch_close(struct netwatch *watch);

/*
 * Looks at whatever is due and appends it to the sidecars of workers[cnt]; to be
 * called every 10 ms. Returns 0 or -ENOMEM. Closed: does nothing.
 */
_must_check_ int netwatch_look(struct netwatch *watch, const struct netwatch_worker *workers,
			       size_t cnt, int64_t (*clock)(void));

/*
 * The window behind `side` is over: adds what is known at its end, the names of
 * the cards, what went wrong at them since the watch was opened, and the scale of the TCP
 * samples. Returns 0 or -ENOMEM.
 */
_must_check_ int netwatch_finish(struct netwatch *watch, struct sidecar *side);
