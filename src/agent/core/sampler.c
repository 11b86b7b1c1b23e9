/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/sampler.h"

#include "agent/core/account.h"
#include "agent/core/children.h"
#include "agent/core/helper.h"
#include "agent/core/lane.h"
#include "agent/core/stacknodes.h"
#include "agent/python/pystack.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)256 << 10) /* of the helper; torch's thread-local data is in it */
#define THREAD_MAX 16
#define LIST_PERIOD_NS (100 * 1000 * 1000)  /* between two readings of the list of threads */
#define STAMP_PERIOD_NS (100 * 1000 * 1000) /* between two checks of code objects */
#define QUIET_PERIOD_NS (20 * 1000 * 1000)  /* between two records of a thread without progress */
#define FREE_LIMIT_NS (10 * NSEC_PER_SEC)

/* A sampled thread, and its stack at the last sample. */
struct target {
	struct pystack_thread thread;
	bool seen; /* in the latest list */
	bool gone; /* since then: the thread has left Python */
	struct own_fd syscall;
	int64_t cpu_ns, recorded_ns, stamped_ns;
	uintptr_t codes[PYSTACK_DEPTH];
	size_t depth;
	uint32_t node;
	uint16_t detail;
};

static struct sampler {
	_Atomic bool running;
	_Atomic uint32_t mode, hz;
	_Atomic uint32_t wake; /* futex: grows with each change of mode */
	_Atomic uint64_t free_id;
	int64_t free_since_ns;
	bool stacks;
	struct target targets[THREAD_MAX];
	size_t target_cnt;
	int64_t listed_ns, accounted_ns;
	uint32_t gil_holder;
	uint64_t step; /* while paused: the latest, since when, and how long the one before took */
	int64_t step_ns, gap_ns;
	struct account account;
} sampler = { .account = ACCOUNT_NONE };

static void drop(_Atomic uint64_t *counter, uint64_t cnt)
{
	atomic_fetch_add_explicit(counter, cnt, memory_order_relaxed);
}

static void record(struct flight *flight, const struct ring_record *what)
{
	ring_push(flight->samples, FLIGHT_SAMPLE_CNT, &flight->sample_head, what);
}

/* Threads */

static struct target *find_target(uint32_t tid)
{
	for (size_t i = 0; i < sampler.target_cnt; i++) {
		if (sampler.targets[i].thread.tid == tid)
			return &sampler.targets[i];
	}
	return NULL;
}

static void forget_unseen(void)
{
	for (size_t i = 0; i < sampler.target_cnt;) {
		struct target *target = &sampler.targets[i];

		if (target->seen) {
			i++;
			continue;
		}
		own_fd_close(&target->syscall);
		*target = sampler.targets[--sampler.target_cnt];
	}
}

static void see_thread(struct flight *flight, const struct pystack_thread *thread)
{
	struct target *target = find_target(thread->tid);

	if (target == NULL && sampler.target_cnt == THREAD_MAX) {
		drop(&flight->drops.threads, 1);
		return;
	}
	if (target == NULL) {
		target = &sampler.targets[sampler.target_cnt++];
		*target = (struct target){
			.cpu_ns = -1, .syscall = own_fd_take(account_open(thread->tid, "syscall"))
		};
	}
	target->thread = *thread;
	target->seen = true;
	target->gone = false;
}

/* The training thread first: it must never lack room. */
static void list_threads(struct flight *flight)
{
	struct pystack_thread threads[4 * THREAD_MAX];
	uint32_t training = atomic_load_explicit(&flight->training_tid, memory_order_relaxed);
	size_t dropped = 0, cnt = pystack_threads(threads, ARRAY_SIZE(threads), &dropped);

	if (cnt == 0) /* the list was changing: keep the last known one */
		return;
	for (size_t i = 0; i < sampler.target_cnt; i++)
		sampler.targets[i].seen = false;
	for (size_t i = 0; i < cnt; i++) {
		if (threads[i].tid == training)
			see_thread(flight, &threads[i]);
	}
	for (size_t i = 0; i < cnt; i++) {
		if (threads[i].tid != training)
			see_thread(flight, &threads[i]);
	}
	drop(&flight->drops.threads, dropped);
	forget_unseen();
}

