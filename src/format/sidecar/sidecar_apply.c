/* SPDX-License-Identifier: Apache-2.0 */
/* Implements sidecar_apply(), except the network (sidecar_network.c). */
#include "format/sidecar/sidecar_apply.h"

#include "model/gpumetric.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Events to add, sorted like those of the trace. */
typedef VEC(struct event) event_vec;

bool sidecar_to_wall(const struct sidecar_header *header, int64_t mono_ns, int64_t *ret)
{
	int64_t since;

	return !__builtin_sub_overflow(mono_ns, header->mono_ns, &since) &&
	       !__builtin_add_overflow(header->wall_ns, since, ret);
}

static int by_tid_and_time(const void *a, const void *b)
{
	const struct sidecar_sample *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

struct track *sidecar_add_track(struct trace *trace, enum resource resource, int64_t tid,
				size_t cnt)
{
	const char *text = resource_name(resource);
	struct track track = { .resource = (uint8_t)resource, .device = -1, .tid = tid };

	track.name = strtab_intern(&trace->strings, text, strlen(text));
	if (track.name == STRTAB_NONE ||
	    vec_reserve_bytes((void **)&track.samples, &track.cap, cnt, sizeof(*track.samples)) < 0)
		return NULL;
	if (vec_reserve_bytes((void **)&trace->tracks, &trace->track_cap, trace->track_cnt + 1,
			      sizeof(*trace->tracks)) < 0) {
		free(track.samples);
		return NULL;
	}
	trace->tracks[trace->track_cnt] = track;
	return &trace->tracks[trace->track_cnt++];
}

void sidecar_push_sample(struct track *track, int64_t time_ns, double used, double room,
			 double *carry)
{
	double whole = used + *carry, value = whole / room;

	*carry = value > 1 ? whole - room : 0;
	track->samples[track->cnt++] = (struct sample){ time_ns, value > 1 ? 1 : value };
}

/* samples[cnt]: one thread, by time. */
static int apply_thread(const struct sidecar_header *header, const struct sidecar_sample *samples,
			size_t cnt, struct trace *trace)
{
	static const enum resource resources[] = { RESOURCE_CPU_THREAD, RESOURCE_RUN_DELAY };

	for (size_t r = 0; r < ARRAY_SIZE(resources); r++) {
		struct track *track = sidecar_add_track(trace, resources[r], samples->tid, cnt);
		double carry_ns = 0;
		int64_t wall_ns;

		if (track == NULL)
			return -ENOMEM;
		for (size_t i = 1; i < cnt; i++) {
			const struct sidecar_sample *a = &samples[i - 1], *b = &samples[i];
			double span_ns = (double)b->time_ns - (double)a->time_ns;

			if (span_ns <= 0 || !sidecar_to_wall(header, b->time_ns, &wall_ns))
				continue;
			sidecar_push_sample(
				track, wall_ns,
				r == 0 ? sidecar_grown(a->cpu_ns, b->cpu_ns)
				       : sidecar_grown(a->run_delay_ns, b->run_delay_ns),
				span_ns, &carry_ns);
		}
	}
	return 0;
}

static int apply_threads(const struct sidecar *sidecar, struct trace *trace)
{
	size_t cnt = sidecar->samples.cnt, begin = 0;
	_cleanup_free_ struct sidecar_sample *sorted = NULL;

	if (cnt == 0)
		return 0;
	sorted = calloc(cnt, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	memcpy(sorted, sidecar->samples.data, cnt * sizeof(*sorted));
	qsort(sorted, cnt, sizeof(*sorted), by_tid_and_time);
	for (size_t i = 1; i <= cnt; i++) {
		int ret;

		if (i < cnt && sorted[i].tid == sorted[begin].tid)
			continue;
		ret = i - begin < 2
			      ? 0
			      : apply_thread(&sidecar->header, &sorted[begin], i - begin, trace);
		if (ret < 0)
			return ret;
		begin = i;
	}
	return 0;
}

static int apply_process(const struct sidecar *sidecar, struct trace *trace)
{
	const struct sidecar_process *samples = sidecar->process_samples.data;
	size_t cnt = sidecar->process_samples.cnt;
	double carry_ns = 0;
	struct track *track;

	if (cnt < 2)
		return 0;
	track = sidecar_add_track(trace, RESOURCE_CPU_PROCESS, -1, cnt);
	if (track == NULL)
		return -ENOMEM;
	for (size_t i = 1; i < cnt; i++) {
		const struct sidecar_process *a = &samples[i - 1], *b = &samples[i];
		double span_ns = (double)b->time_ns - (double)a->time_ns;
		int64_t wall_ns;

		if (span_ns <= 0 || b->cpu_cnt == 0 ||
		    !sidecar_to_wall(&sidecar->header, b->time_ns, &wall_ns) ||
		    (track->cnt > 0 && track->samples[track->cnt - 1].time_ns > wall_ns))
			continue;
		sidecar_push_sample(track, wall_ns, sidecar_grown(a->cpu_ns, b->cpu_ns),
				    span_ns * b->cpu_cnt, &carry_ns);
	}
	return 0;
}

/* --- GPUs --- */

#define NO_DEVICE (-1)

/* Metrics that measure a resource. Some are sampled at 10 kHz, others at 10 Hz. */
static const struct {
	enum gpu_metric metric;
	enum resource resource;
} gpu_resources[] = {
	{ GPU_METRIC_CORES_ACTIVE, RESOURCE_SM_ACTIVE },
	{ GPU_METRIC_MEMORY_ACTIVE, RESOURCE_DRAM },
	{ GPU_METRIC_LINK_TX_RATE, RESOURCE_NVLINK_TX },
	{ GPU_METRIC_PCIE_TX_RATE, RESOURCE_PCIE_TX },
	{ GPU_METRIC_PCIE_RX_RATE, RESOURCE_PCIE_RX },
	{ GPU_METRIC_PCIE_ACTIVE, RESOURCE_PCIE_TX }, /* of chips that do not separate the
						       * directions */
	{ GPU_METRIC_PCIE_ACTIVE, RESOURCE_PCIE_RX },
};

/* The value that corresponds to 1.0; 0: unknown, so there is no share. */
static double gpu_scale(const struct sidecar_gpu *gpu, enum gpu_metric metric)
{
	if (metric == GPU_METRIC_LINK_TX_RATE)
		return gpu->link_bytes_per_sec;
	return metric == GPU_METRIC_PCIE_TX_RATE || metric == GPU_METRIC_PCIE_RX_RATE
		       ? gpu->pcie_bytes_per_sec
		       : 1;
}

/* The job's index of its only device: jobs count from 0, whatever the driver's index. */
static int64_t only_device(const struct trace *trace)
{
	int64_t device = NO_DEVICE;

	for (size_t i = 0; i < trace->lane_cnt; i++) {
		if (trace->lanes[i].type != LANE_STREAM || trace->lanes[i].pid == device)
			continue;
		if (device != NO_DEVICE)
			return NO_DEVICE;
		device = trace->lanes[i].pid;
	}
	return device;
}

static size_t count_gpu_samples(const struct sidecar *sidecar, size_t idx, enum gpu_metric metric)
{
	size_t cnt = 0;

	vec_foreach(s, &sidecar->gpu_samples)
		cnt += s->gpu == idx && s->metric == metric;
	return cnt;
}

/* Number of samples that can be converted to a share; 0 if the scale is unknown. */
static size_t count_shares(const struct sidecar *sidecar, size_t idx, size_t which)
{
	enum gpu_metric metric = gpu_resources[which].metric;

	return gpu_scale(&sidecar->gpus.data[idx], metric) > 0
		       ? count_gpu_samples(sidecar, idx, metric)
		       : 0;
}

/* Among metrics of one resource the one with most samples wins; on a tie the first. */
static bool is_finest(const struct sidecar *sidecar, size_t idx, size_t which)
{
	size_t own = count_shares(sidecar, idx, which);

	for (size_t i = 0; i < ARRAY_SIZE(gpu_resources); i++) {
		size_t other;

		if (i == which || gpu_resources[i].resource != gpu_resources[which].resource)
			continue;
		other = count_shares(sidecar, idx, i);
		if (other > own || (other == own && i < which))
			return false;
	}
	return own > 0;
}

static int apply_gpu(const struct sidecar *sidecar, size_t idx, size_t which, int64_t device,
		     struct trace *trace)
{
	enum gpu_metric metric = gpu_resources[which].metric;
	double scale = gpu_scale(&sidecar->gpus.data[idx], metric);
	size_t cnt = count_gpu_samples(sidecar, idx, metric);
	struct track *track;

	track = sidecar_add_track(trace, gpu_resources[which].resource, -1, cnt);
	if (track == NULL)
		return -ENOMEM;
	track->device = device;
	vec_foreach(s, &sidecar->gpu_samples) {
		int64_t wall_ns;

		if (s->gpu != idx || s->metric != metric || !(s->value >= 0) ||
		    !sidecar_to_wall(&sidecar->header, s->time_ns, &wall_ns) ||
		    (track->cnt > 0 && track->samples[track->cnt - 1].time_ns > wall_ns))
			continue;
		track->samples[track->cnt++] =
			(struct sample){ wall_ns, s->value < scale ? s->value / scale : 1 };
	}
	return 0;
}

static bool has_resource(const struct trace *trace, size_t track_cnt, enum resource resource)
{
	for (size_t i = 0; i < track_cnt; i++) {
		if (trace->tracks[i].resource == resource)
			return true;
	}
	return false;
}

/* The trace's own samples are finer and take precedence. */
static int apply_gpus(const struct sidecar *sidecar, struct trace *trace)
{
	size_t gpu_cnt = MIN(sidecar->gpus.cnt, (size_t)SIDECAR_GPUS_MAX);
	size_t track_cnt = trace->track_cnt;
	int64_t device = gpu_cnt == 1 ? only_device(trace) : NO_DEVICE;
	int ret = 0;

	if (!trace->meta.has_device)
		return 0; /* the worker does not use its host's GPUs */
	for (size_t i = 0; i < gpu_cnt; i++) {
		for (size_t r = 0; r < ARRAY_SIZE(gpu_resources) && ret == 0; r++) {
			if (!has_resource(trace, track_cnt, gpu_resources[r].resource) &&
			    is_finest(sidecar, i, r))
				ret = apply_gpu(sidecar, i, r,
						device != NO_DEVICE ? device : (int64_t)i, trace);
		}
	}
	return ret;
}

/* Lane of the training thread, added when the trace has none. Returns -ENOMEM or -ENOSPC. */
static int training_lane(const struct sidecar_header *header, struct trace *trace)
{
	for (size_t i = 0; i < trace->lane_cnt; i++) {
		if (trace->lanes[i].type == LANE_THREAD && trace->lanes[i].tid == header->tid)
			return (int)i;
	}
	if (trace->lane_cnt > UINT16_MAX)
		return -ENOSPC;
	if (vec_reserve_bytes((void **)&trace->lanes, &trace->lane_cap, trace->lane_cnt + 1,
			      sizeof(*trace->lanes)) < 0)
		return -ENOMEM;
	trace->lanes[trace->lane_cnt] = (struct lane){
		.pid = header->pid,
		.tid = header->tid,
		.type = LANE_THREAD,
	};
	return (int)trace->lane_cnt++;
}

/* Queues [start, end) of CLOCK_MONOTONIC; an interval out of range is left out. */
static int queue_event(const struct sidecar_header *header, event_vec *added, struct event event,
		       int64_t start_ns, int64_t end_ns)
{
	int64_t end_wall_ns;

	if (end_ns < start_ns || !sidecar_to_wall(header, start_ns, &event.start_ns) ||
	    !sidecar_to_wall(header, end_ns, &end_wall_ns) ||
	    __builtin_sub_overflow(end_wall_ns, event.start_ns, &event.dur_ns))
		return 0;
	event.parent = EVENT_NONE;
	return vec_push(added, event);
}

static int queue_collections(const struct sidecar *sidecar, struct trace *trace, uint16_t lane,
			     event_vec *added)
{
	vec_foreach(gc, &sidecar->collections) {
		struct event event = { .lane = lane, .kind = KIND_GC };
		char name[64];
		int64_t end_ns;
		int len, ret;

		len = snprintf(name, sizeof(name), "gc (generation %u)", gc->generation);
		event.name = strtab_intern(&trace->strings, name, (size_t)len);
		if (event.name == STRTAB_NONE)
			return -ENOMEM;
		if (__builtin_add_overflow(gc->start_ns, gc->dur_ns, &end_ns))
			continue;
		ret = queue_event(&sidecar->header, added, event, gc->start_ns, end_ns);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static bool has_steps(const struct trace *trace)
{
	static const char prefix[] = "ProfilerStep";

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *event = &trace->events[i];

		if (event->kind == KIND_ANNOTATION &&
		    strncmp(event_name(trace, event), prefix, sizeof(prefix) - 1) == 0)
			return true;
	}
	return false;
}

static int queue_steps(const struct sidecar *sidecar, struct trace *trace, uint16_t lane,
		       event_vec *added)
{
	for (size_t i = 0; i + 1 < sidecar->iterations.cnt; i++) {
		const struct sidecar_iteration *a = &sidecar->iterations.data[i];
		struct event event = { .lane = lane, .kind = KIND_ANNOTATION };
		char name[64];
		int len, ret;

		len = snprintf(name, sizeof(name), "ProfilerStep#%llu",
			       (unsigned long long)a->step);
		event.name = strtab_intern(&trace->strings, name, (size_t)len);
		if (event.name == STRTAB_NONE)
			return -ENOMEM;
		ret = queue_event(&sidecar->header, added, event, a->start_ns, a[1].start_ns);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int by_start_and_length(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->dur_ns < y->dur_ns) - (x->dur_ns > y->dur_ns);
}

/*
 * Parents are indices: each old index moves by the number of added events before it. place[j] is
 * the old index that added event j precedes.
 */
static uint32_t moved(uint32_t old, const size_t *place, size_t cnt)
{
	size_t low = 0, high = cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (place[middle] <= old)
			low = middle + 1;
		else
			high = middle;
	}
	return old + (uint32_t)low;
}

/* Merges from the back, in place; equal events stay before added ones. */
static void merge_events(struct trace *trace, const event_vec *added, size_t *place)
{
	size_t from = trace->event_cnt, to = from + added->cnt, left = added->cnt;

	while (left > 0) {
		const struct event *next = &added->data[left - 1];

		if (from > 0 && by_start_and_length(&trace->events[from - 1], next) > 0) {
			trace->events[--to] = trace->events[--from];
		} else {
			trace->events[--to] = *next;
			place[--left] = from;
		}
	}
	trace->event_cnt += added->cnt;
	for (size_t i = 0; i < trace->event_cnt; i++) {
		struct event *event = &trace->events[i];

		if (event->parent != EVENT_NONE)
			event->parent = moved(event->parent, place, added->cnt);
	}
}

static int add_events(struct trace *trace, event_vec *added)
{
	_cleanup_free_ size_t *place = NULL;

	if (added->cnt == 0)
		return 0;
	if (trace->event_cnt + added->cnt >= EVENT_NONE)
		return -ENOMEM;
	place = calloc(added->cnt, sizeof(*place));
	if (place == NULL ||
	    vec_reserve_bytes((void **)&trace->events, &trace->event_cap,
			      trace->event_cnt + added->cnt, sizeof(*trace->events)) < 0)
		return -ENOMEM;
	qsort(added->data, added->cnt, sizeof(*added->data), by_start_and_length);
	merge_events(trace, added, place);
	return 0;
}

static int apply_events(const struct sidecar *sidecar, struct trace *trace)
{
	event_vec added = { 0 };
	int lane, ret;

	if (sidecar->collections.cnt == 0 && sidecar->iterations.cnt == 0)
		return 0;
	lane = training_lane(&sidecar->header, trace);
	if (lane < 0)
		return lane == -ENOSPC ? 0 : lane;
	ret = queue_collections(sidecar, trace, (uint16_t)lane, &added);
	if (ret == 0 && !has_steps(trace))
		ret = queue_steps(sidecar, trace, (uint16_t)lane, &added);
	/* The annotations of a trace that the hook took follow the marks as well. */
	if (sidecar->iterations.cnt > 0)
		trace->iterations_by = ITERATIONS_MARKS;
	if (ret == 0)
		ret = add_events(trace, &added);
	vec_done(&added);
	return ret;
}

int sidecar_apply(const struct sidecar *sidecar, struct trace *trace)
{
	int ret = apply_threads(sidecar, trace);

	if (ret == 0)
		ret = apply_process(sidecar, trace);
	if (ret == 0)
		ret = sidecar_apply_network(sidecar, trace);
	if (ret == 0)
		ret = apply_gpus(sidecar, trace);
	if (ret == 0)
		ret = apply_events(sidecar, trace);
	return ret;
}
