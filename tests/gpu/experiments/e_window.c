/* SPDX-License-Identifier: Apache-2.0 */
#include "e_window.h"

#include "agent/gpu/gputrace.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_EVENTS 4096
#define DRAIN_NS (5 * NSEC_PER_MSEC)
#define CORRELATION_MAX (1u << 24)
#define SPIN_NS NSEC_PER_MSEC

static struct {
	const struct gputrace_ops *ops;
	struct window window;
	pthread_t thread;
	_Atomic bool ending;
	uint64_t nodes[WINDOW_NODES_MAX];
	uint8_t called[CORRELATION_MAX / 8],
		launched[CORRELATION_MAX / 8]; /* bits, by correlation */
} at;

static uint32_t take_name(const char *text, size_t len)
{
	(void)text;
	(void)len;
	return 1;
}

static void note_node(uint64_t node)
{
	for (unsigned i = 0; i < at.window.nodes; i++) {
		if (at.nodes[i] == node)
			return;
	}
	if (at.window.nodes < WINDOW_NODES_MAX)
		at.nodes[at.window.nodes++] = node;
}

static void note_correlation(uint8_t bits[static CORRELATION_MAX / 8], uint32_t correlation)
{
	correlation %= CORRELATION_MAX;
	bits[correlation / 8] |= (uint8_t)(1u << correlation % 8);
}

static void take_kernel(const struct gputrace_event *event)
{
	struct window *w = &at.window;

	w->kernels++;
	if (event->graph_node != 0) {
		w->graph_kernels++;
		note_node(event->graph_node);
	}
	if (event->correlation != 0)
		note_correlation(at.launched, event->correlation);
	if (event->dur_ns >= SPIN_NS && w->spin_cnt < WINDOW_SPINS_MAX) {
		w->spins[w->spin_cnt].begin_ns = event->start_ns;
		w->spins[w->spin_cnt++].end_ns = event->start_ns + event->dur_ns;
	}
}

static void take_event(const struct gputrace_event *event)
{
	if (event->kind == GPUTRACE_KERNEL)
		take_kernel(event);
	if (event->kind != GPUTRACE_API)
		return;
	at.window.calls++;
	note_correlation(at.called, event->correlation);
}

static void take_loss(enum gputrace_loss loss, uint64_t cnt)
{
	*(loss == GPUTRACE_UNTIMED ? &at.window.untimed : &at.window.dropped) += cnt;
}

static void take_device(const char *name)
{
	(void)name;
}

static const struct gputrace_sink sink = { take_name, take_event, take_loss, take_device };

static void *drain(void *arg)
{
	const struct timespec pause = { .tv_nsec = DRAIN_NS };
	struct timespec cpu;

	(void)arg;
	while (!atomic_load(&at.ending)) {
		if (at.ops->drain(DRAIN_EVENTS) < DRAIN_EVENTS)
			(void)nanosleep(&pause, NULL);
	}
	at.ops->stop();
	while (at.ops->drain(DRAIN_EVENTS) > 0)
		;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	at.window.drain_cpu_ns = cpu.tv_sec * NSEC_PER_SEC + cpu.tv_nsec;
	if (at.ops->close(at.window.detach) == 0)
		at.window.detach[0] = '\0';
	return NULL;
}

int window_open(char why[static 128])
{
	const char *library = getenv("CUPTI_LIBRARY");
	int64_t begin_ns;
	int ret;

	if (library != NULL)
		(void)dlopen(library, RTLD_NOW); /* it is the copy that is mapped then */
	begin_ns = clock_mono_ns();
	memset(&at, 0, sizeof(at));
	at.ops = &gputrace_cupti;
	ret = at.ops->probe(why);
	if (ret == 0)
		ret = at.ops->start(&sink, why);
	if (ret < 0)
		return ret;
	at.window.open_ns = clock_mono_ns() - begin_ns;
	return -pthread_create(&at.thread, NULL, drain, NULL);
}

static uint64_t count_unlaunched(void)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < sizeof(at.launched); i++)
		cnt += (uint64_t)__builtin_popcount(at.launched[i] & ~at.called[i] & 0xff);
	return cnt;
}

const struct window *window_close(void)
{
	int64_t begin_ns = clock_mono_ns();

	atomic_store(&at.ending, true);
	(void)pthread_join(at.thread, NULL);
	at.window.close_ns = clock_mono_ns() - begin_ns;
	at.window.unlaunched = count_unlaunched();
	return &at.window;
}
