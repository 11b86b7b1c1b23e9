/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/parts.h"

#include "localize/activity/activity.h"
#include "localize/compose_parts.h"
#include "localize/pictures/origin.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MERGED_SHOWN_MS 0.1 /* more of a gain in other functions is reported */

#define NOTE(out, notes, ...) parts_note(out, notes, arena_printf(&(out)->arena, __VA_ARGS__))

/*
 * What an iteration lost: a cause must explain what the window shows. The trigger's pace, a mean
 * that may begin before the slowdown, serves where the window shows none. A check-up of a job at
 * its pace compares ranks; what all of them have is how this job is.
 */
static double slowdown_ns(const struct report_trigger *trigger, bool slow, double iteration_ns)
{
	bool far = trigger_is_far(trigger, iteration_ns / 1e6, SLOW_SURE_FACTOR);
	double lost = 1e6 * fmax(0, trigger->current_iteration_ms - trigger->baseline_iteration_ms);
	double shown = iteration_ns - 1e6 * trigger->baseline_iteration_ms;

	/* Iterations of a steady job differ by as much. */
	if (!slow && !far && (trigger_is_checkup(trigger) || lost < PAST_SLOW_FRAC * iteration_ns))
		return 0;
	return (slow || far) && shown > 0 ? shown : lost;
}

struct accuse_options parts_accuse_options(const struct localize_options *options,
					   const struct expect_table *expect, double iteration_ns)
{
	const struct report_trigger *trigger = &options->trigger;
	struct accuse_options ret = {
		.min_gain_frac = options->min_gain_pct / 100,
		.min_common_frac = COMMON_MIN_FRAC,
		.expect = *expect,
		.differ = { .seed = options->seed, .exact = options->exact },
	};

	ret.live = trigger->present && trigger->baseline_iteration_ms > 0;
	ret.baseline_ns = ret.live ? 1e6 * trigger->baseline_iteration_ms : 0;
	ret.slow = ret.live && trigger_is_slow(trigger) &&
		   !trigger_is_over(trigger, iteration_ns / 1e6);
	if (ret.live)
		ret.slowdown_ns = slowdown_ns(trigger, ret.slow, iteration_ns);
	if (ret.live)
		ret.triggered_ns = 1e6 * fmax(0, trigger->current_iteration_ms -
							 trigger->baseline_iteration_ms);
	return ret;
}

static int rank_cmp(const void *a, const void *b)
{
	const struct fingerprint *x = *(const struct fingerprint *const *)a;
	const struct fingerprint *y = *(const struct fingerprint *const *)b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

int parts_sort_workers(const struct fingerprint *const *fps, size_t cnt,
		       const struct fingerprint ***ret, struct err *err)
{
	const struct fingerprint **sorted = calloc(cnt + 1, sizeof(*sorted));
	int error = 0;

	if (sorted == NULL)
		return err_set(err, ENOMEM, "out of memory while comparing %zu workers", cnt);
	if (cnt > 0)
		memcpy(sorted, fps, cnt * sizeof(*sorted));
	qsort(sorted, cnt, sizeof(*sorted), rank_cmp);
	for (size_t i = 1; i < cnt && error == 0; i++) {
		if (sorted[i]->rank == sorted[i - 1]->rank)
			error = err_set(err, EINVAL,
					"rank %d: expected one worker, found two: %s and %s",
					sorted[i]->rank, sorted[i - 1]->source, sorted[i]->source);
	}
	if (error < 0)
		free(sorted);
	else
		*ret = sorted;
	return error;
}

const char *parts_copy(struct report *out, const char *text)
{
	return arena_strdup(&out->arena, text != NULL ? text : "");
}

int parts_note(struct report *out, const char **notes, const char *line)
{
	if (line == NULL)
		return -ENOMEM;
	if (out->note_cnt < PARTS_MAX_NOTES)
		notes[out->note_cnt++] = line;
	return 0;
}

int parts_copy_notes(struct report *out, const char **notes, const struct localize_options *options)
{
	int error = 0;

	for (size_t i = 0; i < options->note_cnt && error == 0; i++)
		error = parts_note(out, notes, parts_copy(out, options->notes[i]));
	return error;
}

int parts_note_drops(struct report *out, const char **notes, const struct job *job)
{
	struct trace_drops sum = { 0 };
	unsigned long long collectives = 0;
	int error = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

#define X(field, one, many) sum.field += fp->drops.field;
		TRACE_DROP_LIST(X)
#undef X
		collectives += fp->collective_dropped;
	}
	sum.no_interval = 0;
#define X(field, one, many)                                                        \
	if (error == 0 && sum.field > 0)                                           \
		error = NOTE(out, notes, "%llu %s", (unsigned long long)sum.field, \
			     sum.field == 1 ? one : many);
	TRACE_DROP_LIST(X)
#undef X
	if (error == 0 && collectives > 0)
		error = NOTE(out, notes, "collectives left out for the limit per worker: %llu",
			     collectives);
	return error;
}

