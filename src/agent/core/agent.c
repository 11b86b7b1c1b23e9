/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/agent.h"

#include "agent/core/children.h"
#include "agent/core/collectors.h"
#include "agent/core/lane.h"
#include "agent/core/link.h"
#include "agent/core/nametable.h"
#include "agent/core/orders.h"
#include "agent/core/ownfd.h"
#include "agent/torch/torchgroups.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * One per process. Written by the thread that holds `busy` (marks) or by the rare functions, which
 * the hook calls one at a time.
 */
static struct agent {
	_Atomic bool enabled;
	_Atomic bool busy; /* taken by try only: a mark never waits for another thread */
	bool fork_handled;
	struct flight *flight;
	struct worker_block *block; /* its first part */
	struct own_fd block_file, socket;
	int32_t rank, local_rank, world_size;
	uint32_t tid;
	uint32_t step_mark; /* which mark counts the steps; 0 before the first */
	uint64_t step;
	struct orders orders;
} agent = { .block_file = OWN_FD_NONE, .socket = OWN_FD_NONE };

/* Kinds of marks that delimit iterations more reliably have a greater grade; 0: not usable. */
static unsigned mark_grade(uint32_t mark)
{
	switch (mark) {
	case MARK_ITERATION:
		return 4;
	case MARK_OPTIMIZER:
		return 3;
	case MARK_BACKWARD:
		return 2;
	case MARK_DATALOADER:
		return 1;
	default:
		return 0;
	}
}

static void set_state(enum worker_state state)
{
	if (agent.block != NULL)
		atomic_store_explicit(&agent.block->worker_state, (uint32_t)state,
				      memory_order_release);
}

/*
 * Disables the agent for good. The block stays mapped: another thread may be writing a mark into
 * it.
 */
static void disable(void)
{
	atomic_store_explicit(&agent.enabled, false, memory_order_release);
	collectors_stop();
	set_state(WORKER_DISABLED);
}

static void release(void)
{
	lane_attach(NULL);
	if (agent.flight != NULL)
		(void)munmap(agent.flight, sizeof(*agent.flight));
	own_fd_close(&agent.block_file);
	own_fd_close(&agent.socket);
	agent.flight = NULL;
	agent.block = NULL;
}

/*
 * The child has one thread and does not talk to the daemon. Its descriptors are closed so that the
 * daemon sees the end of the worker when the worker ends, not when its last data-loading child
 * does. Nothing is written to the block: it is the parent's. A thread that was inside a mark is
 * gone.
 */
static void forked_child(void)
{
	atomic_store_explicit(&agent.enabled, false, memory_order_relaxed);
	atomic_store_explicit(&agent.busy, false, memory_order_relaxed);
	lane_attach(NULL);
	collectors_forked();
	release();
}

static void fill_message(struct message *message, enum message_type type, const char *text)
{
	*message = (struct message){
		.magic = MESSAGE_MAGIC,
		.version = MESSAGE_VERSION,
		.type = (uint16_t)type,
		.pid = (uint32_t)getpid(),
		.tid = agent.tid,
		.rank = agent.rank,
		.local_rank = agent.local_rank,
		.world_size = agent.world_size,
		.order_id = agent.orders.seen_id,
		.step = agent.step,
		.mono_ns = clock_mono_ns(),
		.wall_ns = clock_wall_ns(),
	};
	if (text != NULL)
		memcpy(message->text, text, strnlen(text, MESSAGE_TEXT - 1));
}

/* -EAGAIN (full socket) is temporary; any other failure means that the daemon is gone. */
static int send_message(const struct message *message, int pass_fd)
{
	int err;

	if (!atomic_load_explicit(&agent.enabled, memory_order_acquire))
		return -ENOTCONN;
	err = link_send(&agent.socket, message, pass_fd);
	if (err < 0 && err != -EAGAIN)
		disable();
	return err;
}

