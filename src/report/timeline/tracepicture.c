/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline/tracepicture.h"

#include "base/demangle.h"
#include "base/str.h"
#include "model/rankset.h"
#include "report/timeline/faultspans.h"
#include "report/timeline/latespans.h"
#include "report/timeline/rows.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>

#define TRACK_MAX (PID_TIDS / ROW_MAX - 4) /* lanes of a rank that have a track */
#define LATE_LEAST_NS (20 * NSEC_PER_USEC) /* less is what clocks are off by */
#define STREAM_SORT 100000		   /* streams are below all threads */

/* All that is drawn. */
struct picture {
	struct writer writer;
	const struct tracepicture_options *options;
	struct tracepicture_rank *ranks;
	struct timeline_rank *results;
	struct align_rank *aligned;
	struct align_clock *clocks;
	struct late_instance *late;
	size_t cnt;
	struct err *err;
};

/* One rank while it is drawn. */
struct drawing {
	struct picture *picture;
	size_t idx;
	const struct trace *trace;
	struct rank_view view;
	struct place place; /* of the findings' track */
	struct faultspans faults;
	const struct finding **findings;
	size_t finding_cnt;
	struct row (*rows)[ROW_MAX]; /* by lane; the last one: findings */
	int64_t end_ns;		     /* what begins later is left out */
};

/* --- the findings of a rank --- */

static int choose_findings(struct drawing *d)
{
	const struct report *report = d->picture->options->report;
	size_t cnt = report != NULL ? report->finding_cnt : 0;

	d->findings = calloc(cnt + 1, sizeof(struct finding *));
	if (d->findings == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (finding_names_rank(&report->findings[i], d->picture->ranks[d->idx].rank))
			d->findings[d->finding_cnt++] = &report->findings[i];
	}
	return faultspans_find(d->trace, d->findings, d->finding_cnt, &d->faults);
}

/* --- rows --- */

static uint32_t track_tid(const struct drawing *d, size_t track)
{
	return d->place.pid * PID_TIDS + 1 + (uint32_t)track * ROW_MAX;
}

static int name_row(const struct drawing *d, uint32_t tid, const char *name, uint32_t row,
		    int64_t sort)
{
	struct str text = { 0 };
	int ret;

	str_append(&text, name);
	if (row > 0)
		str_printf(&text, " (%u)", row + 1);
	writer_name(d->place.writer, "thread_name", d->place.pid, tid, "name", str_borrow(&text));
	writer_index(d->place.writer, "thread_sort_index", d->place.pid, tid, sort + row);
	ret = str_error(&text);
	str_done(&text);
	return ret;
}

/* The row of a slice: named when it is new. *ret_tid is 0 where the slice is left out. */
static int choose_row(struct drawing *d, size_t track, const char *name, int64_t sort,
		      int64_t start_ns, int64_t end_ns, uint32_t *ret_tid)
{
	struct row *rows = d->rows[track];
	uint32_t idx = rows_choose(rows, start_ns, end_ns);
	uint32_t tid = track_tid(d, track) + idx;

	*ret_tid = 0;
	if (idx == ROW_MAX) {
		d->view.result->omitted_cnt++;
		return 0;
	}
	if (!rows[idx].used && name_row(d, tid, name, idx, sort) < 0)
		return -ENOMEM;
	rows[idx].used = true;
	d->view.result->slice_cnt++;
	*ret_tid = tid;
	return vec_push(&rows[idx].ends, end_ns);
}

/* --- events --- */

static void lane_name(const struct trace *trace, uint16_t idx, char *ret, size_t size)
{
	const struct lane *lane = &trace->lanes[idx];
	const char *name = strtab_text(&trace->strings, lane->name);

	if (lane->type == LANE_STREAM)
		(void)snprintf(ret, size, "GPU %" PRId64 ", stream %" PRId64, lane->pid, lane->tid);
	else if (lane->type == LANE_THREAD)
		(void)snprintf(ret, size, "thread %" PRId64 "%s%.60s", lane->tid,
			       name[0] != '\0' ? ", " : "", name);
	else
		(void)snprintf(ret, size, "%.80s", name[0] != '\0' ? name : "other");
}