/* Stacks */

/*
 * Code objects are checked again periodically: an address may have a new owner. Returns 0, -ENODATA:
 * the thread runs no Python, -ENOENT: unreadable, or -ENOSPC: no room in the recorder.
 */
static int read_stack(struct target *target, int64_t now_ns)
{
	static uintptr_t codes[PYSTACK_DEPTH];
	bool truncated = false;
	size_t depth = pystack_walk(&target->thread, codes, ARRAY_SIZE(codes), &truncated, NULL);
	int ret = truncated ? -ENOENT : -ENODATA;

	target->detail = truncated ? FLIGHT_SAMPLE_TRUNCATED : 0;
	if (depth == target->depth && depth > 0 && now_ns - target->stamped_ns < STAMP_PERIOD_NS &&
	    memcmp(codes, target->codes, depth * sizeof(*codes)) == 0)
		return 0;
	memcpy(target->codes, codes, depth * sizeof(*codes));
	target->depth = depth;
	target->stamped_ns = now_ns;
	if (depth > 0)
		ret = stacknodes_find(&target->thread.process, codes, depth, &target->node);
	if (ret < 0)
		target->depth = 0;
	return ret;
}

/* System calls */

static void note_gil(struct flight *flight, const struct pywalk_gil *gil, int64_t now_ns)
{
	struct ring_record held = { .time_ns = now_ns,
				    .kind = FLIGHT_GIL,
				    .value = gil->holder_tid };

	record(flight, &held);
}

static void read_syscall(struct flight *flight, struct target *target, int64_t now_ns)
{
	struct account_call call;
	struct pywalk_gil gil;

	if (!account_call(own_fd_get(&target->syscall), &call))
		return;
	if (call.number == SYS_futex && pystack_gil(&gil) == 0 && call.argument >= gil.begin &&
	    call.argument < gil.end) {
		target->detail |= FLIGHT_SAMPLE_GIL_WAIT;
		note_gil(flight, &gil, now_ns);
		return;
	}
	target->detail |= flight_sample_call(call.number);
}

/* Samples */

/*
 * Whether the thread is no longer in Python's list. A thread of gloo enters Python to release an
 * object and leaves again: until the next list its memory is anything.
 */
static bool has_left(const struct target *target)
{
	struct pystack_thread threads[4 * THREAD_MAX];
	size_t dropped = 0, cnt = pystack_threads(threads, ARRAY_SIZE(threads), &dropped);

	for (size_t i = 0; i < cnt; i++) {
		if (threads[i].tid == target->thread.tid &&
		    threads[i].tstate == target->thread.tstate)
			return false;
	}
	return cnt > 0 && dropped == 0;
}

/*
 * Counts an unknown stack. False: no record of it is written. Threads of gloo and of the autograd
 * engine have run Python once, to release an object, and have no stack: nothing is lost.
 */
static bool count_unknown(struct flight *flight, struct target *target, int why)
{
	target->gone = why == -ENOENT && has_left(target);
	if (why != -ENODATA && !target->gone)
		drop(&flight->drops.unreadable, 1);
	target->node = target->detail = 0;
	/*
	 * A full table stays full: without an empty record, the neighboring samples would get all
	 * of this stack's time.
	 */
	return why == -ENOSPC;
}

