/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/events.h"

#include "agent/nccl/abi.h"
#include "agent/nccl/handles.h"
#include "agent/nccl/launch.h"
#include "agent/nccl/words.h"
#include "base/clock.h"

#include <string.h>
#include <unistd.h>

#define COMM_CNT 256u
#define GROUP_CNT 256u
#define API_CNT 1024u
#define CALL_CNT 2048u
#define OP_CNT 4096u
#define STEP_CNT 8192u

#define COMM_TEXT 64u

enum network_sum {
	SUM_SEND_GPU, /* waits, in ns, of all steps */
	SUM_SEND_PEER,
	SUM_SEND_WIRE,
	SUM_RECV_WIRE,
	SUM_RECV_FLUSH,
	SUM_RECV_GPU,
	SUM_BYTES,
	SUM_STEPS,
	SUM_CNT,
	SUM_NONE = SUM_CNT
};

struct comm {
	char text[COMM_TEXT]; /* its group's name in records; "": the calls have it */
	uint32_t text_len;
	uint32_t rank_cnt;
	int rank; /* -1: unknown */
	int *mask;
	enum eventmask_reach reach;
	bool launches;
};

/* What is launched together. On one thread. */
struct group {
	nccl_handle
		sends; /* the one call that its sends and receives are merged into; 0: none yet */
};

/* The call of a function, as NCCL's caller made it. */
struct api {
	int64_t start_ns;
	const void *thread; /* address of one of its variables */
	bool captured;
};

/* A collective, or the sends and receives of a group. Written by its thread but for the last part. */
struct call {
	nccl_handle comm;
	int64_t start_ns, bytes, seq, sent_bytes, received_bytes;
	uint32_t name, what, group, group_size, datatype, algorithm, protocol;
	uint32_t root, call_cnt, pending_cnt; /* calls; those that were not stopped */
	uint16_t detail;

	/* On the network: by the threads that drive it. */
	_Atomic uint32_t op_cnt, open_op_cnt;
	_Atomic int64_t network_start_ns;
	_Atomic uint64_t sums[SUM_CNT];
};

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

#define POOL(name, type, max, number)                 \
	static struct type name##s[max];              \
	static struct handles_slot name##_slots[max]; \
	static struct handles name##_pool = { .slots = name##_slots, .cnt = (max), .tag = (number) }

POOL(comm, comm, COMM_CNT, 1);
POOL(group, group, GROUP_CNT, 2);
POOL(api, api, API_CNT, 3);
POOL(call, call, CALL_CNT, 4);
POOL(op, op, OP_CNT, 5);
POOL(step, step, STEP_CNT, 6);

/* Its address identifies the thread. Initial-exec: no allocation at a thread's first access. */
static __thread char this_thread __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t quiet_cnt; /* communicators that don't report launches */
static _Atomic int own_pid; /* of the process that opened communicators: a forked child has none */

static const struct nccl_sink *sink; /* set before it is on */

void nccl_set_sink(const struct nccl_sink *to)
{
	if (sink != to)
		sink = to;
	eventmask_set_timing(to->timing != NULL);
}

void nccl_set_level(enum nccl_level level)
{
	eventmask_set_level(level);
}

static bool is_on(void)
{
	return eventmask_level() != NCCL_OFF;
}

/*
 * A slot of pool for an event of comm; 0 (counted) when there is none, or comm got no slot itself:
 * its leftovers would never be reclaimed.
 */
static nccl_handle take(struct handles *pool, nccl_handle comm)
{
	nccl_handle handle = comm != 0 ? handles_take(pool, comm) : 0;

	if (handle == 0)
		sink->drop();
	return handle;
}

/* Records that belong together. */
static void write_all(const struct ring_record *records, size_t cnt)
{
	if (!sink->write(records, cnt))
		sink->drop();
}

static uint32_t text_id(const char *text)
{
	return text != NULL ? sink->string(text, strlen(text)) : 0;
}

/* --- communicators --- */

