/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of single calls on a GPU, outside of windows and without its profiling library: two events
 * in the call's queue, from a fixed pool, polled later for completion. Nothing waits for the GPU;
 * no event is put into a queue that is being captured into a graph.
 *
 *	timer = gputimer_begin(queue);	on the thread that calls
 *	the call
 *	gputimer_end(timer);
 *	gputimer_claim(timer, ...);	at once, or when it is known what the call was
 *	gputimer_work();		on the helper: writes claimed records, with the time
 *
 * One GPU per process, that of the first call. Calls that can't be timed are counted (drops.timed);
 * a failing call of the driver ends all timing. It uses the driver that is loaded already; events
 * are created and polled on the helper, in the relaxed mode of capture, so that neither a capture
 * on another thread nor the job's own errors are affected.
 * Source: CUDA driver API, "Event Management", "Stream Management".
 * Survives: fork (off in the child).
 */
#pragma once

#include "format/shared/recorder.h"

#define GPUTIMER_CNT 256u
#define GPUTIMER_RECORDS_MAX 4u

typedef uint64_t gputimer; /* 0: no timer; the functions below then do nothing */

/* Whether calls are to be timed, from now on. Any thread. */
void gputimer_watch(bool on);

/* Whether gputimer_begin() is worth its cost. A load or two. */
bool gputimer_is_wanted(void);

/* 0: not timed. */
gputimer gputimer_begin(void *queue);
void gputimer_end(gputimer timer);

/* records[cnt] are written when the time, the value of the first, is known; cnt 0: none. */
void gputimer_claim(gputimer timer, const struct ring_record *records, size_t cnt);

/*
 * Requests a search for the driver, at the first calls. Any thread; gputimer_begin() does so, too.
 */
void gputimer_ask(void);

/* On the helper. Returns the ns until the next call. now_ns: CLOCK_MONOTONIC. */
int64_t gputimer_work(int64_t now_ns);

void gputimer_forked(void);
