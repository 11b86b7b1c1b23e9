/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every family of /metrics: X(id, name, type, unit, bounds, help, labels...). The order is that
 * of the page. docs/metrics.md says where each comes from; names and labels are a contract.
 * Times are counted in ns and shown in seconds, work in 10^6 operations and shown in 10^12.
 * style-limits: table
 */
#pragma once

#define METRIC_WORKER_LABELS "rank", "local_rank"
#define METRIC_OPERATION_LABELS METRIC_WORKER_LABELS, "operation", "backend", "dtype"
/* xpu_timer's families, for its dashboards. */
#define METRIC_XPU_LABELS "pod_name", "job_name", "ip", METRIC_WORKER_LABELS
#define METRIC_XPU_COLL_LABELS \
	METRIC_XPU_LABELS, "dtype", "operation", "algorithm", "transport", "level", "small"
#define METRIC_XPU_MM_LABELS METRIC_XPU_LABELS, "dtype", "operation", "level"

#define METRIC_LIST(X)                                                                               \
	X(BUILD, "perftracker_build", INFO, "", NONE, "Version of the program.", "version")          \
	X(WORKER_STATE, "perftracker_worker_state", GAUGE, "", NONE,                                 \
	  "1 for the state that the worker is in, 0 for the others.", METRIC_WORKER_LABELS,          \
	  "state")                                                                                   \
	X(WORKER_STARTS, "perftracker_worker_starts", COUNTER, "", NONE,                             \
	  "Processes that have been this rank.", METRIC_WORKER_LABELS)                               \
	X(WORKER_ENDS, "perftracker_worker_ends", COUNTER, "", NONE,                                 \
	  "Processes of this rank that ended: with exit code 0, with another one, by a signal.",     \
	  "rank", "how")                                                                             \
	X(RESTARTS, "perftracker_job_restarts", COUNTER, "", NONE,                                   \
	  "Times that ranks failed and were started again.", NULL)                                   \
	X(WORLD_SIZE, "perftracker_world_size", GAUGE, "", NONE,                                     \
	  "Ranks of the job, as its workers say.", NULL)                                             \
	X(LAST_MARK, "perftracker_worker_last_mark_timestamp_seconds", GAUGE, "seconds", NONE,       \
	  "When the worker last gave a sign of life, in Unix time.", METRIC_WORKER_LABELS)           \
	X(ITERATION, "perftracker_iteration_seconds", HISTOGRAM, "seconds", WIDE,                    \
	  "Time of an iteration, from the end of the one before to its own end.",                    \
	  METRIC_WORKER_LABELS)                                                                      \
	X(ITERATION_RECENT, "perftracker_iteration_recent_seconds", GAUGE, "seconds", NONE,          \
	  "Mean time of the recent iterations, by which a worker is judged slow.",                   \
	  METRIC_WORKER_LABELS)                                                                      \
	X(ITERATION_BASELINE, "perftracker_iteration_baseline_seconds", GAUGE, "seconds", NONE,      \
	  "Time of an iteration that the recent ones are compared with.", METRIC_WORKER_LABELS)      \
	X(ITERATION_BEST, "perftracker_iteration_best_seconds", GAUGE, "seconds", NONE,              \
	  "Least baseline since the iteration was learned; accepting a slower pace leaves it.",      \
	  METRIC_WORKER_LABELS)                                                                      \
	X(SLOW_SINCE, "perftracker_worker_slow_since_step", GAUGE, "", NONE,                         \
	  "Step since which the worker is slow; 0 while it is not.", METRIC_WORKER_LABELS)           \
	X(MARKS, "perftracker_marks", COUNTER, "", NONE,                                             \
	  "Marks of the training thread: loader calls, optimizer steps, own iteration marks, "       \
	  "garbage collections.",                                                                    \
	  METRIC_WORKER_LABELS, "mark")                                                              \
	X(LOADER, "perftracker_dataloader_wait_seconds", HISTOGRAM, "seconds", FINE,                 \
	  "Time that the training thread waited for the data loader's next batch.",                  \
	  METRIC_WORKER_LABELS)                                                                      \
	X(GC, "perftracker_garbage_collection_seconds", HISTOGRAM, "seconds", FINE,                  \
	  "Time of a garbage collection of Python on the training thread.", METRIC_WORKER_LABELS,    \
	  "generation")                                                                              \
	X(RUN_DELAY, "perftracker_run_queue_delay_seconds", HISTOGRAM, "seconds", FINE,              \
	  "Time in which the training thread was runnable without a CPU, between two looks "         \
	  "about 0.1 s apart.",                                                                      \
	  METRIC_WORKER_LABELS)                                                                      \
	X(THREAD_CPU, "perftracker_training_thread_cpu_seconds", COUNTER, "seconds", NONE,           \
	  "CPU time of the training thread.", METRIC_WORKER_LABELS)                                  \
	X(COLLECTIVE, "perftracker_collective_seconds", HISTOGRAM, "seconds", FINE,                  \
	  "Time of a collective from its start on this rank to its end, waiting included.",          \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(COLLECTIVE_WAIT, "perftracker_collective_wait_seconds", HISTOGRAM, "seconds", FINE,        \
	  "Part of a collective before its last member came; where all members are on this "         \
	  "host.",                                                                                   \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(COLLECTIVE_TRANSFER, "perftracker_collective_transfer_seconds", HISTOGRAM, "seconds",      \
	  FINE,                                                                                      \
	  "Part of a collective after its last member came; where all members are on this "          \
	  "host.",                                                                                   \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(COLLECTIVE_LAUNCH, "perftracker_collective_launch_seconds", HISTOGRAM, "seconds", FINE,    \
	  "Time in which a collective was put into a GPU's queue, where its end is not seen.",       \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(COLLECTIVE_BYTES, "perftracker_collective_payload_bytes", HISTOGRAM, "bytes", BYTES,       \
	  "Payload of a collective: the larger one of its input and output on a rank.",              \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(BUS_BYTES, "perftracker_collective_bus_bytes", COUNTER, "bytes", NONE,                     \
	  "Bytes that a rank has to move for its collectives (payload times the operation's "        \
	  "bus factor).",                                                                            \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(BUS_TIME, "perftracker_collective_bus_seconds", COUNTER, "seconds", NONE,                  \
	  "Time in which those bytes were moved: transfer where it is known, else the whole "        \
	  "collective.",                                                                             \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(BUS_BANDWIDTH, "perftracker_collective_bus_bandwidth_bytes_per_second", GAUGE,             \
	  "bytes_per_second", NONE,                                                                  \
	  "Bus bandwidth of the latest 10 s in which there were such collectives.",                  \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(BUS_RATE, "perftracker_collective_bus_rate_bytes_per_second", HISTOGRAM,                   \
	  "bytes_per_second", RATE, "Bus bandwidth of single collectives.",                          \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(NETWORK, "perftracker_network_seconds", HISTOGRAM, "seconds", FINE,                        \
	  "Time in which NCCL's network threads worked for a collective.",                           \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(NETWORK_BYTES, "perftracker_network_bytes", COUNTER, "bytes", NONE,                        \
	  "Bytes that crossed the network for collectives; while transfers are followed.",           \
	  METRIC_OPERATION_LABELS)                                                                   \
	X(NETWORK_STEP, "perftracker_network_step_seconds", COUNTER, "seconds", NONE,                \
	  "What the steps of those transfers waited for; while they are followed.",                  \
	  METRIC_WORKER_LABELS, "part")                                                              \
	X(KERNEL, "perftracker_gpu_kernel_seconds", HISTOGRAM, "seconds", FINE,                      \
	  "Time of a kernel on the GPU; in windows only.", METRIC_WORKER_LABELS, "kind")             \
	X(GPU_MEMOP, "perftracker_gpu_memory_operation_seconds", HISTOGRAM, "seconds", FINE,         \
	  "Time of a copy or set of GPU memory; in windows only.", METRIC_WORKER_LABELS, "kind")     \
	X(GPU_MEMOP_BYTES, "perftracker_gpu_memory_operation_bytes", COUNTER, "bytes", NONE,         \
	  "Bytes of copies and sets of GPU memory; in windows only.", METRIC_WORKER_LABELS,          \
	  "kind")                                                                                    \
	X(GPU_DEVICE, "perftracker_gpu_device", INFO, "", NONE,                                      \
	  "A GPU of the host, as its driver counts.", "gpu", "name", "uuid")                         \
	X(GPU_LOST, "perftracker_gpu_lost", GAUGE, "", NONE, "1 for a GPU that answers no more.",    \
	  "gpu")                                                                                     \
	X(GPU_CORE_CLOCK, "perftracker_gpu_core_clock_hertz", GAUGE, "hertz", NONE,                  \
	  "Clock of the GPU's cores.", "gpu")                                                        \
	X(GPU_MEMORY_CLOCK, "perftracker_gpu_memory_clock_hertz", GAUGE, "hertz", NONE,              \
	  "Clock of the GPU's memory.", "gpu")                                                       \
	X(GPU_POWER, "perftracker_gpu_power_watts", GAUGE, "watts", NONE,                            \
	  "Power that the GPU draws.", "gpu")                                                        \
	X(GPU_ENERGY, "perftracker_gpu_energy_joules", COUNTER, "joules", NONE,                      \
	  "Energy that the GPU used.", "gpu")                                                        \
	X(GPU_TEMPERATURE, "perftracker_gpu_temperature_celsius", GAUGE, "celsius", NONE,            \
	  "Temperature of the GPU's chip.", "gpu")                                                   \
	X(GPU_THROTTLED, "perftracker_gpu_throttled_seconds", COUNTER, "seconds", NONE,              \
	  "Time in which a limit slowed the GPU down.", "gpu", "reason")                             \
	X(GPU_MEMORY_ERRORS, "perftracker_gpu_memory_errors", COUNTER, "", NONE,                     \
	  "Errors of the GPU's memory.", "gpu", "kind")                                              \
	X(GPU_ROWS, "perftracker_gpu_memory_rows_remapped", COUNTER, "", NONE,                       \
	  "Rows of the GPU's memory that went out of use.", "gpu")                                   \
	X(GPU_PCIE_BYTES, "perftracker_gpu_pcie_bytes", COUNTER, "bytes", NONE,                      \
	  "Bytes that the GPU sent and received over PCIe.", "gpu", "direction")                     \
	X(GPU_PCIE_ERRORS, "perftracker_gpu_pcie_errors", COUNTER, "", NONE,                         \
	  "Packets that were repeated on the GPU's PCIe link, and errors.", "gpu", "kind")           \
	X(GPU_LINK_BYTES, "perftracker_gpu_link_bytes", COUNTER, "bytes", NONE,                      \
	  "Bytes over the GPU's own links to other GPUs.", "gpu", "direction")                       \
	X(GPU_LINK_ERRORS, "perftracker_gpu_link_errors", COUNTER, "", NONE,                         \
	  "Errors on the GPU's own links to other GPUs.", "gpu", "kind")                             \
	X(GPU_C2C_ERRORS, "perftracker_gpu_c2c_errors", COUNTER, "", NONE,                           \
	  "Errors on the GPU's links to the memory of the CPU.", "gpu")                              \
	X(GPU_FAULTS, "perftracker_gpu_faults", COUNTER, "", NONE,                                   \
	  "Faults that the driver reported, by its number (NVIDIA: Xid).", "gpu", "number")          \
	X(GPU_ACTIVE, "perftracker_gpu_active_ratio", GAUGE, "ratio", NONE,                          \
	  "Share of the GPU's units or of its memory's bandwidth in use; in windows only.", "gpu",   \
	  "part")                                                                                    \
	X(GPU_SAMPLED, "perftracker_gpu_counters_sampled", GAUGE, "", NONE,                          \
	  "1 while the GPU's counters are sampled at kHz.", "gpu")                                   \
	X(GPU_SAMPLERS, "perftracker_gpu_samplers", COUNTER, "", NONE,                               \
	  "Processes that sampled counters: started, and of these crashed or killed as hung.",       \
	  "how")                                                                                     \
	X(GPU_CALLS, "perftracker_gpu_calls", COUNTER, "", NONE,                                     \
	  "Calls that multiply matrices or launch kernels, where the job's calls are seen.",         \
	  METRIC_WORKER_LABELS, "kind")                                                              \
	X(MATMUL_FLOP, "perftracker_matmul_teraflop", COUNTER, "teraflop", NONE,                     \
	  "Floating-point operations of those matrix multiplications, in 10^12.",                    \
	  METRIC_WORKER_LABELS)                                                                      \
	X(MATMUL, "perftracker_matmul_seconds", HISTOGRAM, "seconds", FINE,                          \
	  "Time of a matrix multiplication on the GPU; of those that were timed, one in many.",      \
	  METRIC_WORKER_LABELS, "dtype")                                                             \
	X(MATMUL_RATE, "perftracker_matmul_teraflop_per_second", HISTOGRAM, "teraflop_per_second",   \
	  FLOPS, "Speed of those that were timed.", METRIC_WORKER_LABELS, "dtype")                   \
	X(KERNEL_SAMPLED, "perftracker_gpu_kernel_sampled_seconds", HISTOGRAM, "seconds", FINE,      \
	  "Time of a kernel that the job launched itself; one in many is timed.",                    \
	  METRIC_WORKER_LABELS, "kind")                                                              \
	X(LOST, "perftracker_events_lost", COUNTER, "", NONE,                                        \
	  "Events that were not recorded or not taken in time.", METRIC_WORKER_LABELS, "reason")     \
	X(OVERHEAD, "perftracker_overhead_ratio", GAUGE, "ratio", NONE,                              \
	  "Share of an iteration's time that PerfTracker's collectors cost, as measured by itself.", \
	  "mode")                                                                                    \
	X(OVERHEAD_BOUND, "perftracker_overhead_bound_ratio", GAUGE, "ratio", NONE,                  \
	  "Ends of the 95 % interval of perftracker_overhead_ratio.", "mode", "bound")               \
	X(OVERHEAD_PAIRS, "perftracker_overhead_pairs", GAUGE, "", NONE,                             \
	  "Pairs of slices of iterations behind perftracker_overhead_ratio.", "mode")                \
	X(AUDITS, "perftracker_audits", COUNTER, "", NONE,                                           \
	  "Measurements of the overhead, collectors switched off and on in turn.", NULL)             \
	X(AUDIT_TIME, "perftracker_audit_seconds", COUNTER, "seconds", NONE,                         \
	  "Time that those measurements took, collectors on or off.", NULL)                          \
	X(OWN_CPU, "perftracker_own_cpu_seconds", COUNTER, "seconds", NONE,                          \
	  "CPU time of PerfTracker's own threads and processes on this host.", "thread")             \
	X(BUDGET, "perftracker_overhead_budget_ratio", GAUGE, "ratio", NONE,                         \
	  "What the collectors may cost; what costs more is left out.", "mode")                      \
	X(LEFT_OUT, "perftracker_left_out", GAUGE, "", NONE,                                         \
	  "1 for what is not recorded because it cost more than the budget.", "what")                \
	X(REPORTS, "perftracker_reports", COUNTER, "", NONE, "Reports made.", "verdict")             \
	X(REPORT_TIME, "perftracker_report_timestamp_seconds", GAUGE, "seconds", NONE,               \
	  "When the last report was made, in Unix time.", NULL)                                      \
	X(REPORT_VERDICT, "perftracker_report_verdict", GAUGE, "", NONE,                             \
	  "1 for the verdict of the last report, 0 for the others.", "verdict")                      \
	X(FINDINGS, "perftracker_report_findings", GAUGE, "", NONE,                                  \
	  "Findings of the last report by cause.", "cause")                                          \
	X(GAIN, "perftracker_report_gain_seconds", GAUGE, "seconds", NONE,                           \
	  "Recoverable time per iteration: what fixing the last report's findings would save.",      \
	  "cause")                                                                                   \
	X(ACCUSED, "perftracker_report_accused", GAUGE, "", NONE,                                    \
	  "1 for a rank that a finding of the last report flags.", "rank", "cause")                  \
	X(OVERFLOW, "perftracker_metrics_overflow", COUNTER, "", NONE,                               \
	  "Values that went into a family's series 'other' because it had too many.", "metric")      \
	X(REFUSED, "perftracker_daemon_refused", COUNTER, "", NONE,                                  \
	  "Connections and messages to the daemon that made no sense.", NULL)                        \
	X(SCRAPES, "perftracker_scrapes", COUNTER, "", NONE, "Pages of metrics served.", "format")   \
	X(PROCESS_CPU, "process_cpu_seconds", COUNTER, "seconds", NONE, "CPU time of the daemon.",   \
	  NULL)                                                                                      \
	X(PROCESS_MEMORY, "process_resident_memory_bytes", GAUGE, "bytes", NONE,                     \
	  "Resident memory of the daemon.", NULL)                                                    \
	X(PROCESS_START, "process_start_time_seconds", GAUGE, "seconds", NONE,                       \
	  "When the daemon was started, in Unix time.", NULL)                                        \
	X(XPU_COLL_AVG, "XPU_TIMER_COLL_KERNEL_AVG_LATENCY", GAUGE, "", NONE,                        \
	  "Mean time of recent collectives in us.", METRIC_XPU_COLL_LABELS)                          \
	X(XPU_COLL_MAX, "XPU_TIMER_COLL_KERNEL_MAX_LATENCY", GAUGE, "", NONE,                        \
	  "Longest time of recent collectives in us.", METRIC_XPU_COLL_LABELS)                       \
	X(XPU_COLL_P99, "XPU_TIMER_COLL_KERNEL_P99_LATENCY", GAUGE, "", NONE,                        \
	  "99th percentile of the time of recent collectives in us.", METRIC_XPU_COLL_LABELS)        \
	X(XPU_COLL_MIN, "XPU_TIMER_COLL_KERNEL_MIN_LATENCY", GAUGE, "", NONE,                        \
	  "Shortest time of recent collectives in us.", METRIC_XPU_COLL_LABELS)                      \
	X(XPU_COLL_BANDWIDTH, "XPU_TIMER_COLL_KERNEL_BANDWIDTH", GAUGE, "", NONE,                    \
	  "Bus bandwidth of recent collectives in Gbit/s.", METRIC_XPU_COLL_LABELS)                  \
	X(XPU_MM_AVG, "XPU_TIMER_MM_KERNEL_AVG_LATENCY", GAUGE, "", NONE,                            \
	  "Mean time of recent kernels in us.", METRIC_XPU_MM_LABELS)                                \
	X(XPU_MM_MAX, "XPU_TIMER_MM_KERNEL_MAX_LATENCY", GAUGE, "", NONE,                            \
	  "Longest time of recent kernels in us.", METRIC_XPU_MM_LABELS)                             \
	X(XPU_MM_P99, "XPU_TIMER_MM_KERNEL_P99_LATENCY", GAUGE, "", NONE,                            \
	  "99th percentile of the time of recent kernels in us.", METRIC_XPU_MM_LABELS)              \
	X(XPU_MM_MIN, "XPU_TIMER_MM_KERNEL_MIN_LATENCY", GAUGE, "", NONE,                            \
	  "Shortest time of recent kernels in us.", METRIC_XPU_MM_LABELS)                            \
	X(XPU_MM_FLOPS, "XPU_TIMER_MM_KERNEL_FLOPS", GAUGE, "", NONE,                                \
	  "Speed of recent matrix multiplications in TFLOPS.", METRIC_XPU_MM_LABELS)                 \
	X(XPU_HANG, "XPU_TIMER_COMMON_HANG", GAUGE, "", NONE, "1 while the worker is blocked.",      \
	  METRIC_XPU_LABELS)                                                                         \
	X(XPU_START_DUMP, "XPU_TIMER_COMMON_START_DUMP", GAUGE, "", NONE,                            \
	  "1 while a window is open.", METRIC_XPU_LABELS)                                            \
	X(XPU_END_DUMP, "XPU_TIMER_COMMON_END_DUMP", GAUGE, "", NONE,                                \
	  "1 when a window has been open and none is.", METRIC_XPU_LABELS)                           \
	X(XPU_POOL_QUEUE, "XPU_TIMER_COMMON_POOL_QUEUE_SIZE", GAUGE, "", NONE,                       \
	  "Always 0: there is no such queue.", METRIC_XPU_LABELS)                                    \
	X(XPU_WORK_QUEUE, "XPU_TIMER_COMMON_WORK_QUEUE_SIZE", GAUGE, "", NONE,                       \
	  "Always 0: there is no such queue.", METRIC_XPU_LABELS)                                    \
	X(XPU_GC, "XPU_TIMER_COMMON_GC_COUNT", GAUGE, "", NONE, "Garbage collections.",              \
	  METRIC_XPU_LABELS)                                                                         \
	X(XPU_LOADER, "XPU_TIMER_COMMON_DATA_LOADER_COUNT", GAUGE, "", NONE,                         \
	  "Calls of the data loader.", METRIC_XPU_LABELS)                                            \
	X(XPU_MEMORY, "XPU_TIMER_MEMORY_COUNTER", GAUGE, "", NONE,                                   \
	  "Copies, allocations and releases of memory; in windows only.", METRIC_XPU_LABELS,         \
	  "operation", "kind")
