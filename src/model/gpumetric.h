/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU metrics sampled from outside the job, independent of the vendor. Ids are append-only: sidecar
 * files contain them.
 *
 * A counter starts at the first sample, so readers never see it wrap; a gauge is the current value,
 * or a rate or share over the time since the previous sample.
 */
#pragma once

#include "base/base.h"

enum gpu_metric_type { GPU_GAUGE, GPU_COUNTER, GPU_EVENT };

/* X(id, text, unit, type, what) */
#define GPU_METRIC_LIST(X)                                                                         \
	X(CORE_CLOCK, "core_clock", "Hz", GAUGE, "clock of the cores")                             \
	X(MEMORY_CLOCK, "memory_clock", "Hz", GAUGE, "clock of the memory")                        \
	X(POWER, "power", "W", GAUGE, "power drawn")                                               \
	X(ENERGY, "energy", "J", COUNTER, "energy used")                                           \
	X(TEMPERATURE, "temperature", "C", GAUGE, "temperature of the chip")                       \
	X(THROTTLED_POWER, "throttled_power", "s", COUNTER, "time slowed down by a power limit")   \
	X(THROTTLED_THERMAL, "throttled_thermal", "s", COUNTER, "time slowed down by heat")        \
	X(THROTTLED_BRAKE, "throttled_brake", "s", COUNTER,                                        \
	  "time slowed down by external hardware: power supply, baseboard")                        \
	X(ECC_CORRECTED, "ecc_corrected", "1", COUNTER, "corrected errors of memory")              \
	X(ECC_UNCORRECTED, "ecc_uncorrected", "1", COUNTER, "uncorrected errors of memory")        \
	X(REMAPPED_ROWS, "remapped_rows", "1", COUNTER, "rows of memory out of use")               \
	X(PCIE_REPLAYS, "pcie_replays", "1", COUNTER, "packets repeated on PCIe")                  \
	X(PCIE_ERRORS, "pcie_errors", "1", COUNTER, "errors on PCIe")                              \
	X(PCIE_TX, "pcie_tx", "B", COUNTER, "bytes sent over PCIe")                                \
	X(PCIE_RX, "pcie_rx", "B", COUNTER, "bytes received over PCIe")                            \
	X(LINK_TX, "link_tx", "B", COUNTER, "bytes sent to other GPUs over links of their own")    \
	X(LINK_RX, "link_rx", "B", COUNTER, "bytes received over them")                            \
	X(C2C_ERRORS, "c2c_errors", "1", COUNTER, "errors on links to the CPU's memory")           \
	X(FAULT, "fault", "1", EVENT, "a fault that the driver reports; the value is its number")  \
	X(ACTIVE, "active", "1", GAUGE, "share of time with any work")                             \
	X(CORES_ACTIVE, "cores_active", "1", GAUGE, "share of multiprocessors that were busy")     \
	X(OCCUPANCY, "occupancy", "1", GAUGE, "threads resident of those possible")                \
	X(MATRIX_ACTIVE, "matrix_active", "1", GAUGE, "share of time of matrix units")             \
	X(MEMORY_ACTIVE, "memory_active", "1", GAUGE, "share of the memory's bandwidth")           \
	X(PCIE_TX_RATE, "pcie_tx_rate", "B/s", GAUGE, "sent over PCIe")                            \
	X(PCIE_RX_RATE, "pcie_rx_rate", "B/s", GAUGE, "received over PCIe")                        \
	X(LINK_TX_RATE, "link_tx_rate", "B/s", GAUGE, "sent to other GPUs")                        \
	X(LINK_RX_RATE, "link_rx_rate", "B/s", GAUGE, "received from other GPUs")                  \
	X(ISSUE_ACTIVE, "issue_active", "1", GAUGE, "instructions issued of those possible")       \
	X(SYSTEM_CLOCK, "system_clock", "Hz", GAUGE, "clock of units other than cores and memory") \
	X(PCIE_ACTIVE, "pcie_active", "1", GAUGE, "share of PCIe's bandwidth, either way")         \
	X(LINK_REPLAYS, "link_replays", "1", COUNTER, "packets repeated on links to other GPUs")   \
	X(LINK_RECOVERIES, "link_recoveries", "1", COUNTER, "times such a link was trained anew")  \
	X(LINK_CRC_ERRORS, "link_crc_errors", "1", COUNTER, "wrong checksums on such links")       \
	X(LINK_RX_ERRORS, "link_rx_errors", "1", COUNTER, "packets received with errors there")

enum gpu_metric {
#define X(id, text, unit, type, what) GPU_METRIC_##id,
	GPU_METRIC_LIST(X)
#undef X
		GPU_METRIC_CNT
};
_Static_assert(GPU_METRIC_CNT <= 64, "sets of metrics are 64 bits");

/* Text name and unit; "unknown" and "" for an id of a newer writer. */
const char *gpu_metric_name(uint32_t metric);
const char *gpu_metric_unit(uint32_t metric);

/* False for an unknown id. */
bool gpu_metric_is_counter(uint32_t metric);
