/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/collectors.h"

#include "agent/calls/gpucalls.h"
#include "agent/core/account.h"
#include "agent/core/lane.h"
#include "agent/core/sampler.h"
#include "agent/gpu/gpu.h"
#include "agent/nccl/nccl.h"
#include "agent/python/pystack.h"
#include "agent/python/pytrace.h"
#include "agent/torch/torchops.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BACKOFF_RATE 5	/* keeps one sample in BACKOFF_RATE */
#define ELEMENT_STEPS 8 /* steps at the start of a window with input sizes of operators */

struct overhead_check {
	uint64_t seen_id;
	bool active;
	bool on; /* in a slice with the measured collectors running */
	uint64_t seed, start_step, slice_steps, slice_cnt;
	uint32_t kind;
};

static struct collectors {
	struct flight *flight;
	bool running;
	bool grouped; /* collectives are expected */
	bool window;
	uint32_t window_steps; /* begun since it opened */
	bool traced;	       /* exact tracing is on */
	uint64_t order_id;
	uint32_t hz;
	uint32_t backoff;
	struct overhead_check check;
} collectors;

void collectors_attach(struct flight *flight)
{
	collectors = (struct collectors){ .flight = flight };
}

static void set_status(enum flight_source source, enum flight_source_state state, const char *why)
{
	struct flight_source_status *status;

	if (collectors.flight == NULL)
		return;
	status = &collectors.flight->sources[source];
	memset(status->why, 0, sizeof(status->why));
	memcpy(status->why, why, strnlen(why, sizeof(status->why) - 1));
	atomic_store_explicit(&status->state, (uint32_t)state, memory_order_release);
}

void collectors_note(enum flight_source source, const char *why)
{
	set_status(source, why == NULL ? FLIGHT_WORKS : FLIGHT_ABSENT, why == NULL ? "" : why);
}

void collectors_remark(enum flight_source source, const char *what)
{
	set_status(source, FLIGHT_WORKS, what);
}

static bool have(enum flight_source source)
{
	return collectors.flight != NULL &&
	       atomic_load_explicit(&collectors.flight->sources[source].state,
				    memory_order_acquire) == FLIGHT_WORKS;
}

void collectors_open_stacks(const uintptr_t *codes, size_t cnt)
{
	char why[124] = "the stacks that were read differ from Python's own";
	struct pywalk_gil gil;

	if (pystack_open(why, sizeof(why)) < 0 || pystack_check(codes, cnt) < 0) {
		collectors_note(FLIGHT_SOURCE_STACKS, why);
		collectors_note(FLIGHT_SOURCE_GIL, "no Python stacks");
		return;
	}
	collectors_note(FLIGHT_SOURCE_STACKS, NULL);
	collectors_note(FLIGHT_SOURCE_GIL,
			pystack_gil(&gil) == 0 ? NULL : "the lock was not found");
}

void collectors_open_operators(const char *torch_version)
{
	char why[124] = "";

	if (torchops_open(torch_version, why, sizeof(why)) < 0)
		collectors_note(FLIGHT_SOURCE_OPERATORS, why);
}

void collectors_check_operators(bool begin)
{
	char why[124] = "its self-test could not begin";

	if (begin && torchops_check_begin() == 0)
		return;
	if (!begin && torchops_check_end(why, sizeof(why)) == 0)
		collectors_note(FLIGHT_SOURCE_OPERATORS, NULL);
	else
		collectors_note(FLIGHT_SOURCE_OPERATORS, why);
}

/* Sizes of inputs are the most expensive part; the first iterations are representative. */
static enum torchops_detail operators_wanted(bool window)
{
	if (!window || (collectors.backoff & BACKOFF_OPERATORS) != 0)
		return TORCHOPS_NONE;
	return collectors.window && collectors.window_steps < ELEMENT_STEPS ? TORCHOPS_ELEMENTS
									    : TORCHOPS_PLAIN;
}

