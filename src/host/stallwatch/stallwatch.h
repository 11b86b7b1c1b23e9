/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches threads for some seconds and records why they may not have run: events of the kernel
 * where it permits them (perfevents.h), and /proc. Nothing is stopped, attached or changed. What
 * could not be seen is a note of the recording, with the reason.
 */
#pragma once

#include "base/err.h"
#include "model/stalls/stallrecording.h"

#include <signal.h>

/* Where a process has its GIL; a caller that can read Python gives it. */
typedef bool stallwatch_gil(void *context, uint32_t pid, uint64_t *ret_begin, uint64_t *ret_end);

/* Whether a process collects garbage of Python at this moment, and which of its threads; *ret_tid 0: unknown. */
typedef bool stallwatch_collects(void *context, uint32_t pid, uint32_t *ret_tid);

struct stallwatch_options {
	const uint32_t *pids;
	size_t pid_cnt; /* 1 to STALL_THREADS_MAX */
	int64_t window_ns;
	const char *root;		   /* prefix before /proc and /sys; "" on a machine */
	bool without_events;		   /* /proc only */
	stallwatch_gil *gil;		   /* NULL: Python is not looked for */
	stallwatch_collects *collects;	   /* NULL: collections are not looked for */
	void *python_context;		   /* of both */
	const volatile sig_atomic_t *stop; /* ends the window when set; may be NULL */
};

/* Changes of threads a second on the host, up to which each is recorded. */
#define STALLWATCH_SWITCHES_MAX 100000u
#define STALLWATCH_HZ 199u /* samples of the kernel's functions, of each CPU */

/*
 * Returns 0, and the caller frees *ret by stallrecording_done(). -errno with a line in err: a process
 * does not exist or can't be read; then there is nothing to free.
 */
_must_check_ int stallwatch_run(const struct stallwatch_options *options,
				struct stall_recording *ret, struct err *err);
