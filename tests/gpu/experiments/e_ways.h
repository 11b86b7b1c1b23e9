/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to record with CUPTI, one at a time, by a client that does nothing but count: what each
 * costs is asked by E2. Called from e_loops.c, and from Python as a shared library.
 */
#pragma once

#include "base/base.h"

#define WAYS_WHY 128

struct ways_seen {
	uint64_t kernels, records, buffers, bytes, dropped; /* bytes: of records */
	int64_t subscribe_ns, enable_ns, disable_ns, flush_ns;
};

/* Names, "off" first; NULL ends them. */
const char *ways_name(size_t idx);

/*
 * Begins to record in the way of that name. Returns 0, or -errno with the reason in why: -ENOTSUP
 * where this CUPTI can't.
 */
_must_check_ int ways_open(const char *name, char why[static WAYS_WHY]);

/* Switches off what was recorded, and hands all of it over. No work may be queued. */
void ways_close(struct ways_seen *ret);

/*
 * Then detaches CUPTI, so that nothing of the way is left. Returns ns; 0 where there was nothing.
 * Not from a call's callback, as the agent does it: no other thread may use CUDA meanwhile.
 */
int64_t ways_finalize(void);