/* "name 0123456789abcdef": names are the job's choice, the number distinguishes equal names. */
static uint32_t comm_text(char text[static COMM_TEXT], const char *name, uint64_t hash)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t len = 0;

	if (name != NULL) {
		len = (uint32_t)strnlen(name, COMM_TEXT - 18);
		memcpy(text, name, len);
		if (len > 0)
			text[len++] = ' ';
	}
	for (int shift = 60; shift >= 0 && hash != 0; shift -= 4)
		text[len++] = digits[hash >> shift & 15];
	if (hash == 0 && len > 0)
		len--; /* the space */
	return len;
}

/* Another one in each process, also where several have the same number. */
static uint64_t process_number(void)
{
	uint64_t number = (uint64_t)clock_mono_ns() ^ (uint64_t)getpid() << 32;

	return ((number ^ (uintptr_t)&sink) * 0x9e3779b97f4a7c15u >> 20) | 1;
}

nccl_handle nccl_comm_open(const struct nccl_comm_about *about)
{
	nccl_handle handle;
	struct comm *comm;

	handles_salt(process_number());
	handle = handles_take(&comm_pool, 0);
	if (handle == 0)
		return 0;
	comm = &comms[handles_idx(handle)];
	*comm = (struct comm){ .rank_cnt = about->rank_cnt > 0 ? (uint32_t)about->rank_cnt : 0,
			       .rank = about->rank,
			       .mask = about->mask,
			       .launches = about->launches,
			       .reach = about->node_cnt == 1 ? EVENTMASK_ONE_HOST
							     : EVENTMASK_NETWORK };
	comm->text_len = comm_text(comm->text, about->name, about->hash);
	atomic_store_explicit(&own_pid, getpid(), memory_order_relaxed);
	eventmask_add(comm->mask, comm->reach);
	if (!comm->launches)
		atomic_fetch_add_explicit(&quiet_cnt, 1, memory_order_relaxed);
	return handle;
}

void nccl_comm_close(nccl_handle handle)
{
	struct handles *pools[] = { &group_pool, &api_pool, &call_pool, &op_pool, &step_pool };
	struct comm comm;

	if (!handles_is_held(&comm_pool, handle))
		return;
	comm = comms[handles_idx(handle)];
	if (!handles_drop(&comm_pool, handle))
		return; /* another thread closed it */
	eventmask_remove(comm.mask, comm.reach);
	if (!comm.launches)
		atomic_fetch_sub_explicit(&quiet_cnt, 1, memory_order_relaxed);
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++)
		handles_reclaim(pools[i], handle);
	launch_reclaim(handle);
}

/* NULL: not a communicator's, or closed. */
static const struct comm *find_comm(nccl_handle handle)
{
	return handles_is_held(&comm_pool, handle) ? &comms[handles_idx(handle)] : NULL;
}

/* --- what is queued --- */

nccl_handle nccl_group_start(nccl_handle comm)
{
	nccl_handle handle = is_on() ? take(&group_pool, comm) : 0;

	if (handle != 0)
		groups[handles_idx(handle)] = (struct group){ 0 };
	return handle;
}

nccl_handle nccl_launch_start(nccl_handle comm, void *queue)
{
	if (!is_on() || sink->timing == NULL || find_comm(comm) == NULL)
		return 0;
	return launch_start(sink->timing, comm, queue);
}

nccl_handle nccl_outer_start(void *queue)
{
	if (!is_on() || sink->timing == NULL ||
	    atomic_load_explicit(&quiet_cnt, memory_order_relaxed) == 0)
		return 0;
	return launch_start(sink->timing, 0, queue);
}

void nccl_outer_stop(nccl_handle launch)
{
	if (launch != 0)
		launch_finish(sink->timing, launch);
}

nccl_handle nccl_api_start(nccl_handle comm, bool captured)
{
	nccl_handle handle = is_on() ? take(&api_pool, comm) : 0;

	if (handle != 0)
		apis[handles_idx(handle)] = (struct api){ .start_ns = clock_mono_ns(),
							  .thread = &this_thread,
							  .captured = captured };
	return handle;
}

/*
 * When the call began: the caller's call, unless that was made on another thread or long
 * ago, to be replayed.
 */
