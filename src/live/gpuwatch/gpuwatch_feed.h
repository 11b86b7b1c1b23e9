/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of a window's samples at kHz: the agent's own sampler, started as a process for
 * the window, or the folder that another container of the host writes to. Both write pieces
 * (host/counters/gpushare.h). No call waits for the other side.
 */
#pragma once

#include "host/counters/gpushare.h"

#include <sys/types.h>

struct gpufeed_setup {
	const char *program; /* this executable; NULL: no own sampler */
	const char *dir;     /* folder of the pieces, made and removed; or the shared one */
	bool shared;	     /* another container's sampler writes there */
};

struct gpufeed {
	struct gpufeed_setup setup;
	struct gpushare_reader reader;
	bool open;
	pid_t pid;   /* of the sampler; 0: none */
	int stop_fd; /* closing it ends the sampler */
	int64_t requested_ns;
	uint32_t started, crashed, hung; /* samplers */
	bool stuck;			 /* a sampler could not be killed: no other is started */
};

/* Strings are borrowed. */
void gpufeed_init(const struct gpufeed_setup *setup, struct gpufeed *ret);

/*
 * Begins a window. Returns 0, or -errno: there will be no samples; -EBUSY: the sampler of the
 * previous window has not ended yet, try again.
 */
_must_check_ int gpufeed_begin(struct gpufeed *feed);

/* Reads new pieces like gpushare_read(); call it often. Returns 0 while no window is open. */
int gpufeed_read(struct gpufeed *feed, void (*take)(void *arg, const struct sidecar *), void *arg);

/* Ends the window. Does not wait: gpufeed_mind() reaps the sampler. */
void gpufeed_end(struct gpufeed *feed);

/* Reaps a sampler that has ended and counts how; call it regularly. */
void gpufeed_mind(struct gpufeed *feed);
