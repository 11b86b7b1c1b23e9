/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/events.h"

#include "agent/nccl/events_parts.h"
#include "agent/nccl/handles.h"
#include "agent/nccl/launch.h"
#include "agent/nccl/words.h"
#include "base/clock.h"

#include <string.h>
#include <unistd.h>

#define COMM_CNT 256u
#define GROUP_CNT 256u
#define API_CNT 1024u

/* What is launched together. On one thread. */
struct group {
	/* The one call that its sends and receives are merged into; 0: none yet. */
	nccl_handle sends;
};

/* The call of a function, as NCCL's caller made it. */
struct api {
	int64_t start_ns;
	const void *thread; /* address of one of its variables */
	bool captured;
};

HANDLES(comm, COMM_CNT, 1);
HANDLES(group, GROUP_CNT, 2);
HANDLES(api, API_CNT, 3);
struct call nccl_calls[NCCL_CALL_CNT];
static struct handle_pool_slot call_slots[NCCL_CALL_CNT];
struct handle_pool nccl_call_pool = { .slots = call_slots, .cnt = NCCL_CALL_CNT, .tag = 4 };

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

bool nccl_is_on(void)
{
	return eventmask_level() != NCCL_OFF;
}

/*
 * A slot of pool for an event of comm; 0 (counted) when there is none, or comm got no slot itself:
 * its leftovers would never be reclaimed.
 */
static nccl_handle take(struct handle_pool *pool, nccl_handle comm)
{
	nccl_handle handle = comm != 0 ? handle_pool_take(pool, comm) : 0;

	if (handle == 0)
		sink->drop();
	return handle;
}

void nccl_write(const struct ring_record *records, size_t cnt)
{
	if (!sink->write(records, cnt))
		sink->drop();
}

void nccl_drop(void)
{
	sink->drop();
}

bool nccl_is_own_pid(int pid)
{
	return pid == atomic_load_explicit(&own_pid, memory_order_relaxed);
}

uint32_t nccl_text_id(const char *text)
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

	handle_pool_salt(process_number());
	handle = handle_pool_take(&comm_pool, 0);
	if (handle == 0)
		return 0;
	comm = &comms[handle_pool_idx(handle)];
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
	struct handle_pool *pools[] = { &group_pool, &api_pool, &nccl_call_pool };
	struct comm comm;

	if (!handle_pool_is_held(&comm_pool, handle))
		return;
	comm = comms[handle_pool_idx(handle)];
	if (!handle_pool_drop(&comm_pool, handle))
		return; /* another thread closed it */
	eventmask_remove(comm.mask, comm.reach);
	if (!comm.launches)
		atomic_fetch_sub_explicit(&quiet_cnt, 1, memory_order_relaxed);
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++)
		handle_pool_reclaim(pools[i], handle);
	netevents_reclaim(handle);
	launch_reclaim(handle);
}

const struct comm *nccl_find_comm(nccl_handle handle)
{
	return handle_pool_is_held(&comm_pool, handle) ? &comms[handle_pool_idx(handle)] : NULL;
}

/* --- what is queued --- */

nccl_handle nccl_group_start(nccl_handle comm)
{
	nccl_handle handle = nccl_is_on() ? take(&group_pool, comm) : 0;

	if (handle != 0)
		groups[handle_pool_idx(handle)] = (struct group){ 0 };
	return handle;
}

nccl_handle nccl_launch_start(nccl_handle comm, void *queue)
{
	if (!nccl_is_on() || sink->timing == NULL || nccl_find_comm(comm) == NULL)
		return 0;
	return launch_start(sink->timing, comm, queue);
}

nccl_handle nccl_outer_start(void *queue)
{
	if (!nccl_is_on() || sink->timing == NULL ||
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
	nccl_handle handle = nccl_is_on() ? take(&api_pool, comm) : 0;

	if (handle != 0)
		apis[handle_pool_idx(handle)] = (struct api){ .start_ns = clock_mono_ns(),
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
	const struct api *api = &apis[handle_pool_idx(about->api) % API_CNT];
	int64_t start_ns = 0;

	if (handle_pool_hold(&api_pool, about->api)) {
		if (api->captured)
			*detail |= FLIGHT_HOW_CAPTURED;
		else if (api->thread == &this_thread)
			start_ns = api->start_ns;
		(void)handle_pool_drop(&api_pool, about->api);
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

uint32_t nccl_comm_text_id(const struct comm *comm)
{
	return sink->string(comm->text, comm->text_len);
}

static uint32_t group_text(const struct nccl_call *about, const struct comm *comm)
{
	char text[COMM_TEXT];
	uint32_t len;

	if (comm != NULL && comm->text_len > 0)
		return nccl_comm_text_id(comm);
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
		call->name = nccl_text_id(words->symbol);
		call->what = nccl_text_id(words->what);
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
	call->name = nccl_text_id(words->symbol);
	call->what = nccl_text_id(words->what[0] != '\0' ? words->what : about->func);
	call->group = group_text(about, comm);
	call->group_size = comm != NULL ? MIN(comm->rank_cnt, (uint32_t)INT32_MAX) : 0;
	call->datatype = nccl_text_id(about->datatype);
	call->algorithm = nccl_text_id(about->algorithm);
	call->protocol = nccl_text_id(about->protocol);
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
	return about->p2p && handle_pool_is_held(&group_pool, about->group)
		       ? &groups[handle_pool_idx(about->group)]
		       : NULL;
}

nccl_handle nccl_call_start(nccl_handle comm, const struct nccl_call *about)
{
	struct group *group = find_group(about);
	nccl_handle handle;

	if (!nccl_is_on())
		return 0;
	if (group != NULL && handle_pool_is_held(&nccl_call_pool, group->sends)) {
		add_to(&nccl_calls[handle_pool_idx(group->sends)], about, words_find(about->func));
		return group->sends;
	}
	handle = take(&nccl_call_pool, comm);
	if (handle == 0)
		return 0;
	nccl_calls[handle_pool_idx(handle)].comm = comm;
	fill_call(&nccl_calls[handle_pool_idx(handle)], about, nccl_find_comm(comm));
	if (group != NULL)
		group->sends = handle;
	return handle;
}

struct ring_record nccl_group_record(const struct call *call, int64_t start_ns)
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
		nccl_group_record(call, call->start_ns),
		how_record(call),
	};

	nccl_write(records, ARRAY_SIZE(records));
	launch_add(call->comm, records);
}

static void stop_call(nccl_handle handle)
{
	struct call *call = &nccl_calls[handle_pool_idx(handle)];

	if (!handle_pool_is_held(&nccl_call_pool, handle) || call->pending_cnt == 0)
		return;
	if (--call->pending_cnt > 0)
		return;
	write_call(call, clock_mono_ns());
	(void)handle_pool_drop(&nccl_call_pool, handle);
}

/* --- any of them --- */

static void stop_group(nccl_handle handle)
{
	if (handle_pool_drop(&group_pool, handle) && sink->timing != NULL)
		launch_end_group(sink->timing);
}

void nccl_stop(nccl_handle handle)
{
	if (netevents_stop(handle))
		return;
	if (handle_pool_owns(&nccl_call_pool, handle))
		stop_call(handle);
	else if (handle_pool_owns(&api_pool, handle))
		(void)handle_pool_drop(&api_pool, handle);
	else if (handle_pool_owns(&group_pool, handle))
		stop_group(handle);
	else if (sink != NULL && sink->timing != NULL)
		(void)launch_stop(sink->timing, handle);
}
