/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process in which a job without a launcher began: the oldest ancestor of a worker that runs the
 * same program, without another program between them. A script that spawns its ranks is the origin
 * of all of them; two scripts of one shell have two origins.
 * Source: proc(5).
 */
#pragma once

#include "base/base.h"

struct joborigin {
	uint32_t pid;
	uint64_t start;	   /* since boot, in ticks: unique together with pid */
	char command[512]; /* its command line, for people */
};

/* root: before "/proc", "" on a machine. Returns 0, or -errno where the worker is not seen. */
_must_check_ int joborigin_find(const char *root, uint32_t pid, struct joborigin *ret);
