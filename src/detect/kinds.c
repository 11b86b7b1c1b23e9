/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/kinds.h"

#include "model/thresholds.h"

#include <math.h>

/* Of the job's recent time: with less in the other kinds the job's pace is that of its kind. */
#define ONE_KIND_FRAC 0.99

struct kind {
	struct pace *pace;
	double spent_ns; /* recent time, older time counts less */
	bool slow;
};

/* Long iterations, until it is known whether they belong to the job. */
struct phases {
	double first_ns[PHASE_FIRST_CNT]; /* ascending */
	uint32_t first_cnt;
	double usual_ns;	      /* of other iterations; 0: unknown */
	uint64_t watched;	      /* iterations since usual_ns is known */
	uint64_t runs;		      /* of long ones without a usual one between them */
	uint64_t first_at, second_at; /* when these runs began; of watched */
	uint64_t last_at;	      /* iteration number of the latest */
	double distance;	      /* iterations from one to the next, a moving average */
	double all_ns, long_ns;	      /* of all iterations; of the long ones */
	double run_ns, longest_ns;    /* of the current run; of the longest one */
	bool within;		      /* the latest iteration was long */
	bool known, apart;
};

/* An iteration, kept until it is known whether long ones are a kind of their own. */
struct sample {
	int64_t time_ns;
	uint32_t kind;
	bool longer;
};

struct kinds {
	uint32_t cnt; /* without the one of long iterations, which is last */
	double slow_frac;
	uint64_t iterations;
	double spent_cnt; /* iterations in the kinds' spent_ns */
	struct phases phases;
	struct sample early[PHASE_KEPT_CNT]; /* the first ones */
	uint32_t early_cnt;
	uint32_t shown; /* the kind that kinds_look() shows */
	bool slow;
	struct kind kinds[];
};

struct kinds *kinds_new(const struct pace_config *config, uint32_t cnt)
{
	struct kinds *kinds = calloc(1, sizeof(*kinds) + (cnt + 1) * sizeof(struct kind));
	struct pace_config of_long = *config;

	if (kinds == NULL)
		return NULL;
	/* Of those there are few: a slowdown of rollouts must show within some of them. */
	of_long.window_cnt = MIN(config->window_cnt, PHASE_WINDOW_CNT);
	of_long.warmup_cnt = MIN(config->warmup_cnt, 1u);
	of_long.clear_factor = (double)INFINITY; /* ten rollouts of random length may all be long */
	kinds->cnt = cnt;
	kinds->slow_frac = config->slow_frac;
	for (uint32_t i = 0; i <= cnt; i++) {
		kinds->kinds[i].pace = pace_new(i < cnt ? config : &of_long);
		if (kinds->kinds[i].pace == NULL)
			return kinds_free(kinds);
	}
	return kinds;
}

struct kinds *kinds_free(struct kinds *kinds)
{
	for (uint32_t i = 0; kinds != NULL && i <= kinds->cnt; i++)
		pace_free(kinds->kinds[i].pace);
	free(kinds);
	return NULL;
}

static void reset_paces(struct kinds *kinds)
{
	for (uint32_t i = 0; i <= kinds->cnt; i++) {
		pace_reset(kinds->kinds[i].pace);
		kinds->kinds[i].slow = false;
		kinds->kinds[i].spent_ns = 0;
	}
	kinds->slow = false;
	kinds->spent_cnt = 0;
	kinds->shown = 0;
}

void kinds_reset(struct kinds *kinds)
{
	reset_paces(kinds);
	kinds->phases = (struct phases){ 0 };
	kinds->iterations = 0;
	kinds->early_cnt = 0;
}

/* --- long iterations --- */

/*
 * The lower quartile of the first iterations: the first one alone may be a rollout, and a usual
 * time that falls slowly from there hides the next rollouts, so that they seem to begin later.
 */
static void learn_usual(struct phases *phases, double time_ns)
{
	uint32_t at = phases->first_cnt++;

	for (; at > 0 && phases->first_ns[at - 1] > time_ns; at--)
		phases->first_ns[at] = phases->first_ns[at - 1];
	phases->first_ns[at] = time_ns;
	if (phases->first_cnt == PHASE_FIRST_CNT)
		phases->usual_ns = phases->first_ns[PHASE_FIRST_CNT / 4];
}

