/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"
#include "localize/late/chance.h"
#include "localize/late/work.h"
#include "localize/witness/suspects.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>

/* The losses of all workers with matched collectives. */
static struct stats_others losses_of(const struct job *job, const struct blame *blame,
				     double *scratch)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < job->worker_cnt; i++) {
		if (blame->workers[i].matched)
			scratch[cnt++] = chance_own_loss(blame, i);
	}
	return stats_others_of(scratch, cnt);
}

/*
 * Pauses that may hit any worker at any time: a collection, or one place on the
 * host that passes at once otherwise. Compute that jitters is not one.
 */
static bool can_rotate(const struct job *job, const struct ledger *l, uint32_t place)
{
	double single = 0;
	uint8_t class = CLASS_COMPUTE;

	if (place == FRAME_NONE)
		return false;
	if (job->frames.data[place].kind == KIND_GC)
		return true;
	for (uint32_t f = 0; f < job->functions.cnt; f++) {
		if (l->of_function[f] > single &&
		    job_frame_below(job, job->functions.data[f].frame, place)) {
			single = l->of_function[f];
			class = job->functions.data[f].class;
		}
	}
	return (class == CLASS_HOST || class == CLASS_IDLE) && single >= LEDGER_MOST * l->listed;
}

static void fill_ledgers(struct suspects *s, const struct blame *blame)
{
	vec_foreach(why, &blame->why)
		ledger_add(&s->of[why->worker], why->function, why->ns);
	suspects_find_places(s);
}

/* By the sizes of its tensors, which noise does not change: a larger batch, more tokens. */
static bool has_more_work(const struct suspects *s, uint32_t w)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < s->job->worker_cnt; i++) {
		double ratio = s->job->workers[i].group == s->job->workers[w].group && i != w
				       ? work_elements_ratio(s->job, w, i)
				       : (double)NAN;

		if (!isnan(ratio))
			s->scratch[cnt++] = ratio;
	}
	return cnt > 0 && stats_median(s->scratch, cnt) >= BLAME_MORE_WORK;
}

/*
 * Whether a worker is at its place for much longer than the others, always: most of it is hidden behind
 * the device, or it is late in each iteration. Beside those that it makes late, it has no lead.
 */
static bool is_lasting(const struct suspects *s, const struct blame *blame, uint32_t w, double loss)
{
	uint32_t place = suspects_main_place(s, w);
	double mine = job_thread_ns(s->job, place, w), iterations = s->job->workers[w].iterations;
	size_t cnt = 0;

	for (uint32_t i = 0; i < s->job->worker_cnt; i++) {
		if (i != w)
			s->scratch[cnt++] = job_thread_ns(s->job, place, i);
	}
	return (double)blame->workers[w].late_iterations >= iterations ||
	       mine - stats_median(s->scratch, cnt) >= PLACE_LASTS * loss / iterations;
}

/* Time per iteration of a worker's training thread in the function. */
static double thread_ns(const struct job *job, uint32_t function, uint32_t w)
{
	const struct fp_function *f = job->functions.data[function].of[w];

	return f != NULL ? (double)f->thread_ns / job->workers[w].iterations : 0;
}

/*
 * Whether most of what a worker loses beyond the typical one is in a function of the host in which no other
 * worker ever is, for as long: on a crowded host the others are late, too, but not there.
 */
static bool has_own_place(const struct suspects *s, const struct blame *blame, uint32_t w,
			  double loss, double typical)
{
	double iterations = s->job->workers[w].iterations;
	double least = CAUSE_EXPLAINS * (loss - typical);

	if (s->place_cnt[w] == 0 || loss < PLACE_OWN_FRAC * s->job->iteration_ns * iterations)
		return false;
	for (uint32_t f = 0; f < s->job->functions.cnt; f++) {
		double mine = thread_ns(s->job, f, w), others = 0;

		if (s->job->functions.data[f].class != CLASS_HOST ||
		    blame_why_ns(blame, w, f) < least || mine * iterations < least)
			continue;
		for (uint32_t i = 0; i < s->job->worker_cnt; i++)
			others = i != w ? fmax(others, thread_ns(s->job, f, i)) : others;
		if (others <= PLACE_OWN_OTHERS * mine)
			return true;
	}
	return false;
}

/* Whether a worker's own loss is beyond that of the others and of chance. */
static bool stands_out(const struct suspects *s, const struct blame *blame, uint32_t w,
		       const struct stats_others *losses, double total_ns)
{
	double loss = chance_own_loss(blame, w), iterations = s->job->workers[w].iterations;
	double typical = stats_others_median(losses, loss);
	double limit = s->options->min_gain_frac * s->job->iteration_ns * iterations;

	if (!blame->workers[w].matched || loss - typical < limit ||
	    (loss < BLAME_STANDS_OUT * typical && !has_own_place(s, blame, w, loss, typical)) ||
	    loss < BLAME_SHARE_FRAC * total_ns)
		return false;
	if (iterations < 2 && loss < BLAME_SINGLE_FRAC * total_ns)
		return false;
	if (iterations > 2 && iterations < BLAME_ONCE_CNT &&
	    blame->workers[w].late_iterations < 2 &&
	    loss < BLAME_ONCE_FRAC * s->job->iteration_ns * iterations)
		return false;
	if (s->place_cnt[w] > 0 && (loss >= PLACE_SURE_FRAC * s->job->iteration_ns * iterations ||
				    is_lasting(s, blame, w, loss)))
		return true;
	return (s->place_cnt[w] > 0 || suspects_spread_matters(s, w, loss)) &&
	       (!chance_explains(s->job, blame, w) || has_more_work(s, w));
}

