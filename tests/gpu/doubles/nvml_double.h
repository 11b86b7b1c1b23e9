/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test orders of the double of libnvidia-ml.so.1. The library exports
 * double_nvml(), which gives this struct: a test changes it between calls.
 *
 * Where a test has no hold on the process, the environment variable NVML_DOUBLE orders
 * one of: "refuse" (nvmlInit fails), "crash", "hang" (in nvmlInit), "fault" (Xid 79 of GPU 0).
 * NVML_DOUBLE_PIDS names a file of the processes on GPU 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NVML_DOUBLE_GPUS 2
#define NVML_DOUBLE_FIELDS 320

struct nvml_double_gpu {
	bool lost;	   /* every call on it says so from now on */
	bool gpm;	   /* it has GPM */
	int handle_status; /* of nvmlDeviceGetHandleByIndex_v2 */
	struct {
		int status; /* NOT_SUPPORTED unless set */
		int type;   /* nvmlValueType_t */
		uint64_t value;
	} fields[NVML_DOUBLE_FIELDS];
	double gpm_values[64]; /* by metric id */
	int gpm_status[64];
	uint32_t sm_mhz, memory_mhz, celsius;
	uint64_t ecc[2];
	uint32_t pids[4];
	uint32_t pid_cnt;
	uint64_t xids[4]; /* waiting */
	uint32_t xid_cnt;
};

struct nvml_double {
	int init_status, count_status;
	uint32_t gpu_cnt;
	const char *driver;
	uint32_t gpm_version; /* that nvmlGpmMetricsGet takes */
	bool gpm_clears_all;  /* it writes its whole array of 477, not the first metrics */
	bool fields_fail;     /* nvmlDeviceGetFieldValues itself */
	struct nvml_double_gpu gpus[NVML_DOUBLE_GPUS];
	/* What was seen. */
	int inits, shutdowns, samples, sets; /* shutdowns; samples and event sets not freed */
	int calls_when_lost;
};

typedef struct nvml_double *double_nvml_fn(void);
