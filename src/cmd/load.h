/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From input files to fingerprints, several at once, for `analyze`, `localize` and `diff`.
 * read/reader.h reads the traces. A file that cannot be used does not stop the others; it is
 * listed with its reason.
 */
#pragma once

#include "cmd/cmd.h"
#include "format/fingerprint/fpshare.h"
#include "summarize/summarize.h"

struct load_failure {
	char *source;
	struct err why;
};

struct load_result {
	struct fingerprint **fps; /* in the order of the paths, failures left out */
	size_t cnt;
	VEC(struct load_failure) failures;
	struct fpshare *shares; /* what the fingerprints have in common */
	size_t share_cnt;
};

#define LOAD_JOBS_MAX 64

struct load_options {
	struct window_options window;
	unsigned int job_cnt; /* threads; at least 1 */
	bool progress;	      /* a line on stderr when it takes longer than a second */
};

/* All steps; a thread for each processor, 64 at most; progress if stderr is a terminal. */
struct load_options load_defaults(void);

/*
 * Reads all files. A step is left out as warm-up of all files that have it, or of none. Returns
 * 0 or -ENOMEM; call load_done() in either case.
 */
_must_check_ int load_paths(const path_list *paths, const struct load_options *options,
			    struct load_result *ret);
void load_done(struct load_result *result);

/*
 * The fingerprint of one file, a trace or already a fingerprint. sidecar: what the host
 * recorded beside a trace; NULL: PATH.sidecar, if that exists. Returns 0 or -errno with a
 * line in err; *ret is written on success only.
 */
_must_check_ int load_one(const char *path, const char *sidecar,
			  const struct summarize_options *options, struct fingerprint *ret,
			  struct err *err);

/*
 * summarize() with what the sidecar (may be NULL) adds: evidence, and the ranks on its host
 * if the options name no hosts.
 */
_must_check_ int load_summarize(const struct trace *trace, const struct sidecar *sidecar,
				const struct summarize_options *options, struct fingerprint *ret,
				struct err *err);
