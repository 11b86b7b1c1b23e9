/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a job. Private to this folder. */
#pragma once

#include "simulate/program.h"
#include "simulate/scenario.h"
#include "simulate/simulate.h"

#define TIME_UNKNOWN INT64_MIN

/* One collective: the arrival of the last member and, once all have arrived, its end. */
struct meeting {
	int64_t time_ns;
	uint32_t arrived;
};

/* All collectives of one kind of group, by (group, iteration, slot). */
struct meetings {
	struct meeting *of;
	int64_t *ready_ns; /* by (meeting, member); event level only, else NULL */
	float *slow;	   /* by (meeting, ring): the slowest link's time / a healthy one's */
	size_t slot_cnt;
	int size;     /* members of a group */
	int ring_cnt; /* see network_ring_cnt() */
};

/* One transfer between stages, by (receiver, iteration, slot). */
struct message {
	int64_t sent_ns, posted_ns; /* earliest start of the two kernels */
};

struct simulation {
	struct simulate_options options;
	char *name; /* of the scenario, as requested */
	struct scenario scenario;
	struct layout layout;
	struct fault faults[SCENARIO_FAULTS];
	size_t fault_cnt;
	place_list places;
	struct program *programs; /* by stage */
	struct meetings meetings[GROUP_KIND_CNT];
	struct message *messages; /* NULL without a pipeline */
	size_t message_cnt;	  /* per worker and iteration */
	int *missing, *late;	  /* ranks, ascending */
	size_t missing_cnt, late_cnt;
	uint32_t iteration_cnt;
	bool links_differ;   /* some fault slows links */
	double healthy_ns;   /* an iteration without faults; 0 while it is being measured */
	double iteration_ns; /* an iteration with faults */
};

/* Identifies one collective. */
struct meeting_id {
	enum group_kind kind;
	struct group group;
	uint32_t iteration;
	uint16_t slot;
};

static inline size_t meeting_index(const struct simulation *sim, const struct meeting_id *id)
{
	return ((size_t)id->group.index * sim->iteration_cnt + id->iteration) *
		       sim->meetings[id->kind].slot_cnt +
	       id->slot;
}

static inline size_t message_index(const struct simulation *sim, int rank, uint32_t iteration,
				   uint16_t slot)
{
	return ((size_t)rank * sim->iteration_cnt + iteration) * sim->message_cnt + slot;
}

/* The first iteration recorded by a worker. */
uint32_t simulation_first_iteration(const struct simulation *sim, int rank);

/*
 * Runs all workers against each other with the faults that are not off, and fills meetings and
 * messages. Returns 0 or -ENOMEM; *ret_iteration_ns: mean iteration.
 */
_must_check_ int simulation_meet(struct simulation *sim, double *ret_iteration_ns);
