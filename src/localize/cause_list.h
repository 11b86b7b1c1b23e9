/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of causes: one X-macro table. Ids and names are stable and listed in
 * docs/findings.md. Those of hangs are in hang/hangrules.c.
 */
#pragma once

/*
 * X(id, number, name, title, advice). Ids and names never change. A new row goes to the end of
 * its PT-n group.
 */
#define CAUSE_LIST(X)                                                                               \
	X(HOST_STALL, "PT-101", "host-stall", "host stall",                                         \
	  "Look at this place in the code: a lock, a sleep, a file or network call. Take the "      \
	  "stack while it stalls there.")                                                           \
	X(SLOW_DATA, "PT-102", "slow-data-loading", "slow data loading",                            \
	  "Check the storage or service that the loader reads from, then raise num_workers and "    \
	  "prefetch_factor, or move the data to faster storage.")                                   \
	X(CPU_PYTHON, "PT-103", "cpu-bound-python", "CPU-bound Python",                             \
	  "Move this function off the training thread (data-loader workers), vectorize it, or "     \
	  "cache its result.")                                                                      \
	X(GC, "PT-104", "garbage-collection", "garbage collection",                                 \
	  "Call gc.freeze() after start-up, gc.disable(), and gc.collect() at the same step on "    \
	  "all ranks (for example every 200 steps).")                                               \
	X(GIL, "PT-105", "gil-contention", "waiting for the GIL",                                   \
	  "Move that thread's work to another process, or make it release the GIL.")                \
	X(CPU_STARVED, "PT-106", "cpu-starvation", "CPU starvation",                                \
	  "Move the process that takes the CPU away, or pin the rank and its threads to CPUs of "   \
	  "their own; check cgroup limits.")                                                        \
	X(STOPPED, "PT-107", "stopped-process", "stopped process",                                  \
	  "Find who sent the stop signal or holds the process in a debugger or freezer; "           \
	  "kill -CONT resumes it.")                                                                 \
	X(PINNED, "PT-108", "pinned-memory-allocation", "pinned-memory allocation",                 \
	  "Allocate pinned buffers once and reuse them; pin_memory in the loader, not per step.")   \
	X(IMBALANCE, "PT-109", "load-imbalance", "load imbalance (more work than its peers)",       \
	  "Balance the inputs: sort or bucket samples by length, or split by cost, not by count.")  \
	X(SLOW_OPERATOR, "PT-110", "slow-operator", "operator slower than on its peers",            \
	  "Compare this host with the others: CPU frequency, NUMA placement, drivers, libraries.")  \
	X(HOST_BOUND, "PT-111", "host-bound", "GPUs wait for their host",                           \
	  "Launch less and larger work: torch.compile or CUDA graphs, larger batches, fused "       \
	  "optimizers (foreach, fused), no tensor operations in Python loops.")                     \
	X(ALLOCATION, "PT-112", "device-memory-allocation", "GPU memory allocated in training",     \
	  "Let the caching allocator keep its memory: no torch.cuda.empty_cache() in the loop, "    \
	  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation, equal "          \
	  "shapes, and memory to spare.")                                                           \
	X(LAUNCHES, "PT-113", "synchronous-launches", "the host waits for each kernel",             \
	  "Unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING) and turn off "    \
	  "anomaly detection and debuggers.")                                                       \
	X(SYNCS, "PT-114", "device-synchronization", "the host and the GPU wait by turns",          \
	  "Read values of the GPU less often: item(), tolist(), nonzero() and masks wait for "      \
	  "it, as do copies to unpinned memory; log every hundredth step, copy with "               \
	  "non_blocking=True.")                                                                     \
	X(UNEVEN_STAGES, "PT-115", "uneven-stages", "pipeline stages cut unevenly",                 \
	  "Move layers from this stage to the others, or fold the embedding and the loss into the " \
	  "cut; no device is slow.")                                                                \
	X(EXTRA_WORK, "PT-116", "extra-work", "work that its peers do not do",                      \
	  "Only this rank runs this: find the condition, data or configuration that makes it do "   \
	  "so, then drop the work, share it, or move it out of the step.")                          \
	X(RANDOM_STALLS, "PT-117", "random-stalls", "stalls that look like a lack of CPUs",         \
	  "Count the busy threads of the host against its CPUs: other processes, OMP_NUM_THREADS "  \
	  "times ranks, loader workers; see nr_throttled in the cgroup's cpu.stat. perftracker "    \
	  "run measures how long threads wait for a CPU.")                                          \
	X(SLOW_GPU, "PT-201", "gpu-slow", "GPU slower than its peers",                              \
	  "Check this GPU's clocks, power and thermal throttling and Xid errors; replace the host " \
	  "if it persists.")                                                                        \
	X(SLOW_LINK, "PT-202", "slow-link", "slow link of the ring",                                \
	  "Check the NIC, cable and switch port of this worker; the others of the ring only wait.") \
	X(NVLINK, "PT-203", "nvlink-fallback", "NVLink fallback to PCIe",                           \
	  "Check NVLink on this host (nvidia-smi nvlink -s); replace the host if links are down.")  \
	X(SLOW_COPY, "PT-204", "slow-copy", "memory operations slower than on its peers",           \
	  "Check PCIe width and speed, NUMA placement and pinned memory on this host; keep "        \
	  "allocations out of the step.")                                                           \
	X(SLOW_COLLECTIVE, "PT-205", "slow-collective", "slow collective, no rank late",            \
	  "No rank is late: overlap it with compute, send less, or check the network of the whole " \
	  "group.")                                                                                 \
	X(COPIES, "PT-206", "copies", "memory copies hold the GPU",                                 \
	  "Copy less and beside computing: keep what is used again on the GPU, pin the host's "     \
	  "memory (pin_memory=True), copy with non_blocking=True on a stream of its own.")          \
	X(EVERYWHERE, "PT-301", "slow-function-everywhere",                                         \
	  "function slower than a healthy job has it",                                              \
	  "This is in the code or the environment of all workers: speed the function up, or move "  \
	  "it out of the step.")                                                                    \
	X(DIFFERENCE, "PT-302", "unexplained-difference", "difference from its peers",              \
	  "Compare this worker's host, inputs and code path with a peer's.")                        \
	X(MORE_THAN_BEFORE, "PT-303", "more-than-before", "more time than in the job's own past",   \
	  "Compare its inputs, files, caches, and what else runs on the host, with those before.")
