/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a worker used its GPUs in a window: how long they worked on what, how long they had nothing
 * to do and why, and which calls and kernels took most time. Unlike the critical path, times count
 * whatever the host did meanwhile: a GPU without work is idle, also while the host is in a call of
 * the driver. struct fingerprint (fingerprint.h) owns these records.
 */
#pragma once

#include "model/event.h"

/* Unions over all streams of all GPUs of the worker: what runs at the same time counts once. */
struct fp_usage {
	bool known;	 /* the trace has work of a device; false: everything else is 0 */
	int64_t busy_ns; /* any work */
	int64_t compute_ns, memory_ns, comm_ns; /* kernels, copies and sets, collectives */
	int64_t memory_alone_ns;		/* while neither kernels nor collectives ran */
	int64_t comm_alone_ns;			/* while neither kernels nor copies ran */
	/*
	 * No work, and the call that launched the next work had not ended: the GPU waited for its
	 * host. Time before work whose launch is unknown does not count.
	 */
	int64_t starved_ns;
	/*
	 * What calls that wait for the device cost at most: for each, the shorter of its wait and
	 * the time without work that follows. Without the wait the host would prepare the next
	 * work meanwhile.
	 */
	int64_t sync_loss_ns;	 /* synchronizations and copies that the host waits for */
	int64_t launch_loss_ns;	 /* launches that end after their kernel (CUDA_LAUNCH_BLOCKING) */
	int64_t launch_delay_ns; /* begin of the launch to begin of the kernel, median; -1 unknown */
	uint64_t sync_cnt;	 /* waits that sync_loss_ns is of */
	uint64_t kernel_cnt;
	uint64_t short_cnt;    /* kernels shorter than USAGE_SHORT_NS */
	uint64_t launched_cnt; /* kernels whose launch is known */
	uint64_t blocking_cnt; /* of these, kernels whose launch ended after them */
};

#define USAGE_SHORT_NS 10000

/* What took most time: device work by name, runtime calls by name. */
struct fp_total {
	const char *name; /* display name */
	uint8_t kind;	  /* KIND_KERNEL, KIND_GPU_MEMOP or KIND_RUNTIME */
	uint8_t class;	  /* enum event_class */
	uint64_t cnt;
	int64_t total_ns; /* sum of durations in the window, overlaps counted twice */
	int64_t longest_ns;
	int64_t idle_ns; /* runtime calls: the part in which no GPU of the worker had work */
	int64_t bytes;	 /* copies: payload, sum; -1 unknown */
};

/*
 * One iteration, by its index. What lies in several of them counts in the one where it begins, but
 * for busy_ns.
 */
struct fp_iteration_use {
	int64_t busy_ns;	 /* any work on the device */
	int64_t alloc_ns;	 /* no work on it while the host allocated or freed memory */
	int64_t memory_alone_ns; /* as in fp_usage */
	int64_t starved_ns, sync_loss_ns, launch_loss_ns;
};