static int64_t start_of(const struct nccl_call *about, uint16_t *detail)
{
	const struct api *api = &apis[handles_idx(about->api) % API_CNT];
	int64_t start_ns = 0;

	if (handles_hold(&api_pool, about->api)) {
		if (api->captured)
			*detail |= FLIGHT_HOW_CAPTURED;
		else if (api->thread == &this_thread)
			start_ns = api->start_ns;
		(void)handles_drop(&api_pool, about->api);
	}
	return start_ns != 0 ? start_ns : clock_mono_ns();
}

/* As PyTorch counts: the larger of what goes in and what comes out. -1: unknown. */
static int64_t bytes_of(const struct nccl_call *about, const struct words_func *words,
			const struct comm *comm)
{
	uint64_t bytes, parts = 1;

	if (words->all_ranks && comm != NULL && comm->rank_cnt > 0)
		parts = comm->rank_cnt;
	if (__builtin_mul_overflow(about->cnt, (uint64_t)words_bytes(about->datatype), &bytes) ||
	    __builtin_mul_overflow(bytes, parts, &bytes) || bytes > INT64_MAX)
		return -1;
	return bytes != 0 || about->cnt == 0 ? (int64_t)bytes : -1;
}

static uint32_t group_text(const struct nccl_call *about, const struct comm *comm)
{
	char text[COMM_TEXT];
	uint32_t len;

	if (comm != NULL && comm->text_len > 0)
		return sink->string(comm->text, comm->text_len);
	len = comm_text(text, about->comm_name, about->comm_hash);
	return len > 0 ? sink->string(text, len) : 0;
}

/* A later send or receive of a group: counted with the first. */
static void add_to(struct call *call, const struct nccl_call *about, const struct words_func *words)
{
	int64_t bytes = bytes_of(about, words, NULL);
	int64_t *sum = strcmp(words->what, "send") == 0 ? &call->sent_bytes : &call->received_bytes;

	*sum = bytes < 0 || *sum < 0 ? -1 : *sum + bytes;
	call->bytes = call->sent_bytes < 0 || call->received_bytes < 0
			      ? -1
			      : MAX(call->sent_bytes, call->received_bytes);
	call->call_cnt++;
	call->pending_cnt++;
	if (call->call_cnt == 2) {
		words = words_find("SendRecv");
		call->name = text_id(words->symbol);
		call->what = text_id(words->what);
		call->detail |= FLIGHT_HOW_MANY;
	}
}

static void fill_call(struct call *call, const struct nccl_call *about, const struct comm *comm)
{
	const struct words_func *words = words_find(about->func);
	uint16_t detail = about->p2p ? FLIGHT_HOW_PEER : 0;

	call->start_ns = start_of(about, &detail);
	call->seq = MAX(about->seq, INT64_C(-1));
	call->sent_bytes = call->received_bytes = 0;
	call->name = text_id(words->symbol);
	call->what = text_id(words->what[0] != '\0' ? words->what : about->func);
	call->group = group_text(about, comm);
	call->group_size = comm != NULL ? MIN(comm->rank_cnt, (uint32_t)INT32_MAX) : 0;
	call->datatype = text_id(about->datatype);
	call->algorithm = text_id(about->algorithm);
	call->protocol = text_id(about->protocol);
	call->root = (uint32_t)about->root;
	call->detail = (uint16_t)(detail | about->channels << 8);
	call->call_cnt = call->pending_cnt = 0;
	if (about->p2p) {
		add_to(call, about, words);
	} else {
		call->bytes = bytes_of(about, words, comm);
		call->call_cnt = call->pending_cnt = 1;
	}
	atomic_store_explicit(&call->op_cnt, 0, memory_order_relaxed);
	atomic_store_explicit(&call->open_op_cnt, 0, memory_order_relaxed);
	for (size_t i = 0; i < SUM_CNT; i++)
		atomic_store_explicit(&call->sums[i], 0, memory_order_relaxed);
}

