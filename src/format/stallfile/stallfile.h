/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of a stall window as a text file, so that a person can read it and a test can write
 * it. Each line is a word, numbers, and for some a text at the end:
 *
 *	perftracker-stalls 1
 *	window BEGIN END CPUS OWN_PID SOURCES SAMPLE_NS LOST DROPPED
 *	text TEXT		the first one has the id 1; id 0 is the empty text
 *	note TEXT_ID
 *	process PID PARENT NAME COMMAND WATCHED OWN TRACER GIL_BEGIN GIL_END QUOTA_US PERIOD_US
 *	thread TID PID MAIN NAME CPUS CPU_NS MINOR MAJOR STATE
 *	counters TIME PID THROTTLED THROTTLED_NS TOTAL STEAL IRQ COMPACT RECLAIM CPU_US IO_US MEMORY_US
 *	event TIME KIND TID PID OTHER CPU CHAIN FILE ADDRESS VALUE STATE
 *	end EVENTS
 *
 * Times are nanoseconds, kinds those of enum stall_event_kind, states one letter or '-'.
 * In a text, '\n' stands for a line end and '\\' for a backslash.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "model/stalls/stallrecording.h"

#define STALLFILE_MAGIC "perftracker-stalls 1\n"
#define STALLFILE_BYTES_MAX (512ul << 20)

/* Returns 0 or -ENOMEM. */
_must_check_ int stallfile_write(const struct stall_recording *recording, struct str *out);

/*
 * text[len]: a file; path names it in err. Checks all numbers. Returns 0, and the caller frees *ret
 * by stallrecording_done(); -EINVAL with a line in err, -ENOMEM.
 */
_must_check_ int stallfile_parse(const char *path, const char *text, size_t len,
				 struct stall_recording *ret, struct err *err);

/* The same of a file. */
_must_check_ int stallfile_read(const char *path, struct stall_recording *ret, struct err *err);
