/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The behavior fingerprint of one worker over one window: made by summarize, compared by localize.
 * A few hundred bytes per function instead of gigabytes of events.
 *
 * Functions are nodes of a calling-context tree ("frames"): the node is the identity (whole call
 * stack, PerfTracker section 4.2). Its key is a 128-bit hash, equal on all workers that run the
 * same code. Only nodes that held the critical path for at least a given share have numbers; their
 * ancestors are kept for the stacks.
 * Source: PerfTracker eq. 1-5; docs/method.md.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/fingerprint/fingerprint_data.h"
#include "format/fingerprint/fingerprint_flows.h"
#include "format/fingerprint/fingerprint_stalls.h"
#include "format/fingerprint/fingerprint_usage.h"

struct fingerprint {
	struct arena arena; /* owns every string and array below */
	const char *job_id, *host, *source, *device_name;
	int rank;	/* RANK_UNKNOWN before ranks are assigned */
	int world_size; /* -1 unknown */
	int64_t pid;
	int64_t window_start_wall_ns;
	int64_t window_ns;
	bool has_device, has_stacks, iterations_known;
	int64_t class_ns[CLASS_CNT]; /* adds up to window_ns */
	struct fp_frame *frames;
	size_t frame_cnt;
	struct fp_function *functions; /* by share_ns, largest first */
	size_t function_cnt;
	int64_t rest_ns; /* share of functions below the threshold, not listed */
	struct fp_collective *collectives;
	size_t collective_cnt;
	uint64_t collective_dropped; /* collectives beyond the limit */
	struct fp_share *shares;
	size_t share_cnt;
	struct fp_iteration *iterations;
	size_t iteration_cnt;
	struct fp_host host_stats;
	struct fp_absence *absences;
	size_t absence_cnt;
	uint32_t resources; /* bit per enum resource that had samples */
	struct trace_drops drops;
	uint64_t event_cnt;
	enum iterations_by iterations_by;
	/* Length of a first iteration that was skipped as warm-up; 0: none. Not in fpwire.h, which
	 * carries windows of live jobs. */
	int64_t warmup_ns;
	/* Likewise not in fpwire.h: */
	struct fp_usage usage;
	struct fp_total *totals; /* device work, then runtime calls; each the longest first */
	size_t total_cnt;
	struct fp_iteration_use *uses; /* by iteration; use_cnt: iteration_cnt or 0 */
	size_t use_cnt;
	const char **operations; /* of collectives: "all_reduce", see fp_collective.operation */
	size_t operation_cnt;
	struct fp_stalls stalls; /* likewise */
	struct fp_flows flows;	 /* likewise */
};

void fingerprint_init(struct fingerprint *fp);
void fingerprint_done(struct fingerprint *fp);

/* Writes a file (path ".tmp" first, then renamed). Returns 0 or -errno with a line in err. */
_must_check_ int fingerprint_write(const struct fingerprint *fp, const char *path, struct err *err);

/*
 * Reads a file of fingerprint_write(). Every length and index is checked: a truncated, foreign or
 * damaged file returns -EINVAL with file, offset, expected and found in err. *ret is initialized on
 * success only; the caller frees it with fingerprint_done().
 */
_must_check_ int fingerprint_read(const char *path, struct fingerprint *ret, struct err *err);
struct fpshare; /* fpshare.h */
/* With texts and frames in share, which must outlive *ret. */
_must_check_ int fingerprint_read_sharing(const char *path, struct fpshare *share,
					  struct fingerprint *ret, struct err *err);
_must_check_ int fingerprint_read_shared(const void *data, size_t len, const char *source,
					 struct fpshare *share, struct fingerprint *ret,
					 struct err *err);
_must_check_ int fingerprint_read_memory(const void *data, size_t len, const char *source,
					 struct fingerprint *ret, struct err *err);
