/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What works on this machine and what doesn't, why, and what to do: one table of
 * checks, each of which looks at one thing, says what it found, what its lack costs
 * the product and what would mend it. Nothing is changed on the machine.
 *
 * What may hang or crash (a driver, a Python) runs in a child process with a limit.
 * Values of environment variables are shown for a list of names, masked (mask.h).
 * Source: of permissions, man perf_event_open, ptrace and capabilities, and NVIDIA's
 * "Permission issue with Performance Counters" (ERR_NVGPUCTRPERM); of conflicts, CUPTI's
 * user guide, which allows one subscriber in a process.
 */
#pragma once

#include "base/base.h"

/* What a check came to. Order and names are a contract (docs/doctor.md). */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_LIMITED,	  /* works, but less than it could */
	DOCTOR_ABSENT,	  /* not there; where nothing needs it, no trouble */
	DOCTOR_FAILED,	  /* there, and doesn't work */
	DOCTOR_NOT_TRIED, /* can't be said here */
	DOCTOR_STATE_CNT
};

const char *doctor_state_name(enum doctor_state state);

/* All borrowed. A zeroed one with an environment is valid. */
struct doctor_setup {
	const char *root;	   /* prefix of /proc and /sys; "": this machine */
	char *const *environment;  /* "NAME=value", ends with NULL */
	const char *python;	   /* interpreter to examine; NULL: the one a job would find */
	const char *agent;	   /* path of the agent library; NULL: not found */
	const char *package;	   /* folder of the Python package; NULL: not found */
	const char *package_why;   /* why one of those was not found */
	const char *socket_why;	   /* why `perftracker run` would have no socket; NULL: it would */
	int library_ms, python_ms; /* limits of a child; 0: the default */
};

#define DOCTOR_LIBRARY_MS 20000
#define DOCTOR_PYTHON_MS 120000 /* import of torch from a slow network file system */

/* One row of the answer. Texts but found are constant. */
struct doctor_result {
	const char *id;	  /* stable, append-only: "nvidia-driver" */
	const char *area; /* "Python", "kernel", ... */
	bool needed;	  /* `perftracker run` does nothing useful without it */
	enum doctor_state state;
	char found[512];    /* of unknown origin: to be cleaned before it is printed */
	const char *costs;  /* what the product lacks; "" when ok */
	const char *action; /* what to do; "" when there is nothing */
};

#define DOCTOR_CHECKS_MAX 64

/*
 * Runs all checks, in the order of the table. Returns how many results were written to
 * ret. Takes as long as the slowest child: an import of torch, seconds.
 */
size_t doctor_run(const struct doctor_setup *setup,
		  struct doctor_result ret[static DOCTOR_CHECKS_MAX]);

/* Whether something needed failed or is absent. */
bool doctor_is_unfit(const struct doctor_result *results, size_t cnt);

/* Whether anything, needed or not, is limited or failed. */
bool doctor_is_limited(const struct doctor_result *results, size_t cnt);
