/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/timeline.h"

#include "base/str.h"
#include "report/timeline/curve.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>

/* --- the times of a log --- */

static void see_time(struct rank_view *view, int64_t start_ns, int64_t end_ns)
{
	view->first_ns = MIN(view->first_ns, start_ns);
	view->last_ns = MAX(view->last_ns, end_ns);
}

static void see_records(struct rank_view *view, const record_vec *records)
{
	vec_foreach(record, records) {
		switch (record->kind) {
		case FLIGHT_OPERATOR:
		case FLIGHT_ANNOTATION:
		case FLIGHT_COLLECTIVE:
		case FLIGHT_PYTHON:
		case FLIGHT_C_CALL:
		case FLIGHT_NETWORK:
		case FLIGHT_TIMED:
		case FLIGHT_COLLECTIVE_DONE:
		case FLIGHT_GPU_KERNEL:
		case FLIGHT_GPU_MEMOP:
		case FLIGHT_GPU_SYNC:
		case FLIGHT_GPU_API:
		case FLIGHT_GPU_OVERHEAD:
			see_time(view, record->time_ns, record->time_ns + record->value);
			break;
		case MARK_GC: /* written at its end */
		case MARK_DATALOADER_END:
			see_time(view, record->time_ns - record->value, record->time_ns);
			break;
		case FLIGHT_COLLECTIVE_ARGS:
		case FLIGHT_COLLECTIVE_GROUP:
		case FLIGHT_COLLECTIVE_HOW:
		case FLIGHT_NETWORK_SEND:
		case FLIGHT_NETWORK_RECV:
			break;
		default:
			see_time(view, record->time_ns, record->time_ns);
		}
	}
}

static void find_times(struct rank_view *view)
{
	view->first_ns = INT64_MAX;
	view->last_ns = INT64_MIN;
	see_records(view, &view->log->marks);
	see_records(view, &view->log->samples);
	vec_foreach(lane, &view->log->lanes) {
		see_records(view, &lane->records);
		see_records(view, &lane->window);
	}
	if (view->last_ns == INT64_MIN)
		view->first_ns = view->last_ns = view->log->mono_ns;
}

/* --- one clock for all --- */

