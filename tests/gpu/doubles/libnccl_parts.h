/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of NCCL's double share. */
#pragma once

#include "nccl_double.h"

/* The plugin's, if it wants such events; without a handle nothing. Any thread. */
void *nccl_double_start(struct double_comm *comm, void *descr, int wanted);
void nccl_double_stop(void *handle);
void nccl_double_state(void *handle, int state, size_t bytes);

/* The network's part of a call, if it leaves the host. parent: the call, as pid's plugin has it. */
void nccl_double_network(struct double_comm *comm, void *parent, int pid, size_t bytes);
