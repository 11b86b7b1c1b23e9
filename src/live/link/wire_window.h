/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about one window of a job, over the bus of a process: its order, and where several hosts
 * are one job, results of a window that an earlier hub ordered, and which results need not be kept.
 *
 *   pt.v1.order.JOB     struct wire_order     hub: profile all workers at one step
 *   pt.v1.result.JOB    struct wire_result    leader: of a window of an earlier hub
 *   pt.v1.committed.JOB struct wire_committed hub: the results of this window are in the store
 *   pt.v1.spools.JOB    struct wire_spools    leader: what hosts keep
 */
#pragma once

#include "base/base.h"

#define SUBJECT_RESULT "pt.v1.result.local"
#define SUBJECT_COMMITTED "pt.v1.committed.local"
#define SUBJECT_SPOOLS "pt.v1.spools.local"

#define WIRE_KIND 16u
#define WIRE_WHY 512u

/* Why a window was ordered, so that a hub that is started again can report it. */
struct wire_window {
	char kind[WIRE_KIND]; /* of struct report_trigger */
	double baseline_ms, now_ms;
	int64_t since_step, step;
	uint32_t workers; /* that were asked, or are missing */
	uint32_t reserved;
};

struct wire_order {
	uint64_t id, start_step, window_ns, steps;
	uint32_t stride, reserved;
	struct wire_window window;
};

/* How one worker met an order of the hub that had this epoch. */
struct wire_result {
	uint64_t epoch, order_id;
	struct wire_window window;
	int32_t rank;
	uint32_t outcome;    /* OUTCOME_SUMMARIZED or OUTCOME_MISSED */
	char text[WIRE_WHY]; /* as of struct wire_answer */
};

struct wire_committed {
	uint64_t epoch, order_id;
};

struct wire_spools {
	uint64_t waiting, bytes; /* results that are not committed, on all hosts */
	uint64_t dropped;	 /* for want of room, since the daemons of the hosts began */
};
