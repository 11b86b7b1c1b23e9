/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hostd and hub say to each other over the bus. Fixed width, so that the
 * same bytes can cross a machine later; the subject tells the type.
 *
 *	pt.v1.state.HOST   struct wire_state    hostd: one worker, at most 10 times a second
 *	pt.v1.answer.HOST  struct wire_answer   hostd: how a worker met an order
 *	pt.v1.where.HOST   struct wire_where    hostd: where a worker stands, once one is blocked
 *	pt.v1.ask.HOST     struct wire_ask      hostd: a person wants a profile now
 *	pt.v1.order.JOB    struct wire_order    hub: profile all workers at one step
 *	pt.v1.profile.JOB  struct wire_profile  hub: whether one is under way, at every tick
 *	pt.v1.reply.JOB     struct wire_reply     hub: to one who asked, how a profile ended
 *	pt.v1.slices.JOB    struct wire_slices    hub: collectors off and on by turns
 *	pt.v1.slices-cost.HOST struct wire_slices_cost  hostd: what that showed on one worker
 *	pt.v1.cost.JOB     struct wire_overhead hub: what is known of our own cost
 *	pt.v1.report.JOB   struct wire_report   hub: what the latest report says
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"

#define WIRE_TEXT 512u

#define SUBJECT_STATE "pt.v1.state.local"
#define SUBJECT_ANSWER "pt.v1.answer.local"
#define SUBJECT_WHERE "pt.v1.where.local"
#define SUBJECT_ASK "pt.v1.ask.local"
#define SUBJECT_ORDER "pt.v1.order.local"
#define SUBJECT_PROFILE "pt.v1.profile.local"
#define SUBJECT_REPLY "pt.v1.reply.local"
#define SUBJECT_SLICES "pt.v1.slices.local"
#define SUBJECT_SLICES_COST "pt.v1.slices-cost.local"
#define SUBJECT_COST "pt.v1.cost.local"
#define SUBJECT_REPORT "pt.v1.report.local"

enum wire_phase {
	PHASE_LEARNING, /* the iteration sequence isn't known yet */
	PHASE_STEADY,
	PHASE_SLOW,
	PHASE_BLOCKED,
	PHASE_PROFILING, /* between the beginning of a window and its answer */
	PHASE_GONE,	 /* the process has ended or let go of the socket */
	PHASE_SILENT,	 /* its hook has switched itself off: the process may be well */
};

/* One worker. Times of CLOCK_MONOTONIC of its host. */
struct wire_state {
	uint32_t worker; /* id of the connection: a restarted rank is a new worker */
	uint32_t pid, tid;
	int32_t rank; /* -1: unknown */
	int32_t world_size;
	uint32_t phase;			   /* enum wire_phase */
	uint32_t stride;		   /* iteration marks of one iteration; 0 unknown */
	uint32_t last_mark;		   /* enum mark; 0 none yet */
	uint64_t step;			   /* iteration marks counted by the worker */
	uint64_t iterations;		   /* seen by the detector */
	int64_t iteration_ns, baseline_ns; /* mean of the recent; of the shortest; 0 unknown */
	int64_t step_ns;		   /* recent time between iteration marks; 0 unknown */
	int64_t last_ns;		   /* time of the last mark */
	uint64_t lost;			   /* marks lost on the way */
	char process;			   /* state of the process as /proc says; 'X': gone */
	char bye;			   /* 1: the interpreter said that it ends */
	char silent;			   /* 1: its hook has switched itself off */
	char reserved[5];
	char host[64];
};

/* Whether marks are to be expected of a worker. */
static inline bool wire_is_watched(const struct wire_state *state)
{
	return state->phase != PHASE_GONE && state->phase != PHASE_SILENT;
}

struct wire_order {
	uint64_t id, start_step, window_ns, steps;
	uint32_t stride, reserved;
};

enum wire_progress {
	PROFILE_NONE,
	PROFILE_ORDERED, /* no worker has said that it began */
	PROFILE_BEGUN,	 /* the job is slowed by us, until the report is out */
};

/* A state, not an event: whoever misses one has the next. */
struct wire_profile {
	uint64_t epoch;	   /* of this hub; another one counts anew */
	uint64_t sequence; /* grows with each of an epoch */
	uint32_t progress; /* enum wire_progress */
	uint32_t reserved;
};

enum wire_outcome {
	OUTCOME_BEGUN,
	OUTCOME_MISSED,	    /* text: why */
	OUTCOME_EXPORTED,   /* the trace is complete, its fingerprint is being made */
	OUTCOME_SUMMARIZED, /* text: path of the fingerprint */
};

struct wire_answer {
	uint32_t worker, outcome;
	uint64_t order_id, step;
	int64_t window_ns, stall_ns;
	char text[WIRE_TEXT];
};

#define WIRE_GROUPS 16u

/* The latest collective that a worker entered of a group. Texts end with NUL. */
struct wire_entered {
	int64_t time_ns, number; /* as torch or NCCL counts them in the group */
	uint32_t size;		 /* of the group; 0 unknown */
	uint32_t by_name;	 /* 1: each name is counted by itself, as NCCL does */
	char group[36], name[24];
};

/* See live/hostd/blocked_stacks.h. What is not known is empty. */
struct wire_where {
	uint32_t worker, entered_cnt;
	uint64_t step; /* as in wire_state */
	struct wire_entered entered[WIRE_GROUPS];
	char stack[WIRE_TEXT]; /* functions, the innermost last; '\n' between them */
	char leaf[64];	       /* what the innermost waits in: a system call, the GIL */
};

struct wire_ask {
	uint64_t client;    /* hostd's id of who asked, returned in wire_reply */
	uint64_t window_ns; /* 0: as configured */
};

struct wire_reply {
	uint64_t client;
	int32_t status; /* 0 or errno */
	uint32_t reserved;
	char text[WIRE_TEXT]; /* path of the report, or why there is none */
};

/* The self-audit: see format/block.h. slice_cnt 0: it is over, or taken back. */
struct wire_slices {
	uint64_t id, start_step, slice_steps, slice_cnt;
	uint32_t kind, stride;
};

struct wire_slices_cost {
	uint32_t worker, pair_cnt; /* 0 pairs: too little was seen */
	uint64_t id;
	double frac, error_frac; /* of an iteration's time; one standard error */
};

/* pair_cnt 0: not measured yet. */
struct wire_cost {
	double frac, error_frac;
	uint32_t pair_cnt, reserved;
};

struct wire_overhead {
	struct wire_cost always, window;
	uint32_t backoff, reserved; /* bits of enum backoff */
};

#define WIRE_FINDING_RANKS 16u
#define WIRE_REPORT_FINDINGS 16u

struct wire_finding {
	char cause[40];	 /* as in the report; ends with NUL */
	int64_t gain_ns; /* per iteration */
	uint32_t rank_cnt, reserved;
	int32_t ranks[WIRE_FINDING_RANKS]; /* the first of them */
};

/* Findings by gain, the largest first; there may be more than are listed. */
struct wire_report {
	uint32_t verdict; /* enum verdict */
	uint32_t finding_cnt;
	struct wire_finding findings[WIRE_REPORT_FINDINGS];
};
