/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of CUDA's runtime and driver that are recorded: those that launch, allocate or free
 * memory, copy, or wait. Others, which can be many, cost the job nothing. Their numbers are the
 * same in all versions of CUDA; a version refuses those that it lacks, or, since 13.5, has only a
 * number for them. X(domain, number, name). Source: cupti_runtime_cbid.h, cupti_driver_cbid.h.
 */
#pragma once

#define CUPTI_CALL_LIST(X)                             \
	X(RUNTIME, 20, "cudaMalloc")                   \
	X(RUNTIME, 22, "cudaFree")                     \
	X(RUNTIME, 25, "cudaMallocHost")               \
	X(RUNTIME, 26, "cudaFreeHost")                 \
	X(RUNTIME, 27, "cudaHostAlloc")                \
	X(RUNTIME, 31, "cudaMemcpy")                   \
	X(RUNTIME, 41, "cudaMemcpyAsync")              \
	X(RUNTIME, 44, "cudaMemcpy2DAsync")            \
	X(RUNTIME, 49, "cudaMemset")                   \
	X(RUNTIME, 51, "cudaMemsetAsync")              \
	X(RUNTIME, 131, "cudaStreamSynchronize")       \
	X(RUNTIME, 137, "cudaEventSynchronize")        \
	X(RUNTIME, 147, "cudaStreamWaitEvent")         \
	X(RUNTIME, 152, "cudaHostRegister")            \
	X(RUNTIME, 153, "cudaHostUnregister")          \
	X(RUNTIME, 161, "cudaMemcpyPeerAsync")         \
	X(RUNTIME, 165, "cudaDeviceSynchronize")       \
	X(RUNTIME, 206, "cudaMallocManaged")           \
	X(RUNTIME, 211, "cudaLaunchKernel")            \
	X(RUNTIME, 214, "cudaLaunchKernel")            \
	X(RUNTIME, 225, "cudaMemcpyAsync")             \
	X(RUNTIME, 239, "cudaStreamSynchronize")       \
	X(RUNTIME, 269, "cudaLaunchCooperativeKernel") \
	X(RUNTIME, 311, "cudaGraphLaunch")             \
	X(RUNTIME, 312, "cudaGraphLaunch")             \
	X(RUNTIME, 373, "cudaMallocAsync")             \
	X(RUNTIME, 375, "cudaFreeAsync")               \
	X(RUNTIME, 430, "cudaLaunchKernelExC")         \
	X(RUNTIME, 431, "cudaLaunchKernelExC")         \
	X(DRIVER, 17, "cuCtxSynchronize")              \
	X(DRIVER, 38, "cuMemFreeHost")                 \
	X(DRIVER, 39, "cuMemHostAlloc")                \
	X(DRIVER, 121, "cuEventSynchronize")           \
	X(DRIVER, 126, "cuStreamSynchronize")          \
	X(DRIVER, 243, "cuMemAlloc")                   \
	X(DRIVER, 245, "cuMemFree")                    \
	X(DRIVER, 271, "cuMemHostAlloc")               \
	X(DRIVER, 302, "cuMemHostUnregister")          \
	X(DRIVER, 307, "cuLaunchKernel")               \
	X(DRIVER, 379, "cuMemHostRegister")            \
	X(DRIVER, 477, "cuLaunchCooperativeKernel")    \
	X(DRIVER, 514, "cuGraphLaunch")                \
	X(DRIVER, 549, "cuMemCreate")                  \
	X(DRIVER, 550, "cuMemRelease")                 \
	X(DRIVER, 551, "cuMemMap")                     \
	X(DRIVER, 552, "cuMemUnmap")                   \
	X(DRIVER, 553, "cuMemSetAccess")               \
	X(DRIVER, 652, "cuLaunchKernelEx")
