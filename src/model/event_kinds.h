/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two labels of an event: the kind, as its writer called it, and the class, which decides the
 * critical path.
 * Source: PerfTracker section 4.2 for the classes; Kineto output_json.cpp for the kinds.
 */
#pragma once

/* Priority on the critical path: a higher value hides a lower one. */
enum event_class {
	CLASS_IDLE,    /* nothing of the worker ran */
	CLASS_HOST,    /* Python, operators that only launch, runtime calls */
	CLASS_COMM,    /* collectives, send and receive */
	CLASS_MEMORY,  /* copies, sets, allocations on the device path */
	CLASS_COMPUTE, /* kernels; without a device: leaf operators that compute */
	CLASS_CNT
};

/* The name of a KIND_PYTHON event in which a thread waits for the interpreter's lock. */
#define EVENT_GIL_WAIT "<waiting for the GIL>"

/* The writer's label of an event. The class is derived from it. */
enum event_kind {
	KIND_PYTHON,	     /* python_function: parent is the calling frame */
	KIND_OPERATOR,	     /* cpu_op, Operator */
	KIND_ANNOTATION,     /* user_annotation on a thread: context, not an execution */
	KIND_RUNTIME,	     /* cuda_runtime, cuda_driver, hip*, Runtime */
	KIND_KERNEL,	     /* kernel, Kernel: on a stream */
	KIND_GPU_MEMOP,	     /* gpu_memcpy, gpu_memset, Memcpy, Memset: on a stream */
	KIND_GPU_ANNOTATION, /* gpu_user_annotation: a copy of an annotation, no execution */
	KIND_SYNC,	     /* cuda_sync: a wait drawn on a stream, no execution */
	KIND_OVERHEAD,	     /* the profiler's own work */
	KIND_GC,	     /* garbage collection, recorded by the agent */
	KIND_OTHER,	     /* unknown category: kept, never an execution */
	KIND_CNT
};

const char *event_class_name(enum event_class class);
const char *event_kind_name(enum event_kind kind);
