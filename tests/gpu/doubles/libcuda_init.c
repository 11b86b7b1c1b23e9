/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of libcuda that PM sampling needs: it can be initialized, or not
 * (double_cuda_status), is a driver of CUDA 13.0 or of double_cuda_version, and names two devices
 * by the same numbers as NVML's double. NVIDIA's libcupti from CUDA 13.2 on answers nothing
 * without a driver; this one will do, if CUDA_DOUBLE_TABLE is set: it has a table of private
 * functions then, which has none of them.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 2
#define INVALID_DEVICE 101
#define NOT_FOUND 500
#define NOT_SUPPORTED 801

EXPORT extern int double_cuda_status, double_cuda_version;
EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *cnt);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDeviceGetPCIBusId(char *id, int size, int device);
EXPORT int cuGetExportTable(const void **table, const void *id);

int double_cuda_status, double_cuda_version = 13000;

int cuInit(unsigned flags)
{
	(void)flags;
	return double_cuda_status;
}

int cuDeviceGetCount(int *cnt)
{
	*cnt = DEVICES;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < DEVICES ? 0 : INVALID_DEVICE;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
	for (unsigned char i = 4; i < 16; i++)
		uuid[i] = (unsigned char)(i - 4);
	memset(uuid, 0, 4);
	uuid[3] = (unsigned char)device;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = double_cuda_version;
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)attribute;
	(void)device;
	*value = 0;
	return NOT_SUPPORTED;
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	(void)id;
	(void)size;
	(void)device;
	return NOT_SUPPORTED;
}

/* Such a table begins with its size. */
int cuGetExportTable(const void **table, const void *id)
{
	static const size_t bytes = sizeof(bytes);

	(void)id;
	if (getenv("CUDA_DOUBLE_TABLE") == NULL)
		return NOT_FOUND;
	*table = &bytes;
	return 0;
}
