/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL, as far as its profiler plugin sees it: communicators, groups, the kernel of a plan as work
 * in a queue (gpu_double.h), operations of the network (libnccl_network.c). A communicator of
 * ncclCommInitRank() is one of several processes, whose kernels wait for each other. Looks the plugin
 * up as the real one does, by NCCL_PROFILER_PLUGIN, and takes the newest table. The order of
 * events is that of NCCL 2.28 and later: the launch, then the group and its calls; of a capture
 * the calls come when the graph is replayed. DOUBLE_NCCL_VERSION=4 makes it an older NCCL, which
 * does not report launches. SONAME libnccl.so.2.
 */
#include "agent/nccl/abi_calls.h"
#include "gpu_double.h"
#include "libnccl_parts.h"
#include "nccl_double.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MAX 64
#define HASH UINT64_C(0x5ca1ab1e)
#define PAIRS 32	    /* from here on groups are of two, for messages */
#define BYTES_PER_US 100000 /* of a link: 100 GB/s */

struct queued {
	struct double_comm *comm;
	const char *func;
	uint64_t cnt;
	int peer; /* -1: a collective */
	int64_t ns;
};

/* One kernel: the calls of one communicator in a group. */
struct double_plan {
	struct double_comm *comm;
	struct queued calls[CALL_MAX];
	size_t cnt;
};

static struct {
	const struct nccl_table_v5 *plugin; /* of version 4, too, but for its init */
	bool is_old;
	int mask, depth;
	struct queued calls[CALL_MAX];
	size_t cnt;
	void *queue;
} nccl;

static void load_plugin(void)
{
	static const char *const names[] = { "ncclProfiler_v7", "ncclProfiler_v6",
					     "ncclProfiler_v5" };
	const char *path = getenv("NCCL_PROFILER_PLUGIN");
	const char *version = getenv("DOUBLE_NCCL_VERSION");
	void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

	nccl.is_old = version != NULL && strcmp(version, "4") == 0;
	if (library != NULL && nccl.is_old)
		nccl.plugin = dlsym(library, "ncclProfiler_v4");
	for (size_t i = 0; library != NULL && nccl.plugin == NULL && i < ARRAY_SIZE(names); i++)
		nccl.plugin = dlsym(library, names[i]);
}

static void init_plugin(struct double_comm *comm, const char *name)
{
	const struct nccl_table_v4 *old;
	uint64_t hash = HASH + comm->id;

	if (nccl.plugin == NULL)
		load_plugin();
	old = (const void *)nccl.plugin;
	if (nccl.plugin != NULL && nccl.is_old)
		(void)old->init(&comm->context, &nccl.mask, name, hash, comm->node_cnt,
				comm->rank_cnt, comm->rank, NULL);
	else if (nccl.plugin != NULL)
		(void)nccl.plugin->init(&comm->context, hash, &nccl.mask, name, comm->node_cnt,
					comm->rank_cnt, comm->rank, NULL);
}

struct double_comm *double_nccl_comm(int node_cnt, int rank_cnt, int rank)
{
	struct double_comm *comm = calloc(1, sizeof(*comm));

	*comm = (struct double_comm){ .rank = rank, .node_cnt = node_cnt, .rank_cnt = rank_cnt };
	init_plugin(comm, "dp");
	return comm;
}

int ncclCommInitRank(void **ret, int rank_cnt, struct double_nccl_id id, int rank)
{
	const char *node_cnt = getenv("DOUBLE_NCCL_NODES");
	struct double_comm *comm = calloc(1, sizeof(*comm));

	*comm = (struct double_comm){ .rank = rank,
				      .rank_cnt = rank_cnt,
				      .node_cnt = node_cnt != NULL ? atoi(node_cnt) : 1,
				      .id = (unsigned char)id.internal[0],
				      .slowdown = 1 };
	init_plugin(comm, id.internal + 1);
	*ret = comm;
	return 0;
}

int ncclCommDestroy(void *comm)
{
	double_nccl_destroy(comm);
	return 0;
}

void double_nccl_slow(struct double_comm *comm, double slowdown)
{
	comm->slowdown = slowdown;
}

void double_nccl_destroy(struct double_comm *comm)
{
	if (nccl.plugin != NULL && comm->context != NULL)
		(void)nccl.plugin->finalize(comm->context);
	free(comm);
}

int double_nccl_mask(void)
{
	return nccl.mask;
}

/* Messages are the last. */
static const struct {
	const char *func, *name;
} funcs[DOUBLE_NCCL_FUNCS] = {
	{ "AllReduce", "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL" },
	{ "AllGather", "_Z31ncclDevKernel_AllGather_RING_LL" },
	{ "ReduceScatter", "_Z44ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL" },
	{ "Broadcast", "_Z31ncclDevKernel_Broadcast_RING_LL" },
	{ "", "_Z22ncclDevKernel_SendRecv" },
};

