/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check-up looks at a job that has not been found slow, so its window is the only evidence, and a
 * neighbor that computes just then looks like a fault. Its finding is published when another
 * window DOUBT_AGAIN_NS later accuses the same ranks for the same reason. Owns the report that waits.
 */
#pragma once

#include "model/report.h"

#define DOUBT_AGAIN_NS (5 * NSEC_PER_SEC)

/*
 * After this many windows that contradict one another the report is inconclusive; if all of them
 * accuse the same ranks, they agree on these, and the latest says why.
 */
#define DOUBT_WINDOW_CNT 3u

struct doubt {
	bool present;
	bool same;	      /* all of them accuse the same ranks first */
	unsigned window_cnt;  /* in a row, that accuse */
	struct report report; /* of the latest */
	uint64_t number;      /* of that report */
};

/*
 * A slowdown may be a moment in which the hosts computed for other programs: the report of its first
 * window waits for a second window if it names no cause, or only what such a moment shows too: want
 * of CPUs, and functions that are longer than in the job's own past. Where all functions grew alike
 * no place of the job is to blame: this is reported once it has lasted MOMENT_ALIKE_NS. What the
 * peers show does not wait, nor that a worker delivered nothing.
 */
#define MOMENT_ALIKE_NS (60 * NSEC_PER_SEC)

struct moment {
	bool seen;	    /* the slowdown had its first window */
	struct doubt first; /* the report that waits */
};

/*
 * Whether the report waits, of a job that has been slow for slow_ns. It then belongs to moment after
 * moment_keep().
 */
bool moment_waits(const struct moment *moment, const struct report *report, int64_t slow_ns);
void moment_keep(struct moment *moment, const struct report *report, uint64_t number);

/* Hands out the report that waits, since no second window can come. False: none waits. */
bool moment_take(struct moment *moment, struct report *ret, uint64_t *ret_number);

/* The slowdown is over, or the processes that showed it have ended. */
void moment_end(struct moment *moment);

/*
 * Takes the report of a check-up. Returns true if it waits for another window: it belongs to doubt
 * then. Else the caller publishes it; it is inconclusive now if the windows contradict one another.
 */
bool doubt_keeps(struct doubt *doubt, struct report *report, uint64_t number);

/*
 * At the end of the job: hands out the report that waits, as inconclusive, since no second window
 * confirmed it. False: none waits.
 */
bool doubt_take(struct doubt *doubt, struct report *ret, uint64_t *ret_number);

/* Frees the report that waits. */
void doubt_drop(struct doubt *doubt);