static void put_event_args(struct drawing *d, const struct event *event,
			   const struct finding *fault)
{
	const struct event_args *args = event_args_borrow(d->trace, event);
	struct writer *w = d->place.writer;
	bool first = true;

	if (fault != NULL)
		writer_string(w, &first, "finding", fault->id);
	if (args != NULL && args->collective != 0)
		writer_string(w, &first, "collective",
			      strtab_text(&d->trace->strings, args->collective));
	if (args != NULL && args->group != 0)
		writer_string(w, &first, "group", strtab_text(&d->trace->strings, args->group));
	if (args != NULL && args->group_size > 0)
		writer_number(w, &first, "group_size", args->group_size);
	if (args != NULL && args->seq >= 0)
		writer_number(w, &first, "seq", args->seq);
	if (args != NULL && args->bytes >= 0)
		writer_number(w, &first, "bytes", args->bytes);
	if (event->start_ns < d->view.from_ns)
		writer_string(w, &first, "start", "before this picture");
	if (!first)
		(void)fputc('}', w->out);
}

static void put_name(struct writer *w, const char *name)
{
	struct str plain = { 0 };
	bool has_plain = demangle_plain(name, &plain) && str_error(&plain) == 0;

	writer_text(w, has_plain ? str_borrow(&plain) : name[0] != '\0' ? name : "(no name)");
	str_done(&plain);
}

static void sink_event(struct drawing *d, const struct event *event, const struct finding *fault,
		       uint32_t tid)
{
	const char *name = event_name(d->trace, event), *shown;
	struct str plain = { 0 };

	if (d->place.writer->sink == NULL)
		return;
	shown = demangle_plain(name, &plain) && str_error(&plain) == 0 ? str_borrow(&plain) : name;
	writer_sink(&d->place, tid,
		    &(struct sink_slice){
			    .start_ns = MAX(event->start_ns, d->view.from_ns),
			    .end_ns = event_end_ns(event),
			    .category = event_kind_name((enum event_kind)event->kind),
			    .name = shown,
			    .shown = shown,
			    .finding = fault != NULL ? fault->id : NULL,
		    });
	str_done(&plain);
}

static int put_event(struct drawing *d, const struct event *event)
{
	const struct finding *fault = faultspans_of(&d->faults, event);
	const struct lane *lane = &d->trace->lanes[event->lane];
	int64_t start_ns = MAX(event->start_ns, d->view.from_ns);
	char name[96];
	uint32_t tid;
	int ret;

	lane_name(d->trace, event->lane, name, sizeof(name));
	ret = choose_row(d, event->lane + 1u, name,
			 (lane->type == LANE_STREAM ? STREAM_SORT : 0) +
				 (event->lane + 1) * (int64_t)ROW_MAX,
			 start_ns, event_end_ns(event), &tid);
	if (ret < 0 || tid == 0)
		return ret;
	writer_slice(&d->place, tid, start_ns, event_end_ns(event));
	sink_event(d, event, fault, tid);
	(void)fprintf(d->place.writer->out,
		      ",\"cat\":\"%s\",\"name\":", event_kind_name((enum event_kind)event->kind));
	put_name(d->place.writer, event_name(d->trace, event));
	if (fault != NULL)
		(void)fputs(",\"cname\":\"terrible\"", d->place.writer->out);
	put_event_args(d, event, fault);
	(void)fputc('}', d->place.writer->out);
	return 0;
}

