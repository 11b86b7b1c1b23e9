/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as NCCL's profiler plugin: seven tables over one core. NCCL takes the
 * newest that it knows, from the file that NCCL_PROFILER_PLUGIN names; that is the
 * file of the agent, so that both are one library in one process.
 *
 * Every function returns success and sets its output: a failure would make NCCL disable profiling
 * with a warning in the job's log, or worse.
 */
#include "agent/nccl/abi_calls.h"
#include "agent/nccl/events.h"
#include "agent/nccl/words.h"

/* Handles are numbers that go through NCCL as addresses. */
static nccl_handle handle_of(const void *pointer)
{
	return (nccl_handle)(uintptr_t)pointer;
}

static int give(void **ret, nccl_handle handle)
{
	if (ret != NULL)
		*ret = (void *)(uintptr_t)handle;
	return NCCL_SUCCESS;
}

/* --- what a version knows of a call --- */

static struct nccl_call coll_v1(const struct nccl_coll_v1 *descr)
{
	return (struct nccl_call){ .func = words_func(descr->func),
				   .datatype = words_datatype(descr->datatype),
				   .algorithm = words_algorithm(descr->algorithm),
				   .protocol = words_protocol(descr->protocol),
				   .comm_name = descr->comm_name,
				   .comm_hash = descr->comm_hash,
				   .cnt = descr->cnt,
				   .seq = (int64_t)descr->seq,
				   .root = descr->root,
				   .channels = descr->channels,
				   .group = handle_of(descr->head.parent) };
}

static struct nccl_call p2p_v1(const struct nccl_p2p_v1 *descr)
{
	return (struct nccl_call){ .func = words_func(descr->func),
				   .datatype = words_datatype(descr->datatype),
				   .comm_name = descr->comm_name,
				   .comm_hash = descr->comm_hash,
				   .cnt = descr->cnt,
				   .seq = -1,
				   .root = descr->peer,
				   .p2p = true,
				   .group = handle_of(descr->head.parent) };
}

static struct nccl_call coll_v2(const struct nccl_coll_v2 *descr)
{
	return (struct nccl_call){ .func = descr->func,
				   .datatype = descr->datatype,
				   .algorithm = descr->algorithm,
				   .protocol = descr->protocol,
				   .comm_name = descr->comm_name,
				   .comm_hash = descr->comm_hash,
				   .cnt = descr->cnt,
				   .seq = (int64_t)descr->seq,
				   .root = descr->root,
				   .channels = descr->channels,
				   .group = handle_of(descr->head.parent) };
}

static struct nccl_call coll_v3(const struct nccl_coll_v3 *descr)
{
	return (struct nccl_call){ .func = descr->func,
				   .datatype = descr->datatype,
				   .algorithm = descr->algorithm,
				   .protocol = descr->protocol,
				   .comm_name = descr->comm_name,
				   .comm_hash = descr->comm_hash,
				   .cnt = descr->cnt,
				   .seq = (int64_t)descr->seq,
				   .root = descr->root,
				   .channels = descr->channels,
				   .group = handle_of(descr->head.parent) };
}

static struct nccl_call p2p_v2(const struct nccl_p2p_v2 *descr)
{
	return (struct nccl_call){ .func = descr->func,
				   .datatype = descr->datatype,
				   .comm_name = descr->comm_name,
				   .comm_hash = descr->comm_hash,
				   .cnt = descr->cnt,
				   .seq = -1,
				   .root = descr->peer,
				   .p2p = true,
				   .group = handle_of(descr->head.parent) };
}

/* The parent is the group in version 4, the call from version 5 on. */
static struct nccl_call coll_v4(const struct nccl_coll_v4 *descr, int version)
{
	const void *parent = descr->head.parent;

	return (struct nccl_call){ .func = descr->func,
				   .datatype = descr->datatype,
				   .algorithm = descr->algorithm,
				   .protocol = descr->protocol,
				   .cnt = descr->cnt,
				   .seq = (int64_t)descr->seq,
				   .root = descr->root,
				   .channels = descr->channels,
				   .api = version >= 5 ? handle_of(parent) : 0,
				   .group =
					   handle_of(version >= 5 ? descr->parent_group : parent) };
}

static struct nccl_call p2p_v4(const struct nccl_p2p_v4 *descr, int version)
{
	const void *parent = descr->head.parent;

	return (struct nccl_call){ .func = descr->func,
				   .datatype = descr->datatype,
				   .cnt = descr->cnt,
				   .seq = -1,
				   .root = descr->peer,
				   .channels = descr->channels,
				   .p2p = true,
				   .api = version >= 5 ? handle_of(parent) : 0,
				   .group =
					   handle_of(version >= 5 ? descr->parent_group : parent) };
}

static struct nccl_call coll_of(const void *descr, int version)
{
	switch (version) {
	case 1:
		return coll_v1(descr);
	case 2:
		return coll_v2(descr);
	case 3:
		return coll_v3(descr);
	default:
		return coll_v4(descr, version);
	}
}

static struct nccl_call p2p_of(const void *descr, int version)
{
	switch (version) {
	case 1:
		return p2p_v1(descr);
	case 2:
	case 3:
		return p2p_v2(descr);
	default:
		return p2p_v4(descr, version);
	}
}