/* Brings all collectors to the desired state. */
static void apply(void)
{
	const struct overhead_check *check = &collectors.check;
	bool measured_off = check->active && !check->on && check->kind == OVERHEAD_ALWAYS;
	bool always = !measured_off && (collectors.backoff & BACKOFF_ALWAYS) == 0;
	bool window =
		collectors.window || (check->active && check->on && check->kind == OVERHEAD_WINDOW);
	bool collectives = always && (collectors.backoff & BACKOFF_COLLECTIVES) == 0;
	uint32_t hz = collectors.hz;

	if ((collectors.backoff & BACKOFF_SAMPLES) != 0)
		hz = MAX(hz / BACKOFF_RATE, SAMPLER_ALWAYS_HZ);
	if (window)
		lane_open_window((uint32_t)collectors.order_id);
	else
		lane_close_window();
	sampler_set(window ? SAMPLER_WINDOW : always ? SAMPLER_ALWAYS : SAMPLER_PAUSED, hz);
	gpucalls_watch(window || always);
	nccl_watch(window ? NCCL_WINDOW : always ? NCCL_ALWAYS : NCCL_OFF);
	if (!have(FLIGHT_SOURCE_OPERATORS))
		return;
	(void)torchops_watch_operators(operators_wanted(window));
	(void)torchops_watch_collectives(window || (collectors.grouped && collectives));
}

void collectors_expect_collectives(void)
{
	if (collectors.grouped)
		return;
	collectors.grouped = true;
	if (collectors.running)
		apply();
}

/* The system call that a thread waits in: a file that sandboxes may hide. */
static void try_syscalls(void)
{
	uint32_t tid = atomic_load_explicit(&collectors.flight->training_tid, memory_order_relaxed);
	int fd = account_open(tid, "syscall");

	collectors_note(FLIGHT_SOURCE_SYSCALLS,
			fd >= 0 ? NULL : "/proc/self/task/TID/syscall can't be read");
	if (fd >= 0)
		(void)close(fd);
}

int collectors_run(void)
{
	int ret = sampler_start(have(FLIGHT_SOURCE_STACKS));

	if (ret < 0) {
		collectors_note(FLIGHT_SOURCE_STACKS, "the helper thread could not be started");
		return ret;
	}
	if (have(FLIGHT_SOURCE_OPERATORS))
		collectors_note(FLIGHT_SOURCE_COLLECTIVES, NULL);
	else
		collectors_note(FLIGHT_SOURCE_COLLECTIVES, "no operators");
	try_syscalls();
	gpucalls_open();
	collectors.running = true;
	collectors.hz = SAMPLER_WINDOW_HZ;
	apply();
	return 0;
}

/* On failure the window continues with samples; the reason is in the recorder. */
static void start_trace(void)
{
	char why[124] = "";

	collectors.traced =
		pytrace_open(why, sizeof(why)) == 0 && pytrace_start(true, why, sizeof(why)) == 0;
	collectors_note(FLIGHT_SOURCE_EXACT, collectors.traced ? NULL : why);
}

/* -ENOENT, a process without a GPU, is no failure of a whole window. */
static int open_gpu(bool whole)
{
	char why[GPUTRACE_WHY_MAX] = "";
	int ret = gpu_open(why);

	collectors_note(FLIGHT_SOURCE_GPU, ret == 0 ? NULL : why);
	if (ret == 0 || ret == -ENOENT || !whole)
		return 0;
	return ret == -EBUSY ? -EBUSY : -ENODEV;
}

/* A process without torch has no operators: Python stacks are all there is to record. */
static bool can_record(void)
{
	if (!collectors.running || !have(FLIGHT_SOURCE_STACKS))
		return false;
	return have(FLIGHT_SOURCE_OPERATORS) ||
	       atomic_load_explicit(&collectors.flight->sources[FLIGHT_SOURCE_OPERATORS].state,
				    memory_order_acquire) == FLIGHT_UNTRIED;
}

