/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the path of a trace says about its worker: its rank, or its process. torch's
 * tensorboard_trace_handler names files HOST_PID.NS.pt.trace.json; launchers make a folder or a
 * name for each rank.
 */
#pragma once

#include "base/base.h"

#include <stddef.h>

/* The rank in a file name ("rank3.json", "worker-12.pt.trace.json.gz"); -1: none. */
int ranknames_of_file(const char *path);

/* The rank in the name of the nearest folder that has one ("job/rank3/trace.json"); -1: none. */
int ranknames_of_folder(const char *path);

/* The process in a name "HOST_PID.NS.pt.trace.json". */
struct ranknames_process {
	const char *host; /* borrowed from the path, not terminated */
	size_t host_len;  /* 0: the name has no process */
	long pid;
};

struct ranknames_process ranknames_process_of(const char *path);
