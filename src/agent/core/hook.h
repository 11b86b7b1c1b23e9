/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprets calls of the wrapped functions of torch: which thread trains, which calls are marks,
 * and where in an iteration a window begins and ends. Objects are identified by address. Called
 * with the interpreter lock held.
 */
#pragma once

#include "base/base.h"

/*
 * Performs an action (enum agent_action of agent.h). Called after the state of hook.c is
 * consistent.
 */
typedef void hook_act(int action);

/* Before anything else. */
void hook_attach(hook_act *act);

/* A loader is asked for a batch, and has given it or failed. Pairs, per thread. */
void hook_loader_begins(const void *dataset);
void hook_loader_ends(const void *dataset);

/* Optimizer.step, on entry and on return. A step left by an exception has no end. */
void hook_optimizer_begins(const void *optimizer);
void hook_optimizer_ends(const void *optimizer);

/*
 * GradScaler.step of an optimizer, which the scaler may step or skip; hook_optimizer_ends() on
 * return.
 */
void hook_scaler_begins(const void *optimizer);

/* A backward pass, of any graph. Pairs, per thread. */
void hook_backward_begins(void);
void hook_backward_ends(void);

/*
 * A compiled function of JAX is called, and has returned: a step as of an optimizer, unless the
 * process steps optimizers of torch. hook_dispatch_fails() instead of ends: by an exception.
 */
void hook_dispatch_begins(const void *function);
void hook_dispatch_ends(const void *function);
void hook_dispatch_fails(const void *function);

/* The user's own mark. */
void hook_iteration(void);

/* A garbage collection, on the thread whose allocation triggered it. */
void hook_gc_begins(void);
void hook_gc_ends(uint32_t generation);
