/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job in one line, for a terminal, `perftracker status` and the log: a word for its
 * state and what each rank needs for an iteration.
 *
 *	state=watching workers=4 step=120 iteration_ms=71.2,71.3,71.2,98.0
 */
#pragma once

#include "base/str.h"
#include "live/link/wire.h"

/* Workers from which marks may still come, of states[cnt]: all that ever connected. */
size_t jobstate_living(const struct wire_state *states, size_t cnt);

/* The state's word; constant text. profiling: an order is under way. */
const char *jobstate_word(const struct wire_state *states, size_t cnt, bool profiling);

/*
 * Appends the line: each rank's iteration time while they are few, else the least and the
 * greatest.
 */
void jobstate_append(const struct wire_state *states, size_t cnt, bool profiling, struct str *out);
