/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/calls/gpucalls.h"

#include "agent/calls/gputimer.h"
#include "agent/core/helper.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "base/clock.h"
#include "base/compat.h"
#include "format/shared/matmul.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)256 << 10) /* the GPU's driver is called on it */
#define SHAPE_CNT 1024u			/* power of two */
#define SHAPE_PROBES 16u
#define TOTAL_NS NSEC_PER_SEC
#define FLOP_MAX 1e18 /* of one call */

/* Two shapes with the same 64-bit hash are treated as one. */
struct shape {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint64_t calls;
	_Atomic bool filled; /* the fields below */
	double flop;	     /* of one call; 0: unknown, or each call has its own */
	bool launch;
	uint64_t summed; /* calls so far, by the helper */
};

_Atomic bool gpucalls_on;

static struct {
	bool wanted, thread, broken;
	_Atomic uint32_t wake; /* futex: grows when it is switched on, and at the first call */
	_Atomic bool called;
	int64_t summed_ns;
	uint64_t calls[FLIGHT_CALLS_CNT];
	double mflop;
	struct shape shapes[SHAPE_CNT];

	/* Of shapes beyond them, and FLOP of groups. It goes round, but not between two sums. */
	_Atomic uint64_t other_calls[FLIGHT_CALLS_CNT], other_flop;
	uint64_t other_summed[FLIGHT_CALLS_CNT], other_flop_summed;
} gpucalls;

/* A library may call another's function for its own; initial-exec: no allocation. */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

/* --- on threads of the job --- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t key_of(const struct gpucall *call)
{
	uint64_t hash = mix((uintptr_t)call->name, (uintptr_t)call->what + call->type);

	hash = mix(mix(hash, call->m), call->n);
	return mix(mix(hash, call->k), call->groups != 0 ? call->groups : call->batch) | 1;
}

/* 0 where the sizes make no sense, as negative ones: the library refuses the call. */
static double flop_of(const struct gpucall *call)
{
	double flop = call->groups != 0
			      ? call->flop
			      : matmul_flop((double)call->m, (double)call->n, (double)call->k,
					    (double)call->batch, call->type);

	return flop >= 0 && flop < FLOP_MAX ? flop : 0;
}

/* NULL: there are too many shapes. */
static struct shape *find_shape(const struct gpucall *call)
{
	uint64_t key = key_of(call);

	for (uint32_t i = 0; i < SHAPE_PROBES; i++) {
		struct shape *shape = &gpucalls.shapes[((key >> 20) + i) & (SHAPE_CNT - 1)];
		uint64_t found = atomic_load_explicit(&shape->key, memory_order_relaxed);

		if (found == 0 && atomic_compare_exchange_strong(&shape->key, &found, key)) {
			shape->flop = call->groups != 0 ? 0 : flop_of(call);
			shape->launch = call->what != NULL;
			atomic_store_explicit(&shape->filled, true, memory_order_release);
			return shape;
		}
		if (found == key)
			return shape;
	}
	return NULL;
}

/* FLOP of a call whose shape has none, or no slot. */
static void add_flop(const struct gpucall *call)
{
	atomic_fetch_add_explicit(&gpucalls.other_flop, (uint64_t)flop_of(call),
				  memory_order_relaxed);
}

/* Of a shape without a place: never timed. */
static void count_other(const struct gpucall *call)
{
	enum flight_calls kind = call->what != NULL ? FLIGHT_CALLS_LAUNCH : FLIGHT_CALLS_MATMUL;

	atomic_fetch_add_explicit(&gpucalls.other_calls[kind], 1, memory_order_relaxed);
	add_flop(call);
}

