/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames as findings have them: "train.py(12): read", with paths of libraries shortened to
 * their names ("torch/nn/modules/linear.py"); and which frame of a thread is meant.
 */
#pragma once

#include "base/str.h"
#include "model/stackdump.h"

void stacknaming_append(struct str *out, const struct stacks_frame *frame);

/* All return NULL without such a frame. */
const struct stacks_frame *stacknaming_innermost(const struct stacks_thread *thread); /* Python */
/* The user's innermost function, else the innermost one. */
const struct stacks_frame *stacknaming_users(const struct stacks_thread *thread);
/* The user's innermost function. */
const struct stacks_frame *stacknaming_own(const struct stacks_thread *thread);
/* The innermost Python frame that both samples have. */
const struct stacks_frame *stacknaming_common(const struct stacks_thread *thread);
/* Of a loader's worker: the user's innermost function while it makes a batch. */
const struct stacks_frame *stacknaming_of_loader(const struct stacks_thread *thread);

/* Python functions, the innermost last, '\n' between; of a thread without any the native ones. */
void stacknaming_stack(struct str *out, const struct stacks_thread *thread, size_t depth_max);
