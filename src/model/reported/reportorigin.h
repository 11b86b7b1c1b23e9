/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who, when and where of a report: the command of the job, the run, the hosts, the time and the
 * steps of the window. Reports of files have what the files say, so that the same input gives the
 * same bytes; only live reports have the time at which they were made.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_origin {
	const char *command;	  /* live: of the job, on one line; NULL: unknown */
	const char *run_id;	  /* live: the name of the run's folder; NULL: none */
	const char *run_dir;	  /* its path */
	const char *const *hosts; /* distinct, in the order of ranks */
	size_t host_cnt;
	int64_t begin_ns,
		end_ns;	 /* of the window, since 1970, median over the workers; 0: unknown */
	int64_t made_ns; /* live: since 1970; 0: unknown */
	bool steps_known;
	int64_t first_step, last_step; /* of the window, of all workers */
};
