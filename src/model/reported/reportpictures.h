/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pictures of a report show beyond its findings: one iteration of some ranks side by side, the
 * call stacks of one rank against its peers, and the pace of a live job. All bounded in size.
 */
#pragma once

#include "model/event_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between two collectives; the order of what ran in it is not known. */
struct report_stretch {
	double begin_ms, end_ms;
	double class_frac[CLASS_CNT]; /* of its critical path; what they leave is not known */
};

/* One collective, or some that are too close to be drawn apart. */
struct report_meeting {
	double begin_ms, end_ms;
	double wait_ms; /* for its last member; 0: none, or not known */
};

/* One rank in one iteration of the culprit, on the culprit's clock. */
struct report_lane {
	int rank;
	const char *role; /* "culprit", "waits most", "typical" */
	const struct report_stretch *stretches;
	size_t stretch_cnt;
	const struct report_meeting *meetings;
	size_t meeting_cnt;
};

struct report_lanes {
	const struct report_lane *lanes;
	size_t lane_cnt; /* 0: no picture */
	double length_ms;
	bool step_known;
	int64_t step;
	bool aligned; /* by collectives; false: every rank begins at 0 */
};

/* A function in its calling context. Parents come before their children. */
struct report_flame_node {
	const char *name;
	int parent; /* index of a node; -1: none */
	enum event_class class;
	double ms, peers_ms; /* critical time per iteration, with what it calls; peers: mean */
	const int
		*ranks; /* of the compared ones those on which it was seen, where that is not all */
	size_t rank_cnt; /* 0: all of them, or not known */
};

struct report_flame {
	const struct report_flame_node *nodes;
	size_t node_cnt; /* 0: no picture */
	int rank;
	bool culprit;
	bool sampled; /* ms: of a second of the window where iteration_ms is 1000 */
	size_t peer_cnt;
	const int *compared; /* this rank and its peers */
	size_t compared_cnt; /* 0: which ranks have a function is not known */
	double iteration_ms;
};

/* The pace of a live job over some steps: time of an iteration on its slowest rank. */
struct report_pace_point {
	uint64_t step; /* the first */
	double min_ms, mean_ms, max_ms;
};

/* What happened at a step, for a picture of a whole run. */
struct report_pace_mark {
	double step;
	const char *word; /* a constant: "order", "finding" */
	const char *text; /* from outside; "": none */
	bool bad;
};

struct report_pace {
	const struct report_pace_point *points;
	size_t point_cnt;
	double best_ms;			      /* of an iteration; 0: unknown */
	double baseline_ms;		      /* of a job that runs; 0: unknown */
	const struct report_pace_mark *marks; /* by step */
	size_t mark_cnt;
};
