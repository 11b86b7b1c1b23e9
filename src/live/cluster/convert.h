/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of one process (live/link/wire*.h) to and from those between hosts (cluster.proto).
 * convert_*_out() borrow texts and arrays from their source. convert_*_in() copy, cut texts that
 * are too long, and return false for values that no daemon sends.
 */
#pragma once

#include "live/cluster/cluster.pb-c.h"
#include "live/link/wire_hang.h"
#include "live/link/wire_report.h"
#include "live/link/wire_request.h"

/* What a remote worker's values become here. */
struct convert_from {
	const char *host;
	int64_t offset_ns;    /* added to times of CLOCK_MONOTONIC there gives those here */
	uint32_t worker_base; /* added to ids of workers */
};

void convert_state_out(const struct wire_state *state, Cluster__State *ret);
bool convert_state_in(const Cluster__State *state, const struct convert_from *from,
		      struct wire_state *ret);

void convert_window_out(const struct wire_window *window, Cluster__Window *ret);
void convert_window_in(const Cluster__Window *window, struct wire_window *ret);

void convert_answer_out(const struct wire_answer *answer, Cluster__Answer *ret);
bool convert_answer_in(const Cluster__Answer *answer, const struct convert_from *from,
		       struct wire_answer *ret);

/* Room for the collectives of one worker. */
struct convert_entered {
	Cluster__Entered entered[WIRE_GROUPS];
	Cluster__Entered *pointers[WIRE_GROUPS];
};

void convert_where_out(const struct wire_where *where, struct convert_entered *room,
		       Cluster__Where *ret);
bool convert_where_in(const Cluster__Where *where, const struct convert_from *from,
		      struct wire_where *ret);

void convert_slices_cost_out(struct wire_slices_cost *cost, Cluster__SlicesCost *ret);
bool convert_slices_cost_in(const Cluster__SlicesCost *cost, const struct convert_from *from,
			    struct wire_slices_cost *ret);

void convert_ask_out(const struct wire_ask *ask, Cluster__Ask *ret);
void convert_ask_in(const Cluster__Ask *ask, struct wire_ask *ret);

void convert_order_out(const struct wire_order *order, Cluster__Window *room, Cluster__Order *ret);
void convert_order_in(const Cluster__Order *order, struct wire_order *ret);

void convert_slices_out(const struct wire_slices *slices, Cluster__Slices *ret);
void convert_slices_in(const Cluster__Slices *slices, struct wire_slices *ret);

/* Room for the findings of one report. */
struct convert_findings {
	Cluster__Finding findings[WIRE_REPORT_FINDINGS];
	Cluster__Finding *pointers[WIRE_REPORT_FINDINGS];
};

void convert_report_out(struct wire_report *report, struct convert_findings *room,
			Cluster__Report *ret);
bool convert_report_in(const Cluster__Report *report, struct wire_report *ret);
