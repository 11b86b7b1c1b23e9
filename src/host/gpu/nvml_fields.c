/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, power, counters, faults: what is asked once a second. */
#include "host/gpu/nvml_parts.h"

#include <errno.h>
#include <string.h>

#define CHOICES 3
#define FAULTS_A_LOOK 64

/*
 * Which fields make a metric. Of those of one choice the values are added up; the first
 * choice of which the device has any is taken, below the version that counted on it: the
 * numbers of the times of throttling moved between the drivers 575 and 580.
 */
static const struct field_choice {
	uint8_t metric, choice;
	uint16_t id;
	uint32_t scope;
	double scale;
	uint16_t driver_min, driver_max; /* major versions; 0: any */
} field_choices[] = {
	{ GPU_METRIC_POWER, 0, 186, 0, 1e-3, 0, 0 },
	{ GPU_METRIC_ENERGY, 0, 83, 0, 1e-3, 0, 0 },
	{ GPU_METRIC_THROTTLED_POWER, 0, 74, 0, 1e-9, 0, 0 },
	{ GPU_METRIC_THROTTLED_THERMAL, 0, 269, 0, 1e-9, 580, 0 },
	{ GPU_METRIC_THROTTLED_THERMAL, 0, 270, 0, 1e-9, 580, 0 },
	{ GPU_METRIC_THROTTLED_THERMAL, 0, 251, 0, 1e-9, 575, 579 },
	{ GPU_METRIC_THROTTLED_THERMAL, 0, 252, 0, 1e-9, 575, 579 },
	{ GPU_METRIC_THROTTLED_THERMAL, 1, 75, 0, 1e-9, 0, 0 },
	{ GPU_METRIC_THROTTLED_BRAKE, 0, 271, 0, 1e-9, 580, 0 },
	{ GPU_METRIC_THROTTLED_BRAKE, 0, 253, 0, 1e-9, 575, 579 },
	{ GPU_METRIC_REMAPPED_ROWS, 0, 142, 0, 1, 0, 0 },
	{ GPU_METRIC_REMAPPED_ROWS, 0, 143, 0, 1, 0, 0 },
	{ GPU_METRIC_PCIE_REPLAYS, 0, 94, 0, 1, 0, 0 },
	{ GPU_METRIC_PCIE_ERRORS, 0, 173, 0, 1, 0, 0 },
	{ GPU_METRIC_PCIE_TX, 0, 197, 0, 1, 0, 0 },
	{ GPU_METRIC_PCIE_RX, 0, 198, 0, 1, 0, 0 },
	{ GPU_METRIC_LINK_TX, 0, 202, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_RX, 0, 204, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_TX, 1, 138, NVML_ALL_LINKS, 1024, 0, 0 },
	{ GPU_METRIC_LINK_RX, 1, 139, NVML_ALL_LINKS, 1024, 0, 0 },
	{ GPU_METRIC_C2C_ERRORS, 0, 231, 0, 1, 0, 0 },
	/* Totals; else by link, where the header promises a sum of all for bytes alone. */
	{ GPU_METRIC_LINK_CRC_ERRORS, 0, 38, 0, 1, 0, 0 },
	{ GPU_METRIC_LINK_CRC_ERRORS, 0, 45, 0, 1, 0, 0 },
	{ GPU_METRIC_LINK_REPLAYS, 0, 52, 0, 1, 0, 0 },
	{ GPU_METRIC_LINK_RECOVERIES, 0, 59, 0, 1, 0, 0 },
	{ GPU_METRIC_LINK_CRC_ERRORS, 1, 163, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_REPLAYS, 1, 161, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_RECOVERIES, 1, 162, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_RX_ERRORS, 0, 208, NVML_ALL_LINKS, 1, 0, 0 },
	{ GPU_METRIC_LINK_RECOVERIES, 2, 215, NVML_ALL_LINKS, 1, 0, 0 },
};

static bool choice_fits(const struct nvml *nvml, const struct field_choice *choice)
{
	return (choice->driver_min == 0 || nvml->driver_major >= choice->driver_min) &&
	       (choice->driver_max == 0 || nvml->driver_major <= choice->driver_max);
}

