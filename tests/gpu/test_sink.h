/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that keeps all events it is given, for tests of GPUs' back ends (agent/gpu/gputrace.h). */
#pragma once

#include "agent/gpu/gputrace.h"
#include "testcheck.h"

#define EVENT_MAX 1000000u
#define NAME_CNT 256u
#define NAME_BYTES 1024u

extern struct seen {
	struct gputrace_event *events;
	size_t cnt, dropped, untimed, name_calls;
	char names[NAME_CNT][NAME_BYTES];
	uint32_t name_cnt;
	char device[128];
} seen;

/* Before the first use in a process. */
void open_seen(void);

extern const struct gputrace_sink sink;

/* Parts of it, for sinks that do something else, too. */
uint32_t sink_name(const char *text, size_t len);
void sink_event(const struct gputrace_event *event);
void sink_lose(enum gputrace_loss loss, uint64_t cnt);
void sink_device(const char *name);

/* Events of a kind with this name: how many, and the first (it must be there). */
size_t count(enum gputrace_kind kind, const char *name);
const struct gputrace_event *first(enum gputrace_kind kind, const char *name);
