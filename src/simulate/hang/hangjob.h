/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that hang for a known reason, as the dumps that their processes leave: flight recorders as torch
 * pickles them, stacks as `perftracker stacks` and `py-spy dump --json` write them. All ranks run one
 * list of collectives; a rank's device ends a collective when all members of its group are at the same
 * one, and what each rank has entered and finished follows from where the fault stops it. Knows no rule
 * of `hang`. Source: docs/simulate.md; torch/csrc/distributed/c10d/FlightRecorder.hpp.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum hangjob_dump {
	HANGJOB_RECORDER = 1 << 0,
	HANGJOB_STACKS = 1 << 1, /* two samples */
	HANGJOB_PYSPY = 1 << 2,
};

enum { HANGJOB_WORKERS = 8, HANGJOB_WORKERS_MAX = 1024 };

struct hangjob_options {
	const char *scenario;
	int worker_cnt; /* 0: HANGJOB_WORKERS */
	int tp;		/* ranks of a tensor-parallel group; 0: by the seed */
	uint64_t seed;
	uint32_t dumps; /* enum hangjob_dump */
};

struct hangjob;

/* Whether the name is that of a job that hangs, or seems to. */
bool hangjob_is(const char *scenario);

/*
 * Returns 0, -EINVAL for numbers out of range, -ENOMEM, with a line in err. The caller frees ret with
 * hangjob_close().
 */
_must_check_ int hangjob_open(const struct hangjob_options *options, struct hangjob **ret,
			      struct err *err);
void hangjob_close(struct hangjob *job);

int hangjob_worker_cnt(const struct hangjob *job);

/* False for a rank that left no dump. */
bool hangjob_has_worker(const struct hangjob *job, int rank);

/* Append a rank's dump; the caller checks str_error(). */
void hangjob_recorder(const struct hangjob *job, int rank, struct str *out);
void hangjob_stacks(const struct hangjob *job, int rank, struct str *out);
void hangjob_pyspy(const struct hangjob *job, int rank, struct str *out);

/* When the dumps were written: of a job that hangs after its timeout, else sooner. */
int64_t hangjob_written_ns(const struct hangjob *job);

/* Appends what a report should say, as JSON. */
void hangjob_truth(const struct hangjob *job, struct str *out);

/* The table of scenarios. NULL behind the last one. */
const char *hangjob_name(size_t index, const char **ret_help);
