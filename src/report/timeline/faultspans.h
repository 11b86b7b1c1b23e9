/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a trace the culprit of a finding is: executions of the function that the finding
 * names, and, where it names a place in which the thread is idle, the gaps there. For the
 * timeline's files alone.
 */
#pragma once

#include "base/vec.h"
#include "model/event.h"
#include "model/finding.h"

struct fault_span {
	int64_t start_ns, end_ns; /* the trace's clock */
	uint32_t finding;	  /* index in findings */
	bool idle;		  /* a gap: no event of the trace is there */
};

typedef VEC(struct fault_span) fault_span_vec;

struct faultspans {
	const struct finding *const *findings;
	size_t finding_cnt;
	uint8_t *of_name; /* by string of the trace: index of the finding + 1; 0: none */
	fault_span_vec spans;
};

/*
 * Finds the spans of one worker's findings (255 at most) in its trace, by start. Returns 0 or
 * -ENOMEM; faultspans_done() in either case. O(events + strings * findings).
 */
_must_check_ int faultspans_find(const struct trace *trace, const struct finding *const *findings,
				 size_t finding_cnt, struct faultspans *ret);
void faultspans_done(struct faultspans *faults);

/* The finding of an event by its name; NULL: none. */
const struct finding *faultspans_of(const struct faultspans *faults, const struct event *event);
