/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a simulated job: their kinds, the affected workers, the time, and the size. The model
 * asks at each piece of work how much a fault adds; it never sets a symptom directly.
 * Source: PerfTracker sections 3, 6.1, 6.2; EROICA slides, case study.
 */
#pragma once

#include "model/rankset.h"
#include "simulate/fault_list.h"
#include "simulate/layout.h"

enum fault_kind {
#define X(id, name, cause, also, functions, help) FAULT_##id,
	FAULT_LIST(X)
#undef X
		FAULT_KIND_CNT
};

struct fault_text {
	const char *name, *cause;
	const char *also, *functions; /* words separated by commas */
	const char *help;
};

const struct fault_text *fault_text(enum fault_kind kind);

enum fault_who {
	WHO_ALL,
	WHO_WORKERS, /* this number of workers */
	WHO_SHARE,   /* this share of the workers */
	WHO_HOSTS,   /* all workers of this number of hosts */
	WHO_RACKS,   /* this share of the hosts, concentrated in few racks */
	WHO_RAIL,    /* the two workers at each of this number of bonded pairs of NICs */
};

enum fault_when {
	WHEN_ALWAYS,
	WHEN_BY_HOST, /* each host in a share of the iterations */
	WHEN_RANDOM,  /* each worker in a share of the iterations */
	WHEN_TURNS,   /* one of the affected workers per iteration, in turn */
	WHEN_PERIOD,  /* half of each period of this many ms */
};

const char *fault_when_name(enum fault_when when);

/* One fault of a scenario. */
struct fault_plan {
	enum fault_kind kind;
	enum fault_who who;
	double who_amount;
	enum fault_when when;
	double when_amount;
	double size;
};

/* A fault of a job: the plan and the affected workers. */
struct fault {
	struct fault_plan plan;
	double size;	/* the plan's, times the strength */
	uint32_t onset; /* first iteration with it */
	uint32_t salt;	/* its own random numbers */
	bool off;	/* simulated as if repaired */
	uint8_t *hits;	/* by rank */
	int *ranks;	/* the affected ranks, ascending */
	size_t rank_cnt;
};

/*
 * Selects the workers affected by a plan. Faults of the input affect all workers that share it;
 * those of hosts and links affect their workers. Returns 0 or -ENOMEM; fault_done() is fine after
 * either.
 */
_must_check_ int fault_init(struct fault *fault, const struct fault_plan *plan,
			    const struct layout *layout, uint64_t seed, uint32_t salt);
void fault_done(struct fault *fault);

/* The place in the job at which a fault may act. */
struct fault_place {
	const struct layout *layout;
	uint64_t seed;
	int rank;
	uint32_t iteration;
	int64_t time_ns; /* since the start of the job */
};

/*
 * Appends to ret the ranks that the fault affected in any iteration below iteration_cnt, ascending.
 * Returns 0 or -ENOMEM.
 */
_must_check_ int fault_ranks_hit(const struct fault *fault, const struct layout *layout,
				 uint64_t seed, uint32_t iteration_cnt, rankset_vec *ret);

/*
 * The sum of the sizes of all faults of a kind that act at place. IMBALANCE contributes a random
 * part, the same for all workers with the same input.
 */
double fault_size(const struct fault *faults, size_t cnt, enum fault_kind kind,
		  const struct fault_place *place);