static bool has_metric(const struct device *device, size_t field_cnt, uint8_t metric)
{
	for (size_t i = 0; i < field_cnt; i++) {
		if (device->fields[i].choice->metric == metric)
			return true;
	}
	return false;
}

/* Keeps the fields of one rank of choice that the device answers to. */
static void probe_choice(struct nvml *nvml, struct device *device, uint8_t rank)
{
	const struct field_choice *asked[ARRAY_SIZE(field_choices)];
	struct nvml_field fields[ARRAY_SIZE(field_choices)] = { 0 };
	size_t cnt = 0;

	for (size_t i = 0; i < ARRAY_SIZE(field_choices); i++) {
		const struct field_choice *choice = &field_choices[i];

		if (choice->choice != rank || !choice_fits(nvml, choice) ||
		    has_metric(device, device->field_cnt, choice->metric))
			continue;
		fields[cnt] = (struct nvml_field){ .id = choice->id, .scope = choice->scope };
		asked[cnt++] = choice;
	}
	if (cnt == 0 ||
	    nvml_device_status(device, nvml->fields(device->handle, (int)cnt, fields)) < 0)
		return;
	for (size_t i = 0; i < cnt && device->field_cnt < NVML_FIELDS_MAX; i++) {
		if (fields[i].status == NVML_OK)
			device->fields[device->field_cnt++] = (struct field){ .choice = asked[i] };
	}
}

void nvml_probe_fields(struct nvml *nvml, struct device *device)
{
	for (uint8_t rank = 0; rank < CHOICES && nvml->fields != NULL; rank++)
		probe_choice(nvml, device, rank);
}

/* A value as bits to subtract and as a number. */
static double field_number(const struct nvml_field *field, uint64_t *ret_bits)
{
	switch ((enum nvml_value_type)field->type) {
	case NVML_TYPE_DOUBLE:
		*ret_bits = field->value.d > 0 && field->value.d < 0x1p63 ? (uint64_t)field->value.d
									  : 0;
		return field->value.d;
	case NVML_TYPE_UINT:
		*ret_bits = field->value.u32;
		break;
	case NVML_TYPE_USHORT:
		*ret_bits = field->value.u16;
		break;
	case NVML_TYPE_INT:
		*ret_bits = (uint64_t)MAX(field->value.i32, 0);
		break;
	case NVML_TYPE_LONGLONG:
		*ret_bits = (uint64_t)MAX(field->value.i64, (int64_t)0);
		break;
	case NVML_TYPE_ULONG:
	case NVML_TYPE_ULONGLONG:
	default:
		*ret_bits = field->value.u64;
		break;
	}
	return (double)*ret_bits;
}

/*
 * What a counter grew by. One of 32 bits that falls has wrapped; a wider one that falls
 * was reset with its driver.
 */
static uint64_t counter_growth(uint64_t before, uint64_t after, int32_t type)
{
	if (after >= before)
		return after - before;
	return type == NVML_TYPE_UINT ? (uint32_t)(after - before) : 0;
}

static void take_field(struct field *state, const struct nvml_field *field,
		       struct gpuhw_values *ret)
{
	uint8_t metric = state->choice->metric;
	double number, before = (ret->set >> metric & 1) != 0 ? ret->values[metric] : 0;
	uint64_t bits;

	number = field_number(field, &bits);
	if (gpu_metric_is_counter(metric)) {
		if (state->seen)
			state->total += (double)counter_growth(state->last, bits, field->type);
		state->last = bits;
		state->seen = true;
		number = state->total;
	}
	gpuhw_set(ret, (enum gpu_metric)metric, before + number * state->choice->scale);
}

static int look_fields(struct nvml *nvml, struct device *device, struct gpuhw_values *ret)
{
	struct nvml_field fields[NVML_FIELDS_MAX] = { 0 };
	int error;

	if (device->field_cnt == 0)
		return 0;
	for (size_t i = 0; i < device->field_cnt; i++) {
		fields[i].id = device->fields[i].choice->id;
		fields[i].scope = device->fields[i].choice->scope;
	}
	error = nvml_device_status(device,
				   nvml->fields(device->handle, (int)device->field_cnt, fields));
	for (size_t i = 0; i < device->field_cnt && error == 0; i++) {
		if (fields[i].status == NVML_GPU_LOST)
			error = nvml_device_status(device, fields[i].status);
		else if (fields[i].status == NVML_OK)
			take_field(&device->fields[i], &fields[i], ret);
	}
	return error;
}