static int create_flight(void)
{
	int err = link_create_flight(&agent.flight, &agent.block_file);

	if (err < 0)
		return err;
	agent.block = &agent.flight->block;
	agent.flight->rank = agent.rank;
	agent.flight->world_size = agent.world_size;
	agent.flight->pid = (uint32_t)getpid();
	agent.flight->mono_ns = clock_mono_ns();
	agent.flight->wall_ns = clock_wall_ns();
	atomic_store(&agent.flight->training_tid, agent.tid);
	err = nametable_open(agent.flight);
	if (err < 0)
		return err;
	lane_attach(agent.flight);
	collectors_attach(agent.flight);
	return 0;
}

static int start_locked(const char *socket_path)
{
	struct message hello;
	int err;

	if (agent.flight == NULL) {
		err = create_flight();
		if (err < 0)
			return err;
	}
	err = link_connect(socket_path, &agent.socket);
	if (err < 0)
		return err;
	fill_message(&hello, MSG_HELLO, NULL);
	err = link_send(&agent.socket, &hello, own_fd_get(&agent.block_file));
	if (err < 0)
		return err;
	own_fd_close(&agent.block_file);
	return 0;
}

int pt_agent_start(const char *socket_path, int32_t rank, int32_t local_rank, int32_t world_size)
{
	int err;

	if (socket_path == NULL || atomic_load_explicit(&agent.enabled, memory_order_acquire) ||
	    agent.socket.fd >= 0)
		return -EALREADY;
	if (!agent.fork_handled && pthread_atfork(NULL, NULL, forked_child) != 0)
		return -ENOMEM;
	agent.fork_handled = true;
	agent.rank = rank;
	agent.local_rank = local_rank;
	agent.world_size = world_size;
	agent.tid = (uint32_t)syscall(SYS_gettid);
	err = start_locked(socket_path);
	if (err < 0) {
		release();
		return err;
	}
	atomic_store_explicit(&agent.enabled, true, memory_order_release);
	return 0;
}

static bool count_step(struct worker_block *block, uint32_t mark)
{
	unsigned grade = mark_grade(mark);

	if (grade == 0 || grade < mark_grade(agent.step_mark))
		return false;
	if (agent.step_mark != mark)
		agent.step = 0;
	agent.step_mark = mark;
	agent.step++;
	atomic_store_explicit(&block->worker_step, agent.step, memory_order_release);
	return true;
}

static void report_missed_step(void)
{
	struct message message;

	agent.orders.missed_id = 0;
	fill_message(&message, MSG_PROFILE_MISSED, MISSED_LATE);
	(void)send_message(&message, -1);
}

static int mark_locked(uint32_t mark, int64_t value, uint32_t detail)
{
	struct worker_block *block = agent.block;
	int64_t now_ns = clock_mono_ns();
	struct ring_record record;
	bool counted = count_step(block, mark);
	int action;

	record = (struct ring_record){ .time_ns = now_ns,
				       .value = value,
				       .kind = (uint16_t)mark,
				       .detail = (uint16_t)detail,
				       .extra = counted ? agent.step : 0 };
	ring_push(block->ring, MARK_RING_CNT, &block->head, &record);
	if (!counted)
		return AGENT_NONE;
	action = orders_mark(&agent.orders, &block->order, agent.step, now_ns);
	if (agent.orders.missed_id != 0)
		report_missed_step();
	collectors_step(agent.step);
	if (action == AGENT_BOUND && collectors_window_is_open())
		return AGENT_NONE; /* the marks themselves are in the recorder */
	if (action == AGENT_END)
		set_state(WORKER_EXPORTING);
	return action;
}

int pt_agent_mark(uint32_t mark, int64_t value, uint32_t detail)
{
	int action;

	if (!atomic_load_explicit(&agent.enabled, memory_order_acquire))
		return AGENT_NONE;
	if (atomic_exchange_explicit(&agent.busy, true, memory_order_acquire)) {
		atomic_fetch_add_explicit(&agent.block->worker_drops, 1, memory_order_relaxed);
		return AGENT_NONE;
	}
	action = mark_locked(mark, value, detail);
	atomic_store_explicit(&agent.busy, false, memory_order_release);
	return action;
}

/* Rare functions may wait the 100 ns that a mark takes; marks never wait for them. */
static void finish_window(void)
{
	while (atomic_exchange_explicit(&agent.busy, true, memory_order_acquire))
		(void)sched_yield();
	orders_finish(&agent.orders);
	atomic_store_explicit(&agent.busy, false, memory_order_release);
}

