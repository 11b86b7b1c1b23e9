/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/stalls/by_stalls.h"

#include "base/stats.h"
#include "base/text/number.h"
#include "localize/late/turns.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LINES_CNT 4
#define NAMES_SHOWN 3

struct name_count {
	const char *name;
	uint64_t cnt;
};

/* The stalls of the workers of one host, or of several. */
struct stall_sum {
	uint64_t cnt, inside_cnt, switch_cnt, named_cnt;
	int64_t longest_ns;
	size_t worker_cnt, held_cnt;  /* workers; those beside a thread that holds the lock */
	double iterations;	      /* of all workers */
	VEC(struct name_count) names; /* of operators */
};

#define NO_WORKER UINT32_MAX

struct look {
	const struct job *job;
	const struct blame *blame;
	struct arena *arena;
	uint32_t *struck; /* workers, ascending */
	size_t struck_cnt;
	struct stall_sum sum; /* of the struck */
	double *placed_ns; /* by worker, per iteration: stalls at a place that is no random one */
	double loss_ns;	   /* per iteration */
};

/* --- who stalls --- */

/* A host's name is not in every trace: then all workers count as workers of one. */
static uint32_t host_of(const struct job *job, uint32_t w)
{
	return job->workers[w].fp->host[0] != '\0' ? job->workers[w].host : 0;
}

/* The scheduler's own measurement says more. */
static bool is_known(const struct fingerprint *fp)
{
	return fp->stalls.known && fp->host_stats.run_delay_frac < 0;
}

static double stall_frac(const struct fingerprint *fp)
{
	double ns = 0;

	for (size_t i = 0; i < fp->stalls.iteration_cnt; i++)
		ns += (double)fp->stalls.iteration_ns[i];
	return ns / (double)fp->window_ns;
}

/* Another thread executes for so long that it may hold the interpreter's lock in most stalls. */
static bool is_held(const struct fingerprint *fp)
{
	return fp->host_stats.other_name != NULL && fp->host_stats.other_name[0] != '\0' &&
	       fp->host_stats.other_cpu_frac >= CAUSE_EXPLAINS * stall_frac(fp);
}

static int add_name(struct stall_sum *sum, const struct fp_stall_name *name)
{
	sum->named_cnt += name->cnt;
	vec_foreach(n, &sum->names) {
		if (strcmp(n->name, name->name) == 0) {
			n->cnt += name->cnt;
			return 0;
		}
	}
	return vec_push(&sum->names, (struct name_count){ name->name, name->cnt });
}

static int sum_add(struct stall_sum *sum, const struct job_worker *worker)
{
	const struct fp_stalls *stalls = &worker->fp->stalls;
	int error = 0;

	sum->worker_cnt++;
	sum->held_cnt += is_held(worker->fp);
	sum->cnt += stalls->cnt;
	sum->inside_cnt += stalls->inside_cnt;
	sum->switch_cnt += stalls->switch_cnt;
	sum->longest_ns = MAX(sum->longest_ns, stalls->longest_ns);
	sum->iterations += worker->iterations;
	for (size_t i = 0; i < stalls->name_cnt && error == 0; i++)
		error = add_name(sum, &stalls->names[i]);
	return error;
}

/* Their lengths are those of waits for the interpreter's lock. */
static bool are_switches(const struct stall_sum *sum)
{
	return (double)sum->switch_cnt >= STALL_SWITCH_FRAC * (double)sum->cnt;
}

/* Another thread of each of the workers holds the interpreter's lock meanwhile. */
static bool are_held(const struct stall_sum *sum)
{
	return sum->cnt >= STALLS_HELD_MIN && sum->held_cnt == sum->worker_cnt;
}

/* Many stalls, in many operators, and none of these has most of them. */
static bool is_random(const struct stall_sum *sum)
{
	uint64_t most = 0;

	vec_foreach(n, &sum->names)
		most = MAX(most, n->cnt);
	return sum->cnt >= STALLS_MIN && sum->names.cnt >= STALL_NAMES_MIN &&
	       (are_switches(sum) ||
		(double)sum->inside_cnt >= STALL_INSIDE_FRAC * (double)sum->cnt) &&
	       (double)most <= STALL_ONE_FRAC * (double)sum->named_cnt;
}

