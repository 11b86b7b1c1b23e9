/* SPDX-License-Identifier: Apache-2.0 */
/* Slices as trace events. Viewers want each row properly nested and outer slices first. */
#include "base/demangle.h"
#include "base/str.h"
#include "base/text/clean.h"
#include "model/syscall.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- JSON --- */

void writer_text(struct writer *w, const char *text)
{
	uint32_t c = 0;

	(void)fputc('"', w->out);
	for (const char *p = text; *p != '\0';) {
		size_t len = clean_decode(p, &c);

		if (len == 0)
			(void)fputs("\xef\xbf\xbd", w->out);
		else if (c < 0x20 || c == 0x7f)
			(void)fprintf(w->out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			(void)fprintf(w->out, "\\%c", (char)c);
		else
			(void)fwrite(p, 1, len, w->out);
		p += len > 0 ? len : 1;
	}
	(void)fputc('"', w->out);
}

static void new_event(struct writer *w)
{
	(void)fputs(w->comma ? ",\n" : "\n", w->out);
	w->comma = true;
}

/* Of a row of a thread: the sink has no use for other names. */
static void sink_row(struct writer *w, uint32_t pid, uint32_t tid, const char *name)
{
	if (w->sink != NULL && w->sink->error == 0)
		w->sink->error = w->sink->row(w->sink->arg, pid - 1, tid, name);
}

void writer_name(struct writer *w, const char *event, uint32_t pid, uint32_t tid, const char *key,
		 const char *text)
{
	if (strcmp(event, "thread_name") == 0)
		sink_row(w, pid, tid, text);
	new_event(w);
	(void)fprintf(w->out,
		      "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"%s\":", pid,
		      tid, event, key);
	writer_text(w, text);
	(void)fputs("}}", w->out);
}

void writer_sink_begin(struct writer *w, int64_t zero_wall_ns, int64_t length_ns)
{
	if (w->sink != NULL && w->sink->error == 0)
		w->sink->error = w->sink->begin(w->sink->arg, zero_wall_ns, length_ns);
}

void writer_sink(struct place *to, uint32_t tid, const struct sink_slice *slice)
{
	int64_t add_ns = to->view->result->clock.offset_ns - to->writer->zero_ns;
	struct slice_sink *sink = to->writer->sink;
	struct sink_slice given = *slice;

	if (sink == NULL || sink->error < 0)
		return;
	given.idx = to->pid - 1;
	given.row = tid;
	given.start_ns += add_ns;
	given.end_ns += add_ns;
	sink->error = sink->slice(sink->arg, &given);
}

void writer_index(struct writer *w, const char *event, uint32_t pid, uint32_t tid, int64_t index)
{
	new_event(w);
	(void)fprintf(w->out,
		      "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":"
		      "{\"sort_index\":%" PRId64 "}}",
		      pid, tid, event, index);
}

/* Microseconds are the format's unit; the digits behind the point keep the ns. */
static void put_us(struct writer *w, const char *key, int64_t ns)
{
	ns = MAX(ns, INT64_C(0));
	(void)fprintf(w->out, ",\"%s\":%lld.%03lld", key, ns / NSEC_PER_USEC, ns % NSEC_PER_USEC);
}

void writer_begin(struct place *to, char phase, uint32_t tid, int64_t time_ns)
{
	struct writer *w = to->writer;

	new_event(w);
	(void)fprintf(w->out, "{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", phase, to->pid, tid);
	put_us(w, "ts", time_ns + to->view->result->clock.offset_ns - w->zero_ns);
}

void writer_slice(struct place *to, uint32_t tid, int64_t start_ns, int64_t end_ns)
{
	writer_begin(to, 'X', tid, start_ns);
	put_us(to->writer, "dur", end_ns - start_ns);
}

/* --- names and arguments --- */

static const char *const categories[] = {
	[SLICE_ITERATION] = "iteration", [SLICE_LOADER] = "iteration",
	[SLICE_OPTIMIZER] = "iteration", [SLICE_GC] = "gc",
	[SLICE_FRAME] = "python",	 [SLICE_SYSCALL] = "syscall",
	[SLICE_GIL_WAIT] = "gil",	 [SLICE_TRUNCATED] = "python",
	[SLICE_OPERATOR] = "operator",	 [SLICE_ANNOTATION] = "annotation",
	[SLICE_C_CALL] = "python",	 [SLICE_COLLECTIVE] = "collective",
	[SLICE_NCCL] = "nccl",		 [SLICE_NETWORK] = "network",
	[SLICE_NCCL_TIMED] = "gpu",	 [SLICE_GPU] = "gpu",
	[SLICE_TIMED] = "gpu",
};

/* Names that are not the job's, made in ret if need be; NULL for a name of the job's. */
static const char *fixed_name(const struct slice *slice, char *ret, size_t size)
{
	const char *call;

	switch ((enum slice_kind)slice->kind) {
	case SLICE_ITERATION:
		(void)snprintf(ret, size, "iteration %" PRId64, slice->number);
		return ret;
	case SLICE_LOADER:
		return "dataloader.next";
	case SLICE_OPTIMIZER:
		return "optimizer.step";
	case SLICE_GC:
		(void)snprintf(ret, size, "gc, generation %" PRId64, slice->number);
		return ret;
	case SLICE_SYSCALL:
		call = syscall_name(slice->number);
		if (call != NULL)
			(void)snprintf(ret, size, "[%s]", call);
		else
			(void)snprintf(ret, size, "[system call %" PRId64 "]", slice->number);
		return ret;
	case SLICE_GIL_WAIT:
		return "[waits for the GIL]";
	case SLICE_TRUNCATED:
		return "[outer frames were not recorded]";
	case SLICE_FRAME:
	case SLICE_OPERATOR:
	case SLICE_ANNOTATION:
	case SLICE_C_CALL:
	case SLICE_COLLECTIVE:
	case SLICE_NCCL:
	case SLICE_NETWORK:
	case SLICE_NCCL_TIMED:
	case SLICE_GPU:
	case SLICE_TIMED:
		break;
	}
	return NULL;
}

/* Of a kernel, without the arguments of its template. False: it has no other name. */
static bool plain_name(const char *name, char *ret, size_t size)
{
	struct str text = { 0 };
	bool found = demangle_plain(name, &text) && str_error(&text) == 0;

	if (found)
		(void)snprintf(ret, size, "%s", str_borrow(&text));
	str_done(&text);
	return found;
}

static const char *name_of(const struct flightlog *log, const struct slice *slice, char *buf,
			   size_t size)
{
	const char *name = fixed_name(slice, buf, size);

	if (name == NULL && slice->kind == SLICE_FRAME)
		name = log->strings.data[log->frames.data[slice->what].name];
	else if (name == NULL)
		name = log->strings.data[slice->what];
	if ((slice->kind == SLICE_GPU || slice->kind == SLICE_TIMED) && plain_name(name, buf, size))
		name = buf;
	return name[0] != '\0' ? name : "(no name)";
}

/* The comma or the brace before an argument. */
static void put_key(struct writer *w, bool *first, const char *key)
{
	(void)fprintf(w->out, "%s\"%s\":", *first ? ",\"args\":{" : ",", key);
	*first = false;
}

void writer_number(struct writer *w, bool *first, const char *key, int64_t value)
{
	put_key(w, first, key);
	(void)fprintf(w->out, "%" PRId64, value);
}

void writer_string(struct writer *w, bool *first, const char *key, const char *text)
{
	put_key(w, first, key);
	writer_text(w, text);
}

void timeline_put_comm(struct place *to, const struct comm *comm, bool *first)
{
	const char *const *strings = to->view->log->strings.data;

	if (comm->what != 0)
		writer_string(to->writer, first, "collective", strings[comm->what]);
	if (comm->group != 0)
		writer_string(to->writer, first, "group", strings[comm->group]);
	if (comm->group_size != 0)
		writer_number(to->writer, first, "group_size", comm->group_size);
	if (comm->seq >= 0)
		writer_number(to->writer, first, "seq", comm->seq);
	if (comm->bytes >= 0)
		writer_number(to->writer, first, "bytes", comm->bytes);
	if (comm->member_cnt > 0) {
		writer_number(to->writer, first, "came", comm->turn + 1);
		writer_number(to->writer, first, "of", comm->member_cnt);
	}
}

static void put_nccl_args(struct place *to, const struct nccl_slice *nccl, bool *first)
{
	timeline_put_comm(to, &nccl->comm, first);
	timeline_put_nccl(to, nccl, first);
}

static void put_frame_args(struct place *to, const struct slice *slice, bool *first)
{
	const struct flightlog *log = to->view->log;
	const struct flight_frame *frame = &log->frames.data[slice->what];

	writer_string(to->writer, first, "file", log->strings.data[frame->file]);
	writer_number(to->writer, first, "line", frame->first_line);
}

static void put_sample_args(struct writer *w, const struct slice *slice, bool *first)
{
	writer_number(w, first, "samples", slice->sample_cnt);
	if (slice->cpu_ns >= 0) {
		put_key(w, first, "cpu_ms");
		(void)fprintf(w->out, "%.1f", (double)slice->cpu_ns / NSEC_PER_MSEC);
	}
}

static void put_args(struct place *to, const struct slice *slice)
{
	struct writer *w = to->writer;
	bool first = true;

	if (slice->kind == SLICE_COLLECTIVE)
		timeline_put_comm(to, &to->view->comms.data[slice->number], &first);
	else if (slice->kind == SLICE_NCCL || slice->kind == SLICE_NETWORK ||
		 slice->kind == SLICE_NCCL_TIMED)
		put_nccl_args(to, &to->view->nccl.data[slice->number], &first);
	else if (slice->kind == SLICE_GPU)
		timeline_put_gpu(to, slice, &first);
	else if (slice->kind == SLICE_TIMED)
		timeline_put_timed(to, &to->view->timed.data[slice->number], &first);
	else if (slice->kind == SLICE_FRAME)
		put_frame_args(to, slice, &first);
	else if (slice->kind == SLICE_OPTIMIZER && slice->number > 0)
		writer_number(w, &first, "optimizer", slice->number);
	else if (slice->kind == SLICE_GIL_WAIT && slice->number > 0)
		writer_number(w, &first, "held_by_tid", slice->number);
	else if (slice->kind == SLICE_ITERATION && slice->what != 0)
		writer_string(w, &first, "counted_from", "the oldest mark that was left");
	if (slice->sample_cnt > 0)
		put_sample_args(w, slice, &first);
	if (slice->open)
		writer_string(w, &first, "end", "not seen");
	if (slice->start_ns < to->view->from_ns)
		writer_string(w, &first, "start", "before this picture");
	if (!first)
		(void)fputc('}', w->out);
}

/* --- events --- */

/* A frame as findings name it: "train.py(7): load". */
static const char *shown_name(const struct flightlog *log, const struct slice *slice,
			      const char *name, char *buf, size_t size)
{
	const struct flight_frame *frame;
	const char *file, *slash;

	if (slice->kind != SLICE_FRAME)
		return name;
	frame = &log->frames.data[slice->what];
	file = log->strings.data[frame->file];
	slash = strrchr(file, '/');
	(void)snprintf(buf, size, "%s(%u): %s", slash != NULL ? slash + 1 : file, frame->first_line,
		       name);
	return buf;
}

static void put_slice(struct place *to, const struct slice *slice, uint32_t tid)
{
	int64_t start_ns = MAX(slice->start_ns, to->view->from_ns);
	struct writer *w = to->writer;
	char buf[160], shown[320];
	const char *name = name_of(to->view->log, slice, buf, sizeof(buf));

	writer_slice(to, tid, start_ns, slice->end_ns);
	(void)fprintf(w->out, ",\"cat\":\"%s\",\"name\":", categories[slice->kind]);
	writer_text(w, name);
	if (w->sink != NULL)
		writer_sink(to, tid,
			    &(struct sink_slice){
				    .start_ns = start_ns,
				    .end_ns = slice->end_ns,
				    .category = categories[slice->kind],
				    .name = name,
				    .shown = shown_name(to->view->log, slice, name, shown,
							sizeof(shown)),
			    });
	put_args(to, slice);
	(void)fputc('}', w->out);
}

/* The arrow of a collective, bound to the slice that was just written. */
static void put_flow(struct place *to, const struct slice *slice, uint32_t tid)
{
	const struct comm *comm = &to->view->comms.data[slice->number];
	bool last = comm->turn + 1 == comm->member_cnt;

	if (comm->member_cnt == 0)
		return;
	writer_begin(to,
		     comm->turn == 0 ? 's'
		     : last	     ? 'f'
				     : 't',
		     tid, MAX(slice->start_ns, to->view->from_ns));
	(void)fprintf(
		to->writer->out, ",\"cat\":\"collective\",\"name\":\"one collective\",\"id\":%u%s}",
		to->view->events[slice->number].instance, comm->turn == 0 ? "" : ",\"bp\":\"e\"");
}

/* --- rows --- */

static int outer_first(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static int name_row(struct place *to, uint32_t idx)
{
	uint32_t tid = to->first_tid + idx;
	struct str name = { 0 };
	int ret;

	str_append(&name, to->name);
	if (idx > 0)
		str_printf(&name, " (%u)", idx + 1);
	writer_name(to->writer, "thread_name", to->pid, tid, "name", str_borrow(&name));
	writer_index(to->writer, "thread_sort_index", to->pid, tid, tid - to->pid * PID_TIDS);
	ret = str_error(&name);
	str_done(&name);
	return ret;
}

/* Returns 0 or -ENOMEM. */
static int put_in_row(struct place *to, struct row rows[static ROW_MAX], const struct slice *slice)
{
	uint32_t idx = rows_choose(rows, slice->start_ns, slice->end_ns);

	if (idx == ROW_MAX) {
		to->view->result->omitted_cnt++;
		return 0;
	}
	if (!rows[idx].used && name_row(to, idx) < 0)
		return -ENOMEM;
	rows[idx].used = true;
	put_slice(to, slice, to->first_tid + idx);
	to->view->result->slice_cnt++;
	if (slice->kind == SLICE_COLLECTIVE)
		put_flow(to, slice, to->first_tid + idx);
	else if (slice->kind == SLICE_GPU)
		to->view->gpu.tids[slice->number] = to->first_tid + idx;
	return vec_push(&rows[idx].ends, slice->end_ns);
}

int timeline_put(struct place *to, slice_vec *slices)
{
	struct row rows[ROW_MAX] = { 0 };
	int ret = 0;

	if (slices->cnt > 0)
		qsort(slices->data, slices->cnt, sizeof(*slices->data), outer_first);
	for (size_t i = 0; i < slices->cnt && ret == 0; i++) {
		if (slices->data[i].end_ns > to->view->from_ns)
			ret = put_in_row(to, rows, &slices->data[i]);
	}
	rows_done(rows);
	return ret;
}
