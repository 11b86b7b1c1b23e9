/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls of a worker's host: executions of functions that usually end within some microseconds and
 * once in a while take milliseconds on the critical path, in some iterations and not in others. A
 * thread that gets no CPU looks like this, at places all over the program. struct fingerprint
 * (fingerprint.h) owns these records.
 */
#pragma once

#include "base/base.h"

/* An operator that stalled. */
struct fp_stall_name {
	const char *name;
	uint64_t cnt;
	int64_t ns;
};

struct fp_stalls {
	bool known; /* the trace has enough iterations, and is not made of samples */
	uint64_t cnt;
	uint64_t inside_cnt; /* of these, inside an operator or a call of the runtime */
	uint64_t switch_cnt; /* of these, as long as an odd number of the interpreter's intervals */
	int64_t median_ns, longest_ns;
	int64_t *iteration_ns; /* by iteration: time in stalls; iteration_cnt: 0 or as many */
	size_t iteration_cnt;
	struct fp_stall_name *names; /* the most frequent first */
	size_t name_cnt;
};
