/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time and run-queue delay from the agent's own samples. */
#include "read/flight/stacks.h"

#include <errno.h>
#include <string.h>

static bool has_track(const struct trace *trace, enum resource resource, uint32_t tid)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		if (trace->tracks[i].resource == resource && trace->tracks[i].tid == tid)
			return true;
	}
	return false;
}

/* Adds an empty track with room for cnt samples. NULL: out of memory. */
static struct track *add_track(struct trace *trace, enum resource resource, uint32_t tid,
			       size_t cnt)
{
	const char *text = resource_name(resource);
	struct track track = { .resource = (uint8_t)resource, .device = -1, .tid = tid };

	track.name = strtab_intern(&trace->strings, text, strlen(text));
	if (track.name == STRTAB_NONE ||
	    vec_reserve_bytes((void **)&trace->tracks, &trace->track_cap, trace->track_cnt + 1,
			      sizeof(*trace->tracks)) < 0 ||
	    vec_reserve_bytes((void **)&track.samples, &track.cap, cnt, sizeof(*track.samples)) < 0)
		return NULL;
	trace->tracks[trace->track_cnt] = track;
	return &trace->tracks[trace->track_cnt++];
}

/* CPU clocks advance in steps: time beyond the length of an interval is carried to the next. */
static void push(struct track *track, int64_t time_ns, double used_ns, double span_ns,
		 double *carry_ns)
{
	double whole_ns = used_ns + *carry_ns;

	*carry_ns = whole_ns > span_ns ? whole_ns - span_ns : 0;
	track->samples[track->cnt++] =
		(struct sample){ time_ns, whole_ns > span_ns ? 1 : whole_ns / span_ns };
}

/* samples[cnt]: of one thread, by time. */
static int add_thread(const struct flightlog *log, const struct ring_record *samples, size_t cnt,
		      struct trace *trace)
{
	uint32_t tid = flight_sample_tid(&samples[0]);
	struct track *track;
	double carry_ns = 0;

	if (cnt < 2 || has_track(trace, RESOURCE_CPU_THREAD, tid))
		return 0;
	track = add_track(trace, RESOURCE_CPU_THREAD, tid, cnt);
	if (track == NULL)
		return -ENOMEM;
	for (size_t i = 1; i < cnt; i++) {
		double span_ns = (double)(samples[i].time_ns - samples[i - 1].time_ns);

		if (samples[i].value >= 0 && span_ns > 0)
			push(track, samples[i].time_ns + log->wall_ns - log->mono_ns,
			     (double)samples[i].value, span_ns, &carry_ns);
	}
	return 0;
}

/* Keeps those of the window. */
static void keep_window(record_vec *samples, int64_t start_ns, int64_t end_ns)
{
	size_t kept = 0;

	vec_foreach(sample, samples) {
		if (sample->time_ns >= start_ns && sample->time_ns <= end_ns)
			samples->data[kept++] = *sample;
	}
	samples->cnt = kept;
}

static int add_threads(const struct flightlog *log, const record_vec *samples, struct trace *trace)
{
	size_t begin = 0;
	int ret = 0;

	for (size_t i = 1; i <= samples->cnt && ret == 0; i++) {
		if (i < samples->cnt && flight_sample_tid(&samples->data[i]) ==
						flight_sample_tid(&samples->data[begin]))
			continue;
		ret = add_thread(log, &samples->data[begin], i - begin, trace);
		begin = i;
	}
	return ret;
}

/* The training thread's counters of run-queue delay. */
static int add_delay(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
		     struct trace *trace)
{
	const struct ring_record *before = NULL;
	struct track *track;
	double carry_ns = 0;

	if (log->training_tid == 0 || has_track(trace, RESOURCE_RUN_DELAY, log->training_tid))
		return 0;
	track = add_track(trace, RESOURCE_RUN_DELAY, log->training_tid, log->samples.cnt + 1);
	if (track == NULL)
		return -ENOMEM;
	vec_foreach(record, &log->samples) {
		if (record->kind != FLIGHT_CPU || record->time_ns < start_ns ||
		    record->time_ns > end_ns ||
		    (before != NULL && record->time_ns <= before->time_ns))
			continue;
		if (before != NULL && record->extra >= before->extra)
			push(track, record->time_ns + log->wall_ns - log->mono_ns,
			     (double)(record->extra - before->extra),
			     (double)(record->time_ns - before->time_ns), &carry_ns);
		before = record;
	}
	if (track->cnt == 0) {
		free(track->samples);
		trace->track_cnt--;
	}
	return 0;
}

int flight_tracks(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
		  struct trace *trace)
{
	record_vec samples = { 0 };
	int ret = flight_sort_samples(log, &samples);

	if (ret == 0) {
		keep_window(&samples, start_ns, end_ns);
		ret = add_threads(log, &samples, trace);
	}
	if (ret == 0)
		ret = add_delay(log, start_ns, end_ns, trace);
	vec_done(&samples);
	return ret;
}
