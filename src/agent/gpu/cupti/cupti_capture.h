/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the CUPTI back end out of the way of CUDA graphs that the job captures. Calls
 * that take memory or wait for the GPU break the captures of all threads unless the thread
 * that makes them is "relaxed", and CUPTI makes such calls when it attaches, flushes and
 * detaches. Besides it is not detached in the midst of a capture, whose nodes it may know:
 * captures that begin while it is attached are counted by the driver's own calls.
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

/* Asks for the callbacks that capture_note() is to be told of; numbers that a version lacks it
 * refuses. Captures that go on already are not known. */
void capture_watch(struct capture *capture, const struct cupti_functions *api, void *subscriber);

/* Within a callback for any call of the driver. */
void capture_note(struct capture *capture, uint32_t call, const struct cupti_callback_data *at);

bool capture_goes_on(const struct capture *capture);

/* Returns 0, or -EAGAIN after timeout_ns: the next look finds none, should one be forgotten. */
_must_check_ int capture_wait(struct capture *capture, int64_t timeout_ns);