/* Whether an iteration is long; learns what is usual. */
static bool is_long(struct phases *phases, double time_ns)
{
	bool longer = phases->usual_ns > 0 && time_ns > PHASE_FACTOR * phases->usual_ns;

	if (phases->first_cnt < PHASE_FIRST_CNT)
		learn_usual(phases, time_ns);
	else
		phases->usual_ns += (fmin(time_ns, 2 * phases->usual_ns) - phases->usual_ns) / 16;
	return longer;
}

/*
 * Long iterations belong to the job if they came from the beginning on, again and again with usual
 * ones between them, and take their share, the longest run of them apart: a pause by chance in the
 * beginning and a slowdown that lasts are no phases.
 */
static bool are_phases(const struct phases *phases)
{
	double others_ns = phases->all_ns - phases->longest_ns;

	return phases->first_at <= phases->watched / 4 &&
	       phases->second_at <= phases->watched / 2 &&
	       phases->long_ns - phases->longest_ns > PHASE_SHARE * others_ns;
}

static void note_run(struct phases *phases, bool begins, double time_ns)
{
	phases->run_ns = begins ? time_ns : phases->run_ns + time_ns;
	phases->longest_ns = fmax(phases->longest_ns, phases->run_ns);
	phases->long_ns += time_ns;
	phases->runs += begins;
	if (begins && phases->runs == 1)
		phases->first_at = phases->watched;
	if (begins && phases->runs == 2)
		phases->second_at = phases->watched;
}

/* Whether this iteration shows that the job has phases. */
static bool learn_phases(struct phases *phases, bool longer, double time_ns)
{
	bool begins = longer && !phases->within;

	if (phases->usual_ns <= 0 || phases->known)
		return false;
	phases->within = longer;
	phases->watched++;
	phases->all_ns += time_ns;
	if (!longer)
		return false;
	note_run(phases, begins, time_ns);
	if (phases->runs < PHASE_SEEN_CNT)
		return false;
	phases->known = true;
	phases->apart = are_phases(phases);
	return phases->apart;
}

static void note_distance(struct kinds *kinds)
{
	struct phases *phases = &kinds->phases;
	double distance = (double)(kinds->iterations - phases->last_at);

	if (phases->last_at > 0 && phases->distance == 0)
		phases->distance = distance;
	else if (phases->last_at > 0)
		phases->distance += (distance - phases->distance) / 16;
	phases->last_at = kinds->iterations;
}

uint32_t kinds_cycle(const struct kinds *kinds)
{
	if (!kinds->phases.apart)
		return 1;
	return (uint32_t)fmin(fmax(kinds->phases.distance, 1), KINDS_CYCLE_MAX);
}

/* --- the job --- */

/* The share of the job's time by which a kind exceeds its baseline. */
static double excess_frac(const struct kind *kind, double all_ns)
{
	struct pace_view view;

	pace_look(kind->pace, &view);
	if (!view.ready || view.mean_ns <= view.baseline_ns || all_ns <= 0)
		return 0;
	return kind->spent_ns / all_ns * (1 - (double)view.baseline_ns / (double)view.mean_ns);
}

/* The same of a kind that is slow; else 0. */
static double lost_frac(const struct kind *kind, double all_ns)
{
	struct pace_view view;

	pace_look(kind->pace, &view);
	return view.slow ? excess_frac(kind, all_ns) : 0;
}

static double all_spent(const struct kinds *kinds)
{
	double sum = 0;

	for (uint32_t i = 0; i <= kinds->cnt; i++)
		sum += kinds->kinds[i].spent_ns;
	return sum;
}

/* A kind counts as slow from when it loses enough until its pace is as before. */
static void judge(struct kinds *kinds)
{
	double all_ns = all_spent(kinds), most_lost = 0, most_ns = 0;
	double enough = kinds->slow_frac / (1 + kinds->slow_frac) / 2;
	uint32_t largest = 0, worst = 0;

	kinds->slow = false;
	for (uint32_t i = 0; i <= kinds->cnt; i++) {
		struct kind *kind = &kinds->kinds[i];
		double lost = lost_frac(kind, all_ns);

		kind->slow = lost > 0 && (kind->slow || lost >= enough);
		kinds->slow = kinds->slow || kind->slow;
		if (kind->slow && lost > most_lost) {
			most_lost = lost;
			worst = i;
		}
		if (i < kinds->cnt && kind->spent_ns > most_ns) {
			most_ns = kind->spent_ns;
			largest = i;
		}
	}
	kinds->shown = kinds->slow ? worst : largest;
}

