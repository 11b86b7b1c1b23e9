/* SPDX-License-Identifier: Apache-2.0 */
/* What event.h promises of every trace, looked at in one place; for tests and fuzzers. */
#pragma once

#include "model/event.h"

/* NULL, or the promise that the trace breaks: constant text. O(events + samples). */
const char *event_promise_broken(const struct trace *trace);
