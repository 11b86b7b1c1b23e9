/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a flight log: Python functions as Kineto names them, and system calls. */
#pragma once

#include "base/strtab.h"
#include "format/flightlog/flightlog.h"

/* What a Python function belongs to, for marks that say when it began. */
enum frame_part { PART_USER, PART_LOADER, PART_OPTIMIZER, PART_OWN, PART_THREADING };

struct frame_name {
	uint32_t text; /* string id in the trace */
	uint8_t part;  /* enum frame_part */
};

struct flight_names {
	const struct flightlog *log;
	struct strtab *strings;
	struct frame_name *frames; /* by frame */
	const char *script_dir;	   /* with its last '/'; in log; NULL: unknown */
	size_t script_dir_len;
};

/* Names of all frames of a log. Returns 0 or -ENOMEM; done is fine after either. */
_must_check_ int flight_names_init(struct flight_names *names, const struct flightlog *log,
				   struct strtab *strings);
void flight_names_done(struct flight_names *names);

/* "<system call recvfrom>". STRTAB_NONE: out of memory. */
_must_check_ uint32_t flight_names_syscall(struct flight_names *names, uint32_t number);

static inline uint32_t flight_sample_tid(const struct ring_record *sample)
{
	return (uint32_t)(sample->extra >> 32);
}

/*
 * Whether the innermost function of a node is of a file whose path ends so, and has this name, without
 * its class; "": any.
 */
bool flight_node_is(const struct flightlog *log, uint32_t node, const char *file_end,
		    const char *function);
