/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/category.h"

#include <string.h>

#define CATEGORY(text, kind, lane)                 \
	{                                          \
		text, sizeof(text) - 1, kind, lane \
	}

static const struct category categories[] = {
	CATEGORY("python_function", KIND_PYTHON, LANE_THREAD),
	CATEGORY("cpu_op", KIND_OPERATOR, LANE_THREAD),
	CATEGORY("Operator", KIND_OPERATOR, LANE_THREAD),
	CATEGORY("user_annotation", KIND_ANNOTATION, LANE_THREAD),
	CATEGORY("cuda_runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("cuda_driver", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("Runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("mtia_runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("glow_runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("xpu_runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("xpu_driver", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("privateuse1_runtime", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("privateuse1_driver", KIND_RUNTIME, LANE_THREAD),
	CATEGORY("kernel", KIND_KERNEL, LANE_STREAM),
	CATEGORY("Kernel", KIND_KERNEL, LANE_STREAM),
	CATEGORY("mtia_ccp_events", KIND_KERNEL, LANE_STREAM),
	CATEGORY("gpu_memcpy", KIND_GPU_MEMOP, LANE_STREAM),
	CATEGORY("gpu_memset", KIND_GPU_MEMOP, LANE_STREAM),
	CATEGORY("Memcpy", KIND_GPU_MEMOP, LANE_STREAM),
	CATEGORY("Memset", KIND_GPU_MEMOP, LANE_STREAM),
	CATEGORY("gpu_user_annotation", KIND_GPU_ANNOTATION, LANE_STREAM),
	CATEGORY("cuda_sync", KIND_SYNC, LANE_STREAM),
	CATEGORY("xpu_sync", KIND_SYNC, LANE_STREAM),
	CATEGORY("cuda_event", KIND_SYNC, LANE_STREAM),
	CATEGORY("overhead", KIND_OVERHEAD, LANE_THREAD),
	CATEGORY("gc", KIND_GC, LANE_THREAD),
	CATEGORY("Trace", KIND_OTHER, LANE_OTHER),
	CATEGORY("cuda_profiler_range", KIND_OTHER, LANE_OTHER),
	CATEGORY("xpu_scope_profiler", KIND_OTHER, LANE_OTHER),
	CATEGORY("mtia_insight", KIND_OTHER, LANE_OTHER),
	CATEGORY("external_correlation", KIND_OTHER, LANE_OTHER),
	CATEGORY("collective_comm", KIND_OTHER, LANE_OTHER),
	CATEGORY("hpu_op", KIND_OTHER, LANE_OTHER),
};

const struct category *category_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		if (categories[i].len == len && memcmp(categories[i].name, name, len) == 0)
			return &categories[i];
	}
	return NULL;
}

struct dtype {
	const char *name;
	uint8_t len, bytes;
};

#define DTYPE(text, bytes)                    \
	{                                     \
		text, sizeof(text) - 1, bytes \
	}

static const struct dtype dtypes[] = {
	DTYPE("Float", 4),	   DTYPE("float", 4),	    DTYPE("BFloat16", 2),
	DTYPE("Half", 2),	   DTYPE("Double", 8),	    DTYPE("double", 8),
	DTYPE("Long", 8),	   DTYPE("long int", 8),    DTYPE("long", 8),
	DTYPE("Int", 4),	   DTYPE("int", 4),	    DTYPE("Short", 2),
	DTYPE("short", 2),	   DTYPE("short int", 2),   DTYPE("Char", 1),
	DTYPE("char", 1),	   DTYPE("signed char", 1), DTYPE("Byte", 1),
	DTYPE("unsigned char", 1), DTYPE("Bool", 1),	    DTYPE("bool", 1),
	DTYPE("UInt16", 2),	   DTYPE("UInt32", 4),	    DTYPE("UInt64", 8),
};

int dtype_bytes(const char *name, size_t len)
{
	static const char prefix[] = "c10::";

	if (len > sizeof(prefix) - 1 && memcmp(name, prefix, sizeof(prefix) - 1) == 0) {
		name += sizeof(prefix) - 1;
		len -= sizeof(prefix) - 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
		if (dtypes[i].len == len && memcmp(dtypes[i].name, name, len) == 0)
			return dtypes[i].bytes;
	}
	return len >= 6 && memcmp(name, "Float8", 6) == 0 ? 1 : 0;
}

/* Longer names first: "ReduceScatter" holds "Reduce". */
static const char *const collectives[][2] = {
	{ "AllReduce", "allreduce" },
	{ "AllGather", "allgather" },
	{ "ReduceScatter", "reduce_scatter" },
	{ "AllToAll", "all_to_all" },
	{ "Broadcast", "broadcast" },
	{ "SendRecv", "sendrecv" },
	{ "Reduce", "reduce" },
};

const char *collective_of_kernel(const char *name)
{
	static const char *const prefixes[] = { "ncclKernel_", "ncclDevKernel_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], len) != 0)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(collectives); j++) {
			if (strncmp(name + len, collectives[j][0], strlen(collectives[j][0])) == 0)
				return collectives[j][1];
		}
	}
	return NULL;
}
