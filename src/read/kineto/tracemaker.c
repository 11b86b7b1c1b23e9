/* SPDX-License-Identifier: Apache-2.0 */
#include "read/kineto/tracemaker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

void tracemaker_add_process(struct tracemaker *maker, const char *name)
{
	maker->jax_host |= begins(name, "/host:");
	maker->jax_device |= begins(name, "/device:");
	maker->ascend |= strcmp(name, "Ascend Hardware") == 0;
}

bool tracemaker_name_frame(const char *name, char *ret, size_t cap)
{
	const char *space = name[0] == '$' ? strchr(name, ' ') : NULL, *colon;

	if (space == NULL)
		return false;
	name++;
	for (colon = space; colon > name && *colon != ':'; colon--)
		;
	if (colon > name)
		(void)snprintf(ret, cap, "%.*s(%.*s): %s", (int)MIN(colon - name, 100), name,
			       (int)MIN(space - colon - 1, 20), colon + 1, space + 1);
	else
		(void)snprintf(ret, cap, "<built-in function %s>", space + 1);
	return true;
}

enum event_kind tracemaker_kind(const struct tracemaker *maker, const char *name)
{
	/* Ends of operators again, and how the profiler follows work from thread to thread. */
	static const char *const notes[] = { "end: ", "ThreadpoolListener::" };
	/* A runtime that waits does not compute. */
	static const char *const waits[] = { "Await", "wait", "Wait" };

	if (!maker->jax_host)
		return KIND_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		if (begins(name, notes[i]))
			return KIND_OTHER;
	}
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		if (strstr(name, waits[i]) != NULL)
			return KIND_RUNTIME;
	}
	return strstr(name, "::") != NULL || begins(name, "PjitFunction(") ? KIND_RUNTIME
									   : KIND_OPERATOR;
}

/* XLA's threads are the device of a program on CPUs. */
static bool is_executor(const struct trace *trace, const struct event *event)
{
	return begins(strtab_text(&trace->strings, trace->lanes[event->lane].name), "tf_XLA");
}

static void make_kernel(struct trace *trace, struct event *event)
{
	event->kind = KIND_KERNEL;
	trace->lanes[event->lane].type = LANE_STREAM;
	trace->meta.has_device = true;
}

void tracemaker_link(const struct tracemaker *maker, struct trace *trace)
{
	uint32_t *open; /* by lane: the innermost frame that has begun */

	if (!maker->jax_host || trace->lane_cnt == 0)
		return;
	open = malloc(trace->lane_cnt * sizeof(*open));
	if (open == NULL)
		return; /* frames without callers */
	for (size_t i = 0; i < trace->lane_cnt; i++)
		open[i] = EVENT_NONE;
	for (size_t i = 0; i < trace->event_cnt; i++) {
		struct event *event = &trace->events[i];
		uint32_t *top = &open[event->lane];

		if (event->kind == KIND_OPERATOR && is_executor(trace, event))
			make_kernel(trace, event);
		if (event->kind != KIND_PYTHON)
			continue;
		while (*top != EVENT_NONE &&
		       event_end_ns(&trace->events[*top]) < event_end_ns(event))
			*top = trace->events[*top].parent;
		event->parent = *top;
		*top = (uint32_t)i;
	}
	free(open);
}

int tracemaker_check(const struct tracemaker *maker, const char *source, struct err *err)
{
	if (maker->ascend)
		return err_set(err, EINVAL,
			       "%s: expected a trace of torch.profiler, found a trace_view.json of "
			       "Ascend's profiler, which PerfTracker does not read: MindStudio "
			       "Insight shows it",
			       source);
	if (!maker->jax_host || !maker->jax_device)
		return 0;
	return err_set(
		err, EINVAL,
		"%s: expected a trace of torch.profiler, or of JAX on CPUs, found one of JAX "
		"with events of a device, which PerfTracker does not read: "
		"https://ui.perfetto.dev shows it",
		source);
}