/* The group whose sends and receives are merged into one call; NULL: none. */
static struct group *find_group(const struct nccl_call *about)
{
	return about->p2p && handles_is_held(&group_pool, about->group)
		       ? &groups[handles_idx(about->group)]
		       : NULL;
}

nccl_handle nccl_call_start(nccl_handle comm, const struct nccl_call *about)
{
	struct group *group = find_group(about);
	nccl_handle handle;

	if (!is_on())
		return 0;
	if (group != NULL && handles_is_held(&call_pool, group->sends)) {
		add_to(&calls[handles_idx(group->sends)], about, words_find(about->func));
		return group->sends;
	}
	handle = take(&call_pool, comm);
	if (handle == 0)
		return 0;
	calls[handles_idx(handle)].comm = comm;
	fill_call(&calls[handles_idx(handle)], about, find_comm(comm));
	if (group != NULL)
		group->sends = handle;
	return handle;
}

static struct ring_record group_record(const struct call *call, int64_t start_ns)
{
	return (struct ring_record){ .kind = FLIGHT_COLLECTIVE_GROUP,
				     .time_ns = start_ns,
				     .value = (int64_t)((uint64_t)call->group_size << 32 |
							call->group),
				     .extra = call->what };
}

static struct ring_record how_record(const struct call *call)
{
	bool many = (call->detail & FLIGHT_HOW_MANY) != 0;

	return (struct ring_record){
		.kind = FLIGHT_COLLECTIVE_HOW,
		.detail = call->detail,
		.time_ns = call->start_ns,
		.value = (int64_t)((uint64_t)call->datatype << 32 | call->algorithm),
		.extra = (uint64_t)call->protocol << 32 | (many ? call->call_cnt : call->root)
	};
}

static void write_call(const struct call *call, int64_t end_ns)
{
	struct ring_record records[LAUNCH_RECORDS] = {
		{ .kind = FLIGHT_COLLECTIVE,
		  .time_ns = call->start_ns,
		  .value = MAX(end_ns - call->start_ns, INT64_C(0)),
		  .extra = call->name },
		{ .kind = FLIGHT_COLLECTIVE_ARGS,
		  .time_ns = call->start_ns,
		  .value = call->bytes,
		  .extra = (uint64_t)call->seq },
		group_record(call, call->start_ns),
		how_record(call),
	};

	write_all(records, ARRAY_SIZE(records));
	launch_add(call->comm, records);
}

static void stop_call(nccl_handle handle)
{
	struct call *call = &calls[handles_idx(handle)];

	if (!handles_is_held(&call_pool, handle) || call->pending_cnt == 0)
		return;
	if (--call->pending_cnt > 0)
		return;
	write_call(call, clock_mono_ns());
	(void)handles_drop(&call_pool, handle);
}

/* --- the network --- */

/* Of the first of the operations that are under way together the start counts. */
static void join_call(struct op *op)
{
	struct call *call = &calls[handles_idx(op->call)];

	if (atomic_fetch_add_explicit(&call->open_op_cnt, 1, memory_order_acq_rel) == 0)
		atomic_store_explicit(&call->network_start_ns, op->start_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&call->op_cnt, 1, memory_order_relaxed);
}

/*
 * Whether the operation belongs to a communicator of this process. Processes of other containers
 * may have the same pid, but neither the same handles nor, in the same communicator, the same rank.
 */
static bool is_ours(nccl_handle handle, const struct nccl_network_op *about)
{
	const struct comm *comm = find_comm(handle);

	return about->pid == atomic_load_explicit(&own_pid, memory_order_relaxed) &&
	       (comm == NULL || comm->rank < 0 || comm->rank == about->rank) &&
	       (comm != NULL || handle == 0);
}

