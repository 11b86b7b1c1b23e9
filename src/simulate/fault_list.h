/* SPDX-License-Identifier: Apache-2.0 */
/* All kinds of faults that can be simulated. */
#pragma once

/*
 * X(id, name, cause, other causes accepted as correct, functions, meaning of its size). Causes are
 * those of reports; functions: the finding's function contains one of these words, "": any.
 */
#define FAULT_LIST(X)                                                                              \
	X(GPU, "gpu-throttle", "gpu-slow", "", "gemm,flash,kernel",                                \
	  "compute takes 1 + size times as long")                                                  \
	X(NVLINK, "nvlink-fallback", "nvlink-fallback", "slow-link", "nccl",                       \
	  "traffic inside the host at 1 / (1 + size) of the rate, over PCIe")                      \
	X(NIC, "nic-bond", "slow-link", "", "nccl",                                                \
	  "share of the bonded NICs' bandwidth that is gone")                                      \
	X(STORAGE, "storage-slow", "slow-data-loading", "", "recv_into,DataLoader,dataloader",     \
	  "waiting for a batch, in healthy iterations")                                            \
	X(PYTHON, "python-slow", "cpu-bound-python", "slow-function-everywhere", "forward",        \
	  "CPU time of a Python function, in healthy iterations")                                  \
	X(GC, "gc-random", "garbage-collection", "", "__init__,__getattr__,_flat_param,_use_grad", \
	  "one pause, in healthy iterations")                                                      \
	X(PINNED, "pinned-stall", "pinned-memory-allocation", "slow-data-loading", "pin_memory",   \
	  "one allocation, in healthy iterations")                                                 \
	X(IMBALANCE, "load-imbalance", "load-imbalance", "", "gemm,flash,kernel",                  \
	  "input larger by at most this")                                                          \
	X(STARVED, "cpu-starvation", "cpu-starvation", "", "",                                     \
	  "work of the host takes 1 + size times as long")                                         \
	X(PAUSE, "straggler", "host-stall", "cpu-bound-python,slow-function-everywhere", "flush",  \
	  "one pause, in healthy iterations")                                                      \
	X(AFFINITY, "flow-affinity", "slow-collective", "slow-link", "nccl",                       \
	  "share of bandwidth that a flow loses to another on its path")