int collectors_open_window(uint64_t order_id, uint32_t hz, bool exact, bool whole)
{
	int ret;

	if (!can_record())
		return -ENOTSUP;
	ret = open_gpu(whole);
	if (ret < 0)
		return ret;
	collectors.window = true;
	collectors.window_steps = 0;
	collectors.check.active = false;
	collectors.order_id = order_id;
	collectors.hz = hz != 0 ? hz : SAMPLER_WINDOW_HZ;
	apply();
	if (exact)
		start_trace();
	return 0;
}

void collectors_close_window(void)
{
	if (!collectors.window)
		return;
	gpu_close();
	if (collectors.traced)
		pytrace_stop();
	collectors.traced = false;
	collectors.window = false;
	/*
	 * Before the window is closed: an older id would free the memory that this window still
	 * needs.
	 */
	sampler_free_window(collectors.order_id);
	apply();
}

bool collectors_window_is_open(void)
{
	return collectors.window;
}

bool collectors_window_is_complete(void)
{
	return !collectors.window && gpu_is_closed();
}

void collectors_abandon_window(void)
{
	gpu_abandon();
}

static void check_free(void)
{
	if (collectors.check.kind == OVERHEAD_WINDOW && !collectors.window)
		sampler_free_window(SAMPLER_FREE_NOW); /* it is not read */
}

/* A canceled overhead check ends like a finished one. */
static void check_leave(void)
{
	if (!collectors.check.active)
		return;
	collectors.check.active = false;
	apply();
	check_free();
}

/* As orders_take(): reads the id again after the fields. */
static void check_take(struct overhead_order *order, uint64_t id)
{
	struct overhead_check taken = { .seen_id = id, .active = true };

	taken.start_step = atomic_load_explicit(&order->start_step, memory_order_relaxed);
	taken.slice_steps = atomic_load_explicit(&order->slice_steps, memory_order_relaxed);
	taken.slice_cnt = atomic_load_explicit(&order->slice_cnt, memory_order_relaxed);
	taken.kind = atomic_load_explicit(&order->kind, memory_order_relaxed);
	taken.on = taken.kind == OVERHEAD_ALWAYS; /* as it is until the first slice */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&order->id, memory_order_relaxed) != id)
		return;
	taken.seed = overhead_seed(id, taken.start_step);
	taken.active = taken.slice_steps > 0 && !collectors.window;
	collectors.check = taken;
}

static void check_step(uint64_t step)
{
	struct overhead_check *check = &collectors.check;
	uint64_t slice;
	bool on;

	if (step < check->start_step)
		return;
	slice = (step - check->start_step) / check->slice_steps;
	on = overhead_slice_is_on(check->seed, slice);
	if (slice >= check->slice_cnt)
		check->active = false;
	else if (on == check->on)
		return;
	check->on = on;
	apply();
	if (!check->active)
		check_free();
}

void collectors_step(uint64_t step)
{
	struct worker_block *block;
	uint64_t id;
	uint32_t backoff;

	if (!collectors.running)
		return;
	block = &collectors.flight->block;
	id = atomic_load_explicit(&block->overhead.id, memory_order_acquire);
	backoff = atomic_load_explicit(&block->backoff, memory_order_relaxed);
	if (id != collectors.check.seen_id) {
		check_leave();
		check_take(&block->overhead, id);
	}
	if (collectors.check.active)
		check_step(step);
	if (collectors.window && ++collectors.window_steps == ELEMENT_STEPS)
		apply();
	if (backoff != collectors.backoff) {
		collectors.backoff = backoff;
		apply();
	}
}

void collectors_stop(void)
{
	collectors_close_window();
	if (!collectors.running)
		return;
	collectors.running = false;
	lane_close_window();
	sampler_set(SAMPLER_OFF, 0);
	gpucalls_watch(false);
	nccl_watch(NCCL_OFF);
	if (have(FLIGHT_SOURCE_OPERATORS)) {
		(void)torchops_watch_operators(TORCHOPS_NONE);
		(void)torchops_watch_collectives(false);
	}
}

void collectors_forked(void)
{
	sampler_forked();
	pytrace_forked();
	gpu_forked();
	gpucalls_forked();
	nccl_watch(NCCL_OFF);
	collectors = (struct collectors){ 0 };
}
