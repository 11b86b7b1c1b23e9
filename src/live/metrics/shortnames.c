/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/shortnames.h"

#include <string.h>

/* In order: the first whose text is part of the name. */
struct kind {
	const char *part, *name;
};

static const char *find_kind(const struct kind *kinds, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcasestr(name, kinds[i].part) != NULL)
			return kinds[i].name;
	}
	return "other";
}

const char *kernel_kind(const char *name)
{
	static const struct kind kinds[] = {
		{ "nccl", "collective" },
		{ "rccl", "collective" },
		{ "all_reduce", "collective" },
		{ "allreduce", "collective" },
		{ "flash", "attention" },
		{ "fmha", "attention" },
		{ "attention", "attention" },
		{ "gemm", "matmul" },
		{ "gemv", "matmul" },
		{ "nvjet", "matmul" },
		{ "cutlass", "matmul" },
		{ "cijk_", "matmul" },
		{ "conv", "convolution" },
		{ "wgrad", "convolution" },
		{ "dgrad", "convolution" },
		{ "norm", "norm" },
		{ "softmax", "reduction" },
		{ "reduce", "reduction" },
		{ "elementwise", "elementwise" },
		{ "multi_tensor", "optimizer" },
		{ "adam", "optimizer" },
		{ "embedding", "embedding" },
		{ "index", "embedding" },
		{ "triton", "triton" },
	};

	return find_kind(kinds, ARRAY_SIZE(kinds), name);
}

const char *memop_kind(const char *name)
{
	static const struct kind kinds[] = {
		{ "HtoD", "HtoD" },	      { "DtoH", "DtoH" },
		{ "DtoD", "DtoD" },	      { "PtoP", "PtoP" },
		{ "HtoH", "HtoH" },	      { "memset", "set" },
		{ "HostToDevice", "HtoD" },   { "DeviceToHost", "DtoH" },
		{ "DeviceToDevice", "DtoD" },
	};

	return find_kind(kinds, ARRAY_SIZE(kinds), name);
}