/* By worker: the next one of its host, NO_WORKER behind the last one. NULL: out of memory. */
static uint32_t *list_hosts(const struct look *look)
{
	size_t cnt = look->job->worker_cnt;
	_cleanup_free_ uint32_t *first = calloc(cnt + 1, sizeof(*first)); /* by host */
	uint32_t *next = arena_calloc(look->arena, cnt + 1, sizeof(*next));

	if (first == NULL || next == NULL)
		return NULL;
	for (size_t host = 0; host < cnt; host++)
		first[host] = NO_WORKER;
	for (size_t w = cnt; w-- > 0;) {
		uint32_t host = host_of(look->job, (uint32_t)w);

		next[w] = first[host];
		first[host] = (uint32_t)w;
	}
	return next;
}

/* Whether a host has stalls at random. first: of its workers; next: list_hosts(). */
static int judge_host(const struct job *job, uint32_t first, const uint32_t *next, bool *ret)
{
	struct stall_sum sum = { 0 };
	int error = 0;

	for (uint32_t w = first; w != NO_WORKER && error == 0; w = next[w]) {
		if (is_known(job->workers[w].fp))
			error = sum_add(&sum, &job->workers[w]);
	}
	*ret = error == 0 && (is_random(&sum) || are_held(&sum));
	vec_done(&sum.names);
	return error;
}

static int find_struck(struct look *look)
{
	const struct job *job = look->job;
	bool *random = arena_calloc(look->arena, job->worker_cnt + 1, sizeof(*random));
	bool *judged = arena_calloc(look->arena, job->worker_cnt + 1, sizeof(*judged));
	const uint32_t *next = list_hosts(look);
	int error = 0;

	look->struck = arena_calloc(look->arena, job->worker_cnt + 1, sizeof(*look->struck));
	if (random == NULL || judged == NULL || next == NULL || look->struck == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++) {
		uint32_t host = host_of(job, w);

		if (!judged[host])
			error = judge_host(job, w, next, &random[host]);
		judged[host] = true;
		if (error < 0 || !random[host] || !is_known(job->workers[w].fp) ||
		    stall_frac(job->workers[w].fp) < STALL_WORKER_FRAC)
			continue;
		look->struck[look->struck_cnt++] = w;
		error = sum_add(&look->sum, &job->workers[w]);
	}
	return error;
}

/* --- what it costs --- */

/* Time in stalls of the worker that has most, in one iteration, at most that iteration. */
static double most_ns(const struct look *look, size_t iteration)
{
	double most = 0;

	for (size_t i = 0; i < look->struck_cnt; i++) {
		const struct fingerprint *fp = look->job->workers[look->struck[i]].fp;

		if (iteration < fp->stalls.iteration_cnt)
			most = fmax(most, fmin((double)fp->stalls.iteration_ns[iteration],
					       (double)fp->iterations[iteration].dur_ns) -
						  look->placed_ns[look->struck[i]]);
	}
	return most;
}

/*
 * All wait for the worker that stalls longest. The median iteration: a first one that warms up, or
 * an occasion, is no lack of CPUs.
 */
