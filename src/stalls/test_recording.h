/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings for tests, built event by event. Thread 100 of process 100 is watched; times are
 * milliseconds from the begin of a window of 10 s.
 */
#pragma once

#include "model/stalls/stallrecording.h"

#include <string.h>

#define TEST_BEGIN_NS (1000 * NSEC_PER_SEC)
#define TEST_ALL                                                                                   \
	(STALL_BY_SWITCHES | STALL_BY_STACKS | STALL_BY_STATES | STALL_BY_WAKERS | STALL_BY_CPUS | \
	 STALL_BY_SAMPLES)

static inline uint32_t test_text(struct stall_recording *r, const char *text)
{
	return strtab_intern(&r->texts, text, strlen(text));
}

static inline int64_t test_at(double ms)
{
	return TEST_BEGIN_NS + (int64_t)(ms * NSEC_PER_MSEC);
}

static inline void test_process(struct stall_recording *r, uint32_t pid, const char *command)
{
	const struct stall_process process = { .pid = pid,
					       .command = test_text(r, command),
					       .watched = pid == 100 };

	(void)vec_push(&r->processes, process);
}

static inline void test_thread(struct stall_recording *r, uint32_t tid, uint32_t pid, char state)
{
	const struct stall_thread thread = {
		.tid = tid, .pid = pid, .main = tid == pid, .state = state, .cpu_ns = -1
	};

	(void)vec_push(&r->threads, thread);
}

static inline void test_recording(struct stall_recording *r)
{
	(void)!stallrecording_init(r);
	r->begin_ns = TEST_BEGIN_NS;
	r->end_ns = test_at(10000);
	r->cpu_cnt = 2;
	r->sources = TEST_ALL;
	r->sample_ns = 5 * NSEC_PER_MSEC;
	test_process(r, 100, "python train.py");
	test_thread(r, 100, 100, 'R');
}

static inline void test_event(struct stall_recording *r, const struct stall_event *event)
{
	(void)!stallrecording_add(r, event);
}

static inline void test_out(struct stall_recording *r, double ms, uint32_t tid, char state,
			    const char *chain)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(ms),
					     .kind = STALL_OUT,
					     .tid = tid,
					     .state = state,
					     .chain = test_text(r, chain) });
}

static inline void test_in(struct stall_recording *r, double ms, uint32_t tid)
{
	test_event(r, &(struct stall_event){
			      .time_ns = test_at(ms), .kind = STALL_IN, .tid = tid, .state = '-' });
}

static inline void test_wake(struct stall_recording *r, double ms, uint32_t tid, uint32_t waker,
			     const char *chain)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(ms),
					     .kind = STALL_WAKE,
					     .tid = tid,
					     .pid = waker / 100 * 100,
					     .other = waker,
					     .state = '-',
					     .chain = test_text(r, chain) });
}

static inline void test_run(struct stall_recording *r, double ms, uint32_t cpu, uint32_t pid)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(ms),
					     .kind = STALL_RUN,
					     .tid = pid,
					     .pid = pid,
					     .cpu = cpu,
					     .state = '-' });
}

static inline void test_sample(struct stall_recording *r, double ms, uint32_t pid,
			       const char *chain)
{
	test_event(r, &(struct stall_event){ .time_ns = test_at(ms),
					     .kind = STALL_SAMPLE,
					     .tid = pid,
					     .pid = pid,
					     .state = '-',
					     .chain = test_text(r, chain) });
}

/* Blocked from one time to the other, woken 0.1 ms before it runs. */
static inline void test_block(struct stall_recording *r, double begin_ms, double end_ms,
			      const char *chain, uint32_t waker, const char *waker_chain)
{
	test_out(r, begin_ms, 100, 'D', chain);
	test_wake(r, end_ms - 0.1, 100, waker, waker_chain);
	test_in(r, end_ms, 100);
}
