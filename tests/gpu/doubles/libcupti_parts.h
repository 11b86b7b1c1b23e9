/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of libcupti's double share: its state, and checks of how it is used. libcupti.c has
 * the calls that attach and set, libcupti_records.c buffers and records.
 */
#pragma once

#include "double.h"

#include <pthread.h>
#include <stdbool.h>

#define EXPORT DOUBLE_EXPORT

enum { OK, INVALID = 1, MAX_LIMIT = 12, INVALID_KIND = 21, BUSY = 39 };
enum { MEMCPY = 1, MEMSET = 2, KERNEL = 3, CONCURRENT = 10, OVERHEAD = 17, SYNC = 38 };
enum { DRIVER = 4, RUNTIME = 5 };

typedef void (*callback_fn)(void *data, uint32_t domain, uint32_t call, const void *info);
typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *max);
typedef void (*complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			    size_t valid);

#define CALL_CNT 1024
#define NAME_CNT 256
#define QUEUE_CNT 256
#define THREAD_CNT 2048

struct buffer {
	uint8_t *at;
	size_t size, used;
};

extern struct cupti_double {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool thread;
	_Atomic(callback_fn) callback;
	_Atomic bool attached, state_on, driver_on, clock_set, zeroed;
	_Atomic bool sites[CALL_CNT]; /* calls of the driver with callbacks, but for its version */
	int (*disturb_captures)(void);
	uint64_t kinds;
	uint8_t runtime[CALL_CNT], driver[CALL_CNT];
	request_fn request;
	complete_fn complete;
	struct buffer filling[THREAD_CNT]; /* [0]: of all threads together */
	size_t thread_cnt;
	_Atomic bool per_thread;
	struct buffer queue[QUEUE_CNT];
	size_t queued, handed;
	char *names[NAME_CNT]; /* poisoned by cuptiFinalize() */
	size_t name_cnt;
	size_t dropped, kernel_cnt, buffer_cnt, finalize_cnt;
	int64_t version, kernel, busy, refuse, untimed, deaf, slow, lag, repeat;
	_Atomic bool finalizing, failing;
	_Atomic int64_t callback_ns;
	char fault[128];
	int64_t fault_cnt;
} cupti;

/* Counts a misuse and keeps the first one. */
void cupti_fault(const char *what);

/* Every entry that may not be used from within a buffer's callback begins with this. */
void cupti_enter(const char *name);

/* What the real one does to the GPU in a call. Returns how many captures go on. */
int cupti_disturb_captures(void);

/* Of a double_watcher: they write records. */
void cupti_on_kernel(const struct double_kernel *kernel);
void cupti_on_copy(const struct double_copy *copy);
void cupti_on_call(const struct double_call *call);
void cupti_on_sync(uint32_t stream, int64_t start_ns, int64_t end_ns, uint32_t correlation);