int parts_note_warmup(struct report *out, const char **notes, const struct job *job)
{
	const struct fingerprint *longest = NULL;
	size_t cnt = 0;
	double rest_ns;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		if (fp->warmup_ns == 0 || fp->iteration_cnt == 0)
			continue;
		cnt++;
		if (longest == NULL || fp->warmup_ns > longest->warmup_ns)
			longest = fp;
	}
	if (longest == NULL)
		return 0;
	rest_ns = (double)longest->window_ns / (double)longest->iteration_cnt;
	return NOTE(out, notes,
		    "the first step, before #%lld, is left out as warm-up on %zu of %zu rank%s: "
		    "%.0f ms, the others %.0f ms; --steps includes it",
		    (long long)longest->iterations[0].number, cnt, job->worker_cnt,
		    plural(job->worker_cnt), (double)longest->warmup_ns / 1e6, rest_ns / 1e6);
}

int parts_note_guesses(struct report *out, const char **notes, const struct job *job)
{
	bool optimizer = false;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		enum iterations_by by = job->workers[w].fp->iterations_by;

		if (by == ITERATIONS_REPEATS)
			return NOTE(
				out, notes,
				"the traces do not mark iterations: they are inferred from repeating "
				"kernels or collectives, and may be layers");
		optimizer |= by == ITERATIONS_OPTIMIZER;
	}
	if (optimizer)
		return NOTE(
			out, notes,
			"the traces do not mark iterations: each is taken to end with an optimizer step");
	return 0;
}

int parts_copy_failures(struct report *out, const struct localize_options *options)
{
	size_t cnt = options->failure_cnt;
	struct report_failure *list = arena_calloc(&out->arena, cnt + 1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		list[i].source = parts_copy(out, options->failures[i].source);
		list[i].why = parts_copy(out, options->failures[i].why);
		if (list[i].source == NULL || list[i].why == NULL)
			return -ENOMEM;
	}
	out->failures = list;
	out->failure_cnt = cnt;
	return 0;
}

/* --- the job --- */

/* Rank 7 has seven below it. Where no size is known, inputs that failed were workers too. */
static int expected_cnt(const struct localize_options *options, const struct parts_job *job)
{
	int above = job->worker_cnt > 0 ? job->ranks[job->worker_cnt - 1] + 1 : 0;

	if (options->ranks_expected != NULL)
		return (int)options->rank_expected_cnt;
	if (options->workers_expected > 0)
		return options->workers_expected;
	if (job->world_size > 0)
		return MAX(above, job->world_size);
	above = MAX(above, job->group_size);
	return MAX(above, (int)job->input_cnt);
}

static int list_missing(struct report *out, const struct localize_options *options,
			const struct parts_job *job)
{
	const int *wished = options->ranks_expected;
	int *missing =
		arena_calloc(&out->arena, (size_t)MAX(out->workers_expected, 0) + 1, sizeof(int));
	size_t w = 0;

	if (missing == NULL)
		return -ENOMEM;
	for (int i = 0; i < out->workers_expected; i++) {
		int rank = wished != NULL ? wished[i] : i;

		while (w < job->worker_cnt && job->ranks[w] < rank)
			w++;
		if (w >= job->worker_cnt || job->ranks[w] != rank)
			missing[out->missing_cnt++] = rank;
	}
	out->missing = missing;
	return 0;
}

