/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the invariants that event.h states for every trace; for tests and fuzzers. */
#pragma once

#include "model/event.h"

/* NULL, or the broken invariant: constant text. O(events + samples). */
const char *event_promise_broken(const struct trace *trace);
