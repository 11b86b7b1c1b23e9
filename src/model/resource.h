/* SPDX-License-Identifier: Apache-2.0 */
/* Resources sampled beside the events of a trace, and their utilization over time. */
#pragma once

#include "base/base.h"

/* Resources whose utilization is sampled: id, text name, what 1.0 means. Ids are append-only. */
#define RESOURCE_LIST(X)                                                                           \
	X(SM_ACTIVE, "sm_active", "GPU: share of cycles with a resident warp")                     \
	X(DRAM, "dram", "GPU memory: share of peak bandwidth")                                     \
	X(NVLINK_TX, "nvlink_tx", "NVLink transmit: share of peak")                                \
	X(PCIE_TX, "pcie_tx", "PCIe transmit: share of peak")                                      \
	X(NIC_TX, "nic_tx", "network transmit: share of peak")                                     \
	X(CPU_THREAD, "cpu_thread", "one thread: CPU time / wall time")                            \
	X(CPU_PROCESS, "cpu_process", "one process: CPU time / (wall time * cores it may use)")    \
	X(RUN_DELAY, "run_delay", "one thread: share of wall time runnable but waiting for a CPU") \
	X(OTHER, "other", "a counter of unknown meaning")                                          \
	X(SOCKET_TX, "socket_tx",                                                                  \
	  "TCP transmit of one process: share of the highest rate seen in the window")             \
	X(PCIE_RX, "pcie_rx", "PCIe receive: share of peak")

enum resource {
#define X(id, text, help) RESOURCE_##id,
	RESOURCE_LIST(X)
#undef X
		RESOURCE_CNT
};

/* One sample: utilization over the period that ends at time_ns. */
struct sample {
	int64_t time_ns;
	double value; /* 0..1 for known resources, raw for RESOURCE_OTHER */
};

struct track {
	uint32_t name;		/* string id, as written in the trace */
	uint8_t resource;	/* enum resource */
	int64_t device;		/* GPU index or -1 */
	int64_t tid;		/* thread for RESOURCE_CPU_THREAD and RUN_DELAY, else -1 */
	struct sample *samples; /* sorted by time */
	size_t cnt, cap;
};

const char *resource_name(enum resource resource);
