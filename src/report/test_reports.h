/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-made reports for the tests of this folder: what the paper prints, what a
 * fault of the demo looks like, and what goes wrong. Numbers are made by
 * formulas, never by a random generator: the golden files are compared byte for byte.
 * Source: PerfTracker figures 7 and 13.
 */
#pragma once

#include "model/report.h"

struct sample_report {
	const char *name; /* of the golden files */
	void (*make)(struct report *report);
	const char *golden; /* endings of the files it is compared with; large ones are left out */
};

/* All samples; ends with a NULL name. */
extern const struct sample_report sample_reports[];

/* Fills *ret; the caller frees it with arena_done(&ret->arena). NULL name: not found, aborts. */
void sample_make(const char *name, struct report *ret);

/* A report whose every string is text. */
void sample_make_named(const char *text, struct report *ret);
