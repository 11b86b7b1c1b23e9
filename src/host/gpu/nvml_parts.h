/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the NVML back end, shared by its three files: nvml.c (library, devices, the table),
 * nvml_fields.c (slow values) and nvml_gpm.c (fast ones).
 */
#pragma once

#include "host/gpu/nvml.h"
#include "host/gpu/nvml_abi.h"

#define NVML_FIELDS_MAX 64
#define NVML_MHZ 1e6

/* A field of a metric; nvml_fields.c has the table. */
struct field_choice;

/* A counter or gauge of a device, with what is needed to continue it. */
struct field {
	const struct field_choice *choice;
	bool seen;
	uint64_t last;
	double total;
};

struct device {
	struct gpuhw_device public;
	void *handle; /* NULL: not opened, and nothing is asked of it */
	struct field fields[NVML_FIELDS_MAX];
	size_t field_cnt;
	double ecc_first[2];
	bool ecc_seen[2];
	uint32_t faults[GPUHW_FAULTS_MAX], fault_cnt; /* not reported yet */
	void *gpm[2];				      /* samples, by turns */
	bool gpm_works, gpm_begun;
	uint32_t gpm_turn;
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_text)(int);
	int (*driver_version)(char *, uint32_t);
	int (*count)(uint32_t *);
	int (*handle)(uint32_t, void **);
	int (*name)(void *, char *, uint32_t);
	int (*uuid)(void *, char *, uint32_t);
	int (*fields)(void *, int, struct nvml_field *);
	int (*clock)(void *, int, uint32_t *);
	int (*max_clock)(void *, int, uint32_t *);
	int (*temperature)(void *, int, uint32_t *);
	int (*ecc)(void *, int, int, unsigned long long *);
	int (*pcie_generation)(void *, uint32_t *);
	int (*pcie_width)(void *, uint32_t *);
	int (*processes)(void *, uint32_t *, struct nvml_process *);
	int (*events_new)(void **);
	int (*events_free)(void *);
	int (*events_add)(void *, unsigned long long, void *);
	int (*events_wait)(void *, struct nvml_event *, uint32_t);
	int (*gpm_supported)(void *, struct nvml_gpm_support *);
	int (*gpm_alloc)(void **);
	int (*gpm_free)(void *);
	int (*gpm_sample)(void *, void *);
	int (*gpm_metrics)(struct nvml_gpm_metrics *);

	void *events;
	uint32_t driver_major;
	struct nvml_gpm_metrics *request; /* too large for a stack */
	struct device devices[GPUHW_DEVICES_MAX];
	size_t device_cnt;
};

/* A status of a call on a device, as an errno; notes a device that is gone. */
int nvml_device_status(struct device *device, int status);

/* "WHAT: text of the status (number)". */
void nvml_say_status(const struct nvml *nvml, const char *what, int status,
		     char why[static GPUHW_WHY]);

/* Finds the fields that a device answers to. */
void nvml_probe_fields(struct nvml *nvml, struct device *device);

/* One field now; 0 when there is none. */
double nvml_field_once(struct nvml *nvml, struct device *device, uint32_t id);

/* Of struct gpuhw_ops. */
int nvml_slow(void *state, size_t idx, struct gpuhw_values *ret);
int nvml_fast(void *state, size_t idx, struct gpuhw_values *ret);

/* Prepares GPM where available; else sets the device's reason. */
void nvml_open_gpm(struct nvml *nvml, struct device *device);
void nvml_close_gpm(struct nvml *nvml, struct device *device);
