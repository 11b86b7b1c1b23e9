/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of this machine: one table of checks. Each check examines one thing and reports what it
 * found, what PerfTracker loses without it, and how to fix it. Checks change nothing on the
 * machine.
 *
 * Code that may hang or crash (a driver, a Python) runs in a child process with a limit. Of
 * environment variables only listed ones are shown, masked (secrets.h).
 * Source: of permissions, man perf_event_open, ptrace and capabilities, and NVIDIA's "Permission
 * issue with Performance Counters" (ERR_NVGPUCTRPERM); of conflicts, CUPTI's user guide, which
 * allows one subscriber in a process.
 */
#pragma once

#include "base/base.h"

/* Result of a check. Order and names are a contract (docs/doctor.md). */
enum doctor_state {
	DOCTOR_OK,
	DOCTOR_LIMITED,	  /* works with restrictions */
	DOCTOR_ABSENT,	  /* missing; harmless if it is not needed */
	DOCTOR_FAILED,	  /* present, but does not work */
	DOCTOR_NOT_TRIED, /* cannot be checked here */
	DOCTOR_STATE_CNT
};

const char *doctor_state_name(enum doctor_state state);

/* All strings are borrowed. A zeroed setup with an environment is valid. */
struct doctor_setup {
	const char *root;	   /* prefix of /proc and /sys; "": this machine */
	char *const *environment;  /* "NAME=value", ends with NULL */
	const char *python;	   /* interpreter to examine; NULL: the one that a job would run */
	const char *agent;	   /* path of the agent library; NULL: not found */
	const char *package;	   /* folder of the Python package; NULL: not found */
	const char *package_why;   /* why agent or package was not found */
	const char *socket_why;	   /* why `perftracker run` would have no socket; NULL: it would
				    * have one */
	int library_ms, python_ms; /* time limits of a child; 0: the default */
};

#define DOCTOR_LIBRARY_MS 20000
#define DOCTOR_PYTHON_MS 120000 /* torch may be imported from a slow network file system */

/* One row of the answer. All texts except found are constant. */
struct doctor_result {
	const char *id;	  /* stable, append-only: "nvidia-driver" */
	const char *area; /* "Python", "kernel", ... */
	bool needed;	  /* `perftracker run` needs it */
	enum doctor_state state;
	char found[512];    /* untrusted text: must be cleaned before it is printed */
	const char *costs;  /* what PerfTracker loses; "" when ok */
	const char *action; /* what to do; "" if nothing */
};

#define DOCTOR_CHECKS_MAX 64

/*
 * Runs all checks, in the order of the table. Returns the number of results written to ret. Takes
 * as long as the slowest child: an import of torch, seconds.
 */
size_t doctor_run(const struct doctor_setup *setup,
		  struct doctor_result ret[static DOCTOR_CHECKS_MAX]);

/* Whether a needed check failed or its subject is absent. */
bool doctor_is_unfit(const struct doctor_result *results, size_t cnt);

/* Whether any check, needed or not, is limited or failed. */
bool doctor_is_limited(const struct doctor_result *results, size_t cnt);
