/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's names that a whole job calls, and what the doubles of its libraries order
 * (gpu_double.h), on top of libcuda.c, with which it is one library: launches, events and graphs on
 * streams that work in real time. A queue is the number of its stream, a kernel a struct
 * double_function. A capture takes what its own queue gets. DOUBLE_LAUNCH_NS: how long a launch
 * keeps its thread busy, as a real driver would.
 */
#include "double.h"
#include "gpu_double.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT DOUBLE_EXPORT
#define QUEUES 64
#define NODE_MAX 1024
#define NOT_READY 600
#define CAPTURE_IMPLICIT 906
#define CONTEXT_MISMATCH 201

struct graph {
	struct double_node nodes[NODE_MAX];
	size_t cnt;
};

/* Of libcuda.c: they call the watcher. */
int double_begin_capture(void *queue, int mode);
int double_end_capture(void *queue, void **ret);

EXPORT int cuDevicePrimaryCtxRetain(void **ret, int device);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuFuncGetName(const char **ret, const void *kernel);
EXPORT int cuLaunchKernel(const void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			  unsigned by, unsigned bz, unsigned shared, void *queue, void **parameters,
			  void **extra);
EXPORT int cuLaunchHostFunc(void *queue, void (*host)(void *arg), void *arg);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *queue);
EXPORT int cuStreamSynchronize(void *queue);
EXPORT int cuStreamWaitEvent(void *queue, void *event, unsigned flags);
EXPORT int cuStreamBeginCapture_v2(void *queue, int mode);
EXPORT int cuStreamEndCapture(void *queue, void **ret);
EXPORT int cuStreamIsCapturing(void *queue, int *ret);
EXPORT int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags);
EXPORT int cuGraphLaunch(void *graph, void *queue);
EXPORT int cuEventCreate(void **ret, unsigned flags);
EXPORT int cuEventRecord(void *event, void *queue);
EXPORT int cuEventQuery(void *event);
EXPORT int cuEventElapsedTime(float *ret_ms, const void *from, const void *to);

static struct {
	struct graph *captures[QUEUES]; /* by queue; by the threads that fill them */
	_Atomic int capturing;
	_Atomic int64_t records, launch_ns; /* the latter -1: not asked for yet */
} gpu = { .launch_ns = -1 };

static const char gemm_name[] = "_Z23sm90_xmma_gemm_bf16bf16v";

static uint32_t stream_of(const void *queue)
{
	return (uint32_t)((uintptr_t)queue % QUEUES);
}

static void put(void *queue, const struct double_node *node)
{
	struct graph *graph = gpu.captures[stream_of(queue)];

	if (graph != NULL && graph->cnt < NODE_MAX)
		graph->nodes[graph->cnt++] = *node;
	else if (node->host != NULL)
		double_host(stream_of(queue), node->host, node->arg);
	else
		double_collective(node->name, stream_of(queue), node->ns, node->groups,
				  node->group_cnt);
}

/* --- what other doubles order --- */

void double_gpu_work(void *queue, int64_t ns)
{
	put(queue, &(struct double_node){ .name = gemm_name, .ns = ns });
}

void double_gpu_collective(const char *name, void *queue, int64_t ns,
			   const struct double_group *groups, size_t cnt)
{
	struct double_node node = { .name = name, .ns = ns, .group_cnt = cnt };

	memcpy(node.groups, groups, cnt * sizeof(*groups));
	put(queue, &node);
}

int64_t double_gpu_count(const char *what)
{
	return strcmp(what, "records") == 0 ? gpu.records : 0;
}

/* --- the driver --- */

int cuDevicePrimaryCtxRetain(void **ret, int device)
{
	double_context(1);
	*ret = &gpu;
	return device == 0 ? 0 : 101;
}

int cuCtxSetCurrent(void *context)
{
	double_gpu_context(context);
	return context == &gpu || context == NULL ? 0 : CONTEXT_MISMATCH;
}

int cuFuncGetName(const char **ret, const void *kernel)
{
	*ret = ((const struct double_function *)kernel)->name;
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void be_busy(void)
{
	const char *text = gpu.launch_ns < 0 ? getenv("DOUBLE_LAUNCH_NS") : NULL;
	int64_t begin_ns = now_ns();

	if (gpu.launch_ns < 0)
		gpu.launch_ns = text != NULL ? atoll(text) : 0;
	while (now_ns() - begin_ns < gpu.launch_ns)
		;
}

int cuLaunchKernel(const void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		   unsigned by, unsigned bz, unsigned shared, void *queue, void **parameters,
		   void **extra)
{
	const struct double_function *function = kernel;

	(void)shared;
	(void)parameters;
	(void)extra;
	if (gx * gy * gz == 0 || bx * by * bz > 1024)
		return 1;
	be_busy();
	put(queue, &(struct double_node){ .name = function->name, .ns = function->ns });
	return 0;
}

int cuLaunchHostFunc(void *queue, void (*host)(void *arg), void *arg)
{
	put(queue, &(struct double_node){ .host = host, .arg = arg });
	return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *queue)
{
	(void)to;
	(void)from;
	double_copy(1, bytes, stream_of(queue), (int64_t)bytes / DOUBLE_COPY_BYTES_PER_NS);
	return 0;
}

int cuStreamSynchronize(void *queue)
{
	double_synchronize(stream_of(queue));
	return 0;
}

/* --- captures and graphs --- */

int cuStreamBeginCapture_v2(void *queue, int mode)
{
	int error = double_begin_capture(queue, mode);

	if (error == 0) {
		gpu.captures[stream_of(queue)] = calloc(1, sizeof(struct graph));
		gpu.capturing++;
	}
	return error;
}

int cuStreamEndCapture(void *queue, void **ret)
{
	void *unused;

	*ret = gpu.captures[stream_of(queue)];
	gpu.captures[stream_of(queue)] = NULL;
	gpu.capturing--;
	return double_end_capture(queue, &unused);
}

/* The default queue can't say while any other is being captured. */
int cuStreamIsCapturing(void *queue, int *ret)
{
	if (queue == NULL && gpu.capturing > 0)
		return CAPTURE_IMPLICIT;
	*ret = gpu.captures[stream_of(queue)] != NULL;
	return 0;
}

int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags)
{
	*ret = graph;
	return flags == 0 ? 0 : 1;
}

int cuGraphLaunch(void *graph, void *queue)
{
	const struct graph *g = graph;

	double_replay(stream_of(queue), g->nodes, g->cnt);
	return 0;
}

/* --- events --- */

int cuEventCreate(void **ret, unsigned flags)
{
	(void)flags;
	*ret = calloc(1, sizeof(struct double_event));
	return *ret != NULL ? 0 : 2;
}

int cuEventRecord(void *event, void *queue)
{
	gpu.records++;
	double_event_record(stream_of(queue), event);
	return 0;
}

int cuStreamWaitEvent(void *queue, void *event, unsigned flags)
{
	double_event_wait(stream_of(queue), event);
	return flags == 0 ? 0 : 1;
}

int cuEventQuery(void *at)
{
	struct double_event *event = at;

	return event->passed == event->recorded ? 0 : NOT_READY;
}

int cuEventElapsedTime(float *ret_ms, const void *from, const void *to)
{
	const struct double_event *a = from, *b = to;

	*ret_ms = (float)((double)(b->at_ns - a->at_ns) / 1e6);
	return 0;
}
