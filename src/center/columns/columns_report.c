/* SPDX-License-Identifier: Apache-2.0 */
#include "center/columns/columns_report.h"

#include "base/stats.h"
#include "base/str.h"
#include "center/columns/columns_accuse.h"
#include "localize/absences.h"
#include "localize/compose.h"
#include "localize/parts.h"
#include "localize/pictures/pictures.h"
#include "localize/verdict/conclude.h"
#include "model/rankset.h"
#include "model/thresholds.h"

#include <errno.h>
#include <string.h>

/* One run; the report's arena owns what stays. */
struct run {
	const struct columns *columns;
	const struct localize_options *options;
	struct expect_table expect;
	struct arena arena; /* of what does not stay */
	accusations accusations;
	struct report *out;
	const char **notes;
	/* Workers whose whole fingerprints are looked at, ascending. */
	VEC(uint32_t) chosen;
	struct fingerprint *fps; /* of chosen */
	size_t fp_cnt;
	struct job job;	    /* of chosen */
	struct blame blame; /* empty: columns hold no collectives */
};

static void run_done(struct run *r)
{
	job_done(&r->job);
	for (size_t i = 0; i < r->fp_cnt; i++)
		fingerprint_done(&r->fps[i]);
	free(r->fps);
	vec_done(&r->chosen);
	vec_done(&r->accusations);
	arena_done(&r->arena);
}

#define NOTE(r, ...) parts_note((r)->out, (r)->notes, arena_printf(&(r)->out->arena, __VA_ARGS__))

/* --- accused workers --- */

static int find_accusations(struct run *r)
{
	struct accuse_options options =
		parts_accuse_options(r->options, &r->expect, r->columns->iteration_ns);
	int error = columns_accuse_difference(r->columns, &options, &r->arena, &r->accusations);

	if (error == 0)
		error = columns_accuse_expectation(r->columns, &options, &r->arena,
						   &r->accusations);
	return error;
}

/* --- fetched workers --- */

static int index_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Evenly over the accused of each accusation, and over all workers. */
static int choose_workers(struct run *r)
{
	size_t all = r->columns->workers.cnt, peers = MIN(all, (size_t)COLUMNS_PEERS), kept = 0;

	vec_foreach(a, &r->accusations) {
		size_t cnt = MIN(a->worker_cnt, (size_t)COLUMNS_ACCUSED);

		for (size_t i = 0; i < cnt; i++) {
			if (vec_push(&r->chosen, a->workers[i * a->worker_cnt / cnt]) < 0)
				return -ENOMEM;
		}
	}
	for (size_t i = 0; i < peers; i++) {
		if (vec_push(&r->chosen, (uint32_t)(i * all / peers)) < 0)
			return -ENOMEM;
	}
	qsort(r->chosen.data, r->chosen.cnt, sizeof(*r->chosen.data), index_cmp);
	for (size_t i = 0; i < r->chosen.cnt; i++) {
		if (kept == 0 || r->chosen.data[kept - 1] != r->chosen.data[i])
			r->chosen.data[kept++] = r->chosen.data[i];
	}
	r->chosen.cnt = kept;
	return 0;
}

static int fetch_workers(struct run *r, columns_fetch *fetch, void *arg)
{
	const struct fingerprint **list = arena_calloc(&r->arena, r->chosen.cnt + 1, sizeof(*list));
	int error;

	r->fps = calloc(r->chosen.cnt + 1, sizeof(*r->fps));
	r->blame.workers = arena_calloc(&r->arena, r->chosen.cnt + 1, sizeof(*r->blame.workers));
	if (list == NULL || r->fps == NULL || r->blame.workers == NULL)
		return -ENOMEM;
	for (; r->fp_cnt < r->chosen.cnt; r->fp_cnt++) {
		const struct columns_worker *w =
			&r->columns->workers.data[r->chosen.data[r->fp_cnt]];

		error = fetch(arg, w->tag, &r->fps[r->fp_cnt]);
		if (error < 0)
			return error;
		list[r->fp_cnt] = &r->fps[r->fp_cnt];
	}
	error = job_init(&r->job, list, r->fp_cnt);
	for (size_t i = 0; i < r->fp_cnt && error == 0; i++)
		r->job.workers[i].group = r->columns->workers.data[r->chosen.data[i]].group;
	r->job.group_cnt = (uint32_t)r->columns->group_first.cnt - 1;
	r->job.iteration_ns = r->columns->iteration_ns;
	return error;
}

