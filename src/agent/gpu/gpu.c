/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/gpu.h"

#include "agent/core/collectors.h"
#include "agent/core/helper.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "model/elements.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)1 << 20) /* GPU libraries are called on it */
#define TICK_NS (2 * NSEC_PER_MSEC)
#define QUIET_TICK_NS (10 * NSEC_PER_MSEC) /* after one without events: to wake is the cost */
/*
 * Events of a tick. The daemon reads the ring of a lane every 20 ms: at twice the larger of these
 * numbers events would be lost.
 */
#define TICK_EVENTS 512u
#define TICK_EVENTS_BEHIND 1536u /* after a tick that did not see the end */
#define LANE_SLOTS (4 * FLIGHT_GPU_LANE_CNT)

_Static_assert(TICK_EVENTS_BEHIND * 20u < FLIGHT_WINDOW_RECORD_CNT, "the ring outlasts a look");

enum gpu_state { GPU_IDLE, GPU_OPEN, GPU_CLOSING, GPU_ABANDONED, GPU_DETACHING };

static struct gpu {
	_Atomic uint32_t state; /* enum gpu_state; from GPU_CLOSING on to GPU_IDLE by the helper */
	_Atomic uint32_t wake;	/* futex: grows with each change of state */
	bool thread;
	bool behind; /* the last tick did not see the end */
	bool forked;
	uint32_t lane; /* the thread's; 0: none reserved yet */
	const struct gputrace_ops *ops;
	uint16_t lanes[LANE_SLOTS]; /* index + 1 in the recorder's table, by hash; 0: free */
	uint32_t window;	    /* counts them */
	uint32_t lane_used[FLIGHT_GPU_LANE_CNT]; /* the window in which it was, last */
	uint32_t swept;	   /* the window in which old lanes were last released */
	uint32_t old_lane; /* index of the next lane that may be reused */
} gpu;

/* --- the sink: on the helper thread --- */

static uint32_t sink_name(const char *text, size_t len)
{
	return nametable_string(text, len);
}

static void sink_lose(enum gputrace_loss loss, uint64_t cnt)
{
	struct flight *flight = lane_flight();

	if (flight == NULL)
		return;
	atomic_fetch_add_explicit(loss == GPUTRACE_UNTIMED ? &flight->drops.gpu_untimed
							   : &flight->drops.gpu,
				  cnt, memory_order_relaxed);
}

static void sink_device(const char *name)
{
	struct flight *flight = lane_flight();

	if (flight != NULL)
		atomic_store_explicit(&flight->gpu_name, nametable_string(name, strlen(name)),
				      memory_order_release);
}

/* Where a lane of the table is found, or is to be put. */
static uint16_t *slot_of(const struct flight *flight, const struct flight_gpu_lane *lane)
{
	uint64_t key = (uint64_t)(uint32_t)lane->device << 32 | lane->id;
	uint64_t at = key * 0x9e3779b97f4a7c15u >> 32;

	for (;; at++) {
		uint16_t *slot = &gpu.lanes[at % LANE_SLOTS];

		if (*slot == 0 || (flight->gpu_lanes[*slot - 1].device == lane->device &&
				   flight->gpu_lanes[*slot - 1].id == lane->id))
			return slot;
	}
}

/* Unregisters lanes without an event of this window. */
static void release_old_lanes(const struct flight *flight)
{
	memset(gpu.lanes, 0, sizeof(gpu.lanes));
	for (uint32_t i = 0; i < FLIGHT_GPU_LANE_CNT; i++) {
		if (gpu.lane_used[i] == gpu.window)
			*slot_of(flight, &flight->gpu_lanes[i]) = (uint16_t)(i + 1);
	}
	gpu.swept = gpu.window;
	gpu.old_lane = 0;
}

/* A long job has more threads and queues than the table. FLIGHT_GPU_LANE_CNT: so has this window. */
static uint32_t free_lane(const struct flight *flight)
{
	uint32_t cnt = atomic_load_explicit(&flight->gpu_lane_cnt, memory_order_relaxed);

	if (cnt < FLIGHT_GPU_LANE_CNT)
		return cnt;
	if (gpu.swept != gpu.window)
		release_old_lanes(flight);
	while (gpu.old_lane < FLIGHT_GPU_LANE_CNT && gpu.lane_used[gpu.old_lane] == gpu.window)
		gpu.old_lane++;
	return gpu.old_lane;
}

