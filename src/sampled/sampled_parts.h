/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the diagnosis share. */
#pragma once

#include "model/report.h"
#include "sampled/sampledblame.h"
#include "sampled/sampledpace.h"
#include "sampled/sampledplace.h"

struct sampledcase {
	const struct sampled_job *job;
	struct arena *arena;
	struct report *report;
	struct sampledview view;
	struct sampledblame blame;
	struct sampledpace pace;
	double window_s;
	const char **notes;
};

enum { SAMPLEDCASE_NOTES_MAX = 32 };

/* Adds a note of printf form; -ENOMEM: it could not. */
_must_check_ int sampledcase_note(struct sampledcase *c, const char *fmt, ...) _printf_(2, 3);

/* "rank 1", "ranks 0, 2", at most eight, in the arena. NULL: out of memory. */
const char *sampledcase_ranks(const struct sampledcase *c, const bool *which);

/* The findings, verdict and reason. Returns 0 or -ENOMEM. */
_must_check_ int sampledfindings_fill(struct sampledcase *c);

/* Workers, waits, functions, the flame graph. Returns 0 or -ENOMEM. */
_must_check_ int sampledpictures_fill(struct sampledcase *c);
