/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the kernel refuses events: a filter of seccomp, as containers have one, or its own rules. A filter is
 * sure if the call is unknown, or if the process has the capability that the rules ask for.
 * Source: perf_event_open(2), capabilities(7).
 */
#pragma once

#include "base/base.h"

/* status: the text of /proc/self/status. error: positive. */
bool perfdenial_is_filter(const char *status, int error);

/* Whether a filter of this process forbids perf_event_open. */
bool perfdenial_find(int error);

#define PERFDENIAL_FILTER                                                                  \
	"a seccomp filter forbids perf_event_open; in a container, run it with a profile " \
	"that allows it"