void pt_agent_training_thread(void)
{
	agent.tid = (uint32_t)syscall(SYS_gettid);
	if (agent.flight != NULL)
		atomic_store_explicit(&agent.flight->training_tid, agent.tid, memory_order_relaxed);
}

void pt_agent_child(uint32_t pid, int of_loader)
{
	children_add(pid, of_loader != 0);
}

void pt_agent_open_stacks(const uintptr_t *codes, size_t cnt)
{
	collectors_open_stacks(codes, cnt);
}

void pt_agent_open_operators(const char *torch_version)
{
	collectors_open_operators(torch_version);
}

void pt_agent_check_operators(int begin)
{
	collectors_check_operators(begin != 0);
}

void pt_agent_expect_collectives(void)
{
	collectors_expect_collectives();
}

void pt_agent_group(const char *name, uint32_t size, uint32_t first_rank, uint32_t rank_stride,
		    const uint32_t *tids, size_t tid_cnt)
{
	struct torchgroup group = { .name = nametable_string(name, strlen(name)), .size = size };

	if (first_rank <= UINT16_MAX && rank_stride <= UINT16_MAX) {
		group.first_rank = (uint16_t)first_rank;
		group.rank_stride = (uint16_t)rank_stride;
	}
	torchgroups_add(&group, tids, tid_cnt);
}

int pt_agent_run(void)
{
	return collectors_run();
}

const char *pt_agent_absent(uint32_t source)
{
	const struct flight_source_status *status;

	if (source >= FLIGHT_SOURCE_CNT || agent.flight == NULL)
		return "no recorder";
	status = &agent.flight->sources[source];
	return atomic_load_explicit(&status->state, memory_order_acquire) == FLIGHT_WORKS
		       ? ""
		       : status->why;
}

uint32_t pt_agent_order_source(void)
{
	return agent.orders.source;
}

int pt_agent_window_open(int whole)
{
	return collectors_open_window(agent.orders.seen_id, agent.orders.sample_hz,
				      agent.orders.exact, whole != 0);
}

void pt_agent_window_close(void)
{
	collectors_close_window();
}

int pt_agent_window_complete(void)
{
	return collectors_window_is_complete();
}

int pt_agent_begun(const char *source)
{
	struct message message;
	int err;

	fill_message(&message, MSG_PROFILE_BEGUN, source);
	agent.orders.costly = strcmp(source, "torch") == 0;
	err = send_message(&message, -1);
	if (err == 0)
		set_state(WORKER_PROFILING);
	else
		finish_window();
	return err;
}

/* The hook reports a window when it is complete, or takes too long to be. */
static int finish(enum message_type type, const char *text, uint64_t stall_ns)
{
	struct message message;
	int err;

	collectors_abandon_window();
	fill_message(&message, type, text);
	message.stall_ns = stall_ns;
	if (agent.orders.state == ORDERS_OPEN) /* the program ends inside its window */
		agent.orders.end_ns = message.mono_ns;
	if (agent.orders.end_ns > agent.orders.begin_ns)
		message.window_ns = (uint64_t)(agent.orders.end_ns - agent.orders.begin_ns);
	err = send_message(&message, -1);
	if (err == -EAGAIN)
		return err;
	finish_window();
	if (err == 0)
		set_state(WORKER_IDLE);
	return err;
}

int pt_agent_done(const char *path, uint64_t stall_ns)
{
	return finish(MSG_PROFILE_DONE, path, stall_ns);
}

int pt_agent_missed(const char *why)
{
	return finish(MSG_PROFILE_MISSED, why, 0);
}

void pt_agent_disable(const char *why)
{
	(void)finish(MSG_PROFILE_MISSED, why, 0);
	disable();
}

void pt_agent_bye(const char *exception)
{
	struct message message;

	fill_message(&message, MSG_BYE, exception);
	(void)send_message(&message, -1);
	disable();
}

uint64_t pt_agent_order(void)
{
	return agent.orders.seen_id;
}

uint64_t pt_agent_step(void)
{
	return agent.step;
}

int pt_agent_enabled(void)
{
	return atomic_load_explicit(&agent.enabled, memory_order_acquire);
}
