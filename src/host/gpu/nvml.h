/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's GPUs by NVML, libnvidia-ml.so.1: clocks, power, times of throttling, errors,
 * bytes over PCIe and NVLink once a second; on Hopper and later GPM, ten times a second.
 *
 * Everything except the devices is optional: a symbol missing in the driver or a field missing on
 * the chip only removes its own values. Counters that wrap are continued; a device that fell off
 * the bus is not queried again.
 * Source: NVML API reference, "Field Value Enums", "GPM", and the header nvml.h.
 */
#pragma once

#include "host/gpu/gpuhw.h"

extern const struct gpuhw_ops nvml_ops;
