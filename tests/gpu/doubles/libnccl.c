/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL, as far as its profiler plugin sees it: communicators, groups, the kernel of a plan as work
 * in a queue (gpu_double.h), operations of the network on a thread of their own. Looks the plugin
 * up as the real one does, by NCCL_PROFILER_PLUGIN, and takes the newest table. The order of
 * events is that of NCCL 2.28 and later: the launch, then the group and its calls; of a capture
 * the calls come when the graph is replayed. DOUBLE_NCCL_VERSION=4 makes it one of before, which
 * does not tell of launches. SONAME libnccl.so.2.
 */
#include "collect/nccl/abi_calls.h"
#include "gpu_double.h"
#include "nccl_double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MAX 64
#define HASH UINT64_C(0x5ca1ab1e)

struct queued {
	struct double_comm *comm;
	const char *func;
	uint64_t cnt;
	int peer; /* -1: a collective */
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

static void init_old(struct double_comm *comm, int node_cnt, int rank_cnt)
{
	const struct nccl_table_v4 *plugin = (const void *)nccl.plugin;

	(void)plugin->init(&comm->context, &nccl.mask, "dp", HASH, node_cnt, rank_cnt, comm->rank,
			   NULL);
}

struct double_comm *double_nccl_comm(int node_cnt, int rank_cnt, int rank)
{
	struct double_comm *comm = calloc(1, sizeof(*comm));

	if (nccl.plugin == NULL)
		load_plugin();
	comm->rank = rank;
	comm->node_cnt = node_cnt;
	if (nccl.plugin != NULL && nccl.is_old)
		init_old(comm, node_cnt, rank_cnt);
	else if (nccl.plugin != NULL)
		(void)nccl.plugin->init(&comm->context, HASH, &nccl.mask, "dp", node_cnt, rank_cnt,
					rank, NULL);
	return comm;
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

/* --- events --- */

static void *start(struct double_comm *comm, void *descr, int wanted)
{
	void *handle = NULL;

	if (nccl.plugin != NULL && (nccl.mask & wanted) != 0)
		(void)nccl.plugin->start(comm->context, &handle, descr);
	return handle;
}

static void stop(void *handle)
{
	if (handle != NULL)
		(void)nccl.plugin->stop(handle);
}

static void *start_call(const struct queued *call, void *group)
{
	struct nccl_coll_v4 coll = { .head = { NCCL_COLL, nccl.is_old ? group : NULL,
					       call->comm->rank },
				     .seq = call->comm->seq,
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
		return start(call->comm, &p2p, NCCL_P2P);
	call->comm->seq++;
	return start(call->comm, &coll, NCCL_COLL);
}

/* The network thread of another process works for this call, or ours does. */
struct proxied {
	struct double_comm *comm;
	void *parent;
	int pid;
};

static void *drive(void *arg)
{
	const struct proxied *what = arg;
	struct nccl_proxy_op descr = { .head = { NCCL_PROXY_OP, what->parent, what->comm->rank },
				       .pid = what->pid,
				       .is_send = 1 };

	stop(start(what->comm, &descr, NCCL_PROXY_OP));
	return NULL;
}

static void drive_network(struct double_comm *comm, void *parent, int pid)
{
	struct proxied what = { comm, parent, pid };
	pthread_t thread;

	if (comm->node_cnt > 1 && pthread_create(&thread, NULL, drive, &what) == 0)
		(void)pthread_join(thread, NULL);
}

void double_nccl_proxy_for(struct double_comm *comm, void *parent, int pid)
{
	drive_network(comm, parent, pid);
}

void double_nccl_replay(const struct double_plan *plan)
{
	struct nccl_descr descr = { .kind = NCCL_GROUP };
	void *group = start(plan->comm, &descr, NCCL_GROUP | NCCL_COLL | NCCL_P2P);
	void *handles[CALL_MAX];

	for (size_t i = 0; i < plan->cnt; i++)
		handles[i] = start_call(&plan->calls[i], group);
	for (size_t i = 0; i < plan->cnt; i++)
		stop(handles[i]);
	for (size_t i = 0; i < plan->cnt; i++)
		drive_network(plan->comm, handles[i], getpid());
	stop(group);
}

/* ns: of the kernel. NULL: it ran; else it was captured, and the caller frees it. */
static struct double_plan *launch(const struct double_plan *plan, void *queue, int64_t ns)
{
	struct nccl_kernel_launch descr = { .head = { NCCL_KERNEL_LAUNCH, NULL, plan->comm->rank },
					    .stream = queue };
	void *handle = nccl.is_old ? NULL : start(plan->comm, &descr, NCCL_KERNEL_LAUNCH);
	struct double_plan *kept = NULL;
	int captured = 0;

	(void)cuStreamIsCapturing(queue, &captured);
	if (captured == 0)
		double_gpu_work(queue, ns);
	stop(handle);
	if (captured == 0) {
		double_nccl_replay(plan);
	} else {
		kept = malloc(sizeof(*kept));
		*kept = *plan;
	}
	return kept;
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

struct double_plan *double_nccl_call(struct double_comm *comm, const char *func, uint64_t cnt,
				     int peer, void *queue, int64_t ns)
{
	if (nccl.cnt < CALL_MAX)
		nccl.calls[nccl.cnt++] = (struct queued){ comm, func, cnt, peer };
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
