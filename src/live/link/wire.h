/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between hostd and hub over the bus of a process; the subject implies the type. wire_*.h
 * have other types, cluster.proto those between hosts.
 *
 *   pt.v1.state.HOST       struct wire_state       hostd: one worker, at most 10 times a second
 *   pt.v1.answer.HOST      struct wire_answer      hostd: how a worker met an order
 *   pt.v1.where.HOST       struct wire_where       hostd: a worker's stack, collectives, in a hang
 *   pt.v1.ask.HOST         struct wire_ask         hostd: a client's request
 *   pt.v1.order.JOB        struct wire_order       hub: profile all workers at one step
 *   pt.v1.profile.JOB      struct wire_profile     hub: whether one is under way, at every tick
 *   pt.v1.accept.JOB       struct wire_accept      hub: a person accepts the slow pace
 *   pt.v1.reply.JOB        struct wire_reply       hub: answer to a client's request
 *   pt.v1.slices.JOB       struct wire_slices      hub: collectors off and on by turns
 *   pt.v1.slices-cost.HOST struct wire_slices_cost hostd: overhead that a worker's slices show
 *   pt.v1.cost.JOB         struct wire_overhead    hub: measured overhead of the collectors
 *   pt.v1.own.HOST         struct own_cpu          hostd: CPU time of PerfTracker's own threads
 *   pt.v1.report.JOB       struct wire_report      hub: summary of the latest report
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"
#include "live/link/wire_window.h"

#define WIRE_TEXT 512u
#define WIRE_RAISED 40u
#define WIRE_OWN_WORKERS (1u << 17) /* greater ids: workers of other hosts, from a leader */

#define SUBJECT_STATE "pt.v1.state.local"
#define SUBJECT_ANSWER "pt.v1.answer.local"
#define SUBJECT_WHERE "pt.v1.where.local"
#define SUBJECT_ASK "pt.v1.ask.local"
#define SUBJECT_ORDER "pt.v1.order.local"
#define SUBJECT_PROFILE "pt.v1.profile.local"
#define SUBJECT_ACCEPT "pt.v1.accept.local"
#define SUBJECT_REPLY "pt.v1.reply.local"
#define SUBJECT_SLICES "pt.v1.slices.local"
#define SUBJECT_SLICES_COST "pt.v1.slices-cost.local"
#define SUBJECT_COST "pt.v1.cost.local"
#define SUBJECT_OWN "pt.v1.own.local"
#define SUBJECT_REPORT "pt.v1.report.local"
enum wire_phase {
	PHASE_LEARNING, /* the iteration sequence isn't known yet */
	PHASE_STEADY,
	PHASE_SLOW,
	PHASE_BLOCKED,
	PHASE_PROFILING, /* between the beginning of a window and its answer */
	PHASE_GONE,	 /* the process has ended or closed the socket; how: a later state */
	PHASE_SILENT,	 /* its hook has disabled itself; the process may be healthy */
};

/* One worker. Times of CLOCK_MONOTONIC of its host. */
struct wire_state {
	uint32_t worker; /* id of the connection: a restarted rank is a new worker */
	uint32_t pid, tid;
	int32_t rank; /* -1: unknown */
	int32_t world_size;
	uint32_t phase;	 /* enum wire_phase */
	uint32_t stride; /* iteration marks of one iteration, or one cycle of phases; 0 unknown */
	uint32_t cycle;	 /* iterations in stride: those of a cycle of phases, else 1; 0 unknown */
	uint32_t last_mark;		   /* enum mark; 0 none yet */
	uint64_t step;			   /* iteration marks counted by the worker */
	uint64_t iterations;		   /* seen by the detector */
	int64_t iteration_ns, baseline_ns; /* mean of the recent ones; baseline; 0 unknown */
	int64_t best_ns;		   /* least baseline so far; 0 unknown */
	uint64_t slow_since_step;	   /* in any phase; 0: not slow, or no longer */
	int64_t step_ns;		   /* recent time between iteration marks; 0 unknown */
	int64_t last_ns;		   /* time of the last mark */
	uint64_t lost;			   /* marks lost on the way */
	char process;			   /* state of the process as /proc says; 'X': gone */
	char bye;			   /* 1: MSG_BYE came: the interpreter ends */
	char silent;			   /* 1: its hook has disabled itself */
	char exit_known;		   /* 1: exit_status is valid */
	char numbered;		  /* 1: the job did not say its rank: hostd counted workers */
	int32_t exit_status;	  /* how the process ended, as of waitpid() */
	uint32_t arrival;	  /* set by the hub: 1, 2, ... as workers connect to it */
	uint32_t learned_cnt;	  /* how often another iteration was learned */
	uint64_t learned_step;	  /* when the iteration was learned */
	uint32_t kept;		  /* PHASE_SILENT: results that wait in the spool of its host */
	char sequence[96];	  /* the iteration for people; "" while learning */
	char raised[WIRE_RAISED]; /* class of the exception that ended its program; "": none */
	char host[64];
};

/* Whether the worker is expected to send marks. */
static inline bool wire_is_watched(const struct wire_state *state)
{
	return state->phase != PHASE_GONE && state->phase != PHASE_SILENT;
}

enum wire_progress {
	PROFILE_NONE,
	PROFILE_ORDERED, /* no worker has reported its begin */
	PROFILE_BEGUN,	 /* the job is slowed: windows are open, or traces are being saved */
};

/* A state, not an event: it is repeated, so a lost one does no harm. */
struct wire_profile {
	uint64_t epoch;	   /* of this hub process; a new one starts a new sequence */
	uint64_t sequence; /* grows with each of an epoch */
	uint32_t progress; /* enum wire_progress */
	uint32_t restarts; /* of the job: ranks failed and were started again */
	uint64_t canceled; /* id of the latest order if that is canceled; 0: it is not */
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
