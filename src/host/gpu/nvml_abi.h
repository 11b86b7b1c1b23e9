/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface of libnvidia-ml.so.1, as far as nvml.c uses it: own declarations, compared
 * with the real header where one is installed (nvml_abi_check.c).
 */
#pragma once

#include "base/base.h"

enum nvml_status {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_GPU_LOST = 15,
	NVML_VERSION_MISMATCH = 25,
};

enum nvml_value_type {
	NVML_TYPE_DOUBLE,
	NVML_TYPE_UINT,
	NVML_TYPE_ULONG,
	NVML_TYPE_ULONGLONG,
	NVML_TYPE_LONGLONG,
	NVML_TYPE_INT,
	NVML_TYPE_USHORT,
};

#define NVML_SM_CLOCK 1
#define NVML_MEMORY_CLOCK 2
#define NVML_ALL_LINKS UINT32_MAX /* scope of a field */
#define NVML_EVENT_XID 8ULL

struct nvml_field {
	uint32_t id, scope;
	int64_t time_us, latency_us;
	int32_t type;	/* enum nvml_value_type */
	int32_t status; /* enum nvml_status; the value counts with NVML_OK only */
	union {
		double d;
		uint32_t u32;
		uint64_t u64;
		int64_t i64;
		int32_t i32;
		uint16_t u16;
	} value;
};

struct nvml_event {
	void *device;
	uint64_t type, data; /* data of NVML_EVENT_XID: its number */
	uint32_t gpu_instance, compute_instance;
};

#define NVML_UUID_BYTES 96 /* room that nvmlDeviceGetUUID is given */

struct nvml_process {
	uint32_t pid;
	uint64_t memory_bytes;
	uint32_t gpu_instance, compute_instance;
};

struct nvml_gpm_support {
	uint32_t version, supported;
};

struct nvml_gpm_metric {
	uint32_t id;
	int32_t status;
	double value;
	char *texts[3];
};

/*
 * The array at its end has grown with the years (98, 210, 333, 477) without a new version.
 * A library fills the first `cnt`; one that should touch the whole of its own array still
 * stays within this one.
 */
#define NVML_GPM_VERSION 1u
#define NVML_GPM_METRICS_ROOM 1024

struct nvml_gpm_metrics {
	uint32_t version, cnt;
	void *before, *after;
	struct nvml_gpm_metric metrics[NVML_GPM_METRICS_ROOM];
};

_Static_assert(sizeof(struct nvml_field) == 40, "ABI");
_Static_assert(sizeof(struct nvml_event) == 32, "ABI");
_Static_assert(sizeof(struct nvml_process) == 24, "ABI");
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "ABI");
_Static_assert(offsetof(struct nvml_gpm_metrics, metrics) == 24, "ABI");
