/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of libcuda that PM sampling needs: it can be initialized, or not
 * (double_cuda_status), and names two devices by the same numbers as NVML's double.
 */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DEVICES 2
#define INVALID_DEVICE 101

EXPORT extern int double_cuda_status;
EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *cnt);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device);

int double_cuda_status;

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