int parts_describe_job(struct report *out, const struct localize_options *options,
		       const struct parts_job *job)
{
	/* The median of two numbers may lie between them: half of the workers have as many. */
	out->iterations = floor(job->iterations);
	out->iteration_ms = job->iteration_ns / 1e6;
	out->workers_analyzed = (int)job->worker_cnt;
	out->workers_expected = expected_cnt(options, job);
	out->world_size = MAX(job->world_size, out->workers_expected);
	out->job_id = parts_copy(out, job->job_id);
	out->rank_source = parts_copy(out, options->rank_source);
	out->trigger = options->trigger;
	if (out->trigger.present)
		out->trigger.kind = parts_copy(out, out->trigger.kind);
	if (out->job_id == NULL || out->rank_source == NULL)
		return -ENOMEM;
	return list_missing(out, options, job);
}

/* --- its workers --- */

/*
 * Share of the window in which a collective ran behind other work: collectives are in order of
 * start and may overlap.
 */
static double comm_hidden_frac(const struct fingerprint *fp)
{
	int64_t running_ns = 0, critical_ns = 0, end_ns = 0;

	if (fp->collective_cnt == 0 || fp->collective_dropped > 0)
		return NAN;
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];
		int64_t until_ns = MIN(c->start_ns + c->dur_ns, fp->window_ns);
		int64_t from_ns = MAX(c->start_ns, end_ns);

		running_ns += MAX(until_ns - from_ns, 0);
		critical_ns += c->critical_ns;
		end_ns = MAX(end_ns, until_ns);
	}
	return (double)MAX(running_ns - critical_ns, 0) / (double)fp->window_ns;
}

static int describe_worker(struct report *out, const struct fingerprint *fp, double iterations,
			   struct report_worker *ret)
{
	double *lengths = arena_calloc(&out->arena, fp->iteration_cnt + 1, sizeof(double));

