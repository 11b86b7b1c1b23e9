/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pressure stall information of this host: for how long at least one task ("some") was held up for
 * lack of CPU, I/O or memory. It shows that a host is short of a resource even when no single
 * process is an outlier.
 * Source: Documentation/accounting/psi.rst.
 */
#pragma once

#include "format/sidecar/sidecar.h"

#define PRESSURE_LOOK_NS (100 * NSEC_PER_MSEC)
#define PRESSURE_CNT 3 /* cpu, io, memory: in the order of struct sidecar_pressure */

struct pressure {
	int fds[PRESSURE_CNT]; /* -1: not supported by this kernel */
	int64_t due_ns;
};

/* Opens root/proc/pressure. pressure_close() may be called twice. */
void pressure_open(struct pressure *pressure, const char *root);
void pressure_close(struct pressure *pressure);

/* Reads the totals when it is time. Returns 1 and *ret, or 0: not due, or nothing to read. */
int pressure_look(struct pressure *pressure, int64_t now_ns, struct sidecar_pressure *ret);

/* text: "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\n...". Returns 0 or -EINVAL. */
_must_check_ int pressure_parse(const char *text, uint64_t *ret_some_us);
