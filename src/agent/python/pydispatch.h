/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions that jax.jit compiled, which run no Python code after the first call.
 */
#pragma once

#include "agent/core/agent.h"

/*
 * Calls of object, a compiled function of JAX, become marks, as steps of an optimizer. Until the
 * agent runs, connect() is called before each call, until its result is false; it is that of the
 * first object, and kept. Returns 0; -ENOTSUP: object is not called in the known way, and is left
 * as it was.
 */
PT_EXPORT int pt_agent_watch_dispatch(struct pyobject *object, struct pyobject *connect);
