/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong in a simulated job: the kinds of faults, whom one hits, when,
 * and how hard. The model asks at each piece of work how much a fault adds; it
 * never writes down a symptom.
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
	const char *also, *functions; /* words between commas */
	const char *help;
};

const struct fault_text *fault_text(enum fault_kind kind);

enum fault_who {
	WHO_ALL,
	WHO_WORKERS, /* so many */
	WHO_SHARE,   /* such a share of the workers */
	WHO_HOSTS,   /* all workers of so many hosts */
	WHO_RACKS,   /* a share of the hosts, all in few racks */
	WHO_RAIL,    /* the two workers at so many bonded pairs of NICs */
};

enum fault_when {
	WHEN_ALWAYS,
	WHEN_BY_HOST, /* each host in a share of the iterations */
	WHEN_RANDOM,  /* each worker in a share of the iterations */
	WHEN_TURNS,   /* one of the hit workers an iteration, by turns */
	WHEN_PERIOD,  /* half of each period of so many ms */
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

/* A fault of a job: the plan and whom it hits. */
struct fault {
	struct fault_plan plan;
	double size;	/* the plan's, times the strength */
	uint32_t onset; /* first iteration with it */
	uint32_t salt;	/* its own random numbers */
	bool off;	/* as if it were repaired */
	uint8_t *hits;	/* by rank */
	int *ranks;	/* those hit, ascending */
	size_t rank_cnt;
};

/*
 * Chooses whom a plan hits. Faults of the input hit all workers that share it, those of
 * hosts and links their workers. Returns 0 or -ENOMEM; fault_done() is fine after either.
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
 * Appends to ret the ranks that the fault hit in some iteration below iteration_cnt,
 * ascending. Returns 0 or -ENOMEM.
 */
_must_check_ int fault_ranks_hit(const struct fault *fault, const struct layout *layout,
				 uint64_t seed, uint32_t iteration_cnt, rankset_vec *ret);

/*
 * How much faults of a kind add there: the sum of the sizes of those that act.
 * Of IMBALANCE a random part, the same for all workers with the same input.
 */
double fault_size(const struct fault *faults, size_t cnt, enum fault_kind kind,
		  const struct fault_place *place);