static int find_loss(struct look *look)
{
	size_t cnt = SIZE_MAX;
	double *of;

	for (size_t i = 0; i < look->struck_cnt; i++)
		cnt = MIN(cnt, look->job->workers[look->struck[i]].fp->stalls.iteration_cnt);
	if (look->struck_cnt == 0)
		return 0;
	of = arena_calloc(look->arena, cnt + 1, sizeof(*of));
	if (of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		of[i] = most_ns(look, i);
	look->loss_ns = fmin(stats_median(of, cnt), look->job->iteration_ns);
	return 0;
}

/* --- places, and what else it explains --- */

static bool covers(const struct look *look, const struct accusation *a, uint32_t function)
{
	const struct job_function *f = &look->job->functions.data[function];

	if (a->strikes != NULL)
		return a->strikes[function];
	return a->frame == FRAME_NONE ||
	       (f->frame != FRAME_NONE && job_frame_below(look->job, f->frame, a->frame));
}

/* Per iteration, of all accused at the place that they are accused of. */
struct place_time {
	double stalled_ns, thread_ns;
};

static struct place_time time_at_place(const struct look *look, const struct accusation *a)
{
	struct place_time ret = { 0 };

	for (uint32_t i = 0; i < look->job->functions.cnt; i++) {
		const struct job_function *f = &look->job->functions.data[i];

		for (size_t k = 0; k < a->worker_cnt && covers(look, a, i); k++) {
			uint32_t w = a->workers[k];

			if (f->of[w] == NULL)
				continue;
			ret.stalled_ns +=
				(double)f->of[w]->stall_ns / look->job->workers[w].iterations;
			ret.thread_ns +=
				(double)f->of[w]->thread_ns / look->job->workers[w].iterations;
		}
	}
	return ret;
}

/* Time per iteration of one worker at the place without what it stalled there. */
static double worked_ns(const struct look *look, const struct accusation *a, uint32_t w)
{
	double sum = 0;

	for (uint32_t i = 0; i < look->job->functions.cnt; i++) {
		const struct fp_function *f = look->job->functions.data[i].of[w];

		if (f != NULL && covers(look, a, i))
			sum += (double)(f->thread_ns - MIN(f->stall_ns, f->thread_ns));
	}
	return sum / look->job->workers[w].iterations;
}

/*
 * Whether the accused work longer at the place than the others do, stalls aside. Who has more to do
 * there is also stalled there more often.
 */
static bool works_longer(const struct look *look, const struct accusation *a)
{
	double least = HUGE_VAL, others = 0;

	for (uint32_t w = 0; w < look->job->worker_cnt; w++) {
		double ns = worked_ns(look, a, w);

		if (accusation_has(a, w))
			least = fmin(least, ns);
		else
			others = fmax(others, ns);
	}
	return a->worker_cnt < look->job->worker_cnt && a->frame != FRAME_NONE &&
	       least - others >= STALL_WORKS_FRAC * look->job->iteration_ns;
}

static double all_stalls_ns(const struct look *look, uint32_t w)
{
	const struct fingerprint *fp = look->job->workers[w].fp;
	double sum = 0;

	for (size_t i = 0; i < fp->function_cnt; i++)
		sum += (double)fp->functions[i].stall_ns;
	return sum / look->job->workers[w].iterations;
}

/*
 * Whether the accused worker is long at the place in half of its iterations, and no other worker is ever:
 * where threads lack CPUs, that strikes all of them.
 */
static bool is_own_place(const struct look *look, const struct accusation *a)
{
	uint32_t w = a->workers[0];
	double mine = job_thread_ns(look->job, a->frame, w);

	for (uint32_t i = 0; i < look->job->worker_cnt; i++) {
		if (i != w && job_thread_ns(look->job, a->frame, i) > PLACE_OWN_OTHERS * mine)
			return false;
	}
	return a->function != FRAME_NONE &&
	       2 * (double)turns_count(look->job, w, a->function, mine / 2, NULL) >=
		       look->job->workers[w].iterations;
}

/*
 * Whether one worker is late by the place in most iterations, and stalls there more than anywhere else
 * or is alone there. Threads without a CPU stop wherever they are, but a lock is taken at one place.
 */
static bool is_place(const struct look *look, const struct accusation *a)
{
	uint32_t w = a->workers[0];

	return a->witness == WITNESS_BLAME && a->worker_cnt == 1 && a->frame != FRAME_NONE &&
	       a->class == CLASS_HOST && a->place_cnt == 0 &&
	       2 * (double)look->blame->workers[w].late_iterations >=
		       look->job->workers[w].iterations &&
	       (time_at_place(look, a).stalled_ns >= STALL_PLACE_FRAC * all_stalls_ns(look, w) ||
		is_own_place(look, a));
}

static int find_places(struct look *look, const accusations *list)
{
	look->placed_ns =
		arena_calloc(look->arena, look->job->worker_cnt + 1, sizeof(*look->placed_ns));
	if (look->placed_ns == NULL)
		return -ENOMEM;
	vec_foreach(a, list) {
		if (is_place(look, a))
			look->placed_ns[a->workers[0]] = fmax(look->placed_ns[a->workers[0]],
							      time_at_place(look, a).stalled_ns);
	}
	return 0;
}

/*
 * Stalls make functions longer, and others wait in collectives meanwhile. What is lost may be more
 * than the accused spent there, where it made several groups wait.
 */
static bool explains(const struct look *look, const struct accusation *a)
{
	struct place_time at = time_at_place(look, a);
	double lost_ns = a->own_ns;

	if (is_place(look, a))
		return false;
	if (a->class == CLASS_COMM)
		return a->worker_cnt >= look->struck_cnt && a->own_ns <= look->loss_ns;
	if (a->witness != WITNESS_BLAME)
		lost_ns *= (double)a->worker_cnt;
	return at.stalled_ns > 0 && at.stalled_ns >= CAUSE_EXPLAINS * fmin(lost_ns, at.thread_ns) &&
	       !works_longer(look, a);
}

static void drop_explained(const struct look *look, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		if (!explains(look, &list->data[i]))
			list->data[kept++] = list->data[i];
	}
	list->cnt = kept;
}

