/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the wrapped functions of torch mean: which thread trains, which of their
 * calls are marks, and where in an iteration a window begins and ends. Objects are
 * known by their addresses only. Called with the interpreter lock held.
 */
#pragma once

#include "base/base.h"

/* Does what an order asks for (enum agent_action of agent.h); the caller's state is settled by then. */
typedef void hook_act(int action);

/* Before anything else. */
void hook_attach(hook_act *act);

/* A loader is asked for a batch, and has given it or failed. Pairs, per thread. */
void hook_loader_begins(const void *dataset);
void hook_loader_ends(const void *dataset);

/* Optimizer.step, on entry and on return. A step left by an exception has no end. */
void hook_optimizer_begins(const void *optimizer);
void hook_optimizer_ends(const void *optimizer);

/* The user's own mark. */
void hook_iteration(void);

/* A garbage collection; on whichever thread allocated. */
void hook_gc_begins(void);
void hook_gc_ends(uint32_t generation);