static void wake_helper(void)
{
	atomic_fetch_add_explicit(&gpucalls.wake, 1, memory_order_release);
	(void)syscall(SYS_futex, &gpucalls.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until then the helper has nothing to do. */
static void wake_at_first_call(void)
{
	if (atomic_exchange(&gpucalls.called, true))
		return;
	gputimer_ask();
	wake_helper();
}

uint64_t gpucalls_begin(const struct gpucall *call, gpucalls_queue_of *queue_of, void *handle)
{
	struct shape *shape;
	void *queue;
	uint64_t nth;

	if (depth++ > 0)
		return 0;
	if (!atomic_load_explicit(&gpucalls.called, memory_order_relaxed))
		wake_at_first_call();
	shape = find_shape(call);
	if (shape == NULL) {
		count_other(call);
		return 0;
	}
	if (call->groups != 0)
		add_flop(call);
	nth = atomic_fetch_add_explicit(&shape->calls, 1, memory_order_relaxed);
	if (nth % GPUCALLS_EVERY != GPUCALLS_FIRST || !gputimer_is_wanted() ||
	    !queue_of(handle, &queue))
		return 0;
	return gputimer_begin(queue);
}

static uint64_t pair(uint64_t high, uint64_t low)
{
	return MIN(high, (uint64_t)UINT32_MAX) << 32 | MIN(low, (uint64_t)UINT32_MAX);
}

static struct ring_record work_of(const struct gpucall *call)
{
	if (call->groups != 0)
		return (struct ring_record){ .kind = FLIGHT_TIMED_GROUPS,
					     .detail = call->type,
					     .value = (int64_t)flop_of(call),
					     .extra = pair(call->groups, call->batch) };
	return (struct ring_record){ .kind = FLIGHT_TIMED_SHAPE,
				     .detail = call->type,
				     .value = (int64_t)pair(MIN(call->m, (uint64_t)INT32_MAX),
							    call->n),
				     .extra = pair(call->k, call->batch) };
}

void gpucalls_end(const struct gpucall *call, uint64_t timer)
{
	struct ring_record records[2] = { { .kind = FLIGHT_TIMED } };
	const char *name = NULL;

	if (timer != 0)
		gputimer_end(timer);
	if (timer != 0 && call->name_of != NULL)
		name = call->name_of(call->what);
	depth--;
	if (timer == 0)
		return;
	if (name == NULL)
		name = call->name;
	records[0].extra = nametable_string(name, strlen(name));
	records[1] = work_of(call);
	gputimer_claim(timer, records, call->m != 0 || call->groups != 0 ? 2 : 1);
}

/* --- the helper --- */

static void add_shape(struct shape *shape)
{
	uint64_t calls = atomic_load_explicit(&shape->calls, memory_order_relaxed);
	uint64_t more = calls - shape->summed;

	gpucalls.calls[shape->launch ? FLIGHT_CALLS_LAUNCH : FLIGHT_CALLS_MATMUL] += more;
	gpucalls.mflop += shape->flop * (double)more * 1e-6;
	shape->summed = calls;
}

static void add_others(void)
{
	uint64_t flop = atomic_load_explicit(&gpucalls.other_flop, memory_order_relaxed);

	for (size_t i = 0; i < FLIGHT_CALLS_CNT; i++) {
		uint64_t calls =
			atomic_load_explicit(&gpucalls.other_calls[i], memory_order_relaxed);

		gpucalls.calls[i] += calls - gpucalls.other_summed[i];
		gpucalls.other_summed[i] = calls;
	}
	gpucalls.mflop += (double)(flop - gpucalls.other_flop_summed) * 1e-6;
	gpucalls.other_flop_summed = flop;
}

/* How many there were altogether, when there are more. */
static void write_totals(int64_t now_ns)
{
	uint64_t before[FLIGHT_CALLS_CNT];

	memcpy(before, gpucalls.calls, sizeof(before));
	for (size_t i = 0; i < SHAPE_CNT; i++) {
		if (atomic_load_explicit(&gpucalls.shapes[i].filled, memory_order_acquire))
			add_shape(&gpucalls.shapes[i]);
	}
	add_others();
	for (uint32_t i = 0; i < FLIGHT_CALLS_CNT; i++) {
		struct ring_record record = { .kind = FLIGHT_CALLS,
					      .time_ns = now_ns,
					      .detail = (uint16_t)i,
					      .value = (int64_t)gpucalls.calls[i] };

		if (i == FLIGHT_CALLS_MATMUL)
			record.extra = (uint64_t)gpucalls.mflop;
		if (gpucalls.calls[i] != before[i])
			lane_record(&record);
	}
}

/* Until it is woken, at most timeout_ns; 0: as long as it takes. */
static void wait_for(uint32_t wake, int64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = timeout_ns / NSEC_PER_SEC,
				    .tv_nsec = timeout_ns % NSEC_PER_SEC };

	(void)syscall(SYS_futex, &gpucalls.wake, FUTEX_WAIT_PRIVATE, wake,
		      timeout_ns > 0 ? &timeout : NULL, NULL, 0);
}

static void *run(_unused_ void *arg)
{
	(void)prctl(PR_SET_NAME, "pt-gpucalls");
	for (;;) {
		uint32_t wake = atomic_load_explicit(&gpucalls.wake, memory_order_acquire);
		int64_t now_ns = clock_mono_ns();
		int64_t pause_ns;

		if (lane_flight() == NULL)
			return NULL;
		if (!gpucalls_are_on()) {
			wait_for(wake, 0);
			continue;
		}
		pause_ns = gputimer_work(now_ns);
		if (now_ns - gpucalls.summed_ns >= TOTAL_NS) {
			gpucalls.summed_ns = now_ns;
			write_totals(now_ns);
		}
		wait_for(wake, pause_ns);
	}
}

/* --- for the agent --- */

void gpucalls_open(void)
{
	const char *value = getenv(PT_ENV_GPU_TIMES);

	gpucalls.wanted = value != NULL && strcmp(value, "1") == 0;
}

bool gpucalls_are_wanted(void)
{
	return gpucalls.wanted;
}

void gpucalls_watch(bool on)
{
	if (!gpucalls.wanted || gpucalls.broken || gpucalls_are_on() == on)
		return;
	if (on && !gpucalls.thread) {
		gpucalls.thread = helper_start(run, STACK_BYTES) == 0;
		gpucalls.broken = !gpucalls.thread;
	}
	on = on && !gpucalls.broken;
	gputimer_watch(on);
	atomic_store_explicit(&gpucalls_on, on, memory_order_release);
	wake_helper();
}

void gpucalls_forked(void)
{
	gpucalls.broken = true;
	atomic_store_explicit(&gpucalls_on, false, memory_order_relaxed);
	gputimer_forked();
}
