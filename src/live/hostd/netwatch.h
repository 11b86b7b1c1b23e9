/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a host while its workers are in a window, beside those of threads and contenders:
 * TCP traffic of each worker, network cards and pressure (PSI). Each source has its own
 * interval and bounds its own cost.
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

/* root: prefix of /proc and /sys, borrowed. A source that cannot be opened is left out. */
void netwatch_open(struct netwatch *watch, const char *root);
void netwatch_close(struct netwatch *watch);

/*
 * Samples the sources that are due and appends the samples to the sidecars of workers[cnt];
 * call it every 10 ms. Returns 0 or -ENOMEM. Does nothing if watch is closed.
 */
_must_check_ int netwatch_look(struct netwatch *watch, const struct netwatch_worker *workers,
			       size_t cnt, int64_t (*clock)(void));

/*
 * The window of process pid is over: adds to its sidecar the names of the cards, their errors since
 * the watch was opened, the scale of the TCP samples, and to whom it sent how fast. Returns 0 or
 * -ENOMEM.
 */
_must_check_ int netwatch_finish(struct netwatch *watch, uint32_t pid, struct sidecar *side);
