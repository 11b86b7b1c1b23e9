/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds. Code that decides by time takes the time as an argument. */
#pragma once

#include "base/base.h"

#include <time.h>

static inline int64_t clock_now_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return 0;
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline int64_t clock_mono_ns(void)
{
	return clock_now_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_wall_ns(void)
{
	return clock_now_ns(CLOCK_REALTIME);
}
