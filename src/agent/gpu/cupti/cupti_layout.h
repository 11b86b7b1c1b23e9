/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How CUPTI's activity records begin, for CUDA 11 to 13: versions only append to them, and
 * the loaded library, not its caller, chooses the version. So a record's length is
 * known to cuptiActivityGetNextRecord() alone.
 * Source: cupti_activity.h; cupti_abi_check.c.
 */
#pragma once

#include "base/base.h"

struct cupti_record {
	uint32_t kind;
};

/* Kernel4 on; the fields of graphs from Kernel5 (CUDA 11.1) on. */
struct cupti_kernel {
	uint32_t kind;
	uint32_t unused1[3];
	uint64_t start, end;
	uint64_t unused2;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t unused3[4];
	uint32_t correlation;
	uint64_t grid_id;
	const char *name;
	uint64_t unused4[4];
	uint64_t graph_node;
	uint32_t unused5;
	uint32_t graph;
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
};

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
};

struct cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
};

struct cupti_sync {
	uint32_t kind;
	uint32_t type;
	uint64_t start, end;
	uint32_t correlation, context, stream;
};

struct cupti_api {
	uint32_t kind;
	uint32_t call; /* cbid */
	uint64_t start, end;
	uint32_t pid, tid, correlation, result;
};

struct cupti_overhead {
	uint32_t kind;
	uint32_t what, object;
	uint32_t pid, tid; /* where object is CUPTI_OBJECT_THREAD */
	uint32_t unused;
	uint64_t start, end;
};