/* --- findings --- */

static uint32_t frame_in_job(const struct run *r, uint32_t frame)
{
	uint32_t found = frame == FRAME_NONE ? IDMAP_NONE
					     : idmap_get(&r->job.frame_by_key,
							 r->columns->frames.data[frame].key.lo);

	return found == IDMAP_NONE ? FRAME_NONE : found;
}

/* The same accusation of those that are looked at. */
static int narrow(struct run *r, const struct accusation *a, struct accusation *ret)
{
	const struct columns_function *f = &r->columns->functions.data[a->function];
	uint32_t *workers = arena_calloc(&r->arena, r->chosen.cnt + 1, sizeof(*workers));

	if (workers == NULL)
		return -ENOMEM;
	*ret = *a;
	ret->workers = workers;
	ret->worker_cnt = 0;
	ret->frame = frame_in_job(r, a->frame);
	ret->function = job_function_find(&r->job, frame_in_job(r, f->frame), f->class);
	for (uint32_t i = 0; i < r->chosen.cnt; i++) {
		if (accusation_has(a, r->chosen.data[i]))
			workers[ret->worker_cnt++] = i;
	}
	return 0;
}

static int text_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int set_hosts(struct run *r, const struct accusation *a, struct finding *f)
{
	const char **hosts = arena_calloc(&r->out->arena, a->worker_cnt + 1, sizeof(*hosts));
	size_t kept = 0;

	if (hosts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const char *host = r->columns->workers.data[a->workers[i]].host;

		/* Neighbors by rank share their host. */
		if (host[0] != '\0' && (kept == 0 || strcmp(hosts[kept - 1], host) != 0))
			hosts[kept++] = host;
	}
	qsort(hosts, kept, sizeof(*hosts), text_cmp);
	f->host_cnt = 0;
	for (size_t i = 0; i < kept; i++) {
		if (i > 0 && strcmp(hosts[i], hosts[i - 1]) == 0)
			continue;
		hosts[f->host_cnt++] = hosts[i];
	}
	for (size_t i = 0; i < f->host_cnt; i++) {
		hosts[i] = parts_copy(r->out, hosts[i]);
		if (hosts[i] == NULL)
			return -ENOMEM;
	}
	f->hosts = hosts;
	return 0;
}

/* The title says who, then ": " and what. */
static int set_title(struct run *r, const struct accusation *a, struct finding *f)
{
	const char *what = strchr(f->title, ':');
	struct str who = { 0 };

	rankset_format(&who, f->ranks, f->rank_cnt);
	f->title = arena_printf(&r->out->arena, "%s%s%s%s",
				f->all_workers	  ? "all ranks"
				: f->rank_cnt > 1 ? "ranks "
						  : "rank ",
				f->all_workers ? "" : str_borrow(&who),
				a->rotates ? ", taking turns" : "", what != NULL ? what : "");
	str_done(&who);
	return f->title != NULL && str_error(&who) == 0 ? 0 : -ENOMEM;
}

/* All of the accused, where the finding has only those that were looked at. */
static int widen(struct run *r, const struct accusation *a, struct finding *f)
{
	int *ranks = arena_calloc(&r->out->arena, a->worker_cnt + 1, sizeof(*ranks));
	int error;

	if (ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++)
		ranks[i] = r->columns->workers.data[a->workers[i]].rank;
	f->ranks = ranks;
	f->rank_cnt = a->worker_cnt;
	f->all_workers = a->worker_cnt == r->columns->workers.cnt;
	error = set_hosts(r, a, f);
	return error == 0 ? set_title(r, a, f) : error;
}

static int compose(void *arg, const struct accusation *a, struct finding *ret)
{
	struct run *r = arg;
	struct accusation some;
	int error = narrow(r, a, &some);

	if (error == 0)
		error = compose_finding(&r->job, &r->blame, &some, &r->expect, &r->out->arena, ret);
	return error == 0 ? widen(r, a, ret) : error;
}

static int make_findings(struct run *r)
{
	return parts_make_findings(r->out, &r->accusations, r->options->min_gain_pct, compose, r);
}

/* --- what the report says about its input --- */

/* The first that is not empty, of the fetched workers. */
static const char *find_job_id(const struct run *r)
{
	for (size_t i = 0; i < r->fp_cnt; i++) {
		if (r->fps[i].job_id[0] != '\0')
			return r->fps[i].job_id;
	}
	return "";
}

