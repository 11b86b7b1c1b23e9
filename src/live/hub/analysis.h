/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the report of one profile: reads the fingerprint files, localizes, and adds the
 * trigger and the workers without a fingerprint.
 */
#pragma once

#include "base/err.h"
#include "live/link/wire.h"
#include "live/run/options.h"
#include "model/report.h"

#include <sys/types.h>

struct analysis_absence {
	int rank;
	const char *why;
};

struct analysis_input {
	const char *const *paths; /* fingerprint files */
	size_t path_cnt;
	const struct analysis_absence *absences; /* workers without one */
	size_t absence_cnt;
	const char *const *past_paths; /* fingerprint files from before a slowdown */
	size_t past_cnt;
	const char *note;	       /* on the past; NULL: none */
	struct report_trigger trigger; /* kind: a constant */
};

/*
 * Returns 0, -ENODATA when no fingerprint could be read, or -errno with a line
 * in err. *ret is to be freed with arena_done(&ret->arena) on success only.
 */
_must_check_ int analysis_run(const struct analysis_input *input, const struct run_options *options,
			      struct report *ret, struct err *err);
