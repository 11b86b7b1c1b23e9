/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a window's samples at kHz come from: a sampler of our own, started as a process for
 * the window, or the folder that another container of the host writes to. Both tell pieces
 * (collect/host/gpushare.h). No call waits for the other side.
 */
#pragma once

#include "host/counters/gpushare.h"

#include <sys/types.h>

struct gpufeed_setup {
	const char *program; /* our own executable; NULL: no sampler of our own */
	const char *dir;     /* for its pieces; made and removed; or the shared folder */
	bool shared;	     /* others write there */
};

struct gpufeed {
	struct gpufeed_setup setup;
	struct gpushare_reader reader;
	bool open;
	pid_t pid;   /* of the sampler; 0: none */
	int stop_fd; /* closed: it is to end */
	int64_t requested_ns;
	uint32_t started, crashed, hung; /* samplers */
	bool stuck; /* one could not be killed: there is no other, which would only join it */
};

/* Strings are borrowed. */
void gpufeed_init(const struct gpufeed_setup *setup, struct gpufeed *ret);

/*
 * A window opens. Returns 0, or -errno: nothing will come; -EBUSY: the sampler of the window
 * before has not ended yet, to be tried again.
 */
_must_check_ int gpufeed_begin(struct gpufeed *feed);

/* To be called often: the new pieces, as gpushare_read(). 0 while no window is open. */
int gpufeed_read(struct gpufeed *feed, void (*take)(void *arg, const struct sidecar *), void *arg);

/* The window ends. Doesn't wait: gpufeed_mind() sees how the sampler ended. */
void gpufeed_end(struct gpufeed *feed);

/* To be called now and then: whether a sampler has ended, and how. */
void gpufeed_mind(struct gpufeed *feed);
