/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of single calls on a GPU, outside of windows and without its profiling library: two events
 * in the call's queue, from a fixed pool, asked later whether they have come to pass. Nothing
 * waits for the GPU; nothing is put into a queue that is being captured into a graph.
 *
 *	timer = gputimer_begin(queue);	on the thread that calls
 *	the call
 *	gputimer_end(timer);
 *	gputimer_tell(timer, ...);	at once, or when it is known what the call was
 *	gputimer_work()			on the helper: writes what was told, with the time
 *
 * Of one GPU per process, that of the first call. What can't be timed is counted (drops.timed); a
 * call of the driver that fails ends it all. It uses the driver that is loaded already; events are
 * made and asked on the helper, in the relaxed mode of capture, so that neither a capture on
 * another thread nor the job's own errors are touched.
 * Source: CUDA driver API, "Event Management", "Stream Management".
 * Survives: fork (off in the child).
 */
#pragma once

#include "format/shared/recorder.h"

#define GPUTIMER_CNT 256u
#define GPUTIMER_TOLD_MAX 4u

typedef uint64_t gputimer; /* 0: none; the functions below then do nothing */

/* Whether calls are to be timed, from now on. Any thread. */
void gputimer_watch(bool on);

/* Whether gputimer_begin() is worth its cost. A load or two. */
bool gputimer_is_wanted(void);

/* 0: not now. */
gputimer gputimer_begin(void *queue);
void gputimer_end(gputimer timer);

/* records[cnt]: what is written when the time, the value of the first, is known; 0: nothing. */
void gputimer_tell(gputimer timer, const struct ring_record *records, size_t cnt);

/* There are calls: the driver is looked for. Any thread; gputimer_begin() does it, too. */
void gputimer_ask(void);

/* The helper. Returns when to call it again: in so many ns. now_ns: CLOCK_MONOTONIC. */
int64_t gputimer_work(int64_t now_ns);

void gputimer_forked(void);
