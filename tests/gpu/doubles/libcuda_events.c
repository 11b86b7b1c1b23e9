/* SPDX-License-Identifier: Apache-2.0 */
/* Events and launches of CUDA's driver; see gpu_double.h. SONAME libcuda.so.1. */
#include "gpu_double.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT DOUBLE_EXPORT
#define QUEUES 64
#define INVALID_VALUE 1
#define NOT_READY 600
#define CAPTURE_IMPLICIT 906
#define LAUNCH_NS 2000

EXPORT int cuInit(unsigned flags);
EXPORT int cuCtxGetCurrent(void **ret);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
EXPORT int cuStreamIsCapturing(void *queue, int *ret);
EXPORT int cuLaunchHostFunc(void *queue, void (*host)(void *arg), void *arg);
EXPORT int cuEventCreate(void **ret, unsigned flags);
EXPORT int cuEventRecord(void *event, void *queue);
EXPORT int cuEventQuery(void *event);
EXPORT int cuEventElapsedTime(float *ret, void *begin, void *end);
EXPORT int cuFuncGetName(const char **ret, void *kernel);
EXPORT int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			  unsigned by, unsigned bz, unsigned shared, void *queue, void **parameters,
			  void **extra);
EXPORT int cuLaunchKernelEx(const void *launch, void *kernel, void **parameters, void **extra);

struct event {
	void *context;
	int64_t at_ns; /* of its queue's clock; -1: not recorded */
};

static struct {
	pthread_mutex_t lock;
	int64_t clocks_ns[QUEUES];
	bool captured[QUEUES];
	bool held;
	int capturing;
	const char *failing;
	int error;
	const char *fault;
	_Atomic int64_t records, queries, launches, created;
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread void *context;
static __thread int capture_mode; /* global */

static size_t idx_of(const void *queue)
{
	return (size_t)((uintptr_t)queue % QUEUES);
}

static int failure(const char *function)
{
	return gpu.failing != NULL && strcmp(gpu.failing, function) == 0 ? gpu.error : 0;
}

static void complain(const char *what)
{
	if (gpu.fault == NULL)
		gpu.fault = what;
}

void double_gpu_work(void *queue, int64_t ns)
{
	pthread_mutex_lock(&gpu.lock);
	gpu.clocks_ns[idx_of(queue)] += ns;
	pthread_mutex_unlock(&gpu.lock);
}

void double_gpu_collective(const char *name, void *queue, int64_t ns,
			   const struct double_group *groups, size_t cnt)
{
	(void)name;
	(void)groups;
	(void)cnt;
	double_gpu_work(queue, ns);
}

void double_gpu_capture(void *queue, bool on)
{
	pthread_mutex_lock(&gpu.lock);
	gpu.captured[idx_of(queue)] = on;
	gpu.capturing += on ? 1 : -1;
	pthread_mutex_unlock(&gpu.lock);
}

void double_gpu_hold(bool on)
{
	pthread_mutex_lock(&gpu.lock);
	gpu.held = on;
	pthread_mutex_unlock(&gpu.lock);
}

void double_gpu_fail(const char *function, int error)
{
	pthread_mutex_lock(&gpu.lock);
	gpu.failing = function;
	gpu.error = error;
	pthread_mutex_unlock(&gpu.lock);
}

void double_gpu_context(void *to)
{
	context = to;
}

int64_t double_gpu_count(const char *what)
{
	if (strcmp(what, "records") == 0)
		return gpu.records;
	if (strcmp(what, "queries") == 0)
		return gpu.queries;
	return strcmp(what, "launches") == 0 ? gpu.launches : gpu.created;
}

const char *double_gpu_fault(void)
{
	return gpu.fault != NULL ? gpu.fault : "";
}

/* --- the driver --- */

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuCtxGetCurrent(void **ret)
{
	*ret = context;
	return 0;
}

int cuCtxSetCurrent(void *to)
{
	context = to;
	return failure("cuCtxSetCurrent");
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = capture_mode;

	capture_mode = *mode;
	*mode = before;
	return 0;
}

/* The default queue can't say while any other is being captured. */
int cuStreamIsCapturing(void *queue, int *ret)
{
	int error = 0;

	pthread_mutex_lock(&gpu.lock);
	if (queue == NULL && gpu.capturing > 0)
		error = CAPTURE_IMPLICIT;
	else
		*ret = gpu.captured[idx_of(queue)];
	pthread_mutex_unlock(&gpu.lock);
	return error;
}

/* Called by the test itself only: no thread works off a queue. */
void double_meet(const struct double_group *group, uint64_t turn, struct double_met *ret)
{
	(void)group;
	(void)turn;
	*ret = (struct double_met){ 0 };
}

int cuLaunchHostFunc(void *queue, void (*host)(void *arg), void *arg)
{
	(void)queue;
	(void)host;
	(void)arg;
	return INVALID_VALUE;
}

int cuEventCreate(void **ret, unsigned flags)
{
	struct event *event = calloc(1, sizeof(*event));

	if (event == NULL || context == NULL || flags != 0)
		return 201;
	if (gpu.capturing > 0 && capture_mode != 2)
		complain("cuEventCreate breaks a capture");
	event->context = context;
	event->at_ns = -1;
	*ret = event;
	gpu.created++;
	return failure("cuEventCreate");
}

int cuEventRecord(void *at, void *queue)
{
	struct event *event = at;
	int error;

	pthread_mutex_lock(&gpu.lock);
	error = failure("cuEventRecord");
	if (gpu.captured[idx_of(queue)] || (queue == NULL && gpu.capturing > 0))
		complain("cuEventRecord in a capture");
	if (event->context != context)
		error = 400;
	if (error == 0)
		event->at_ns = gpu.clocks_ns[idx_of(queue)];
	gpu.records++;
	pthread_mutex_unlock(&gpu.lock);
	return error;
}

int cuEventQuery(void *at)
{
	struct event *event = at;
	int error;

	pthread_mutex_lock(&gpu.lock);
	if (gpu.capturing > 0 && capture_mode != 2)
		complain("cuEventQuery breaks a capture");
	error = failure("cuEventQuery");
	if (error == 0 && (gpu.held || event->at_ns < 0))
		error = NOT_READY;
	gpu.queries++;
	pthread_mutex_unlock(&gpu.lock);
	return error;
}

int cuEventElapsedTime(float *ret, void *begin, void *end)
{
	const struct event *from = begin, *to = end;

	*ret = (float)(to->at_ns - from->at_ns) / 1e6F;
	return failure("cuEventElapsedTime");
}

int cuFuncGetName(const char **ret, void *kernel)
{
	*ret = kernel; /* a kernel is its name */
	return failure("cuFuncGetName");
}

int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *queue, void **parameters, void **extra)
{
	(void)kernel;
	(void)(gx + gy + gz + bx + by + bz + shared);
	(void)parameters;
	(void)extra;
	gpu.launches++;
	double_gpu_work(queue, LAUNCH_NS);
	return 0;
}

int cuLaunchKernelEx(const void *launch, void *kernel, void **parameters, void **extra)
{
	void *queue;

	if (launch == NULL)
		return INVALID_VALUE;
	memcpy(&queue, (const char *)launch + 32, sizeof(queue)); /* hStream of CUlaunchConfig */
	return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, queue, parameters, extra);
}
