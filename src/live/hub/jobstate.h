/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job in one line, for a terminal, `perftracker status` and the log: its state and the
 * iteration time of each rank.
 *
 *	state=watching workers=4 step=120 iteration_ms=71.2,71.3,71.2,98.0
 */
#pragma once

#include "base/str.h"
#include "live/link/wire.h"
#include "model/report.h"

/* Counts the workers that may still send marks. states[cnt]: all that ever connected. */
size_t jobstate_living(const struct wire_state *states, size_t cnt);

/* The greatest step of the workers that may still send marks. */
uint64_t jobstate_step(const struct wire_state *states, size_t cnt);

/* The name of the job's state; constant text. profiling: an order is under way. */
const char *jobstate_word(const struct wire_state *states, size_t cnt, bool profiling);

/*
 * Appends the line: each rank's iteration time if there are few ranks, else the least and the
 * greatest.
 */
void jobstate_append(const struct wire_state *states, size_t cnt, bool profiling, struct str *out);

/* The pace of the job: of its slowest worker, of those that are slow if there are some. */
struct jobstate_pace {
	uint64_t slow_since_step; /* the first slow step of any worker; 0: none is slow */
	int64_t now_ns, baseline_ns, best_ns; /* of an iteration; 0: unknown */
};

/* Workers that ended count with their last state. */
void jobstate_pace(const struct wire_state *states, size_t cnt, struct jobstate_pace *ret);

/* The last iterations to the best ones; 0: unknown. */
static inline double jobstate_factor(const struct jobstate_pace *pace)
{
	return pace->baseline_ns > 0 ? (double)pace->now_ns / (double)pace->baseline_ns : 0;
}

/*
 * The iteration that more than half of the workers have learned, else of one of them: of those
 * that may still send marks, else of all.
 */
void jobstate_loop(const struct wire_state *states, size_t cnt, struct report_loop *ret);

/* Lists the workers' distinct hosts in the report; none when there is no memory. */
void jobstate_hosts(const struct wire_state *states, size_t cnt, struct report *report);

/* Fills the report's counts of workers and iterations, and its iteration time. */
void jobstate_fill_report(const struct wire_state *states, size_t cnt, struct report *report);

/*
 * Where several workers have ranks that the job did not give them: says so as the source of the
 * report's ranks, and notes which process each is. Once per report; nothing without memory.
 */
void jobstate_note_ranks(const struct wire_state *states, size_t cnt, struct report *report);

/*
 * Ranks with several processes, as after an elastic restart, count once; unknown ones count each.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int jobstate_count_ranks(const struct wire_state *states, size_t cnt, size_t *ret);
