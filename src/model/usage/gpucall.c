/* SPDX-License-Identifier: Apache-2.0 */
#include "model/usage/gpucall.h"

#include <string.h>

/* Prefixes: the first that fits decides, so the longer ones come first. */
static const struct {
	const char *prefix;
	enum gpucall call;
} calls[] = {
	/* CUDA's runtime and driver */
	{ "cudaMallocHost", GPUCALL_PIN },
	{ "cudaFreeHost", GPUCALL_PIN },
	{ "cudaHostAlloc", GPUCALL_PIN },
	{ "cudaHostRegister", GPUCALL_PIN },
	{ "cudaHostUnregister", GPUCALL_PIN },
	{ "cuMemAllocHost", GPUCALL_PIN },
	{ "cuMemFreeHost", GPUCALL_PIN },
	{ "cuMemHostAlloc", GPUCALL_PIN },
	{ "cuMemHostRegister", GPUCALL_PIN },
	{ "cuMemHostUnregister", GPUCALL_PIN },
	{ "cudaMalloc", GPUCALL_ALLOCATE },
	{ "cudaFree", GPUCALL_ALLOCATE },
	{ "cuMemAlloc", GPUCALL_ALLOCATE },
	{ "cuMemFree", GPUCALL_ALLOCATE },
	{ "cuMemCreate", GPUCALL_ALLOCATE },
	{ "cuMemMap", GPUCALL_ALLOCATE },
	{ "cuMemUnmap", GPUCALL_ALLOCATE },
	{ "cuMemRelease", GPUCALL_ALLOCATE },
	{ "cuMemSetAccess", GPUCALL_ALLOCATE },
	{ "cudaLaunch", GPUCALL_LAUNCH },
	{ "cudaGraphLaunch", GPUCALL_LAUNCH },
	{ "cuLaunch", GPUCALL_LAUNCH },
	{ "cuGraphLaunch", GPUCALL_LAUNCH },
	{ "cudaMemcpy", GPUCALL_COPY },
	{ "cudaMemset", GPUCALL_COPY },
	{ "cuMemcpy", GPUCALL_COPY },
	{ "cuMemset", GPUCALL_COPY },
	{ "cudaStreamSynchronize", GPUCALL_WAIT },
	{ "cudaDeviceSynchronize", GPUCALL_WAIT },
	{ "cudaEventSynchronize", GPUCALL_WAIT },
	{ "cuStreamSynchronize", GPUCALL_WAIT },
	{ "cuCtxSynchronize", GPUCALL_WAIT },
	{ "cuEventSynchronize", GPUCALL_WAIT },
	/* HIP */
	{ "hipHostMalloc", GPUCALL_PIN },
	{ "hipHostAlloc", GPUCALL_PIN },
	{ "hipHostFree", GPUCALL_PIN },
	{ "hipHostRegister", GPUCALL_PIN },
	{ "hipHostUnregister", GPUCALL_PIN },
	{ "hipMallocHost", GPUCALL_PIN },
	{ "hipFreeHost", GPUCALL_PIN },
	{ "hipMemAllocHost", GPUCALL_PIN },
	{ "hipMalloc", GPUCALL_ALLOCATE },
	{ "hipFree", GPUCALL_ALLOCATE },
	{ "hipExtMalloc", GPUCALL_ALLOCATE },
	{ "hipMemAlloc", GPUCALL_ALLOCATE },
	{ "hipMemCreate", GPUCALL_ALLOCATE },
	{ "hipMemMap", GPUCALL_ALLOCATE },
	{ "hipMemUnmap", GPUCALL_ALLOCATE },
	{ "hipMemRelease", GPUCALL_ALLOCATE },
	{ "hipMemSetAccess", GPUCALL_ALLOCATE },
	{ "hipLaunch", GPUCALL_LAUNCH },
	{ "hipExtLaunch", GPUCALL_LAUNCH },
	{ "hipModuleLaunch", GPUCALL_LAUNCH },
	{ "hipExtModuleLaunch", GPUCALL_LAUNCH },
	{ "hipHccModuleLaunch", GPUCALL_LAUNCH },
	{ "hipGraphLaunch", GPUCALL_LAUNCH },
	{ "hipMemcpy", GPUCALL_COPY },
	{ "hipMemset", GPUCALL_COPY },
	{ "hipStreamSynchronize", GPUCALL_WAIT },
	{ "hipDeviceSynchronize", GPUCALL_WAIT },
	{ "hipEventSynchronize", GPUCALL_WAIT },
	{ "hipCtxSynchronize", GPUCALL_WAIT },
};

enum gpucall gpucall_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (strncmp(name, calls[i].prefix, strlen(calls[i].prefix)) == 0)
			return calls[i].call;
	}
	return GPUCALL_OTHER;
}

bool gpucall_is_memory(const char *name)
{
	enum gpucall call = gpucall_of(name);

	return call == GPUCALL_ALLOCATE || call == GPUCALL_PIN;
}