static void look_at(struct flight *flight, struct target *target, int64_t now_ns, bool window)
{
	int64_t cpu_ns = account_cpu_ns(target->thread.tid);
	int64_t used_ns = target->cpu_ns >= 0 && cpu_ns >= 0 ? cpu_ns - target->cpu_ns : -1;
	uint32_t training = atomic_load_explicit(&flight->training_tid, memory_order_relaxed);
	struct ring_record sample = { .time_ns = now_ns, .value = used_ns, .kind = FLIGHT_SAMPLE };
	bool still = used_ns == 0 && target->depth > 0;
	int ret = 0;

	target->cpu_ns = cpu_ns;
	if (!still)
		ret = read_stack(target, now_ns);
	if (ret < 0 && !count_unknown(flight, target, ret))
		return;
	/* A thread that blocked since the last sample used some CPU to get there. */
	if (!still || (target->detail & ~FLIGHT_SAMPLE_TRUNCATED) == 0)
		read_syscall(flight, target, now_ns);
	if (still && target->thread.tid != training &&
	    now_ns - target->recorded_ns < QUIET_PERIOD_NS)
		return;
	target->recorded_ns = now_ns;
	sample.extra = (uint64_t)target->thread.tid << 32 | target->node;
	sample.detail = (uint16_t)(target->detail | (window ? FLIGHT_SAMPLE_WINDOW : 0));
	record(flight, &sample);
}

static void look_at_all(struct flight *flight, int64_t now_ns, bool window)
{
	if (now_ns - sampler.listed_ns >= LIST_PERIOD_NS) {
		list_threads(flight);
		sampler.listed_ns = now_ns;
	}
	for (size_t i = 0; i < sampler.target_cnt; i++) {
		if (!sampler.targets[i].gone)
			look_at(flight, &sampler.targets[i], now_ns, window);
	}
}

static void keep_account(struct flight *flight, int64_t now_ns)
{
	uint32_t tid = atomic_load_explicit(&flight->training_tid, memory_order_relaxed);
	struct ring_record records[3];
	size_t cnt;

	if (now_ns - sampler.accounted_ns < NSEC_PER_SEC / SAMPLER_ALWAYS_HZ)
		return;
	sampler.accounted_ns = now_ns;
	cnt = account_look(&sampler.account, tid, now_ns, records);
	for (size_t i = 0; i < cnt; i++)
		record(flight, &records[i]);
}

static void free_window(struct flight *flight, int64_t now_ns)
{
	uint64_t id = atomic_load_explicit(&sampler.free_id, memory_order_acquire);
	uint64_t taken = atomic_load_explicit(&flight->block.taken_id, memory_order_acquire);

	if (id == 0 || lane_window_is_open()) {
		sampler.free_since_ns = 0; /* the next one has its own time */
		return;
	}
	if (sampler.free_since_ns == 0)
		sampler.free_since_ns = now_ns;
	if (id != SAMPLER_FREE_NOW && taken < id && now_ns - sampler.free_since_ns < FREE_LIMIT_NS)
		return;
	sampler.free_since_ns = 0;
	if (lane_free_window())
		(void)atomic_compare_exchange_strong(&sampler.free_id, &id, 0);
}

/* The thread */

/* Waits until due_ns (CLOCK_MONOTONIC) or a change of mode. */
static void wait_until(int64_t due_ns, uint32_t wake)
{
	struct timespec due = { .tv_sec = due_ns / NSEC_PER_SEC, .tv_nsec = due_ns % NSEC_PER_SEC };

	(void)syscall(SYS_futex, &sampler.wake, FUTEX_WAIT_BITSET_PRIVATE, wake, &due, NULL,
		      FUTEX_BITSET_MATCH_ANY);
}

static uint32_t rate_of(uint32_t mode)
{
	uint32_t hz = atomic_load_explicit(&sampler.hz, memory_order_relaxed);

	return mode == SAMPLER_WINDOW ? hz : SAMPLER_ALWAYS_HZ;
}