static uint32_t add_lane(struct flight *flight, const struct flight_gpu_lane *lane)
{
	uint32_t idx = free_lane(flight);

	if (idx == FLIGHT_GPU_LANE_CNT)
		return idx;
	*slot_of(flight, lane) = (uint16_t)(idx + 1);
	flight->gpu_lanes[idx] = *lane;
	if (idx >= atomic_load_explicit(&flight->gpu_lane_cnt, memory_order_relaxed))
		atomic_store_explicit(&flight->gpu_lane_cnt, idx + 1, memory_order_release);
	return idx;
}

/* FLIGHT_GPU_LANE_CNT: the table is full. */
static uint32_t lane_of(struct flight *flight, const struct gputrace_event *event)
{
	struct flight_gpu_lane lane = { event->device, event->id };
	uint16_t slot = *slot_of(flight, &lane);
	uint32_t idx = slot != 0 ? slot - 1u : add_lane(flight, &lane);

	if (idx < FLIGHT_GPU_LANE_CNT)
		gpu.lane_used[idx] = gpu.window;
	return idx;
}

/* Equal nodes of graphs have equal numbers, others nearly always others. */
static uint32_t node_number(uint64_t node)
{
	return (uint32_t)(node * 0x9e3779b97f4a7c15u >> 32);
}

static uint16_t size_of(const struct gputrace_event *event)
{
	if (event->size == 0 || event->size > ELEMENTS_MAX)
		return 0;
	return elements_encode((int64_t)event->size);
}

static void sink_event(const struct gputrace_event *event)
{
	static const uint16_t kinds[] = { [GPUTRACE_KERNEL] = FLIGHT_GPU_KERNEL,
					  [GPUTRACE_MEMOP] = FLIGHT_GPU_MEMOP,
					  [GPUTRACE_SYNC] = FLIGHT_GPU_SYNC,
					  [GPUTRACE_API] = FLIGHT_GPU_API,
					  [GPUTRACE_OVERHEAD] = FLIGHT_GPU_OVERHEAD };
	struct flight *flight = lane_flight();
	struct ring_record record = { .time_ns = event->start_ns,
				      .value = event->dur_ns,
				      .kind = kinds[event->kind] };
	uint32_t lane;

	if (flight == NULL)
		return;
	lane = lane_of(flight, event);
	if (lane == FLIGHT_GPU_LANE_CNT || event->name == 0) {
		sink_lose(GPUTRACE_DROPPED, 1);
		return;
	}
	record.detail = (uint16_t)lane;
	record.extra = flight_gpu_extra(event->correlation, size_of(event), event->name);
	if (event->correlation == 0 && event->graph_node != 0) {
		record.detail |= FLIGHT_GPU_NODE;
		record.extra = flight_gpu_extra(node_number(event->graph_node), size_of(event),
						event->name);
	}
	lane_record_late(&record);
}

static const struct gputrace_sink sink = {
	.name = sink_name,
	.event = sink_event,
	.lose = sink_lose,
	.device = sink_device,
};

/* --- the helper --- */

/* Until a change of state, at most timeout_ns; 0: as long as it takes. */
static void wait_for(uint32_t wake, int64_t timeout_ns)
{
	struct timespec timeout = { .tv_nsec = timeout_ns };

	(void)syscall(SYS_futex, &gpu.wake, FUTEX_WAIT_PRIVATE, wake,
		      timeout_ns > 0 ? &timeout : NULL, NULL, 0);
}

/* Once abandoned, a detach would disturb the next profiler. */
static void leave_process(void)
{
	char why[GPUTRACE_WHY_MAX] = "";
	uint32_t state = GPU_CLOSING;
	int ret;

	if (!atomic_compare_exchange_strong(&gpu.state, &state, GPU_DETACHING)) {
		collectors_remark(FLIGHT_SOURCE_GPU,
				  "the GPU's library stays attached, idle: the window's end took "
				  "too long");
		return;
	}
	ret = gpu.ops->close(why);
	if (ret == -EIO)
		collectors_note(FLIGHT_SOURCE_GPU, why);
	else if (ret < 0) /* it was recorded nevertheless */
		collectors_remark(FLIGHT_SOURCE_GPU, why);
}

