/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From input files to fingerprints, several at once: what `analyze` and
 * `localize` have in common. A file that cannot be used does not stop the
 * others; it is listed with its reason.
 */
#pragma once

#include "cmd/cmd.h"
#include "summarize/window.h"

struct load_failure {
	char *source;
	struct err why;
};

struct load_result {
	struct fingerprint **fps; /* in the order of the paths, failures left out */
	size_t cnt;
	VEC(struct load_failure) failures;
};

struct load_options {
	struct window_options window;
	unsigned int job_cnt; /* threads; at least 1 */
	bool progress;	      /* a line on stderr when it takes longer than a second */
};

/* Returns 0 or -ENOMEM; load_done() is fine after either. */
_must_check_ int load_paths(const path_list *paths, const struct load_options *options,
			    struct load_result *ret);
void load_done(struct load_result *result);

/* The kind of a regular file by its first four bytes; a pipe is not touched. */
enum file_kind { FILE_OTHER, FILE_FINGERPRINT, FILE_SIDECAR };
enum file_kind load_file_kind(const char *path);

/* One file, trace or fingerprint by its first bytes. sidecar may be NULL. */
_must_check_ int load_one(const char *path, const char *sidecar,
			  const struct window_options *window, const char *job_id,
			  struct fingerprint *ret, struct err *err);
