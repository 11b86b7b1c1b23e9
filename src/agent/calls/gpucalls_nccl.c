/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports NCCL's functions by their own names, as gpucalls_cuda.c does CUDA's: for NCCL before
 * 2.28, which does not report launches to its profiler plugin. The kernel is launched within the
 * call, or within the end of a group; that is timed in the call's queue, and the events that the
 * plugin gets meanwhile identify the collective. A group with several queues is not timed.
 * Source: nccl.h of NCCL 2.18 to 2.32.
 */
#include "agent/calls/gpucalls.h"
#include "agent/calls/realcall.h"
#include "agent/nccl/events.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define INTERNAL_ERROR 3 /* ncclInternalError */

static const char *const nccl_names[] = { "libnccl.so.2", NULL };

/* This thread's group. Initial-exec: no allocation at a thread's first access. */
enum queues { QUEUES_NONE, QUEUES_ONE, QUEUES_MANY };
static __thread int depth __attribute__((tls_model("initial-exec")));
static __thread enum queues queues __attribute__((tls_model("initial-exec")));
static __thread void *queue_of_group __attribute__((tls_model("initial-exec")));

/* Before a call: 0 if it doesn't launch, or is not timed. */
static nccl_handle begin(void *queue)
{
	if (depth == 0)
		return gpucalls_are_on() ? nccl_outer_start(queue) : 0;
	if (queues == QUEUES_ONE && queue != queue_of_group)
		queues = QUEUES_MANY;
	if (queues == QUEUES_NONE) {
		queues = QUEUES_ONE;
		queue_of_group = queue;
	}
	return 0;
}

#define THROUGH(function, parameters, arguments)                                     \
	EXPORT int function parameters;                                              \
	int function parameters                                                      \
	{                                                                            \
		static struct realcall real = REALCALL(#function, nccl_names);       \
		int(*next) parameters = NULL;                                        \
		nccl_handle launch;                                                  \
		int ret;                                                             \
                                                                                     \
		*(void **)&next = realcall_find(&real, __builtin_return_address(0)); \
		if (next == NULL)                                                    \
			return INTERNAL_ERROR;                                       \
		launch = begin(queue);                                               \
		ret = next arguments;                                                \
		nccl_outer_stop(launch);                                             \
		return ret;                                                          \
	}

THROUGH(ncclAllReduce,
	(const void *from, void *to, size_t cnt, int type, int op, void *comm, void *queue),
	(from, to, cnt, type, op, comm, queue))
THROUGH(ncclReduceScatter,
	(const void *from, void *to, size_t cnt, int type, int op, void *comm, void *queue),
	(from, to, cnt, type, op, comm, queue))
THROUGH(ncclBroadcast,
	(const void *from, void *to, size_t cnt, int type, int root, void *comm, void *queue),
	(from, to, cnt, type, root, comm, queue))
THROUGH(ncclAllGather, (const void *from, void *to, size_t cnt, int type, void *comm, void *queue),
	(from, to, cnt, type, comm, queue))
THROUGH(ncclReduce,
	(const void *from, void *to, size_t cnt, int type, int op, int root, void *comm,
	 void *queue),
	(from, to, cnt, type, op, root, comm, queue))
THROUGH(ncclSend, (const void *from, size_t cnt, int type, int peer, void *comm, void *queue),
	(from, cnt, type, peer, comm, queue))
THROUGH(ncclRecv, (void *to, size_t cnt, int type, int peer, void *comm, void *queue),
	(to, cnt, type, peer, comm, queue))

EXPORT int ncclGroupStart(void);
EXPORT int ncclGroupEnd(void);

int ncclGroupStart(void)
{
	static struct realcall real = REALCALL("ncclGroupStart", nccl_names);
	int (*next)(void) = NULL;

	*(void **)&next = realcall_find(&real, __builtin_return_address(0));
	if (next == NULL)
		return INTERNAL_ERROR;
	if (depth++ == 0)
		queues = QUEUES_NONE;
	return next();
}

int ncclGroupEnd(void)
{
	static struct realcall real = REALCALL("ncclGroupEnd", nccl_names);
	int (*next)(void) = NULL;
	nccl_handle launch = 0;
	int ret;

	*(void **)&next = realcall_find(&real, __builtin_return_address(0));
	if (next == NULL)
		return INTERNAL_ERROR;
	if (depth > 0)
		depth--;
	if (depth == 0 && queues == QUEUES_ONE)
		launch = begin(queue_of_group);
	if (depth == 0)
		queues = QUEUES_NONE;
	ret = next();
	nccl_outer_stop(launch);
	return ret;
}