/* --- the accusation --- */

static int name_cmp(const void *a, const void *b)
{
	const struct name_count *x = a, *y = b;

	if (x->cnt != y->cnt)
		return x->cnt > y->cnt ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* "aten::mm (7), aten::copy_ (4)" */
static const char *names_text(struct look *look)
{
	const char *text = "";

	if (look->sum.names.cnt > 1)
		qsort(look->sum.names.data, look->sum.names.cnt, sizeof(*look->sum.names.data),
		      name_cmp);
	for (size_t i = 0; i < look->sum.names.cnt && i < NAMES_SHOWN && text != NULL; i++)
		text = arena_printf(look->arena, "%s%s%s (%llu)", text, i > 0 ? ", " : "",
				    look->sum.names.data[i].name,
				    (unsigned long long)look->sum.names.data[i].cnt);
	return text;
}

/* Of the typical worker. */
static int median_length(struct look *look, double *ret_ms)
{
	double *lengths = arena_calloc(look->arena, look->struck_cnt + 1, sizeof(*lengths));

	if (lengths == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < look->struck_cnt; i++)
		lengths[i] = (double)look->job->workers[look->struck[i]].fp->stalls.median_ns / 1e6;
	*ret_ms = stats_median(lengths, look->struck_cnt);
	return 0;
}

static int add_lines(struct look *look, struct use_sign *use)
{
	const char **lines = arena_calloc(look->arena, LINES_CNT, sizeof(*lines));
	const char *names = names_text(look);
	double median_ms;

	if (lines == NULL || names == NULL || median_length(look, &median_ms) < 0)
		return -ENOMEM;
	lines[0] = arena_printf(
		look->arena,
		"%s stalls per iteration and rank, median %s ms, longest %s ms, in functions "
		"that usually take less than %.1f ms",
		number_text((double)look->sum.cnt / look->sum.iterations).text,
		number_text(median_ms).text, number_text((double)look->sum.longest_ns / 1e6).text,
		STALL_USUAL_NS / 1e6);
	lines[1] = arena_printf(
		look->arena, "no one place: %llu of %llu are inside operators and calls%s%s",
		(unsigned long long)look->sum.inside_cnt, (unsigned long long)look->sum.cnt,
		names[0] != '\0' ? ", most often " : "", names);
	lines[2] = "they are neither waits for a device or another rank, nor collections";
	use->lines = lines;
	use->line_cnt = LINES_CNT;
	if (are_held(&look->sum)) {
		use->line_cnt = LINES_CNT - 1; /* the holder is evidence enough */
		return lines[0] != NULL && lines[1] != NULL ? 0 : -ENOMEM;
	}
	lines[3] = are_switches(&look->sum)
			   ? arena_printf(
				     look->arena,
				     "%llu last 5, 15, 25 ... ms: a thread of Python asks for the "
				     "interpreter's lock every 5 ms",
				     (unsigned long long)look->sum.switch_cnt)
			   : "how long the scheduler made threads wait was not recorded: it is not "
			     "certain that they lacked a CPU";
	return lines[0] != NULL && lines[1] != NULL && lines[3] != NULL ? 0 : -ENOMEM;
}

static int accuse(struct look *look, accusations *list)
{
	struct accusation a = {
		.witness = WITNESS_USE,
		.use = { .sign = are_switches(&look->sum) || are_held(&look->sum) ? USAGE_SWITCHES
										  : USAGE_STALLS,
			 .label = "random functions of the host" },
		.workers = look->struck,
		.worker_cnt = look->struck_cnt,
		.frame = FRAME_NONE,
		.function = FRAME_NONE,
		.class = CLASS_HOST,
		.unsure = true,
		.own_ns = look->loss_ns,
		.gain_ns = look->loss_ns,
	};
	int error = add_lines(look, &a.use);

	if (error < 0)
		return error;
	drop_explained(look, list);
	return vec_push(list, a);
}

int accuse_by_stalls(const struct job *job, const struct blame *blame, struct arena *arena,
		     accusations *list)
{
	struct look look = { .job = job, .blame = blame, .arena = arena };
	int error = find_struck(&look);

	if (error == 0)
		error = find_places(&look, list);
	if (error == 0)
		error = find_loss(&look);
	if (error == 0 && look.struck_cnt > 0 && look.loss_ns >= STALL_FRAC * job->iteration_ns)
		error = accuse(&look, list);
	vec_done(&look.sum.names);
	return error;
}
