/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorders of all ranks as one picture: a trace in Chrome's trace
 * event format, which ui.perfetto.dev and the developer tools of Chrome open. A process for
 * each rank; in it iterations, collectives, Python as it was sampled, operators,
 * and curves of what the kernel said of the training thread. Arrows join what is
 * one collective on all its members, from the first that came to the last, and lead from
 * calls to what they launched on a GPU. A process for each host shows its hardware where a
 * window sampled it.
 * Source: "Trace Event Format" (Google, 2016).
 */
#pragma once

#include "base/err.h"
#include "format/flightlog/flightlog.h"
#include "format/sidecar/sidecar.h"
#include "report/timeline/clocks.h"
#include "report/timeline/slicesink.h"

#include <stdio.h>

struct timeline_options {
	int64_t last_ns; /* before the last record of all ranks; 0: everything */
	bool wall_only;	 /* believe the wall clocks, don't align by collectives */
	/* of windows; those of other hosts than the logs' are left out */
	const struct sidecar *sides;
	size_t side_cnt;
	struct slice_sink *sink; /* NULL: none. Takes the slices, too */
};

/* What became of one log. */
struct timeline_rank {
	struct align_clock clock;
	int64_t last_ns;    /* its last record, before the last of all ranks */
	size_t slice_cnt;   /* written */
	size_t omitted_cnt; /* slices that overlap more than ROW_MAX others */
};

/*
 * Writes the trace of logs[cnt], in this order, to out; the first is the one whose
 * clock counts. ret_ranks[cnt] says what became of each. Names may be anything; the
 * same logs give the same bytes. Returns 0, -ENOMEM, or -EIO when out takes no more.
 * Memory: that of the collectives of all, of one rank's GPUs and of the slices of one track.
 */
_must_check_ int timeline_write(const struct flightlog *logs, size_t cnt,
				const struct timeline_options *options, FILE *out,
				struct timeline_rank *ret_ranks);