/* Lost time per iteration of all unaccused workers whose main place is that of w. */
static double turn_loss(const struct suspects *s, uint32_t w, size_t *ret_cnt)
{
	uint32_t place = suspects_main_place(s, w);
	double sum = 0;

	*ret_cnt = 0;
	for (uint32_t i = 0; i < s->job->worker_cnt; i++) {
		if (s->used[i] || s->stands_out[i] || suspects_main_place(s, i) != place ||
		    s->of[i].total <= 0)
			continue;
		sum += ledger_at(&s->of[i], place) / s->job->workers[i].iterations;
		(*ret_cnt)++;
	}
	return sum;
}

/* Groups that meet beside each other lose the same time: its sum is no gain. */
static int limit_gain(const struct job *job, const struct blame *blame, struct accusation *a)
{
	double cost_ns;
	int error = blame_cost(job, blame, a->workers, a->worker_cnt, &cost_ns);

	if (error == 0 && a->worker_cnt > 1)
		a->gain_ns = fmin(a->gain_ns, cost_ns);
	return error;
}

/* few: by place + 1 (0: everywhere): whether turn_loss() is too small there. */
static int accuse_turns(struct suspects *s, const struct blame *blame, uint32_t w, bool *few,
			accusations *out)
{
	double need = fmax(BLAME_ROTATE_FRAC, s->options->min_gain_frac) * s->job->iteration_ns;
	uint32_t place = suspects_main_place(s, w);
	size_t cnt;
	int error;

	if (s->used[w] || s->stands_out[w] || s->job->workers[w].iterations < 2 || few[place + 1] ||
	    !can_rotate(s->job, &s->of[w], place))
		return 0;
	few[place + 1] = turn_loss(s, w, &cnt) < need || cnt < 2;
	if (few[place + 1])
		return 0;
	error = suspects_accuse_at(s, w, place, true, out);
	if (error == 0)
		error = limit_gain(s->job, blame, &out->data[out->cnt - 1]);
	if (error == 0 && out->data[out->cnt - 1].gain_ns < need)
		out->cnt--;
	for (uint32_t i = 0; i < s->job->worker_cnt; i++)
		s->used[i] |= !s->stands_out[i] && suspects_main_place(s, i) == place;
	return error;
}

/* The longest time a worker waited for the accused, per iteration. */
static int longest_wait(const struct suspects *s, const struct blame *blame,
			const struct accusation *a, double *ret_ns)
{
	_cleanup_free_ double *accused = calloc(s->job->worker_cnt + 1, sizeof(*accused));
	double *waited = s->scratch, longest = 0;

	if (accused == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->worker_cnt; i++)
		accused[a->workers[i]] = 1;
	for (size_t w = 0; w < s->job->worker_cnt; w++)
		waited[w] = 0;
	blame_sum_waits(blame, accused, waited);
	for (size_t w = 0; w < s->job->worker_cnt; w++)
		longest = fmax(longest, waited[w] / s->job->workers[w].iterations);
	*ret_ns = longest;
	return 0;
}

/*
 * A worker late in one group is late in the next for the same reason, and others wait there
 * too: the time is lost once. The gain is at most the longest wait for the worker.
 */
static int count_once(const struct suspects *s, const struct blame *blame, struct accusation *a)
{
	double longest, factor;
	int error = longest_wait(s, blame, a, &longest);

	if (error < 0 || longest <= 0 || longest >= a->gain_ns)
		return error;
	factor = longest / a->gain_ns;
	a->gain_ns *= factor;
	a->own_ns *= factor;
	a->main_ns *= factor;
	return 0;
}

/* s: its ledgers are empty. */
static int find_and_accuse(struct suspects *s, const struct blame *blame, accusations *out)
{
	const struct job *job = s->job;
	size_t first = out->cnt;
	struct stats_others losses;
	double total_ns = 0;
	bool *few;
	int error;

	fill_ledgers(s, blame);
	for (uint32_t w = 0; w < job->worker_cnt; w++)
		total_ns += chance_own_loss(blame, w);
	few = arena_calloc(&s->own, job->frames.cnt + 1, sizeof(*few));
	if (few == NULL)
		return -ENOMEM;
	losses = losses_of(job, blame, s->scratch);
	for (uint32_t w = 0; w < job->worker_cnt; w++)
		s->stands_out[w] = stands_out(s, blame, w, &losses, total_ns);
	error = suspects_accuse(s, out);
	for (size_t i = first; i < out->cnt && error == 0; i++) {
		error = count_once(s, blame, &out->data[i]);
		if (error == 0)
			error = limit_gain(job, blame, &out->data[i]);
	}
	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++)
		error = accuse_turns(s, blame, w, few, out);
	return error;
}

int accuse_by_blame(const struct job *job, const struct blame *blame,
		    const struct accuse_options *options, struct arena *arena, accusations *out)
{
	struct suspects s;
	int error = suspects_init(&s, job, options, arena);

	if (error == 0)
		error = find_and_accuse(&s, blame, out);
	suspects_done(&s);
	return error;
}
