/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children of the training process: while the training thread waits for its loader, or is in a
 * system call, the sampler's thread records what the main threads of the loader's children, or of
 * other children, do, as FLIGHT_CHILD. Their stacks are read from here: nothing is started, mapped or
 * opened in a child. Children that cannot be read, such as those of another Python, and those that
 * have ended are forgotten.
 *
 * One child is looked at per tick of the sampler, by turns, each at most CHILDREN_HZ times a second,
 * and less often while it cannot be read.
 * Source: pystack.h; ring records in format/shared/record_kinds.h.
 */
#pragma once

#include "format/shared/recorder.h"

#define CHILDREN_MAX 64u /* the newest are kept */
#define CHILDREN_HZ 50u

/* From Python, with the interpreter lock: there is this child. A known one keeps its place. */
void children_add(uint32_t pid, bool of_loader);

/*
 * On the sampler's thread. in_call: the training thread is in a system call. Without children that
 * it may wait for, it costs a few loads.
 */
void children_look(struct flight *flight, bool in_call, int64_t now_ns);

/* In a forked child, which has none of them. */
void children_forked(void);