static void finish_window(void)
{
	gpu.ops->stop();
	/*
	 * Each wait reads the current futex value: with an older one no wait would sleep once the
	 * change of state that led here is counted in it.
	 */
	while (gpu.ops->drain(TICK_EVENTS_BEHIND) > 0)
		wait_for(atomic_load_explicit(&gpu.wake, memory_order_acquire), TICK_NS);
	leave_process();
	atomic_store_explicit(&gpu.state, GPU_IDLE, memory_order_release);
}

/* Returns how long to sleep now. */
static int64_t drain_tick(void)
{
	size_t most = gpu.behind ? TICK_EVENTS_BEHIND : TICK_EVENTS;
	size_t cnt = gpu.ops->drain(most);

	gpu.behind = cnt == most;
	return cnt > 0 ? TICK_NS : QUIET_TICK_NS;
}

static void *run(_unused_ void *arg)
{

	(void)prctl(PR_SET_NAME, "pt-gpu");
	lane_adopt(gpu.lane);
	for (;;) {
		uint32_t wake = atomic_load_explicit(&gpu.wake, memory_order_acquire);
		uint32_t state = atomic_load_explicit(&gpu.state, memory_order_acquire);

		int64_t sleep_ns = TICK_NS;

		if (state == GPU_CLOSING || state == GPU_ABANDONED)
			finish_window();
		else if (state == GPU_OPEN)
			sleep_ns = drain_tick();
		wait_for(wake, state == GPU_IDLE ? 0 : sleep_ns);
	}
	return NULL;
}

/* Before anything is recorded: without a lane for its events a window can't open. */
static int take_lane(char ret_why[static GPUTRACE_WHY_MAX])
{
	if (gpu.lane == 0)
		gpu.lane = lane_reserve();
	if (gpu.lane != 0)
		return 0;
	gputrace_why(ret_why, "no lane is left for the GPU: too many threads record", NULL);
	return -ENOSPC;
}

static int create_thread(void)
{
	int ret = gpu.thread ? 0 : helper_start(run, STACK_BYTES);

	gpu.thread = ret == 0;
	return ret;
}

static void set_state(enum gpu_state state)
{
	atomic_store_explicit(&gpu.state, (uint32_t)state, memory_order_release);
	atomic_fetch_add_explicit(&gpu.wake, 1, memory_order_release);
	(void)syscall(SYS_futex, &gpu.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- for the agent --- */

/* Opens the first back end whose GPU the process uses. */
static int find_ops(const struct gputrace_ops **ret, char ret_why[static GPUTRACE_WHY_MAX])
{
	for (size_t i = 0; gputrace_all[i] != NULL; i++) {
		int error = gputrace_all[i]->probe(ret_why);

		*ret = gputrace_all[i];
		if (error != -ENOENT)
			return error;
	}
	return -ENOENT;
}

int gpu_open(char ret_why[static GPUTRACE_WHY_MAX])
{
	int ret;

	if (gpu.forked) {
		gputrace_why(ret_why, "a forked child", NULL);
		return -ENOENT;
	}
	if (atomic_load_explicit(&gpu.state, memory_order_acquire) != GPU_IDLE) {
		gputrace_why(ret_why, "the window before is still being closed", NULL);
		return -EBUSY;
	}
	gpu.window++;
	ret = find_ops(&gpu.ops, ret_why);
	if (ret == 0)
		ret = take_lane(ret_why);
	if (ret == 0)
		ret = create_thread();
	if (ret == 0)
		ret = gpu.ops->start(&sink, ret_why);
	if (ret < 0)
		return ret;
	ret_why[0] = '\0';
	set_state(GPU_OPEN);
	return 0;
}

void gpu_close(void)
{
	if (atomic_load_explicit(&gpu.state, memory_order_relaxed) == GPU_OPEN)
		set_state(GPU_CLOSING);
}

void gpu_abandon(void)
{
	uint32_t state = GPU_CLOSING;

	(void)atomic_compare_exchange_strong(&gpu.state, &state, GPU_ABANDONED);
}

bool gpu_is_closed(void)
{
	return atomic_load_explicit(&gpu.state, memory_order_acquire) == GPU_IDLE;
}

void gpu_forked(void)
{
	gpu.forked = true;
	atomic_store_explicit(&gpu.state, GPU_IDLE, memory_order_relaxed);
	for (size_t i = 0; gputrace_all[i] != NULL; i++)
		gputrace_all[i]->forked();
}
