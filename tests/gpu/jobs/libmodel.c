/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a framework's library of operators does with CUDA's libraries, for jobs in Python: linked to
 * cuBLAS, NCCL and the driver by their names, so that a preloaded library interposes them.
 */
#include "cublas_double.h"
#include "gpu_double.h"
#include "nccl_double.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT DOUBLE_EXPORT
#define BF16 9 /* of NCCL */
#define AVG 4
#define KERNEL_MAX 16
#define COMM_MAX 4

int cuDevicePrimaryCtxRetain(void **ret, int device);
int cuCtxSetCurrent(void *context);
int cuLaunchKernel(const void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		   unsigned by, unsigned bz, unsigned shared, void *queue, void **parameters,
		   void **extra);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *queue);
int cuEventCreate(void **ret, unsigned flags);
int cuEventRecord(void *event, void *queue);
int cuStreamWaitEvent(void *queue, void *event, unsigned flags);
int cuStreamSynchronize(void *queue);
int cuStreamBeginCapture_v2(void *queue, int mode);
int cuStreamEndCapture(void *queue, void **ret);
int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags);
int cuGraphLaunch(void *graph, void *queue);

EXPORT void model_start(void);
EXPORT int model_comm(int number, const char *name, int ranks, int rank);
EXPORT void model_slow_link(int comm, double slowdown);
EXPORT int model_kernel(const char *name, int64_t ns);
EXPORT void model_set_time(int kernel, int64_t ns);
EXPORT void model_launch(int kernel, int times);
EXPORT int model_gemm(int m, int n, int k);
EXPORT void model_upload(size_t bytes);
EXPORT int model_all_reduce(int comm, size_t cnt);
EXPORT int model_all_reduces(int comm, size_t cnt, int times);
EXPORT int model_all_gather(int comm, size_t cnt);
EXPORT int model_shift(int comm, size_t cnt, int ranks, int rank);
EXPORT void model_wait_for_compute(void);
EXPORT void model_wait_for_comm(void);
EXPORT void model_synchronize(void);
EXPORT void model_capture(void);
EXPORT void *model_graph(void);
EXPORT void model_replay(void *graph);

static struct {
	void *blas, *computed, *communicated; /* the last two: events */
	struct double_function kernels[KERNEL_MAX];
	int kernel_cnt, comm_cnt;
	void *comms[COMM_MAX];
} model;

static void *const compute = (void *)7, *const comm_queue = (void *)20;
static void *graph_queue; /* the one that is captured */

static void *queue(void *usual)
{
	return graph_queue != NULL ? graph_queue : usual;
}

void model_start(void)
{
	void *context;

	(void)cuDevicePrimaryCtxRetain(&context, 0);
	(void)cuCtxSetCurrent(context);
	(void)cublasCreate_v2(&model.blas);
	(void)cublasSetStream_v2(model.blas, compute);
	(void)cuEventCreate(&model.computed, 0);
	(void)cuEventCreate(&model.communicated, 0);
}

/* --- compute --- */

int model_kernel(const char *name, int64_t ns)
{
	model.kernels[model.kernel_cnt] = (struct double_function){ strdup(name), ns };
	return model.kernel_cnt++;
}

void model_set_time(int kernel, int64_t ns)
{
	model.kernels[kernel].ns = ns;
}

void model_launch(int kernel, int times)
{
	for (int i = 0; i < times; i++)
		(void)cuLaunchKernel(&model.kernels[kernel], 1, 1, 1, 1024, 1, 1, 0, queue(compute),
				     NULL, NULL);
}

int model_gemm(int m, int n, int k)
{
	return cublasGemmEx EX_PASS(model.blas, int, m, n, k);
}

void model_upload(size_t bytes)
{
	(void)cuMemcpyHtoDAsync_v2(4096, &model, bytes, compute);
}

/* --- communication --- */

int model_comm(int number, const char *name, int ranks, int rank)
{
	struct double_nccl_id id = { { (char)number } };

	strncpy(id.internal + 1, name, sizeof(id.internal) - 2);
	(void)ncclCommInitRank(&model.comms[model.comm_cnt], ranks, id, rank);
	return model.comm_cnt++;
}

void model_slow_link(int comm, double slowdown)
{
	double_nccl_slow(model.comms[comm], slowdown);
}

int model_all_reduce(int comm, size_t cnt)
{
	return ncclAllReduce(NULL, NULL, cnt, BF16, AVG, model.comms[comm], queue(comm_queue));
}

/* In one kernel. */
int model_all_reduces(int comm, size_t cnt, int times)
{
	int error = ncclGroupStart();

	for (int i = 0; i < times; i++)
		error |= model_all_reduce(comm, cnt);
	return error | ncclGroupEnd();
}

int model_all_gather(int comm, size_t cnt)
{
	return ncclAllGather(NULL, NULL, cnt, BF16, model.comms[comm], queue(comm_queue));
}

/* To the next rank, from the one before. */
int model_shift(int comm, size_t cnt, int ranks, int rank)
{
	int error = ncclGroupStart();

	error |=
		ncclSend(NULL, cnt, BF16, (rank + 1) % ranks, model.comms[comm], queue(comm_queue));
	error |= ncclRecv(NULL, cnt, BF16, (rank + ranks - 1) % ranks, model.comms[comm],
			  queue(comm_queue));
	return error | ncclGroupEnd();
}

/* --- order --- */

void model_wait_for_compute(void)
{
	(void)cuEventRecord(model.computed, compute);
	(void)cuStreamWaitEvent(comm_queue, model.computed, 0);
}

void model_wait_for_comm(void)
{
	(void)cuEventRecord(model.communicated, comm_queue);
	(void)cuStreamWaitEvent(compute, model.communicated, 0);
}

void model_synchronize(void)
{
	(void)cuStreamSynchronize(compute);
}

/* What is launched from here on goes into a graph. */
void model_capture(void)
{
	graph_queue = compute;
	(void)cuStreamBeginCapture_v2(compute, 0);
}

void *model_graph(void)
{
	void *graph = NULL;

	(void)cuStreamEndCapture(compute, &graph);
	(void)cuGraphInstantiateWithFlags(&graph, graph, 0);
	graph_queue = NULL;
	return graph;
}

void model_replay(void *graph)
{
	(void)cuGraphLaunch(graph, compute);
}
