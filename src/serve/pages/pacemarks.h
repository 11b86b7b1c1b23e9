/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened in a run, as marks in the picture of its pace. Events and reports have a time, the
 * picture has steps: a mark is at the step that the job had done by then.
 */
#pragma once

#include "base/vec.h"
#include "model/report.h"
#include "store/storelist.h"

#define PACEMARKS_MAX 60u

struct pacemarks {
	struct {
		int64_t at_ns;
		const char *word; /* a constant */
		char text[160];
		bool bad;
	} marks[PACEMARKS_MAX];
	size_t cnt, left_out;
	struct report_pace_mark placed[PACEMARKS_MAX];
};

/* The time at which a step was reached; by time. */
struct pacemarks_point {
	int64_t at_s;
	uint64_t step;
};

void pacemarks_note_event(struct pacemarks *marks, const struct store_event *event);
void pacemarks_note_report(struct pacemarks *marks, const struct store_report *report,
			   size_t finding_cnt);

/* Fills placed; returns how many, by step. Marks outside of the points are left out. */
size_t pacemarks_place(struct pacemarks *marks, const struct pacemarks_point *points, size_t cnt);
