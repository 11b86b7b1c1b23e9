/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/abi.h"
#include "agent/nccl/events_parts.h"
#include "base/clock.h"

#define OP_CNT 4096u
#define STEP_CNT 8192u

/* An operation on the network. By one thread. */
struct op {
	nccl_handle call; /* held; 0: unknown */
	nccl_handle comm; /* 0: another process's */
	int64_t start_ns;
	bool is_foreign; /* done for another process */
	_Atomic uint64_t sums[SUM_CNT];
};

/* A transfer of one. */
struct step {
	nccl_handle op;
	int64_t since_ns;
	enum network_sum waits_for;
	uint64_t sums[SUM_CNT];
};

HANDLES(op, OP_CNT, 5);
HANDLES(step, STEP_CNT, 6);

/* Of the first of the operations that are under way together the start counts. */
static void join_call(struct op *op)
{
	struct call *call = &nccl_calls[handle_pool_idx(op->call)];

	if (atomic_fetch_add_explicit(&call->open_op_cnt, 1, memory_order_acq_rel) == 0)
		atomic_store_explicit(&call->network_start_ns, op->start_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&call->op_cnt, 1, memory_order_relaxed);
}

/*
 * Whether the operation belongs to a communicator of this process. Processes of other containers
 * may have the same pid, but neither the same handles nor, in the same communicator, the same rank.
 */
static bool is_local(nccl_handle handle, const struct nccl_network_op *about)
{
	const struct comm *comm = nccl_find_comm(handle);

	return nccl_is_own_pid(about->pid) &&
	       (comm == NULL || comm->rank < 0 || comm->rank == about->rank) &&
	       (comm != NULL || handle == 0);
}

nccl_handle nccl_op_start(nccl_handle comm, const struct nccl_network_op *about)
{
	bool local = is_local(comm, about);
	nccl_handle handle = 0;
	struct op *op;

	if (!nccl_is_on())
		return 0;
	if (comm != 0 || !local)
		handle = handle_pool_take(&op_pool, local ? comm : 0);
	if (handle == 0) {
		nccl_drop();
		return 0;
	}
	op = &ops[handle_pool_idx(handle)];
	op->start_ns = clock_mono_ns();
	op->is_foreign = !local;
	op->comm = local ? comm : 0;
	op->call = local && handle_pool_hold(&nccl_call_pool, about->parent) ? about->parent : 0;
	for (size_t i = 0; i < SUM_CNT; i++)
		atomic_store_explicit(&op->sums[i], 0, memory_order_relaxed);
	if (op->call != 0)
		join_call(op);
	return handle;
}

static uint64_t us(uint64_t ns)
{
	return ns / (uint64_t)NSEC_PER_USEC;
}

static struct ring_record send_record(const uint64_t sums[static SUM_CNT], int64_t start_ns)
{
	return (struct ring_record){
		.kind = FLIGHT_NETWORK_SEND,
		.time_ns = start_ns,
		.value = flight_us_pair(us(sums[SUM_SEND_GPU]), us(sums[SUM_SEND_PEER])),
		.extra = (uint64_t)flight_us_pair(us(sums[SUM_SEND_WIRE]), 0)
	};
}

static struct ring_record recv_record(const uint64_t sums[static SUM_CNT], int64_t start_ns)
{
	return (struct ring_record){ .kind = FLIGHT_NETWORK_RECV,
				     .time_ns = start_ns,
				     .value = flight_us_pair(us(sums[SUM_RECV_WIRE]),
							     us(sums[SUM_RECV_FLUSH])),
				     .extra = (uint64_t)flight_us_pair(us(sums[SUM_RECV_GPU]), 0) };
}

/* call: what is known of it; start_ns: of its first operation. */
static void write_network(const struct call *call, uint32_t op_cnt, int64_t start_ns,
			  const uint64_t sums[static SUM_CNT])
{
	bool followed = sums[SUM_STEPS] > 0;
	struct ring_record records[] = {
		{ .kind = FLIGHT_NETWORK,
		  .detail = (uint16_t)MIN(op_cnt, (uint32_t)UINT16_MAX),
		  .time_ns = start_ns,
		  .value = clock_mono_ns() - start_ns,
		  .extra = call->name },
		{ .kind = FLIGHT_COLLECTIVE_ARGS,
		  .time_ns = start_ns,
		  .value = followed ? (int64_t)(sums[SUM_BYTES] & INT64_MAX) : -1,
		  .extra = (uint64_t)call->seq },
		nccl_group_record(call, start_ns),
		send_record(sums, start_ns),
		recv_record(sums, start_ns),
	};

	nccl_write(records, followed ? ARRAY_SIZE(records) : ARRAY_SIZE(records) - 2);
}