static int put_events(struct drawing *d)
{
	int ret = 0;

	for (size_t i = 0; i < d->trace->event_cnt && ret == 0; i++) {
		const struct event *event = &d->trace->events[i];

		if (event_end_ns(event) <= d->view.from_ns || event->start_ns >= d->end_ns)
			continue;
		if (event->lane < TRACK_MAX)
			ret = put_event(d, event);
		else
			d->view.result->omitted_cnt++;
	}
	return ret;
}

/* --- the track of findings --- */

static int put_finding_slice(struct drawing *d, int64_t start_ns, int64_t end_ns, const char *name,
			     const struct finding *finding)
{
	struct writer *w = d->place.writer;
	bool first = true;
	uint32_t tid;
	int ret;

	start_ns = MAX(start_ns, d->view.from_ns);
	if (end_ns <= start_ns || start_ns >= d->end_ns)
		return 0;
	ret = choose_row(d, 0, "findings", 0, start_ns, end_ns, &tid);
	if (ret < 0 || tid == 0)
		return ret;
	writer_slice(&d->place, tid, start_ns, end_ns);
	writer_sink(&d->place, tid,
		    &(struct sink_slice){ .start_ns = start_ns,
					  .end_ns = end_ns,
					  .category = "finding",
					  .name = name,
					  .shown = name,
					  .finding = finding != NULL ? finding->id : "late" });
	(void)fputs(",\"cat\":\"finding\",\"name\":", w->out);
	writer_text(w, name);
	(void)fputs(",\"cname\":\"terrible\"", w->out);
	if (finding != NULL) {
		writer_string(w, &first, "finding", finding->id);
		writer_string(w, &first, "title", finding->title);
		(void)fputc('}', w->out);
	}
	(void)fputc('}', w->out);
	return 0;
}

static int add_late_spans(struct drawing *d, fault_span_vec *spans)
{
	const struct tracepicture_rank *rank = &d->picture->ranks[d->idx];
	int64_t offset_ns = d->view.result->clock.offset_ns;
	int ret = 0;

	for (size_t i = 0; i < rank->event_cnt && ret == 0; i++) {
		const struct late_instance *late = &d->picture->late[rank->events[i].instance];
		struct fault_span span = { late->before_last_ns - offset_ns,
					   late->last_ns - offset_ns, UINT32_MAX, false };

		if (rank->events[i].instance > 0 && late->member_cnt > 1 &&
		    late->last_rank == d->idx &&
		    late->last_ns - late->before_last_ns >= LATE_LEAST_NS)
			ret = vec_push(spans, span);
	}
	return ret;
}

