/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the use of GPUs shows against all workers alike (by_usage.h), and what stalls show (by_stalls.h);
 * part of an accusation.
 */
#pragma once

#include <stddef.h>

enum usage_sign {
	USAGE_NONE,
	USAGE_COPIES,
	USAGE_ALLOCATIONS,
	USAGE_PINNING,
	USAGE_LAUNCHES, /* that wait for their kernels */
	USAGE_SYNCS,
	USAGE_STARVED,	/* the host launches too little */
	USAGE_STALLS,	/* the host stalls at random places */
	USAGE_SWITCHES, /* it does so as long as one waits for the interpreter's lock */
};

struct use_sign {
	enum usage_sign sign;
	const char *label;	  /* the name of the finding */
	const char *const *lines; /* its evidence */
	size_t line_cnt;
	double usual_ns; /* per iteration, what a healthy job has at most */
};
