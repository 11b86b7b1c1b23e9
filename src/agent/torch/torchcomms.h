/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the size and group of a collective of PyTorch. Back ends that describe their collectives
 * (NCCL) do so in a thread-local object, torch::ParamCommsDebugInfo, which lives while the
 * collective is queued; for others (gloo) only the size of the tensors is known, and the group by
 * the thread on which the collective ends (torchgroups.h).
 *
 * The C++ objects are read by offset, through the kernel, and every value is checked: an unexpected
 * layout gives "unknown".
 */
#pragma once

#include "agent/torch/torchlayout.h"
#include "base/base.h"

struct torchcomms {
	int64_t bytes, seq;		  /* -1: unknown */
	uint32_t group_size;		  /* 0: unknown */
	uint32_t group_name, collective;  /* strings of the flight recorder; 0: unknown */
	uint16_t first_rank, rank_stride; /* the group's ranks in the job; stride 0: unknown */
};

/*
 * libtorch: dlopen's handle of libtorch_cpu.so. Everything stays unknown when layout is NULL, or a
 * needed symbol is missing.
 */
void torchcomms_open(void *libtorch, const struct torch_layout *layout);

/*
 * function: the at::RecordFunction of a collective, in its start callback; name: its name
 * ("gloo:all_reduce"). Two or three system calls; keeps errno.
 */
void torchcomms_read(const void *function, const char *name, struct torchcomms *ret);