	*ret = (struct report_worker){
		.rank = fp->rank,
		.host = parts_copy(out, fp->host),
		.source = parts_copy(out, fp->source),
		.window_ms = (double)fp->window_ns / 1e6,
		.iteration_ms = lengths,
		.iteration_cnt = fp->iteration_cnt,
		.first_step = fp->iteration_cnt > 0 ? fp->iterations[0].number : -1,
		.comm_hidden_frac = comm_hidden_frac(fp),
		.use = activity_use(fp, iterations),
	};
	if (lengths == NULL || ret->host == NULL || ret->source == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		lengths[i] = (double)fp->iterations[i].dur_ns / 1e6;
	for (int c = 0; c < CLASS_CNT; c++)
		ret->class_frac[c] = (double)fp->class_ns[c] / (double)fp->window_ns;
	return 0;
}

static int describe_origin(struct report *out, const struct job *job)
{
	_cleanup_free_ const struct fingerprint **fps = calloc(job->worker_cnt + 1, sizeof(*fps));

	if (fps == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++)
		fps[w] = job->workers[w].fp;
	return origin_fill(fps, job->worker_cnt, out);
}

int parts_describe_workers(struct report *out, const struct job *job)
{
	struct report_worker *list = arena_calloc(&out->arena, job->worker_cnt + 1, sizeof(*list));

	if (list == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (describe_worker(out, job->workers[w].fp, job->workers[w].iterations, &list[w]) <
		    0)
			return -ENOMEM;
	}
	out->workers = list;
	out->worker_cnt = job->worker_cnt;
	return describe_origin(out, job);
}

/* --- findings --- */

/* Its bound is what all other repairs leave, however much that is. */
static bool is_host_bound(const struct finding *f)
{
	return strcmp(f->id, cause_text(CAUSE_HOST_BOUND)->number) == 0;
}

/* Where it happens is not known, and what it costs is a bound: a known place is worth more. */
/* Of little confidence, since no link is slow (evidence.c). */
static bool is_much_communication(const struct finding *f)
{
	return f->all_workers && f->class == CLASS_COMM && f->confidence == CONFIDENCE_LOW &&
	       f->mu.value >= LINK_BUSY;
}

static double weighed_gain(const struct finding *f)
{
	bool placeless = strcmp(f->id, cause_text(CAUSE_RANDOM_STALLS)->number) == 0;

	return placeless ? PLACELESS_WEIGHT * f->gain_ms_per_iteration : f->gain_ms_per_iteration;
}

static int gain_cmp(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	bool x_low = x->confidence == CONFIDENCE_LOW, y_low = y->confidence == CONFIDENCE_LOW;

	/* What is sure comes before what may be, and what has a place before what has none. */
	if (x_low != y_low)
		return x_low ? 1 : -1;
	if (is_much_communication(x) != is_much_communication(y))
		return is_much_communication(x) ? 1 : -1;
	if (is_host_bound(x) != is_host_bound(y))
		return is_host_bound(x) ? 1 : -1;
	if (weighed_gain(x) < weighed_gain(y))
		return 1;
	if (weighed_gain(x) > weighed_gain(y))
		return -1;
	return strcmp(x->key, y->key);
}

/* What all workers have are functions of their program, but a loader is one however it waits. */
static bool is_one_fault(const struct finding *a, const struct finding *b)
{
	bool loader = strcmp(a->id, cause_text(CAUSE_SLOW_DATA)->number) == 0;

	return strcmp(a->id, b->id) == 0 && a->rank_cnt == b->rank_cnt &&
	       (!a->all_workers || loader) &&
	       memcmp(a->ranks, b->ranks, a->rank_cnt * sizeof(int)) == 0;
}

/*
 * Says what a finding has from others: its gain is more than the time in its function. A line that
 * says so of the finding alone is replaced by one of all.
 */
static int note_merged(struct report *out, struct finding *into, double more_ms)
{
	size_t cnt = into->evidence_cnt, kept = 0;
	const char **lines = arena_calloc(&out->arena, cnt + 2, sizeof(*lines));
	const char *line;

	if (lines == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (strstr(into->evidence[i], EVIDENCE_WIDER_WORDS) == NULL)
			lines[kept++] = into->evidence[i];
		else
			more_ms = into->gain_ms_per_iteration - into->time_ms_per_iteration;
	}
	line = arena_printf(&out->arena, EVIDENCE_WIDER_GAIN, more_ms);
	if (line == NULL)
		return -ENOMEM;
	lines[kept++] = line;
	into->evidence_cnt = kept;
	into->evidence = lines;
	return 0;
}

/* Together they save an iteration at most. */
static void add_gain(struct finding *into, const struct finding *other)
{
	double pct = into->gain_pct + other->gain_pct, fit = pct > 100 ? 100 / pct : 1;

	into->gain_ms_per_iteration =
		fit * (into->gain_ms_per_iteration + other->gain_ms_per_iteration);
	into->gain_pct = fit * pct;
}

/* One fault that shows in many functions of the same workers is one finding. */
static int merge_findings(struct report *out, struct finding *list, size_t *cnt_io)
{
	_cleanup_free_ double *own_ms = calloc(*cnt_io + 1, sizeof(*own_ms));
	size_t cnt = *cnt_io, kept = 0;
	int error = own_ms != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < cnt && error == 0; i++) {
		size_t same = 0;

		while (same < kept && !is_one_fault(&list[same], &list[i]))
			same++;
		if (same < kept) {
			add_gain(&list[same], &list[i]);
		} else {
			own_ms[kept] = list[i].gain_ms_per_iteration;
			list[kept++] = list[i];
		}
	}
	for (size_t i = 0; i < kept && error == 0; i++) {
		double more_ms = list[i].gain_ms_per_iteration - own_ms[i];

		if (more_ms >= MERGED_SHOWN_MS)
			error = note_merged(out, &list[i], more_ms);
	}
	*cnt_io = kept;
	return error;
}

static int rank_findings(struct report *out, struct finding *list, size_t cnt, double min_gain_pct)
{
	size_t kept = 0;
	int error;

	qsort(list, cnt, sizeof(*list), gain_cmp);
	error = merge_findings(out, list, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (list[i].gain_pct >= min_gain_pct)
			list[kept++] = list[i];
	}
	/* Merged ones have grown. */
	qsort(list, kept, sizeof(*list), gain_cmp);
	out->findings = list;
	out->finding_cnt = kept;
	return error;
}

int parts_make_findings(struct report *out, const accusations *list, double min_gain_pct,
			parts_compose *compose, void *arg)
{
	struct finding *findings = arena_calloc(&out->arena, list->cnt + 1, sizeof(*findings));
	size_t cnt = 0;
	int error = findings != NULL ? 0 : -ENOMEM;

	for (; cnt < list->cnt && error == 0; cnt++)
		error = compose(arg, &list->data[cnt], &findings[cnt]);
	return error == 0 ? rank_findings(out, findings, cnt, min_gain_pct) : error;
}