/* --- other values --- */

static void look_clocks(struct nvml *nvml, struct device *device, struct gpuhw_values *ret)
{
	static const struct {
		int clock;
		enum gpu_metric metric;
	} clocks[] = { { NVML_SM_CLOCK, GPU_METRIC_CORE_CLOCK },
		       { NVML_MEMORY_CLOCK, GPU_METRIC_MEMORY_CLOCK } };
	uint32_t value;

	for (size_t i = 0; i < ARRAY_SIZE(clocks) && nvml->clock != NULL; i++) {
		if (nvml_device_status(device,
				       nvml->clock(device->handle, clocks[i].clock, &value)) == 0)
			gpuhw_set(ret, clocks[i].metric, value * NVML_MHZ);
	}
	if (nvml->temperature != NULL &&
	    nvml_device_status(device, nvml->temperature(device->handle, 0, &value)) == 0)
		gpuhw_set(ret, GPU_METRIC_TEMPERATURE, value);
}

/* Counts since the driver was loaded: what was before the first look is taken off. */
static void look_ecc(struct nvml *nvml, struct device *device, struct gpuhw_values *ret)
{
	static const enum gpu_metric metrics[] = { GPU_METRIC_ECC_CORRECTED,
						   GPU_METRIC_ECC_UNCORRECTED };

	for (int kind = 0; kind < 2 && nvml->ecc != NULL; kind++) {
		unsigned long long cnt;

		if (nvml_device_status(device, nvml->ecc(device->handle, kind, 0, &cnt)) < 0)
			continue;
		if (!device->ecc_seen[kind] || (double)cnt < device->ecc_first[kind])
			device->ecc_first[kind] = (double)cnt;
		device->ecc_seen[kind] = true;
		gpuhw_set(ret, metrics[kind], (double)cnt - device->ecc_first[kind]);
	}
}

static void keep_fault(struct device *device, uint64_t number)
{
	if (device->fault_cnt < GPUHW_FAULTS_MAX)
		device->faults[device->fault_cnt++] = (uint32_t)number;
}

/* Faults that the driver has queued since the last look. */
static void look_faults(struct nvml *nvml)
{
	struct nvml_event event;

	for (int i = 0; i < FAULTS_A_LOOK && nvml->events != NULL; i++) {
		if (nvml->events_wait(nvml->events, &event, 0) != NVML_OK)
			return;
		for (size_t d = 0; d < nvml->device_cnt; d++) {
			if (event.type == NVML_EVENT_XID && nvml->devices[d].handle == event.device)
				keep_fault(&nvml->devices[d], event.data);
		}
	}
}

int nvml_slow(void *state, size_t idx, struct gpuhw_values *ret)
{
	struct nvml *nvml = state;
	struct device *device = &nvml->devices[idx];
	struct gpuhw_values values = { 0 };
	int error;

	if (device->handle == NULL)
		return device->public.lost ? -ENODEV : -ENOTSUP;
	look_faults(nvml); /* a lost device's fault is the reason */
	memcpy(values.faults, device->faults, sizeof(values.faults));
	values.fault_cnt = device->fault_cnt;
	error = device->public.lost ? -ENODEV : look_fields(nvml, device, &values);
	if (error != -ENODEV) {
		look_clocks(nvml, device, &values);
		look_ecc(nvml, device, &values);
	}
	if (device->public.lost && device->fault_cnt == 0)
		return -ENODEV;
	device->fault_cnt = 0;
	*ret = values;
	return 0;
}

double nvml_field_once(struct nvml *nvml, struct device *device, uint32_t id)
{
	struct nvml_field field = { .id = id };
	uint64_t bits;

	if (nvml->fields == NULL || nvml->fields(device->handle, 1, &field) != NVML_OK ||
	    field.status != NVML_OK)
		return 0;
	return field_number(&field, &bits);
}
