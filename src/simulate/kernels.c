/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/kernels.h"

const struct kernel_text *kernel_text(enum kernel kernel)
{
	static const struct kernel_text texts[KERNEL_CNT] = {
#define X(id, class, util, threads, op, name) { CLASS_##class, util, threads, op, name },
		KERNEL_LIST(X)
#undef X
	};

	return &texts[kernel];
}

const char *kernel_collective(enum kernel kernel)
{
	static const char *const names[KERNEL_CNT] = {
		[KERNEL_TP_REDUCE] = "allreduce",	   [KERNEL_DP_REDUCE] = "allreduce",
		[KERNEL_SCATTER] = "_reduce_scatter_base", [KERNEL_GATHER] = "_allgather_base",
		[KERNEL_EXCHANGE] = "all_to_all",	   [KERNEL_PEER] = "send_recv",
	};

	return names[kernel];
}
