/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C functions whose calls get a record each, because they wait for other threads or processes
 * or take long: network, files, locks, sleep, collections, decoding. A call is identified by the
 * address of its definition (PyMethodDef).
 */
#pragma once

#include "agent/python/pycall.h"

/* Whether this interpreter's objects have the expected layout. Lock held; leaves no error. */
bool pylisted_open(const struct pyapi *api);

/*
 * The string of the recorder for a call of callable, as torch.profiler writes it without the
 * address: "<built-in method recv_into of socket object>". 0 when it is not on the list. first: the
 * first argument, NULL without one. Interpreter lock held. About 5 ns except at the first call of a
 * function.
 */
uint32_t pylisted_name(struct pyobject *callable, struct pyobject *first);

/* A key that is the same for all calls of one C function, and never equals a code object. */
const void *pylisted_key(const struct pyobject *callable);

/* Clears the cache when a window begins: addresses may have new owners. */
void pylisted_reset(void);