/* The last operation of a call under way: all of them are one record. */
static void leave_call(const struct op *op)
{
	struct call *call = &nccl_calls[handle_pool_idx(op->call)];
	uint64_t sums[SUM_CNT];
	int64_t start_ns;
	uint32_t op_cnt;

	for (size_t i = 0; i < SUM_CNT; i++)
		atomic_fetch_add_explicit(&call->sums[i],
					  atomic_load_explicit(&op->sums[i], memory_order_relaxed),
					  memory_order_relaxed);
	start_ns = atomic_load_explicit(&call->network_start_ns, memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&call->open_op_cnt, 1, memory_order_acq_rel) == 1) {
		op_cnt = atomic_exchange_explicit(&call->op_cnt, 0, memory_order_relaxed);
		for (size_t i = 0; i < SUM_CNT; i++)
			sums[i] = atomic_exchange_explicit(&call->sums[i], 0, memory_order_relaxed);
		write_network(call, op_cnt, start_ns, sums);
	}
	(void)handle_pool_drop(&nccl_call_pool, op->call);
}

/* For another process, whose call is unknown here, or for a call whose handle was reused. */
static void write_alone(const struct op *op)
{
	const struct comm *comm = nccl_find_comm(op->comm);
	struct call call = { .seq = -1 };
	uint64_t sums[SUM_CNT];

	call.name = nccl_text_id(op->is_foreign ? "nccl (for another process)" : "nccl");
	if (comm != NULL) {
		call.group = nccl_comm_text_id(comm);
		call.group_size = comm->rank_cnt;
	}
	for (size_t i = 0; i < SUM_CNT; i++)
		sums[i] = atomic_load_explicit(&op->sums[i], memory_order_relaxed);
	write_network(&call, 1, op->start_ns, sums);
}

static void stop_op(nccl_handle handle)
{
	const struct op *op = &ops[handle_pool_idx(handle)];

	/* A second stop of the same operation has no effect. */
	if (!handle_pool_is_held(&op_pool, handle))
		return;
	if (op->call != 0)
		leave_call(op);
	else
		write_alone(op);
	(void)handle_pool_drop(&op_pool, handle);
}

/* --- transfers --- */

nccl_handle nccl_step_start(nccl_handle op)
{
	nccl_handle handle;

	if (!nccl_is_on() || !handle_pool_is_held(&op_pool, op))
		return 0;
	handle = handle_pool_take(&step_pool, ops[handle_pool_idx(op)].comm);
	if (handle == 0)
		nccl_drop();
	else
		steps[handle_pool_idx(handle)] =
			(struct step){ .op = op, .waits_for = SUM_NONE, .sums[SUM_STEPS] = 1 };
	return handle;
}

static enum network_sum sum_of(int state)
{
	switch (state) {
	case NCCL_SEND_GPU_WAIT:
		return SUM_SEND_GPU;
	case NCCL_SEND_PEER_WAIT:
		return SUM_SEND_PEER;
	case NCCL_SEND_WIRE_WAIT:
		return SUM_SEND_WIRE;
	case NCCL_RECV_WIRE_WAIT:
		return SUM_RECV_WIRE;
	case NCCL_RECV_FLUSH_WAIT:
		return SUM_RECV_FLUSH;
	case NCCL_RECV_GPU_WAIT:
		return SUM_RECV_GPU;
	default:
		return SUM_NONE;
	}
}

static void end_wait(struct step *step, int64_t now_ns)
{
	if (step->waits_for != SUM_NONE && now_ns > step->since_ns)
		step->sums[step->waits_for] += (uint64_t)(now_ns - step->since_ns);
	step->since_ns = now_ns;
}

void nccl_state(nccl_handle handle, int state, uint64_t bytes)
{
	struct step *step = &steps[handle_pool_idx(handle) % STEP_CNT];
	enum network_sum next = sum_of(state);

	/* While the peer isn't ready NCCL reports that at every poll. */
	if (!handle_pool_is_held(&step_pool, handle) || next == SUM_NONE || next == step->waits_for)
		return;
	end_wait(step, clock_mono_ns());
	step->waits_for = next;
	if (next == SUM_SEND_WIRE || next == SUM_RECV_FLUSH)
		step->sums[SUM_BYTES] += bytes;
}

static void stop_step(nccl_handle handle)
{
	struct step *step = &steps[handle_pool_idx(handle)];
	struct op *op = &ops[handle_pool_idx(step->op) % OP_CNT];

	if (!handle_pool_is_held(&step_pool, handle))
		return;
	end_wait(step, clock_mono_ns());
	if (handle_pool_hold(&op_pool, step->op)) {
		for (size_t i = 0; i < SUM_CNT; i++)
			atomic_fetch_add_explicit(&op->sums[i], step->sums[i],
						  memory_order_relaxed);
		(void)handle_pool_drop(&op_pool, step->op);
	}
	(void)handle_pool_drop(&step_pool, handle);
}

/* --- any of them --- */

void netevents_reclaim(nccl_handle comm)
{
	handle_pool_reclaim(&op_pool, comm);
	handle_pool_reclaim(&step_pool, comm);
}

bool netevents_stop(nccl_handle handle)
{
	if (handle_pool_owns(&step_pool, handle))
		stop_step(handle);
	else if (handle_pool_owns(&op_pool, handle))
		stop_op(handle);
	else
		return false;
	return true;
}
