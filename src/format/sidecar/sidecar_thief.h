/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a sidecar file about a process that used the worker's CPUs (sidecar_file.h). */
#pragma once

#include <stdint.h>

enum sidecar_thief_flag {
	SIDECAR_THIEF_IN_JOB = 1, /* a descendant of the job's command, but no worker */
};

/*
 * A process, or several with one command line, that used CPU time on CPUs of the worker. Texts are
 * NUL-terminated.
 */
struct sidecar_thief {
	uint32_t pid;	     /* pid of the busiest */
	uint32_t flags;	     /* enum sidecar_thief_flag */
	double cpu_frac;     /* CPU time of all / window, 1.0 is one CPU */
	double overlap_frac; /* share of samples at which they ran on the training thread's CPU */
	char comm[16];
	uint32_t process_cnt;
	char command[148]; /* command line, control characters replaced by '?' */
	char cpus[64];	   /* "0-3,7": CPUs it may run on; "" when unknown */
};
_Static_assert(sizeof(struct sidecar_thief) == 256, "on disk");