nccl_handle nccl_op_start(nccl_handle comm, const struct nccl_network_op *about)
{
	bool ours = is_ours(comm, about);
	nccl_handle handle = 0;
	struct op *op;

	if (!is_on())
		return 0;
	if (comm != 0 || !ours)
		handle = handles_take(&op_pool, ours ? comm : 0);
	if (handle == 0) {
		sink->drop();
		return 0;
	}
	op = &ops[handles_idx(handle)];
	op->start_ns = clock_mono_ns();
	op->is_foreign = !ours;
	op->comm = ours ? comm : 0;
	op->call = ours && handles_hold(&call_pool, about->parent) ? about->parent : 0;
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
		group_record(call, start_ns),
		send_record(sums, start_ns),
		recv_record(sums, start_ns),
	};

	write_all(records, followed ? ARRAY_SIZE(records) : ARRAY_SIZE(records) - 2);
}

/* The last operation of a call under way: all of them are one record. */
static void leave_call(const struct op *op)
{
	struct call *call = &calls[handles_idx(op->call)];
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
	(void)handles_drop(&call_pool, op->call);
}

/* For another process, whose call is unknown here, or for a call whose handle was reused. */
static void write_alone(const struct op *op)
{
	const struct comm *comm = find_comm(op->comm);
	struct call call = { .seq = -1 };
	uint64_t sums[SUM_CNT];

	call.name = text_id(op->is_foreign ? "nccl (for another process)" : "nccl");
	if (comm != NULL) {
		call.group = sink->string(comm->text, comm->text_len);
		call.group_size = comm->rank_cnt;
	}
	for (size_t i = 0; i < SUM_CNT; i++)
		sums[i] = atomic_load_explicit(&op->sums[i], memory_order_relaxed);
	write_network(&call, 1, op->start_ns, sums);
}

static void stop_op(nccl_handle handle)
{
	const struct op *op = &ops[handles_idx(handle)];

	/* First of all the slot: who stops it twice does so once. */
	if (!handles_is_held(&op_pool, handle))
		return;
	if (op->call != 0)
		leave_call(op);
	else
		write_alone(op);
	(void)handles_drop(&op_pool, handle);
}

/* --- transfers --- */

nccl_handle nccl_step_start(nccl_handle op)
{
	nccl_handle handle;

	if (!is_on() || !handles_is_held(&op_pool, op))
		return 0;
	handle = handles_take(&step_pool, ops[handles_idx(op)].comm);
	if (handle == 0)
		sink->drop();
	else
		steps[handles_idx(handle)] =
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
	struct step *step = &steps[handles_idx(handle) % STEP_CNT];
	enum network_sum next = sum_of(state);

	/* While the peer isn't ready NCCL reports that at every poll. */
	if (!handles_is_held(&step_pool, handle) || next == SUM_NONE || next == step->waits_for)
		return;
	end_wait(step, clock_mono_ns());
	step->waits_for = next;
	if (next == SUM_SEND_WIRE || next == SUM_RECV_FLUSH)
		step->sums[SUM_BYTES] += bytes;
}

static void stop_step(nccl_handle handle)
{
	struct step *step = &steps[handles_idx(handle)];
	struct op *op = &ops[handles_idx(step->op) % OP_CNT];

	if (!handles_is_held(&step_pool, handle))
		return;
	end_wait(step, clock_mono_ns());
	if (handles_hold(&op_pool, step->op)) {
		for (size_t i = 0; i < SUM_CNT; i++)
			atomic_fetch_add_explicit(&op->sums[i], step->sums[i],
						  memory_order_relaxed);
		(void)handles_drop(&op_pool, step->op);
	}
	(void)handles_drop(&step_pool, handle);
}

/* --- any of them --- */

static void stop_group(nccl_handle handle)
{
	if (handles_drop(&group_pool, handle) && sink->timing != NULL)
		launch_end_group(sink->timing);
}

void nccl_stop(nccl_handle handle)
{
	if (handles_owns(&step_pool, handle))
		stop_step(handle);
	else if (handles_owns(&op_pool, handle))
		stop_op(handle);
	else if (handles_owns(&call_pool, handle))
		stop_call(handle);
	else if (handles_owns(&api_pool, handle))
		(void)handles_drop(&api_pool, handle);
	else if (handles_owns(&group_pool, handle))
		stop_group(handle);
	else if (sink != NULL && sink->timing != NULL)
		(void)launch_stop(sink->timing, handle);
}