static int align(struct rank_view *views, size_t cnt, bool wall_only)
{
	_cleanup_free_ struct align_rank *ranks = calloc(cnt + 1, sizeof(*ranks));
	_cleanup_free_ struct align_clock *clocks = calloc(cnt + 1, sizeof(*clocks));
	uint32_t instance_cnt = 0;
	int ret = 0;

	if (ranks == NULL || clocks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		ranks[i] = (struct align_rank){ views[i].events, views[i].comms.cnt,
						views[i].log->mono_ns, views[i].log->wall_ns,
						views[i].log->host };
	if (wall_only)
		align_by_wall(ranks, cnt, clocks);
	else
		ret = align_clocks(ranks, cnt, clocks);
	if (ret == 0)
		ret = align_match(ranks, clocks, cnt, &instance_cnt);
	for (size_t i = 0; i < cnt; i++)
		views[i].result->clock = clocks[i];
	return ret == 0 ? (int)instance_cnt : ret;
}

/* Sets what is shown of each; returns the moment that is 0 in the trace. */
static int64_t choose_part(struct rank_view *views, size_t cnt, int64_t last_ns,
			   int64_t *ret_length_ns)
{
	int64_t first = INT64_MAX, last = INT64_MIN, from = INT64_MIN;

	for (size_t i = 0; i < cnt; i++) {
		int64_t offset_ns = views[i].result->clock.offset_ns;

		first = MIN(first, views[i].first_ns + offset_ns);
		last = MAX(last, views[i].last_ns + offset_ns);
	}
	if (cnt > 0 && last_ns > 0)
		from = last - last_ns;
	for (size_t i = 0; i < cnt; i++) {
		int64_t offset_ns = views[i].result->clock.offset_ns;

		views[i].from_ns = (from > first ? from : first - 1) - offset_ns;
		views[i].result->last_ns = last - (views[i].last_ns + offset_ns);
	}
	*ret_length_ns = cnt == 0 ? 0 : last - MAX(first, from);
	return cnt == 0 ? 0 : MAX(first, from);
}

/* --- one rank --- */

static int name_process(struct writer *w, const struct rank_view *view, uint32_t pid)
{
	const struct align_clock *clock = &view->result->clock;
	struct str text = { 0 };
	int ret;

	str_printf(&text, view->log->rank >= 0 ? "rank %d" : "rank unknown", view->log->rank);
	if (view->log->host[0] != '\0')
		str_printf(&text, " \xc2\xb7 %s", view->log->host);
	writer_name(w, "process_name", pid, 0, "name", str_borrow(&text));
	text.len = 0;
	str_printf(&text, "pid %u, clock: %s", view->log->pid, align_source_name(clock->source));
	if (clock->source == ALIGN_COLLECTIVES)
		str_printf(&text, " (%zu, +-%.3f ms)", clock->match_cnt,
			   (double)clock->spread_ns / NSEC_PER_MSEC);
	writer_name(w, "process_labels", pid, 0, "labels", str_borrow(&text));
	writer_index(w, "process_sort_index", pid, 0, pid);
	ret = str_error(&text);
	str_done(&text);
	return ret;
}

/* Puts the slices of one track, and makes place for the next one. */
static int finish_track(struct place *to, slice_vec *slices, int made)
{
	int ret = made < 0 ? made : timeline_put(to, slices);

	slices->cnt = 0;
	to->first_tid += ROW_MAX;
	return ret;
}

static int put_threads(struct place *to, slice_vec *slices)
{
	const struct flightlog *log = to->view->log;
	tid_vec tids = { 0 };
	int ret = timeline_threads(log, &tids);

	for (size_t i = 0; i < tids.cnt && ret == 0; i++) {
		(void)snprintf(to->name, sizeof(to->name), "python (sampled), %s %u",
			       tids.data[i] == log->training_tid ? "training thread" : "thread",
			       tids.data[i]);
		ret = finish_track(to, slices, timeline_samples(to->view, tids.data[i], slices));
	}
	vec_done(&tids);
	return ret;
}

static int put_lanes(struct place *to, slice_vec *slices)
{
	int ret = 0;

	vec_foreach(lane, &to->view->log->lanes) {
		(void)snprintf(to->name, sizeof(to->name), "operators, %.15s %u", lane->name,
			       lane->tid);
		if (ret == 0)
			ret = finish_track(to, slices, timeline_lane(lane, slices));
	}
	return ret;
}

static int put_nccl(struct place *to, slice_vec *slices)
{
	int ret;

	if (to->view->nccl.cnt == 0)
		return 0;
	(void)snprintf(to->name, sizeof(to->name), "NCCL: queues");
	ret = finish_track(to, slices, timeline_nccl(to->view, SLICE_NCCL, slices));
	(void)snprintf(to->name, sizeof(to->name), "NCCL: network");
	return ret == 0 ? finish_track(to, slices, timeline_nccl(to->view, SLICE_NETWORK, slices))
			: ret;
}

#define GPU_TRACK_MAX 128u /* queues of GPUs, and threads that called them */

static int put_gpu_tracks(struct place *to, slice_vec *slices)
{
	const struct flightlog *log = to->view->log;
	int ret = 0;

	for (uint32_t i = 0; i < MIN(log->gpu_lanes.cnt, GPU_TRACK_MAX) && ret == 0; i++) {
		const struct flight_gpu_lane *lane = &log->gpu_lanes.data[i];

		if (lane->device == FLIGHT_GPU_THREAD)
			(void)snprintf(to->name, sizeof(to->name), "GPU calls, thread %u",
				       lane->id);
		else
			(void)snprintf(to->name, sizeof(to->name), "GPU %d, stream %u",
				       lane->device, lane->id);
		ret = finish_track(to, slices, timeline_gpu(to->view, i, slices));
	}
	return ret;
}

static int put_gpus(struct place *to, slice_vec *slices)
{
	int ret;

	(void)snprintf(to->name, sizeof(to->name), "GPU (sampled)");
	ret = finish_track(to, slices, timeline_timed(to->view, slices));
	if (ret == 0)
		ret = timeline_collect_gpu(to->view);
	if (ret == 0)
		ret = put_gpu_tracks(to, slices);
	if (ret == 0)
		timeline_gpu_arrows(to);
	timeline_gpu_done(to->view);
	return ret;
}

static int put_rank(struct writer *w, struct rank_view *view, uint32_t pid)
{
	struct place to = { w, view, pid, pid * PID_TIDS + 1, "iterations" };
	slice_vec slices = { 0 };
	int ret = name_process(w, view, pid);

	timeline_counters(&to);
	if (ret == 0)
		ret = finish_track(&to, &slices, timeline_marks(view, &slices));
	(void)snprintf(to.name, sizeof(to.name), "collectives");
	if (ret == 0)
		ret = finish_track(&to, &slices, timeline_comms(view, &slices));
	if (ret == 0)
		ret = put_nccl(&to, &slices);
	if (ret == 0)
		ret = put_threads(&to, &slices);
	if (ret == 0)
		ret = put_lanes(&to, &slices);
	if (ret == 0)
		ret = put_gpus(&to, &slices);
	vec_done(&slices);
	return ret;
}

/* --- what the trace says of itself --- */

static void put_drops(struct writer *w, const struct rank_view *view)
{
	const char *comma = "";

	(void)fputs(",\"dropped\":{", w->out);
#define X(field, what)                                                                           \
	if (view->log->drops.field > 0) {                                                        \
		(void)fprintf(w->out, "%s\"" what "\":%" PRIu64, comma, view->log->drops.field); \
		comma = ",";                                                                     \
	}
	FLIGHTLOG_DROP_LIST(X)
#undef X
	if (view->result->omitted_cnt > 0)
		(void)fprintf(w->out, "%s\"slices that overlap too many others\":%zu", comma,
			      view->result->omitted_cnt);
	(void)fputc('}', w->out);
}

static void put_absent(struct writer *w, const struct flightlog *log)
{
	static const char *const names[FLIGHT_SOURCE_CNT] = {
		[FLIGHT_SOURCE_STACKS] = "stacks",
		[FLIGHT_SOURCE_OPERATORS] = "operators",
		[FLIGHT_SOURCE_COLLECTIVES] = "collectives",
		[FLIGHT_SOURCE_GIL] = "gil",
		[FLIGHT_SOURCE_SYSCALLS] = "syscalls",
		[FLIGHT_SOURCE_GC] = "gc",
		[FLIGHT_SOURCE_EXACT] = "exact",
		[FLIGHT_SOURCE_GPU] = "gpu",
	};
	const char *comma = "";

	(void)fputs(",\"absent\":{", w->out);
	for (size_t i = 0; i < FLIGHT_SOURCE_CNT; i++) {
		if (log->sources[i].state != FLIGHT_ABSENT)
			continue;
		(void)fprintf(w->out, "%s\"%s\":", comma, names[i]);
		writer_text(w, log->sources[i].why);
		comma = ",";
	}
	(void)fputc('}', w->out);
}

static void put_about_rank(struct writer *w, const struct rank_view *view)
{
	const struct align_clock *clock = &view->result->clock;

	(void)fprintf(w->out, "{\"rank\":%d,\"pid\":%u,\"host\":", view->log->rank, view->log->pid);
	writer_text(w, view->log->host);
	(void)fprintf(
		w->out,
		",\"clock\":\"%s\",\"clock_offset_ns\":%" PRId64 ",\"clock_spread_ns\":%" PRId64
		",\"common_collectives\":%zu,\"ends_before_all_ns\":%" PRId64 ",\"slices\":%zu",
		align_source_name(clock->source), clock->offset_ns, clock->spread_ns,
		clock->match_cnt, view->result->last_ns, view->result->slice_cnt);
	put_absent(w, view->log);
	put_drops(w, view);
	(void)fputc('}', w->out);
}

static int64_t zero_wall_ns(const struct writer *w, const struct rank_view *views, size_t cnt)
{
	return cnt > 0 ? views[0].log->wall_ns - views[0].log->mono_ns + w->zero_ns : 0;
}

static void put_about(struct writer *w, const struct rank_view *views, size_t cnt)
{
	int64_t wall_ns = zero_wall_ns(w, views, cnt);

	(void)fprintf(w->out,
		      "\n],\"otherData\":{\"schema\":\"perftracker.timeline.v1\","
		      "\"zero_wall_ns\":\"%" PRId64
		      "\",\"python\":\"sampled: a slice is as long as "
		      "samples in a row agree\",\"gpu_sampled\":\"one call in many: a slice begins "
		      "with the call and is as long as the GPU took\",\"curves\":\"dense samples "
		      "become a point in %d ms: mean, min, max\",\"ranks\":[",
		      wall_ns, (int)(TIMELINE_POINT_NS / NSEC_PER_MSEC));
	for (size_t i = 0; i < cnt; i++) {
		(void)fputs(i > 0 ? ",\n" : "\n", w->out);
		put_about_rank(w, &views[i]);
	}
	(void)fputs("]}}\n", w->out);
}

static int put_all(struct writer *w, struct rank_view *views, size_t cnt,
		   const struct timeline_options *options)
{
	int ret = 0;

	(void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", w->out);
	for (size_t i = 0; i < cnt && ret == 0 && ferror(w->out) == 0; i++)
		ret = put_rank(w, &views[i], (uint32_t)i + 1);
	if (ret == 0)
		ret = timeline_hardware(w, views, cnt, options);
	if (ret == 0)
		put_about(w, views, cnt);
	if (ret == 0 && w->sink != NULL)
		ret = w->sink->error;
	return ret == 0 && (fflush(w->out) != 0 || ferror(w->out) != 0) ? -EIO : ret;
}

/* --- all --- */

static int prepare(struct rank_view *views, const struct flightlog *logs, size_t cnt,
		   struct timeline_rank *ranks)
{
	int ret = 0;

	for (size_t i = 0; i < cnt && ret == 0; i++) {
		ranks[i] = (struct timeline_rank){ 0 };
		views[i].log = &logs[i];
		views[i].result = &ranks[i];
		find_times(&views[i]);
		ret = timeline_collect_comms(&views[i]);
		if (ret == 0)
			ret = timeline_collect_nccl(&views[i]);
		if (ret == 0)
			ret = timeline_collect_timed(&views[i]);
	}
	return ret;
}

static void views_free(struct rank_view *views, size_t cnt)
{
	for (size_t i = 0; views != NULL && i < cnt; i++) {
		vec_done(&views[i].comms);
		vec_done(&views[i].nccl);
		vec_done(&views[i].timed);
		free(views[i].events);
	}
	free(views);
}

int timeline_write(const struct flightlog *logs, size_t cnt, const struct timeline_options *options,
		   FILE *out, struct timeline_rank *ret_ranks)
{
	struct rank_view *views = calloc(cnt + 1, sizeof(*views));
	struct writer writer = { .out = out, .sink = options->sink };
	int64_t length_ns;
	int ret = views != NULL ? prepare(views, logs, cnt, ret_ranks) : -ENOMEM;
	int instance_cnt = 0;

	if (ret == 0)
		ret = instance_cnt = align(views, cnt, options->wall_only);
	if (ret >= 0) {
		writer.zero_ns = choose_part(views, cnt, options->last_ns, &length_ns);
		writer_sink_begin(&writer, zero_wall_ns(&writer, views, cnt), length_ns);
		ret = timeline_take_turns(views, cnt, (uint32_t)instance_cnt);
	}
	if (ret == 0)
		ret = put_all(&writer, views, cnt, options);
	views_free(views, cnt);
	return ret;
}
