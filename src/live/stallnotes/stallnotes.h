/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest report waits for what a stall window sees of its workers; it was published already, and
 * is published again with these lines as evidence. Owns the report that waits.
 */
#pragma once

#include "live/link/wire_stalls.h"
#include "model/report.h"

struct stallnotes {
	bool present;
	struct report report;
	uint64_t number;
};

/* Takes the report, which belongs to it then. */
void stallnotes_keep(struct stallnotes *notes, const struct report *report, uint64_t number);

/* The mean iteration before the job became slow, and now; 0: unknown. */
struct stallpace {
	double baseline_ms, now_ms;
};

/*
 * Adds the lines to the first finding that they may explain, else to the report's notes, and behind them,
 * while the job is slow, how much of the time that its iterations take longer they are. Returns 0;
 * -ENOENT: no report waits for them; -ENOMEM.
 */
_must_check_ int stallnotes_add(struct stallnotes *notes, const struct wire_stalls *stalls,
				const struct stallpace *pace);

void stallnotes_drop(struct stallnotes *notes);
