/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hostd and the hub of a fleet share: a loop with the site's bus, a tick, and signals. SIGTERM
 * and SIGINT ask the service to end.
 */
#pragma once

#include "base/err.h"
#include "live/link/bus.h"

#include <uv.h>

#define SERVICE_TICK_MS 100
#define SERVICE_VERSION 1u	/* of Presence and HubBeat (cluster/cluster.proto) */
#define SERVICE_JOBS_MAX 1024u	/* of one host */
#define SERVICE_SUBJECT "fleet" /* in place of a job's key: keys have slashes */

struct service_calls {
	void (*tick)(void *arg, int64_t now_ns);
	void (*children_ended)(void *arg); /* at least one has */
	void (*asked_to_end)(void *arg);
};

struct service {
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t tick;
	uv_signal_t signals[3];
	struct bus *bus;
	const struct service_calls *calls;
	void *arg;
	int64_t offline_ns; /* since then; 0: connected */
	bool told_offline, stopping;
};

/* login is borrowed until service_close(). Returns 0, or -errno with a line in err. */
_must_check_ int service_open(struct service *service, const struct bus_login *login,
			      const struct service_calls *calls, void *arg, struct err *err);

/* Runs until service_stop(), which other handles of the loop must be closed before. */
void service_run(struct service *service);
void service_stop(struct service *service);

/* Returns how many messages found no room on the way. */
uint64_t service_close(struct service *service);

/* Whether the broker answers. */
bool service_is_online(const struct service *service);
