/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rest of the driver's names that the experiments' programs call, on top of libcuda's double,
 * with which it is linked into one library: their way to a real driver can be walked without one.
 * Kernels, copies and graphs take their time on the double's stream; an event is the moment at
 * which it was recorded.
 */
#include "doubles/double.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT DOUBLE_EXPORT
#define STREAM 7
#define EMPTY_NS 2000
#define CAPTURED_EVENT 907
#define BYTES_PER_NS 20 /* of a copy */

struct event {
	int64_t ns;
	bool captured;
};

static struct {
	bool capturing;
	unsigned nodes;
} gpu;

static const char empty[] = "pt_empty", spin[] = "pt_spin";

EXPORT int cuDevicePrimaryCtxRetain(void **ret, int device);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuModuleLoadData(void **ret, const void *image);
EXPORT int cuModuleGetFunction(const void **ret, void *module, const char *name);
EXPORT int cuStreamCreate(void **ret, unsigned flags);
EXPORT int cuStreamSynchronize(void *stream);
EXPORT int cuLaunchKernel(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			  unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
			  void **extra);
EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
EXPORT int cuStreamEndCapture(void *stream, void **ret);
EXPORT int cuStreamIsCapturing(void *stream, int *ret);
EXPORT int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags);
EXPORT int cuGraphLaunch(void *graph, void *stream);
EXPORT int cuEventCreate(void **ret, unsigned flags);
EXPORT int cuEventRecord(void *event, void *stream);
EXPORT int cuEventQuery(const void *event);
EXPORT int cuEventElapsedTime(float *ret_ms, const void *from, const void *to);
EXPORT int cuMemAlloc_v2(uint64_t *ret, size_t bytes);
EXPORT int cuMemAllocHost_v2(void **ret, size_t bytes);
EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
EXPORT int cuMemsetD32Async(uint64_t at, unsigned value, size_t cnt, void *stream);

int cuDevicePrimaryCtxRetain(void **ret, int device)
{
	double_context(1);
	*ret = &gpu;
	return device == 0 ? 0 : 101;
}

int cuCtxSetCurrent(void *context)
{
	return context == &gpu ? 0 : 201;
}

/* The driver would refuse other text than PTX. */
int cuModuleLoadData(void **ret, const void *image)
{
	*ret = &gpu;
	return strncmp(image, ".version ", 9) == 0 ? 0 : 218;
}

int cuModuleGetFunction(const void **ret, void *module, const char *name)
{
	(void)module;
	*ret = strcmp(name, spin) == 0 ? spin : empty;
	return strcmp(name, *ret) == 0 ? 0 : 500;
}

int cuStreamCreate(void **ret, unsigned flags)
{
	*ret = (void *)(uintptr_t)STREAM;
	return flags <= 1 ? 0 : 1;
}

int cuStreamSynchronize(void *stream)
{
	(void)stream;
	double_synchronize(STREAM);
	return 0;
}

int cuLaunchKernel(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		   unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
		   void **extra)
{
	uint64_t ns = EMPTY_NS;

	(void)shared;
	(void)extra;
	if (stream != (void *)(uintptr_t)STREAM || gx * gy * gz == 0 || bx * by * bz > 1024)
		return 1;
	if (function == spin)
		memcpy(&ns, params[0], sizeof(ns));
	if (gpu.capturing)
		gpu.nodes++;
	else
		double_launch(function, STREAM, (int64_t)ns, 1);
	return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	(void)stream;
	gpu.capturing = true;
	gpu.nodes = 0;
	return mode == 2 ? 0 : 1;
}

int cuStreamEndCapture(void *stream, void **ret)
{
	(void)stream;
	gpu.capturing = false;
	*ret = (void *)(uintptr_t)(gpu.nodes + 1);
	return 0;
}

int cuStreamIsCapturing(void *stream, int *ret)
{
	(void)stream;
	*ret = gpu.capturing;
	return 0;
}

int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags)
{
	*ret = graph;
	return flags == 0 ? 0 : 1;
}

int cuGraphLaunch(void *graph, void *stream)
{
	(void)stream;
	double_graph(STREAM, (unsigned)(uintptr_t)graph - 1, EMPTY_NS);
	return 0;
}

int cuEventCreate(void **ret, unsigned flags)
{
	(void)flags;
	*ret = calloc(1, sizeof(struct event));
	return *ret != NULL ? 0 : 2;
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;
	struct timespec t;

	(void)stream;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	e->ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	e->captured = gpu.capturing;
	return 0;
}

int cuEventQuery(const void *event)
{
	return ((const struct event *)event)->captured ? CAPTURED_EVENT : 0;
}

int cuEventElapsedTime(float *ret_ms, const void *from, const void *to)
{
	const struct event *a = from, *b = to;

	*ret_ms = (float)((double)(b->ns - a->ns) / 1e6);
	return 0;
}

int cuMemAlloc_v2(uint64_t *ret, size_t bytes)
{
	*ret = 4096;
	return bytes > 0 ? 0 : 1;
}

int cuMemAllocHost_v2(void **ret, size_t bytes)
{
	*ret = malloc(bytes);
	return *ret != NULL ? 0 : 2;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	(void)stream;
	double_copy(1, bytes, STREAM, (int64_t)bytes / BYTES_PER_NS);
	return to != 0 && from != NULL ? 0 : 1;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
	(void)stream;
	double_copy(2, bytes, STREAM, (int64_t)bytes / BYTES_PER_NS);
	return to != NULL && from != 0 ? 0 : 1;
}

int cuMemsetD32Async(uint64_t at, unsigned value, size_t cnt, void *stream)
{
	(void)value;
	(void)stream;
	double_copy(0, cnt * 4, STREAM, (int64_t)cnt * 4 / BYTES_PER_NS);
	return at != 0 ? 0 : 1;
}
