/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the CUPTI back end out of the way of CUDA graphs that the job captures. Calls that allocate
 * memory or wait for the GPU break the captures of all threads unless the thread that makes them is
 * "relaxed", and CUPTI makes such calls when it attaches, flushes and detaches. Also, the back end
 * does not detach during a capture, since CUPTI may refer to its nodes: captures that begin while
 * it is attached are counted by callbacks on the driver's calls.
 * Source: cuThreadExchangeStreamCaptureMode() in CUDA's driver API.
 */
#pragma once

#include "agent/gpu/cupti/cupti_library.h"

#include <stdatomic.h>

struct capture {
	_Atomic uint32_t cnt; /* that go on; written by the threads that capture */
};

/* From here to capture_restore() the calling thread breaks no capture. Returns its mode; -1: the
 * driver is too old to capture. */
int capture_relax(const struct cuda_functions *cuda);
void capture_restore(const struct cuda_functions *cuda, int mode);

/*
 * Enables the callbacks that are passed to capture_note(); CUPTI refuses numbers that its version
 * lacks. Captures already in progress are unknown.
 */
void capture_watch(struct capture *capture, const struct cupti_functions *api, void *subscriber);

/* Within a callback for any call of the driver. */
void capture_note(struct capture *capture, uint32_t call, const struct cupti_callback_data *at);

bool capture_goes_on(const struct capture *capture);

/* Returns 0, or -EAGAIN after timeout_ns: the next look finds none, should one be forgotten. */
_must_check_ int capture_wait(struct capture *capture, int64_t timeout_ns);
