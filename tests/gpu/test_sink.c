/* SPDX-License-Identifier: Apache-2.0 */
#include "test_sink.h"

struct seen seen;

void open_seen(void)
{
	seen.events = calloc(EVENT_MAX, sizeof(*seen.events));
	CHECK(seen.events != NULL);
}

uint32_t sink_name(const char *text, size_t len)
{
	seen.name_calls++;
	for (uint32_t i = 1; i <= seen.name_cnt; i++) {
		if (strlen(seen.names[i]) == len && memcmp(seen.names[i], text, len) == 0)
			return i;
	}
	CHECK(seen.name_cnt + 1 < NAME_CNT && len < sizeof(seen.names[0]));
	memcpy(seen.names[++seen.name_cnt], text, len);
	return seen.name_cnt;
}

void sink_event(const struct gputrace_event *event)
{
	CHECK(seen.cnt < EVENT_MAX);
	seen.events[seen.cnt++] = *event;
}

void sink_lose(enum gputrace_loss loss, uint64_t cnt)
{
	*(loss == GPUTRACE_UNTIMED ? &seen.untimed : &seen.dropped) += cnt;
}

void sink_device(const char *name)
{
	(void)snprintf(seen.device, sizeof(seen.device), "%s", name);
}

const struct gputrace_sink sink = { sink_name, sink_event, sink_lose, sink_device };

size_t count(enum gputrace_kind kind, const char *name)
{
	size_t cnt = 0;

	for (size_t i = 0; i < seen.cnt; i++)
		cnt += seen.events[i].kind == kind &&
		       strcmp(seen.names[seen.events[i].name], name) == 0;
	return cnt;
}

const struct gputrace_event *first(enum gputrace_kind kind, const char *name)
{
	for (size_t i = 0; i < seen.cnt; i++) {
		if (seen.events[i].kind == kind &&
		    strcmp(seen.names[seen.events[i].name], name) == 0)
			return &seen.events[i];
	}
	CHECK(!"it is there");
	return NULL;
}