/* Whether the training thread has made no progress for much longer than its iterations take. */
static bool is_blocked(const struct flight *flight, int64_t now_ns)
{
	uint64_t step = atomic_load_explicit(&flight->block.worker_step, memory_order_relaxed);

	if (step != sampler.step) {
		sampler.gap_ns = sampler.step_ns != 0 ? now_ns - sampler.step_ns : 0;
		sampler.step = step;
		sampler.step_ns = now_ns;
	}
	return now_ns - sampler.step_ns > NSEC_PER_SEC + 2 * sampler.gap_ns;
}

static uint32_t mode_now(const struct flight *flight, int64_t now_ns)
{
	uint32_t mode = atomic_load_explicit(&sampler.mode, memory_order_acquire);

	if (mode != SAMPLER_PAUSED)
		sampler.step_ns = 0; /* the next pause has a time of its own */
	else
		mode = is_blocked(flight, now_ns) ? SAMPLER_ALWAYS : SAMPLER_OFF;
	return mode;
}

/* Whether the training thread was in a system call, and not only for the interpreter's lock. */
static bool trains_in_call(const struct flight *flight)
{
	const struct target *target =
		find_target(atomic_load_explicit(&flight->training_tid, memory_order_relaxed));

	return target != NULL && !target->gone && (target->detail & FLIGHT_SAMPLE_SYSCALL) != 0;
}

static void tick(struct flight *flight, uint32_t mode, int64_t now_ns)
{
	if (mode != SAMPLER_OFF && sampler.stacks) {
		look_at_all(flight, now_ns, mode == SAMPLER_WINDOW);
		children_look(flight, trains_in_call(flight), now_ns);
	}
	if (mode != SAMPLER_OFF)
		keep_account(flight, now_ns);
	free_window(flight, now_ns);
}

static void *run(_unused_ void *arg)
{
	int64_t due_ns = clock_mono_ns();

	(void)prctl(PR_SET_NAME, "pt-sampler");
	for (;;) {
		uint32_t wake = atomic_load_explicit(&sampler.wake, memory_order_acquire);
		struct flight *flight = lane_flight();
		int64_t now_ns = clock_mono_ns(), period_ns;
		uint32_t mode;

		if (flight == NULL)
			return NULL;
		mode = mode_now(flight, now_ns);
		period_ns = NSEC_PER_SEC / rate_of(mode);
		tick(flight, mode, now_ns);
		due_ns += period_ns;
		if (due_ns < now_ns - period_ns) {
			drop(&flight->drops.late, mode == SAMPLER_WINDOW);
			due_ns = now_ns + period_ns;
		} else if (due_ns > now_ns + period_ns) { /* the rate was lower before */
			due_ns = now_ns + period_ns;
		}
		wait_until(due_ns, wake);
	}
}

int sampler_start(bool stacks)
{
	int ret;

	if (atomic_exchange(&sampler.running, true))
		return 0;
	sampler.stacks = stacks;
	atomic_store(&sampler.hz, SAMPLER_WINDOW_HZ);
	ret = helper_start(run, STACK_BYTES);
	if (ret < 0)
		atomic_store(&sampler.running, false);
	return ret;
}

void sampler_set(enum sampler_mode mode, uint32_t hz)
{
	if (hz != 0)
		atomic_store_explicit(&sampler.hz, MIN(hz, SAMPLER_MAX_HZ), memory_order_relaxed);
	if (atomic_exchange_explicit(&sampler.mode, (uint32_t)mode, memory_order_acq_rel) ==
	    (uint32_t)mode)
		return;
	atomic_fetch_add_explicit(&sampler.wake, 1, memory_order_release);
	if (atomic_load_explicit(&sampler.running, memory_order_relaxed))
		(void)syscall(SYS_futex, &sampler.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void sampler_free_window(uint64_t id)
{
	atomic_store_explicit(&sampler.free_id, id, memory_order_release);
}

void sampler_forked(void)
{
	atomic_store_explicit(&sampler.running, true,
			      memory_order_relaxed); /* no thread, and none will start */
	children_forked();
}