static size_t func_idx(const char *func)
{
	size_t i = 0;

	while (i + 1 < DOUBLE_NCCL_FUNCS && strcmp(funcs[i].func, func) != 0)
		i++;
	return i;
}

/* --- events --- */

void *nccl_double_start(struct double_comm *comm, void *descr, int wanted)
{
	void *handle = NULL;

	if (nccl.plugin != NULL && (nccl.mask & wanted) != 0)
		(void)nccl.plugin->start(comm->context, &handle, descr);
	return handle;
}

void nccl_double_stop(void *handle)
{
	if (handle != NULL)
		(void)nccl.plugin->stop(handle);
}

void nccl_double_state(void *handle, int state, size_t bytes)
{
	struct nccl_state_args args = { bytes };

	if (handle != NULL)
		(void)nccl.plugin->state(handle, state, &args);
}

static void *start_call(const struct queued *call, void *group)
{
	struct nccl_coll_v4 coll = { .head = { NCCL_COLL, nccl.is_old ? group : NULL,
					       call->comm->rank },
				     .seq = call->comm->seqs[func_idx(call->func)],
				     .func = call->func,
				     .cnt = call->cnt,
				     .datatype = "ncclBfloat16",
				     .channels = 16,
				     .algorithm = "NVLS",
				     .protocol = "SIMPLE",
				     .parent_group = group };
	struct nccl_p2p_v4 p2p = { .head = { NCCL_P2P, nccl.is_old ? group : NULL,
					     call->comm->rank },
				   .func = call->func,
				   .datatype = "ncclBfloat16",
				   .cnt = call->cnt,
				   .peer = call->peer,
				   .channels = 2,
				   .parent_group = group };

	if (call->peer >= 0)
		return nccl_double_start(call->comm, &p2p, NCCL_P2P);
	call->comm->seqs[func_idx(call->func)]++;
	return nccl_double_start(call->comm, &coll, NCCL_COLL);
}

void double_nccl_proxy_for(struct double_comm *comm, void *parent, int pid)
{
	nccl_double_network(comm, parent, pid, 0);
}

/* Of a job's kernel, which takes one turn, the first; of its messages none. */
static size_t networked_cnt(const struct double_plan *plan)
{
	if (plan->comm->slowdown == 0)
		return plan->cnt;
	return plan->calls[0].peer < 0;
}

void double_nccl_replay(const struct double_plan *plan)
{
	struct nccl_descr descr = { .kind = NCCL_GROUP };
	void *group = nccl_double_start(plan->comm, &descr, NCCL_GROUP | NCCL_COLL | NCCL_P2P);
	void *handles[CALL_MAX];

	for (size_t i = 0; i < plan->cnt; i++)
		handles[i] = start_call(&plan->calls[i], group);
	for (size_t i = 0; i < plan->cnt; i++)
		nccl_double_stop(handles[i]);
	for (size_t i = 0; i < networked_cnt(plan); i++)
		nccl_double_network(plan->comm, handles[i], getpid(), plan->calls[i].cnt * 2);
	nccl_double_stop(group);
}

/* --- kernels --- */

static const char *kernel_name(const struct queued *call)
{
	static char mangled[DOUBLE_NCCL_FUNCS][128];
	size_t i = func_idx(call->func);

	(void)snprintf(mangled[i], sizeof(mangled[i]), "%s24ncclDevKernelArgsStorageILm4096EE",
		       funcs[i].name);
	return mangled[i];
}

static struct double_group group_of(const struct queued *call)
{
	uint32_t rank = (uint32_t)call->comm->rank, peer = (uint32_t)call->peer;
	uint32_t high = MAX(rank, peer), low = MIN(rank, peer);

	if (call->peer < 0)
		return (struct double_group){ call->comm->id, rank,
					      (uint32_t)call->comm->rank_cnt };
	return (struct double_group){ PAIRS + high * (high - 1) / 2 + low, rank == high, 2 };
}

/* The groups it waits for: the whole communicator, or the peers of messages. Returns the count. */
static size_t groups_of(const struct double_plan *plan, struct double_group ret[DOUBLE_GROUPS])
{
	size_t cnt = 0;

	for (size_t i = 0; plan->comm->slowdown > 0 && i < plan->cnt && cnt < DOUBLE_GROUPS; i++) {
		struct double_group group = group_of(&plan->calls[i]);
		bool known = false;

		for (size_t j = 0; j < cnt; j++)
			known |= ret[j].id == group.id;
		if (!known)
			ret[cnt++] = group;
	}
	return cnt;
}

static int64_t ns_of(const struct double_plan *plan, int64_t ns)
{
	if (plan->comm->slowdown == 0)
		return ns;
	ns = 0;
	for (size_t i = 0; i < plan->cnt; i++)
		ns += plan->calls[i].ns;
	return ns;
}

