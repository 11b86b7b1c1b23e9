/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PM sampling of one NVIDIA GPU for the time of a window: counters at 10 kHz, at 1 kHz from the
 * first overflow of the device's buffer on, averaged as setup requests. The owner drains it every
 * 10 ms and falls back to gpuhw's fast samples when it ends.
 *
 * Counters are the device's, over all processes on it; one process at a time may hold them, with
 * CAP_SYS_ADMIN unless the driver permits all users. The calls may block like a driver's, and a
 * vendor's library may crash: they belong in a process of their own (gpucounters.h), and all into
 * the same thread. No card has shown it yet.
 */
#pragma once

#include "host/counters/gpucounters.h"
#include "host/counters/pmsampling.h"

#define PM_FAST_HZ 10000u
#define PM_SLOW_HZ 1000u

struct pm_counts {
	uint64_t samples;    /* taken */
	uint64_t buckets;    /* handed on */
	uint64_t overflows;  /* of the device's buffer: samples were lost, unknown how many */
	uint64_t failed;     /* samples that the library lost */
	uint64_t unfinished; /* drains that ended with records left */
};

struct pm_session;

/*
 * Starts sampling at PM_FAST_HZ. library must stay open. device: as CUDA counts. Returns 0, or with the reason in
 * why: -ENODEV no driver or device, -EPERM, -EBUSY another tool has the counters, -ENOTSUP
 * not this chip, -ENOMEM, -EIO.
 */
_must_check_ int pm_session_start(const struct pm_library *library, uint32_t device,
				  const struct gpucounters_setup *setup, struct pm_session **ret,
				  char why[static GPUHW_WHY]);

/*
 * Takes what the device has. An overflow at PM_FAST_HZ
 * restarts at PM_SLOW_HZ. Returns 0; else sampling has ended, with the reason in why:
 * -EOVERFLOW at PM_SLOW_HZ, too; otherwise as pm_session_start().
 */
_must_check_ int pm_session_drain(struct pm_session *session, char why[static GPUHW_WHY]);

/* Samples a second that are asked for; 0: it has ended. */
uint32_t pm_session_hz(const struct pm_session *session);

/* Stops, takes the rest, and frees. NULL is fine; ret too. Returns NULL. */
struct pm_session *pm_session_stop(struct pm_session *session, struct pm_counts *ret);