static int by_start(const void *a, const void *b)
{
	const struct fault_span *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int put_findings(struct drawing *d)
{
	fault_span_vec *spans = &d->faults.spans;
	int ret = d->finding_cnt > 0 ? add_late_spans(d, spans) : 0;

	if (spans->cnt > 0)
		qsort(spans->data, spans->cnt, sizeof(*spans->data), by_start);
	for (size_t i = 0; i < spans->cnt && ret == 0; i++) {
		const struct fault_span *s = &spans->data[i];
		const struct finding *finding =
			s->finding < d->finding_cnt ? d->findings[s->finding] : NULL;

		ret = put_finding_slice(
			d, s->start_ns, s->end_ns,
			finding != NULL ? finding->name : "others wait for this rank", finding);
	}
	return ret;
}

/* --- one rank --- */

static int name_rank(struct drawing *d)
{
	const struct tracepicture_rank *rank = &d->picture->ranks[d->idx];
	const struct align_clock *clock = &d->view.result->clock;
	struct writer *w = d->place.writer;
	struct str text = { 0 };
	int ret;

	str_printf(&text, "rank %d", rank->rank);
	if (rank->host[0] != '\0')
		str_printf(&text, " \xc2\xb7 %s", rank->host);
	if (d->finding_cnt > 0)
		str_printf(&text, " \xc2\xb7 %s", d->findings[0]->id);
	writer_name(w, "process_name", d->place.pid, 0, "name", str_borrow(&text));
	text.len = 0;
	str_printf(&text, "clock: %s", align_source_name(clock->source));
	if (clock->source == ALIGN_COLLECTIVES)
		str_printf(&text, " (%zu, +-%.3f ms)", clock->match_cnt,
			   (double)clock->spread_ns / NSEC_PER_MSEC);
	writer_name(w, "process_labels", d->place.pid, 0, "labels", str_borrow(&text));
	writer_index(w, "process_sort_index", d->place.pid, 0, d->place.pid);
	ret = str_error(&text);
	str_done(&text);
	return ret;
}

static int draw(struct drawing *d)
{
	size_t tracks = d->trace->lane_cnt + 2;
	int ret = choose_findings(d);

	d->rows = calloc(tracks, sizeof(*d->rows));
	if (d->rows == NULL)
		return -ENOMEM;
	if (ret == 0)
		ret = name_rank(d);
	if (ret == 0)
		ret = put_findings(d);
	if (ret == 0)
		ret = put_events(d);
	for (size_t i = 0; i < tracks; i++)
		rows_done(d->rows[i]);
	free(d->rows);
	return ret;
}

static int put_rank(struct picture *p, size_t idx)
{
	const struct tracepicture_rank *rank = &p->ranks[idx];
	struct trace trace;
	struct drawing d = { .picture = p,
			     .idx = idx,
			     .trace = &trace,
			     .view = { .result = &p->results[idx], .from_ns = rank->from_ns },
			     .end_ns = rank->end_ns };
	int ret = p->options->read(p->options->arg, idx, &trace, p->err);

	if (ret < 0)
		return ret;
	d.place = (struct place){ .writer = &p->writer, .view = &d.view, .pid = (uint32_t)idx + 1 };
	ret = draw(&d);
	faultspans_done(&d.faults);
	free(d.findings);
	trace_done(&trace);
	return ret;
}

/* --- what the trace says of itself --- */

static void put_about_rank(struct picture *p, size_t idx)
{
	const struct timeline_rank *result = &p->results[idx];
	FILE *out = p->writer.out;

	(void)fprintf(out, "{\"rank\":%d,\"pid\":%" PRId64 ",\"host\":", p->ranks[idx].rank,
		      p->ranks[idx].pid);
	writer_text(&p->writer, p->ranks[idx].host);
	(void)fprintf(out,
		      ",\"clock\":\"%s\",\"clock_offset_ns\":%" PRId64
		      ",\"clock_spread_ns\":%" PRId64
		      ",\"common_collectives\":%zu,\"ends_before_all_ns\":%" PRId64
		      ",\"slices\":%zu,\"absent\":{},\"dropped\":{",
		      align_source_name(result->clock.source), result->clock.offset_ns,
		      result->clock.spread_ns, result->clock.match_cnt, result->last_ns,
		      result->slice_cnt);
	if (result->omitted_cnt > 0)
		(void)fprintf(out, "\"slices that overlap too many others\":%zu",
			      result->omitted_cnt);
	(void)fputs("}}", out);
}

static int put_about_findings(struct picture *p)
{
	const struct report *report = p->options->report;
	FILE *out = p->writer.out;

	for (size_t i = 0; report != NULL && i < report->finding_cnt; i++) {
		const struct finding *finding = &report->findings[i];
		struct str ranks = { 0 };
		int ret;

		rankset_format(&ranks, finding->ranks, finding->rank_cnt);
		ret = str_error(&ranks);
		(void)fprintf(out, "%s{\"id\":\"%s\",\"ranks\":\"%s\",\"title\":", i > 0 ? "," : "",
			      finding->id, ret == 0 ? str_borrow(&ranks) : "");
		writer_text(&p->writer, finding->title);
		(void)fputc('}', out);
		str_done(&ranks);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int put_about(struct picture *p)
{
	FILE *out = p->writer.out;
	int ret;

	(void)fprintf(out,
		      "\n],\"otherData\":{\"schema\":\"perftracker.timeline.v1\",\"zero_wall_ns\":"
		      "\"%" PRId64 "\",\"findings\":[",
		      p->writer.zero_ns);
	ret = put_about_findings(p);
	(void)fputs("],\"ranks\":[", out);
	for (size_t i = 0; i < p->cnt; i++) {
		(void)fputs(i > 0 ? ",\n" : "\n", out);
		put_about_rank(p, i);
	}
	(void)fputs("]}}\n", out);
	return ret;
}

/* --- all --- */

static int align(struct picture *p)
{
	uint32_t instance_cnt = 0;
	int ret = 0;

	for (size_t i = 0; i < p->cnt; i++)
		p->aligned[i] = (struct align_rank){ .events = p->ranks[i].events,
						     .cnt = p->ranks[i].event_cnt,
						     .host = p->ranks[i].host };
	if (p->options->wall_only)
		align_by_wall(p->aligned, p->cnt, p->clocks);
	else
		ret = align_clocks(p->aligned, p->cnt, p->clocks);
	if (ret == 0)
		ret = align_match(p->aligned, p->clocks, p->cnt, &instance_cnt);
	p->late = ret == 0 ? calloc((size_t)instance_cnt + 1, sizeof(*p->late)) : NULL;
	if (p->late == NULL)
		return ret < 0 ? ret : -ENOMEM;
	latespans_find(p->aligned, p->clocks, p->cnt, instance_cnt, p->late);
	for (size_t i = 0; i < p->cnt; i++)
		p->results[i] = (struct timeline_rank){ .clock = p->clocks[i] };
	return 0;
}

/* Sets the moment that is 0 in the picture, and what is shown of each rank. */
static void choose_part(struct picture *p)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < p->cnt; i++) {
		first = MIN(first, p->ranks[i].from_ns + p->clocks[i].offset_ns);
		last = MAX(last, p->ranks[i].end_ns + p->clocks[i].offset_ns);
	}
	if (p->options->last_ns > 0)
		first = MAX(first, last - p->options->last_ns);
	p->writer.zero_ns = p->cnt > 0 ? first : 0;
	writer_sink_begin(&p->writer, p->writer.zero_ns, p->cnt > 0 ? last - first : 0);
	for (size_t i = 0; i < p->cnt; i++) {
		struct tracepicture_rank *rank = &p->ranks[i];

		p->results[i].last_ns = last - (rank->end_ns + p->clocks[i].offset_ns);
		rank->from_ns = MAX(rank->from_ns, first - p->clocks[i].offset_ns);
	}
}

static int put_all(struct picture *p)
{
	FILE *out = p->writer.out;
	int ret = 0;

	(void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
	for (size_t i = 0; i < p->cnt && ret == 0 && ferror(out) == 0; i++)
		ret = put_rank(p, i);
	if (ret == 0)
		ret = put_about(p);
	if (ret == 0 && p->options->sink != NULL)
		ret = p->options->sink->error;
	return ret == 0 && (fflush(out) != 0 || ferror(out) != 0) ? -EIO : ret;
}

int tracepicture_write(struct tracepicture_rank *ranks, size_t cnt,
		       const struct tracepicture_options *options, FILE *out,
		       struct timeline_rank *ret_ranks, struct err *err)
{
	struct picture p = { .writer = { .out = out, .sink = options->sink },
			     .options = options,
			     .ranks = ranks,
			     .results = ret_ranks,
			     .cnt = cnt,
			     .err = err };
	int ret;

	p.aligned = calloc(cnt + 1, sizeof(*p.aligned));
	p.clocks = calloc(cnt + 1, sizeof(*p.clocks));
	ret = p.aligned != NULL && p.clocks != NULL ? align(&p) : -ENOMEM;
	if (ret == 0) {
		choose_part(&p);
		ret = put_all(&p);
	}
	free(p.aligned);
	free(p.clocks);
	free(p.late);
	return ret;
}
