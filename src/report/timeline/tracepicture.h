/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traces of all ranks as one picture (timeline.h), made of events of any reader: a
 * process for each rank, a track for each thread and each stream of a GPU. Clocks are aligned by
 * the ends of collectives. The culprits of a report have a track "findings" on top: where the
 * named function ran, where the thread was idle, and since when all others waited in a
 * collective. Their slices are colored.
 */
#pragma once

#include "base/err.h"
#include "model/report.h"
#include "report/timeline/timeline.h"

/* A rank, without its events. Its clock is that of the trace. */
struct tracepicture_rank {
	int rank;
	int64_t pid;
	const char *host;
	int64_t from_ns, end_ns;       /* the part of it that is shown */
	struct instance_event *events; /* its collectives; instance is set */
	size_t event_cnt;
};

struct tracepicture_options {
	int64_t last_ns;	     /* before the last end of all ranks; 0: everything */
	bool wall_only;		     /* as in timeline_options */
	const struct report *report; /* of the same traces; its findings are marked */
	struct slice_sink *sink;     /* NULL: none. Takes the slices, too */
	/* Reads the trace of ranks[idx]. Returns 0 or -errno with a line in err. */
	int (*read)(void *arg, size_t idx, struct trace *ret, struct err *err);
	void *arg;
};

/*
 * Writes the trace of ranks[cnt], in this order, to out; the first is the one whose clock
 * counts. A rank whose trace cannot be read fails all. Returns 0 or -errno, with a line in err
 * where a trace could not be read. Memory: one trace at a time, and the collectives of all.
 */
_must_check_ int tracepicture_write(struct tracepicture_rank *ranks, size_t cnt,
				    const struct tracepicture_options *options, FILE *out,
				    struct timeline_rank *ret_ranks, struct err *err);
