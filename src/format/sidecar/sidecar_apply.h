/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of sidecar_apply(). */
#pragma once

#include "format/sidecar/sidecar.h"

/* Maps a moment to the trace's clock; false when the sum leaves the range. */
bool sidecar_to_wall(const struct sidecar_header *header, int64_t mono_ns, int64_t *ret);

/* Adds an empty track with room for cnt samples. NULL: out of memory. */
struct track *sidecar_add_track(struct trace *trace, enum resource resource, int64_t tid,
				size_t cnt);

/*
 * used: CPU time or bytes of the interval; room: the most it can hold. The kernel advances counters
 * in steps, so one interval may exceed its room and the next fall short: the excess is carried
 * over.
 */
void sidecar_push_sample(struct track *track, int64_t time_ns, double used, double room,
			 double *carry);

static inline double sidecar_grown(uint64_t before, uint64_t after)
{
	return after > before ? (double)(after - before) : 0;
}

/* Adds NIC_TX or SOCKET_TX, whichever limits collectives; neither without traffic. 0, -ENOMEM. */
_must_check_ int sidecar_apply_network(const struct sidecar *sidecar, struct trace *trace);
