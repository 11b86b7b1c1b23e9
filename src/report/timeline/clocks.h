/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One clock for all ranks. CLOCK_MONOTONIC of two hosts differs by the times
 * since they started, their wall clocks by what NTP leaves. But a collective
 * ends on all its members together: the median difference of the ends of common
 * collectives is the offset between two clocks, and their deviation how sure it is.
 *
 * Collectives are matched by group and sequence number where these are known.
 * Else by vote: the end of each is compared with the ends of all of the same
 * name, and the difference that occurs most often wins. A job that repeats itself
 * to the millisecond has several such differences, one for each iteration; the one
 * nearest to what the wall clocks say is taken.
 * Source: ARCHITECTURE.md, "Decisions worth knowing" (a collective ends on all together).
 */
#pragma once

#include "base/base.h"
#include "collective/instances.h"

struct align_rank {
	struct instance_event *events; /* in any order */
	size_t cnt;
	int64_t mono_ns, wall_ns; /* one moment on both clocks */
	const char *host;	  /* "": unknown */
};

enum align_source {
	ALIGN_REFERENCE,   /* its clock is the one that all others are moved to */
	ALIGN_SAME_CLOCK,  /* the host of a rank that was aligned */
	ALIGN_COLLECTIVES, /* the ends of collectives */
	ALIGN_WALL_CLOCK,  /* fewer than three collectives in common with any other */
};

struct align_clock {
	enum align_source source;
	int64_t offset_ns; /* to add to the rank's times; the reference's are unchanged */
	int64_t spread_ns; /* median absolute deviation of the differences */
	size_t match_cnt;  /* collectives that were compared */
};

#define ALIGN_MATCH_MIN 3u

/*
 * Fills ret[cnt]. The first rank is the reference; a rank that has nothing in
 * common with it is aligned through others. Times are within +-2^61 ns. Returns 0
 * or -ENOMEM. O(events * log(events)) for each rank, and once for each pair of
 * ranks that does not share collectives with the first.
 */
_must_check_ int align_clocks(const struct align_rank *ranks, size_t cnt, struct align_clock *ret);

/* The same by the wall clocks alone. */
void align_by_wall(const struct align_rank *ranks, size_t cnt, struct align_clock *ret);

/* instances_find() of events on these clocks. */
_must_check_ int align_match(const struct align_rank *ranks, const struct align_clock *clocks,
			     size_t cnt, uint32_t *ret_cnt);

/* "collectives", "same clock", ... for reports. */
const char *align_source_name(enum align_source source);
