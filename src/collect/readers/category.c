/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/readers/category.h"

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
	int bytes;
};

static const struct dtype dtypes[] = {
	{ "Float", 4 },	 { "float", 4 },     { "BFloat16", 2 },	     { "Half", 2 },
	{ "Double", 8 }, { "double", 8 },    { "Long", 8 },	     { "long int", 8 },
	{ "long", 8 },	 { "Int", 4 },	     { "int", 4 },	     { "Short", 2 },
	{ "short", 2 },	 { "short int", 2 }, { "Char", 1 },	     { "signed char", 1 },
	{ "char", 1 },	 { "Byte", 1 },	     { "unsigned char", 1 }, { "Bool", 1 },
	{ "bool", 1 },	 { "UInt16", 2 },    { "UInt32", 4 },	     { "UInt64", 8 },
};

int dtype_bytes(const char *name, size_t len)
{
	static const char prefix[] = "c10::";

	if (len > sizeof(prefix) - 1 && memcmp(name, prefix, sizeof(prefix) - 1) == 0) {
		name += sizeof(prefix) - 1;
		len -= sizeof(prefix) - 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++) {
		if (strlen(dtypes[i].name) == len && memcmp(dtypes[i].name, name, len) == 0)
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