static int describe_job(struct run *r)
{
	size_t cnt = r->columns->workers.cnt;
	_cleanup_free_ double *scratch = calloc(cnt + 1, sizeof(*scratch));
	_cleanup_free_ int *ranks = calloc(cnt + 1, sizeof(*ranks));
	struct parts_job job = {
		.ranks = ranks,
		.worker_cnt = cnt,
		.input_cnt = cnt + r->options->failure_cnt,
		.iteration_ns = r->columns->iteration_ns,
		.job_id = r->options->job_id != NULL ? r->options->job_id : find_job_id(r),
	};

	if (scratch == NULL || ranks == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < cnt; w++) {
		ranks[w] = r->columns->workers.data[w].rank;
		scratch[w] = (double)r->columns->workers.data[w].iterations;
		job.world_size = MAX(job.world_size, r->columns->workers.data[w].world_size);
	}
	job.iterations = stats_middle(scratch, cnt);
	return parts_describe_job(r->out, r->options, &job);
}

/* Only workers whose whole fingerprints were fetched: a million cannot be drawn. */
static int describe_workers(struct run *r)
{
	return parts_describe_workers(r->out, &r->job);
}

static int fill_pictures(struct run *r)
{
	return pictures_fill(&r->job, NULL, r->out);
}

static int copy_failures(struct run *r)
{
	return parts_copy_failures(r->out, r->options);
}

/* Only of the fetched workers. */
static int list_absences(struct run *r)
{
	return absences_list(&r->job, r->out);
}

static int note_groups(struct run *r)
{
	size_t groups = r->columns->group_first.cnt - 1;

	if (groups <= 1)
		return 0;
	return NOTE(r, "%zu groups of workers do different work and were compared apart", groups);
}

static int add_notes(struct run *r)
{
	int error = parts_copy_notes(r->out, r->notes, r->options);

	if (error == 0)
		error = NOTE(r,
			     "localized by columns: %zu workers; who made whom wait was not "
			     "computed, and times, evidence, lost records and absent samples are "
			     "of %zu of them",
			     r->columns->workers.cnt, r->fp_cnt);
	if (error == 0)
		error = parts_note_drops(r->out, r->notes, &r->job);
	return error == 0 ? note_groups(r) : error;
}

/* The worker that lost the largest share of its records. */
static const struct columns_worker *find_lossy(const struct run *r)
{
	const struct columns_worker *ret = &r->columns->workers.data[0];

	vec_foreach(w, &r->columns->workers) {
		if (w->lost_frac > ret->lost_frac)
			ret = w;
	}
	return ret;
}

static int decide(struct run *r)
{
	const struct columns_worker *lossy = find_lossy(r);
	const struct conclude_facts facts = { .unmatched_rank = -1,
					      .lossy_rank = lossy->rank,
					      .lost_frac = lossy->lost_frac,
					      .min_gain_pct = r->options->min_gain_pct,
					      .late.rank = -1,
					      .chance.rank = -1,
					      .tail.rank = -1,
					      .pace.rank = -1 };

	return conclude(r->out, &facts);
}

static int run_all(struct run *r, columns_fetch *fetch, void *arg)
{
	static int (*const steps[])(
		struct run *) = { describe_job,	 describe_workers, copy_failures, list_absences,
				  make_findings, fill_pictures,	   add_notes,	  decide };
	int error = find_accusations(r);

	if (error == 0)
		error = choose_workers(r);
	if (error == 0)
		error = fetch_workers(r, fetch, arg);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && error == 0; i++)
		error = steps[i](r);
	return error;
}

int columns_localize(const struct columns *columns, const struct localize_options *options,
		     columns_fetch *fetch, void *arg, struct report *ret, struct err *err)
{
	struct report out = { 0 };
	struct run r = { .columns = columns, .options = options, .out = &out };
	int error;

	arena_init(&out.arena);
	arena_init(&r.arena);
	r.expect = options->expect != NULL ? *options->expect : expect_defaults();
	r.notes = arena_calloc(&out.arena, PARTS_MAX_NOTES, sizeof(*r.notes));
	error = r.notes != NULL ? run_all(&r, fetch, arg) : -ENOMEM;
	out.notes = r.notes;
	run_done(&r);
	if (error < 0) {
		arena_done(&out.arena);
		return err_set(err, -error, "%s while comparing %zu workers", strerror(-error),
			       columns->workers.cnt);
	}
	*ret = out;
	return 0;
}