static void replay(void *plan)
{
	double_nccl_replay(plan);
}

/* ns: of the kernel. NULL: it ran; else it was captured, and the caller frees it. */
static struct double_plan *launch(const struct double_plan *plan, void *queue, int64_t ns)
{
	struct nccl_kernel_launch descr = { .head = { NCCL_KERNEL_LAUNCH, NULL, plan->comm->rank },
					    .stream = queue };
	void *handle =
		nccl.is_old ? NULL : nccl_double_start(plan->comm, &descr, NCCL_KERNEL_LAUNCH);
	struct double_group groups[DOUBLE_GROUPS];
	size_t group_cnt = groups_of(plan, groups);
	struct double_plan *kept = NULL;
	int captured = 0;

	(void)cuStreamIsCapturing(queue, &captured);
	if (captured != 0) {
		kept = malloc(sizeof(*kept));
		*kept = *plan;
	}
	if (captured != 0 && group_cnt > 0)
		(void)cuLaunchHostFunc(queue, replay, kept);
	if (captured == 0 || group_cnt > 0)
		double_gpu_collective(kernel_name(&plan->calls[0]), queue, ns_of(plan, ns), groups,
				      group_cnt);
	nccl_double_stop(handle);
	if (captured == 0)
		double_nccl_replay(plan);
	return group_cnt > 0 ? NULL : kept; /* the graph has it */
}

/* --- calls --- */

void double_nccl_group_start(void)
{
	nccl.depth++;
}

struct double_plan *double_nccl_group_end(int64_t ns)
{
	struct double_plan *kept = NULL;

	nccl.depth -= nccl.depth > 0;
	if (nccl.depth > 0)
		return NULL;
	for (size_t done = 0; done < nccl.cnt;) {
		struct double_plan plan = { .comm = nccl.calls[done].comm };

		while (done < nccl.cnt && nccl.calls[done].comm == plan.comm)
			plan.calls[plan.cnt++] = nccl.calls[done++];
		kept = launch(&plan, nccl.queue, ns);
	}
	nccl.cnt = 0;
	return kept;
}

/* Time of cnt elements on the wire: bus bytes as in nccl-tests, at the rate of this rank's link. */
int64_t double_nccl_ns(const struct double_comm *comm, const char *func, uint64_t cnt)
{
	double others = comm->rank_cnt > 1 ? comm->rank_cnt - 1 : 1;
	double factor = strcmp(func, "AllReduce") == 0 ? 2 * others / comm->rank_cnt : 1;

	if (strcmp(func, "AllGather") == 0 || strcmp(func, "ReduceScatter") == 0)
		factor = others; /* cnt is of one rank's part */
	return (int64_t)(2 * (double)cnt * factor * 1000 / BYTES_PER_US * comm->slowdown);
}

struct double_plan *double_nccl_call(struct double_comm *comm, const char *func, uint64_t cnt,
				     int peer, void *queue, int64_t ns)
{
	if (nccl.cnt < CALL_MAX)
		nccl.calls[nccl.cnt++] =
			(struct queued){ comm, func, cnt, peer, double_nccl_ns(comm, func, cnt) };
	nccl.queue = queue;
	if (nccl.depth > 0)
		return NULL;
	nccl.depth++;
	return double_nccl_group_end(ns);
}

/* --- as the real one calls them; a kernel takes 100 ns for each element --- */

static int call(struct double_comm *comm, const char *func, size_t cnt, int peer, void *queue)
{
	free(double_nccl_call(comm, func, cnt, peer, queue, 100 * (int64_t)cnt));
	return 0;
}

int ncclAllReduce(const void *from, void *to, size_t cnt, int type, int op, void *comm, void *queue)
{
	return from == to && type == 9 && op == 4 ? call(comm, "AllReduce", cnt, -1, queue) : 4;
}

int ncclAllGather(const void *from, void *to, size_t cnt, int type, void *comm, void *queue)
{
	return from == to && type == 9 ? call(comm, "AllGather", cnt, -1, queue) : 4;
}

int ncclReduceScatter(const void *from, void *to, size_t cnt, int type, int op, void *comm,
		      void *queue)
{
	return from == to && type == 9 && op == 4 ? call(comm, "ReduceScatter", cnt, -1, queue) : 4;
}

int ncclSend(const void *from, size_t cnt, int type, int peer, void *comm, void *queue)
{
	return from == NULL && type == 9 ? call(comm, "Send", cnt, peer, queue) : 4;
}

int ncclRecv(void *to, size_t cnt, int type, int peer, void *comm, void *queue)
{
	return to == NULL && type == 9 ? call(comm, "Recv", cnt, peer, queue) : 4;
}

int ncclGroupStart(void)
{
	double_nccl_group_start();
	return 0;
}

int ncclGroupEnd(void)
{
	free(double_nccl_group_end(5000));
	return 0;
}
