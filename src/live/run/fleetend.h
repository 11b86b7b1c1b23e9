/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a job of a fleet is over. Its command is not a child of the daemon, so the daemon of a host
 * sees the end in its workers: none has been there for a while, a short one if all ended well, since
 * launchers start failed ranks again. The leader sees it in the hosts: all have said so, or none has
 * been heard for long.
 */
#pragma once

#include "base/vec.h"
#include "live/cluster/cluster.h"

#define FLEETEND_WELL_NS (5 * NSEC_PER_SEC)	/* after workers that ended well */
#define FLEETEND_ALL_NS (3 * NSEC_PER_SEC)	/* after the last host: another may come */
#define FLEETEND_SILENT_NS (600 * NSEC_PER_SEC) /* after the last message of any host */

struct fleetend {
	int64_t linger_ns;
	int64_t alone_ns; /* without workers, or with no host that runs, since then; 0: not so */
	VEC(struct fleetend_rank {
		int32_t rank;
		int status; /* as of waitpid(), of the latest process */
	})
	ranks;
};

/* linger_ns: after workers that failed, or before the first has come. */
void fleetend_init(struct fleetend *end, int64_t linger_ns);
void fleetend_done(struct fleetend *end);

/* bus_handler: struct wire_state, of which the ends count. */
void fleetend_take_state(void *arg, const struct bus_message *message);

/* The exit status of the job as a shell has it: 0 unless the latest process of a rank failed. */
int fleetend_status(const struct fleetend *end);

/* workers: that are there. Returns whether the job is over on this host. */
bool fleetend_of_host(struct fleetend *end, size_t workers, int64_t now_ns);

/* Returns whether the whole job is over, or its hosts are lost. */
bool fleetend_of_hosts(struct fleetend *end, const struct leader_ends *hosts, int64_t now_ns);
