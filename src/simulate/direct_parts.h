/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by direct.c (functions), direct_path.c (the critical path) and direct_leads.c (collectives
 * and their leads), which make a fingerprint. Private to these files.
 */
#pragma once

#include "simulate/player.h"

/*
 * Measurements of one function. A unit is a place, or a kernel; kernels are numbered after places.
 */
struct unit {
	int64_t share_ns, critical_ns, thread_ns, total_ns;
	uint64_t executions;
	double weight_ns, mean_ns, std_ns; /* of mu and sigma */
	double elements, bytes;		   /* sums */
	uint8_t resource;
	uint32_t function; /* in the fingerprint; the caller's if it is folded */
};

struct segment {
	int64_t start_ns, end_ns;
	uint32_t unit;
};

/* The last collective of a kind of group. */
struct group_state {
	int64_t start_ns, end_ns, launch_ns;
};

struct maker {
	const struct simulation *sim;
	struct record record;
	int rank;
	struct fingerprint *fp;
	int64_t start_ns, end_ns; /* the window */
	struct unit *units;
	uint32_t unit_cnt;
	VEC(struct segment) path;      /* the critical path */
	VEC(struct segment) leads;     /* the thread, by unit */
	VEC(const struct span *) comm; /* by start */
	VEC(struct fp_share) shares;
	int64_t *lead_ns;	 /* by function */
	VEC(uint32_t) lead_used; /* functions with a non-zero lead_ns */
	struct group_state groups[GROUP_KIND_CNT];
};

/* Functions by number: places, then kernels. */
uint32_t direct_kernel_unit(const struct maker *m, uint8_t kernel);
uint8_t direct_unit_class(const struct maker *m, uint32_t unit);

/* First of line[cnt] that ends after time_ns. */
size_t direct_first_after(const struct segment *line, size_t cnt, int64_t time_ns);

/* Fills path and comm, the units' shares and the classes' time. Returns 0 or -ENOMEM. */
_must_check_ int direct_find_path(struct maker *m);

/* Fills collectives and shares, once functions are listed. Returns 0 or -ENOMEM. */
_must_check_ int direct_add_collectives(struct maker *m);
