/* SPDX-License-Identifier: Apache-2.0 */
#include "format/shared/matmul.h"

bool matmul_of(const struct ring_record *record, struct matmul *ret)
{
	uint32_t high = (uint32_t)(record->extra >> 32), matrices = (uint32_t)record->extra;
	struct matmul found = { .matrices = matrices, .type = record->detail };

	switch (record->kind) {
	case FLIGHT_TIMED_SHAPE:
		found.m = (uint32_t)((uint64_t)record->value >> 32);
		found.n = (uint32_t)record->value;
		found.k = high;
		found.flop = matmul_flop(found.m, found.n, high, matrices, record->detail);
		break;
	case FLIGHT_TIMED_GROUPS:
		found.groups = high;
		found.flop = (double)record->value;
		break;
	default:
		return false;
	}
	*ret = found;
	return true;
}

const char *matmul_type_name(uint16_t type)
{
	static const char *const names[] = {
		[0] = "float32",     [1] = "float64",	  [2] = "float16",     [3] = "int8",
		[4] = "complex64",   [5] = "complex128",  [8] = "uint8",       [14] = "bfloat16",
		[28] = "float8e4m3", [29] = "float8e5m2", [33] = "float4e2m1",
	};

	return type < ARRAY_SIZE(names) && names[type] != NULL ? names[type] : "other";
}
