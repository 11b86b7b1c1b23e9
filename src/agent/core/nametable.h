/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the flight recorder: names become small numbers. Names are copied, so a pointer to
 * a temporary is fine. Any thread may add strings and frames and never waits; only the sampler's
 * thread adds nodes.
 *
 * The index beside the tables is private memory, mapped once. Two names with the same 64-bit hash
 * are treated as one.
 */
#pragma once

#include "format/shared/recorder.h"

/* Maps the index. Returns 0 or -ENOMEM. */
_must_check_ int nametable_open(struct flight *flight);

/*
 * Id of text[len]; beyond FLIGHT_STRING_MAX the end is replaced by '~' and a hash of the whole. 0
 * when the table is full (counted) or another thread is adding the same name.
 */
uint32_t nametable_string(const char *text, size_t len);

/*
 * Likewise for unbounded sets of names, as those of annotations and operators: 0 (counted) as soon
 * as half of the table is full.
 */
uint32_t nametable_label(const char *text, size_t len);

/*
 * Id of a Python function; 0 when there is no room for it or its names (counted, in frames) or
 * another thread is adding a function or a name of it.
 */
uint32_t nametable_frame(const char *file, const char *name, uint32_t first_line);

/*
 * Id of the stack of frames[depth], the innermost first; 0 when there is no room for it (counted):
 * beyond half of the table, the number of nodes that a stack may add shrinks with the room left.
 */
uint32_t nametable_stack(const uint32_t *frames, size_t depth);
