/* SPDX-License-Identifier: Apache-2.0 */
#include "model/event.h"

int trace_init(struct trace *trace)
{
	*trace = (struct trace){ .meta = { .rank = RANK_UNKNOWN, .world_size = -1 } };
	return strtab_init(&trace->strings);
}

void trace_done(struct trace *trace)
{
	for (size_t i = 0; i < trace->track_cnt; i++)
		free(trace->tracks[i].samples);
	free(trace->tracks);
	free(trace->lanes);
	free(trace->args);
	free(trace->events);
	free(trace->meta.source);
	free(trace->meta.host);
	free(trace->meta.backend);
	free(trace->meta.device_name);
	strtab_done(&trace->strings);
	*trace = (struct trace){ 0 };
}

const char *event_class_name(enum event_class class)
{
	static const char *const names[CLASS_CNT] = { "idle", "host", "comm", "memory", "compute" };

	return (unsigned int)class < CLASS_CNT ? names[class] : "unknown";
}

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[KIND_CNT] = {
		"python",	  "operator", "annotation", "runtime", "kernel", "gpu_memop",
		"gpu_annotation", "sync",     "overhead",   "gc",      "other",
	};

	return (unsigned int)kind < KIND_CNT ? names[kind] : "unknown";
}

const char *resource_name(enum resource resource)
{
	static const char *const names[RESOURCE_CNT] = {
#define X(id, text, help) text,
		RESOURCE_LIST(X)
#undef X
	};

	return (unsigned int)resource < RESOURCE_CNT ? names[resource] : "unknown";
}
