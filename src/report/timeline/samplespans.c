/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to slices: a frame lasts as long as the samples in a row that have it. */
#include "base/stats.h"
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <string.h>

#define THREAD_MAX 64
#define DEPTH_MAX 256u /* frames of a stack; of deeper ones the innermost */
#define GAP_PERIODS 3  /* a thread that was not looked at for longer has no slice there */
#define GAP_MIN_NS (60 * NSEC_PER_MSEC)

/* One step of a stack, outermost first. */
struct step {
	uint8_t kind; /* enum slice_kind */
	uint32_t what;
	int64_t number;
};

struct stack {
	struct step steps[DEPTH_MAX + 2]; /* outside: what is missing; inside: the system call */
	size_t depth;
};

struct open_step {
	struct step step;
	int64_t start_ns, cpu_ns;
	uint32_t sample_cnt;
};

struct sampled {
	const struct rank_view *view;
	slice_vec *ret;
	uint32_t tid;
	int64_t gap_ns[2]; /* [in a window] */
	int64_t end_ns;	   /* until when the sample before holds at most */
	struct open_step open[DEPTH_MAX + 2];
	size_t depth;
};

static uint32_t tid_of(const struct ring_record *record)
{
	return (uint32_t)(record->extra >> 32);
}

/* --- threads --- */

static int by_tid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool has_tid(const tid_vec *tids, uint32_t tid)
{
	for (size_t i = 0; i < tids->cnt; i++) {
		if (tids->data[i] == tid)
			return true;
	}
	return false;
}

int timeline_threads(const struct flightlog *log, tid_vec *ret)
{
	for (size_t i = log->samples.cnt; i > 0 && ret->cnt < THREAD_MAX; i--) {
		const struct ring_record *record = &log->samples.data[i - 1];

		if (record->kind == FLIGHT_SAMPLE && !has_tid(ret, tid_of(record)) &&
		    vec_push(ret, tid_of(record)) < 0)
			return -ENOMEM;
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_tid);
	for (size_t i = 1; i < ret->cnt; i++) {
		if (ret->data[i] != log->training_tid)
			continue;
		memmove(ret->data + 1, ret->data, i * sizeof(*ret->data));
		ret->data[0] = log->training_tid;
	}
	return 0;
}

/* --- how long a sample holds --- */

static bool is_sample(const struct sampled *s, const struct ring_record *record)
{
	return record->kind == FLIGHT_SAMPLE && tid_of(record) == s->tid;
}

static int find_gap(const struct sampled *s, unsigned int window, int64_t *ret)
{
	const record_vec *samples = &s->view->log->samples;
	_cleanup_free_ double *gaps = calloc(samples->cnt + 1, sizeof(*gaps));
	int64_t before_ns = INT64_MIN;
	size_t cnt = 0;

	if (gaps == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < samples->cnt; i++) {
		const struct ring_record *record = &samples->data[i];

		if (!is_sample(s, record))
			continue;
		if (before_ns != INT64_MIN && record->time_ns > before_ns &&
		    window == ((record->detail & FLIGHT_SAMPLE_WINDOW) != 0))
			gaps[cnt++] = (double)(record->time_ns - before_ns);
		before_ns = record->time_ns;
	}
	*ret = MAX((int64_t)(GAP_PERIODS * stats_median(gaps, cnt)), (int64_t)GAP_MIN_NS);
	return 0;
}

/* --- stacks --- */

static void push_step(struct stack *stack, enum slice_kind kind, uint32_t what, int64_t number)
{
	stack->steps[stack->depth++] = (struct step){ (uint8_t)kind, what, number };
}

static void read_stack(const struct flightlog *log, const struct ring_record *sample,
		       int64_t gil_tid, struct stack *ret)
{
	uint32_t frames[DEPTH_MAX], node = (uint32_t)sample->extra;
	size_t cnt = 0;

	/* A parent lies below its child in the table, so this ends. */
	for (; node != 0 && cnt < DEPTH_MAX; node = log->nodes.data[node].parent)
		frames[cnt++] = log->nodes.data[node].frame;
	ret->depth = 0;
	if (node != 0 || (sample->detail & FLIGHT_SAMPLE_TRUNCATED) != 0)
		push_step(ret, SLICE_TRUNCATED, 0, 0);
	while (cnt > 0)
		push_step(ret, SLICE_FRAME, frames[--cnt], 0);
	if ((sample->detail & FLIGHT_SAMPLE_GIL_WAIT) != 0)
		push_step(ret, SLICE_GIL_WAIT, 0, gil_tid);
	else if ((sample->detail & FLIGHT_SAMPLE_SYSCALL) != 0)
		push_step(ret, SLICE_SYSCALL, 0, sample->detail >> 4);
}

static bool same_step(const struct step *a, const struct step *b)
{
	return a->kind == b->kind && a->what == b->what && a->number == b->number;
}

/* --- slices --- */