static void spend(struct kinds *kinds, uint32_t kind, double time_ns)
{
	for (uint32_t i = 0; i <= kinds->cnt; i++)
		kinds->kinds[i].spent_ns *= 1 - 1.0 / KIND_SHARE_CNT;
	kinds->kinds[kind].spent_ns += time_ns;
	kinds->spent_cnt = kinds->spent_cnt * (1 - 1.0 / KIND_SHARE_CNT) + 1;
}

static void add_to_kind(struct kinds *kinds, const struct sample *sample)
{
	uint32_t kind = sample->longer && kinds->phases.apart ? kinds->cnt : sample->kind;

	(void)pace_add(kinds->kinds[kind].pace, sample->time_ns);
	spend(kinds, kind, (double)sample->time_ns);
}

/*
 * Gives each iteration to its kind anew. What is kept was before anything that lasts: a job that
 * is slow by now is slow beside it.
 */
static void sort_anew(struct kinds *kinds)
{
	double limit_ns = PHASE_FACTOR * kinds->phases.first_ns[PHASE_FIRST_CNT / 4];

	reset_paces(kinds);
	for (uint32_t i = 0; i < kinds->early_cnt; i++) {
		struct sample *sample = &kinds->early[i];

		/* When the first ones came it was not known what is usual. */
		if (i < PHASE_FIRST_CNT)
			sample->longer = (double)sample->time_ns > limit_ns;
		add_to_kind(kinds, sample);
		judge(kinds);
	}
}

enum pace_result kinds_add(struct kinds *kinds, uint32_t kind, int64_t time_ns)
{
	struct sample sample = { .time_ns = time_ns, .kind = kind };
	bool was_slow = kinds->slow;

	sample.longer = is_long(&kinds->phases, (double)time_ns);
	if (kind >= kinds->cnt)
		return PACE_NONE;
	kinds->iterations++;
	if (sample.longer)
		note_distance(kinds);
	if (learn_phases(&kinds->phases, sample.longer, (double)time_ns))
		sort_anew(kinds);
	if (!kinds->phases.known && kinds->early_cnt < PHASE_KEPT_CNT)
		kinds->early[kinds->early_cnt++] = sample;
	add_to_kind(kinds, &sample);
	judge(kinds);
	if (kinds->slow == was_slow)
		return PACE_NONE;
	return kinds->slow ? PACE_SLOW : PACE_CLEARED;
}

bool kinds_accept(struct kinds *kinds)
{
	bool accepted = false;

	for (uint32_t i = 0; i <= kinds->cnt; i++) {
		if (kinds->kinds[i].slow)
			accepted = pace_accept(kinds->kinds[i].pace) || accepted;
	}
	judge(kinds);
	return accepted;
}

/* The mean iteration of all kinds, and what it would be if each had its baseline. */
static void show_job(const struct kinds *kinds, struct pace_view *view)
{
	double all_ns = all_spent(kinds), lost = 0, share;

	for (uint32_t i = 0; i <= kinds->cnt; i++)
		lost += excess_frac(&kinds->kinds[i], all_ns);
	if (lost <= 0 || view->baseline_ns <= 0)
		return;
	share = (1 - lost) * all_ns / kinds->spent_cnt / (double)view->baseline_ns;
	view->mean_ns = (int64_t)(all_ns / kinds->spent_cnt);
	view->baseline_ns = (int64_t)(share * (double)view->baseline_ns);
	view->best_ns = (int64_t)(share * (double)view->best_ns);
	view->threshold_ns = (int64_t)(share * (double)view->threshold_ns);
}

static bool has_one_kind(const struct kinds *kinds)
{
	return kinds->kinds[kinds->shown].spent_ns >= ONE_KIND_FRAC * all_spent(kinds);
}

void kinds_look(const struct kinds *kinds, struct pace_view *ret)
{
	struct pace_view view;

	pace_look(kinds->kinds[kinds->shown].pace, &view);
	view.slow = kinds->slow;
	if (!has_one_kind(kinds))
		show_job(kinds, &view);
	/* Iterations of this kind and, in proportion, of the others. */
	if (view.slow_since > 0 && view.iterations > 0) {
		double lasted = (double)(view.iterations + 1 - view.slow_since);
		double all = (double)kinds->iterations / (double)view.iterations;

		view.slow_since =
			kinds->iterations + 1 - MIN((uint64_t)(lasted * all), kinds->iterations);
	}
	if (!view.slow)
		view.slow_since = 0;
	view.iterations = kinds->iterations;
	*ret = view;
}