/* --- events --- */

static nccl_handle start_op(nccl_handle comm, const struct nccl_proxy_op *descr)
{
	struct nccl_network_op op = { .parent = handle_of(descr->head.parent),
				      .pid = descr->pid,
				      .rank = descr->head.rank };

	return nccl_op_start(comm, &op);
}

static nccl_handle start_call(nccl_handle comm, const void *descr, uint64_t kind, int version)
{
	struct nccl_call call =
		kind == NCCL_COLL ? coll_of(descr, version) : p2p_of(descr, version);

	return nccl_call_start(comm, &call);
}

static nccl_handle start(nccl_handle comm, const struct nccl_descr *descr, int version)
{
	uint64_t kind = version >= 5 ? descr->kind : (uint8_t)descr->kind;

	switch (kind) {
	case NCCL_GROUP:
		return nccl_group_start(comm);
	case NCCL_COLL:
	case NCCL_P2P:
		return start_call(comm, descr, kind, version);
	case NCCL_PROXY_OP:
		return start_op(comm, (const struct nccl_proxy_op *)descr);
	case NCCL_PROXY_STEP:
		return nccl_step_start(handle_of(descr->parent));
	case NCCL_KERNEL_LAUNCH:
		return nccl_launch_start(comm, ((const struct nccl_kernel_launch *)descr)->stream);
	case NCCL_COLL_API:
		return nccl_api_start(comm, ((const struct nccl_coll_api *)descr)->captured);
	case NCCL_P2P_API:
		return nccl_api_start(comm, ((const struct nccl_p2p_api *)descr)->captured);
	default: /* not asked for; those of a later version */
		return 0;
	}
}

static int start_event(void *context, void **handle, const void *descr, int version)
{
	return give(handle, descr != NULL ? start(handle_of(context), descr, version) : 0);
}

static int stop_event(void *handle)
{
	nccl_stop(handle_of(handle));
	return NCCL_SUCCESS;
}

/* Before version 4 a transfer's bytes are unknown. */
static int state_old(void *handle, int state, _unused_ const struct nccl_state_args *args)
{
	nccl_state(handle_of(handle), state, 0);
	return NCCL_SUCCESS;
}

static int state_new(void *handle, int state, const struct nccl_state_args *args)
{
	nccl_state(handle_of(handle), state, args != NULL ? args->bytes : 0);
	return NCCL_SUCCESS;
}

/* --- communicators --- */

static int finalize(void *context)
{
	nccl_comm_close(handle_of(context));
	return NCCL_SUCCESS;
}

static int init_v1(void **context, int *mask)
{
	return give(context, nccl_comm_open(&(struct nccl_comm_about){ .rank = -1, .mask = mask }));
}

static int init(void **context, uint64_t comm_hash, int *mask, const char *comm_name, int node_cnt,
		int rank_cnt, int rank, bool launches)
{
	struct nccl_comm_about about = { .name = comm_name,
					 .hash = comm_hash,
					 .node_cnt = node_cnt,
					 .rank_cnt = rank_cnt,
					 .rank = rank,
					 .mask = mask,
					 .launches = launches };

	return give(context, nccl_comm_open(&about));
}

static int init_v4(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
		   int node_cnt, int rank_cnt, int rank, _unused_ void (*log)(void))
{
	return init(context, comm_hash, mask, comm_name, node_cnt, rank_cnt, rank, false);
}

static int init_v5(void **context, uint64_t comm_hash, int *mask, const char *comm_name,
		   int node_cnt, int rank_cnt, int rank, _unused_ void (*log)(void))
{
	return init(context, comm_hash, mask, comm_name, node_cnt, rank_cnt, rank, true);
}

/* --- tables --- */

#define START(version)                                                         \
	static int start_v##version(void *context, void **handle, void *descr) \
	{                                                                      \
		return start_event(context, handle, descr, version);           \
	}

START(1)
START(2)
START(3)
START(4)
START(5)
START(6)
START(7)

const struct nccl_table_v1 ncclProfiler_v1 = { "perftracker", init_v1,	 start_v1,
					       stop_event,    state_old, finalize };
const struct nccl_table_v1 ncclProfiler_v2 = { "perftracker", init_v1,	 start_v2,
					       stop_event,    state_old, finalize };
const struct nccl_table_v1 ncclProfiler_v3 = { "perftracker", init_v1,	 start_v3,
					       stop_event,    state_old, finalize };
const struct nccl_table_v4 ncclProfiler_v4 = { "perftracker", init_v4,	 start_v4,
					       stop_event,    state_new, finalize };
const struct nccl_table_v5 ncclProfiler_v5 = { "perftracker", init_v5,	 start_v5,
					       stop_event,    state_new, finalize };
const struct nccl_table_v5 ncclProfiler_v6 = { "perftracker", init_v5,	 start_v6,
					       stop_event,    state_new, finalize };
const struct nccl_table_v5 ncclProfiler_v7 = { "perftracker", init_v5,	 start_v7,
					       stop_event,    state_new, finalize };