static int close_to(struct sampled *s, size_t depth, int64_t end_ns, bool open)
{
	for (; s->depth > depth; s->depth--) {
		const struct open_step *step = &s->open[s->depth - 1];
		struct slice slice = { .start_ns = step->start_ns,
				       .end_ns = MAX(end_ns, step->start_ns),
				       .number = step->step.number,
				       .cpu_ns = step->cpu_ns,
				       .what = step->step.what,
				       .sample_cnt = step->sample_cnt,
				       .order = (uint32_t)s->depth,
				       .kind = step->step.kind,
				       .open = open };

		if (vec_push(s->ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* What the thread used since the sample before was used by what ran then. */
static void charge(struct sampled *s, int64_t cpu_ns)
{
	for (size_t i = 0; i < s->depth && cpu_ns >= 0; i++)
		s->open[i].cpu_ns = MAX(s->open[i].cpu_ns, INT64_C(0)) + cpu_ns;
}

static int see_sample(struct sampled *s, const struct ring_record *sample, int64_t gil_tid)
{
	struct stack stack;
	size_t common = 0;
	int ret;

	charge(s, sample->value);
	if (sample->time_ns > s->end_ns)
		ret = close_to(s, 0, s->end_ns, false);
	else
		ret = 0;
	read_stack(s->view->log, sample, gil_tid, &stack);
	while (common < MIN(s->depth, stack.depth) &&
	       same_step(&s->open[common].step, &stack.steps[common]))
		s->open[common++].sample_cnt++;
	if (ret == 0)
		ret = close_to(s, common, sample->time_ns, false);
	for (; s->depth < stack.depth; s->depth++)
		s->open[s->depth] =
			(struct open_step){ stack.steps[s->depth], sample->time_ns, -1, 1 };
	s->end_ns = sample->time_ns + s->gap_ns[(sample->detail & FLIGHT_SAMPLE_WINDOW) != 0];
	return ret;
}

static int see_all(struct sampled *s)
{
	const record_vec *samples = &s->view->log->samples;
	const struct ring_record *gil = NULL;
	int64_t last_ns = s->view->last_ns;
	int ret = 0;

	for (size_t i = 0; i < samples->cnt && ret == 0; i++) {
		const struct ring_record *record = &samples->data[i];

		if (record->kind == FLIGHT_GIL)
			gil = record;
		if (is_sample(s, record))
			ret = see_sample(s, record,
					 gil != NULL && gil->time_ns == record->time_ns ? gil->value
											: 0);
	}
	return ret == 0 ? close_to(s, 0, MIN(s->end_ns, last_ns), s->end_ns >= last_ns) : ret;
}

int timeline_samples(const struct rank_view *view, uint32_t tid, slice_vec *ret)
{
	_cleanup_free_ struct sampled *s = calloc(1, sizeof(*s));
	int error = -ENOMEM;

	if (s == NULL)
		return -ENOMEM;
	s->view = view;
	s->ret = ret;
	s->tid = tid;
	s->end_ns = INT64_MIN;
	error = find_gap(s, 0, &s->gap_ns[0]);
	if (error == 0)
		error = find_gap(s, 1, &s->gap_ns[1]);
	return error == 0 ? see_all(s) : error;
}

/* --- curves --- */

/* What two cumulative numbers of a record say, as a curve of two lines (one: b NULL). */
static const struct curve {
	uint16_t kind;
	const char *name, *a, *b;
	double a_scale, b_scale; /* of a difference per ns */
} curves[] = {
	{ FLIGHT_CPU, "training thread: CPU %", "running", "waiting for a CPU", 100, 100 },
	{ FLIGHT_FAULTS, "training thread: page faults/s", "minor", "major", 1e9, 1e9 },
	{ FLIGHT_SWITCHES, "training thread: switches/s", "voluntary", "involuntary", 1e9, 1e9 },
};

static double rate(int64_t before, int64_t now, int64_t ns, double scale)
{
	return now > before ? scale * ((double)now - (double)before) / (double)ns : 0;
}

/* A rate holds from the record before on. */
static void put_point(struct place *to, const struct curve *curve, const struct ring_record *before,
		      const struct ring_record *now)
{
	int64_t ns = now->time_ns - before->time_ns;

	writer_begin(to, 'C', to->first_tid, MAX(before->time_ns, to->view->from_ns));
	(void)fprintf(to->writer->out, ",\"name\":\"%s\",\"args\":{\"%s\":%.1f,\"%s\":%.1f}}",
		      curve->name, curve->a, rate(before->value, now->value, ns, curve->a_scale),
		      curve->b,
		      rate((int64_t)before->extra, (int64_t)now->extra, ns, curve->b_scale));
}

static void put_curve(struct place *to, const struct curve *curve)
{
	const record_vec *samples = &to->view->log->samples;
	const struct ring_record *before = NULL;

	for (size_t i = 0; i < samples->cnt; i++) {
		const struct ring_record *record = &samples->data[i];

		if (record->kind != curve->kind)
			continue;
		if (before != NULL && record->time_ns > before->time_ns &&
		    record->time_ns > to->view->from_ns)
			put_point(to, curve, before, record);
		before = record;
	}
}

void timeline_counters(struct place *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(curves); i++)
		put_curve(to, &curves[i]);
}
