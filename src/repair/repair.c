/* SPDX-License-Identifier: Apache-2.0 */
#include "repair/repair.h"

#include "compare/significance.h"
#include "model/rankset.h"
#include "repair/repair_parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEVEL 0.05
#define ITERATIONS_MAX 4096u

const char *repair_verdict_name(enum repair_verdict verdict)
{
	static const char *const names[] = {
		[REPAIR_FIXED] = "fixed",	  [REPAIR_PARTLY] = "partly",
		[REPAIR_NO_GAIN] = "no-gain",	  [REPAIR_NOT_FIXED] = "not-fixed",
		[REPAIR_UNDECIDED] = "undecided",
	};

	return names[verdict];
}

const char *repair_state_name(enum repair_state state)
{
	static const char *const names[] = {
		[REPAIR_GONE] = "gone",	  [REPAIR_SMALLER] = "smaller",
		[REPAIR_STILL] = "still", [REPAIR_LARGER] = "larger",
		[REPAIR_MOVED] = "moved", [REPAIR_UNSEEN] = "unseen",
	};

	return names[state];
}

void repair_done(struct repair *repair)
{
	vec_done(&repair->findings);
	vec_done(&repair->appeared);
}

/* --- which finding after is which before --- */

static const json_t *findings_of(const struct repair_side *side)
{
	return json_object_get(side->root, "findings");
}

static bool same_text(const json_t *a, const json_t *b, const char *key)
{
	const char *text = repair_member(a, key);

	return text[0] != '\0' && strcmp(text, repair_member(b, key)) == 0;
}

/* The same place: by key, or by name where another build has another key. */
static bool same_function(const json_t *a, const json_t *b)
{
	const json_t *f = json_object_get(a, "function"), *g = json_object_get(b, "function");

	return same_text(f, g, "key") || same_text(f, g, "name");
}

static bool has_rank(const rankset_vec *set, int rank)
{
	vec_foreach(one, set) {
		if (*one == rank)
			return true;
	}
	return false;
}

/* Whether both accuse a common rank; what cannot be read counts as common. */
static bool share_ranks(const json_t *a, const json_t *b)
{
	rankset_vec one = { 0 }, other = { 0 };
	const char *texts[2] = { repair_member(a, "ranks"), repair_member(b, "ranks") };
	bool ret = texts[0][0] == '\0' || texts[1][0] == '\0';

	if (ret || rankset_parse(texts[0], &one, NULL) < 0 ||
	    rankset_parse(texts[1], &other, NULL) < 0)
		ret = true;
	vec_foreach(rank, &one)
		ret = ret || has_rank(&other, *rank);
	vec_done(&one);
	vec_done(&other);
	return ret;
}

/* How well a finding after fits one before; 0: another one. */
static int fit(const json_t *before, const json_t *after)
{
	bool cause = same_text(before, after, "cause"), place = same_function(before, after);
	bool ranks = share_ranks(before, after);

	if (cause && ranks)
		return place ? 4 : 3;
	if (cause && place)
		return 2;	       /* other ranks */
	return place && ranks ? 1 : 0; /* the same place and ranks by another name */
}

static enum repair_state state_of(const json_t *before, const json_t *after, int fits)
{
	double was = repair_number(before, "gain_ms_per_iteration");
	double is = repair_number(after, "gain_ms_per_iteration");

	if (fits == 2)
		return REPAIR_MOVED;
	if (!isfinite(was) || !isfinite(is))
		return REPAIR_STILL;
	if (is < was * REPAIR_SMALLER_FACTOR)
		return REPAIR_SMALLER;
	return is > was * REPAIR_LARGER_FACTOR ? REPAIR_LARGER : REPAIR_STILL;
}

static int match_finding(struct repair *repair, const json_t *before, bool blind)
{
	struct repair_finding found = { .before = before,
					.state = blind ? REPAIR_UNSEEN : REPAIR_GONE };
	const json_t *list = findings_of(&repair->after);
	int best = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *after = json_array_get(list, i);
		int fits = fit(before, after);

		if (fits <= best)
			continue;
		best = fits;
		found.after = after;
		found.state = state_of(before, after, fits);
	}
	return vec_push(&repair->findings, found);
}

static int match_findings(struct repair *repair)
{
	const json_t *was = findings_of(&repair->before), *is = findings_of(&repair->after);
	char reason[REPAIR_REASON_BYTES];
	bool blind = repair_is_blind(repair, reason);
	int r = 0;

	for (size_t i = 0; i < json_array_size(was) && r == 0; i++)
		r = match_finding(repair, json_array_get(was, i), blind);
	for (size_t i = 0; i < json_array_size(is) && r == 0; i++) {
		const json_t *after = json_array_get(is, i);
		bool known = false;

		vec_foreach(one, &repair->findings)
			known = known || one->after == after;
		if (!known)
			r = vec_push(&repair->appeared, after);
	}
	return r;
}

/* --- milliseconds --- */

/* Means over the ranks of each iteration; *ret_cnt of them. */
static void iterations_of(const json_t *root, double *ret, size_t *ret_cnt)
{
	const json_t *workers = json_object_get(root, "workers");

	*ret_cnt = 0;
	for (size_t i = 0; i < ITERATIONS_MAX; i++) {
		size_t cnt = 0;
		double sum = 0;

		for (size_t k = 0; k < json_array_size(workers); k++) {
			const json_t *list =
				json_object_get(json_array_get(workers, k), "iteration_ms");
			const json_t *value = json_array_get(list, i);

			if (!json_is_number(value))
				continue;
			sum += json_number_value(value);
			cnt++;
		}
		if (cnt == 0 || cnt < json_array_size(workers) / 2)
			return;
		ret[(*ret_cnt)++] = sum / (double)cnt;
	}
}

/* Half of the interval of 95 % of a difference of both means. */
static double half_interval(struct estimate a, struct estimate b)
{
	double low = 0, high = 1e9;

	a.mean = b.mean = 0;
	if (!(a.variance + b.variance > 0))
		return 0;
	for (int i = 0; i < 100; i++) {
		a.mean = (low + high) / 2;
		if (significance_welch(a, b) > LEVEL)
			low = a.mean;
		else
			high = a.mean;
	}
	return high;
}

int repair_measure(struct repair *repair)
{
	double *before = calloc(2 * (size_t)ITERATIONS_MAX, sizeof(*before));
	double *after = before != NULL ? before + ITERATIONS_MAX : NULL;
	double was = repair->before.iteration_ms, is = repair->after.iteration_ms;

	repair->returned_ms = was - is;
	repair->chance_ms = (double)NAN;
	if (before == NULL)
		return -ENOMEM;
	iterations_of(repair->before.root, before, &repair->before.iteration_cnt);
	iterations_of(repair->after.root, after, &repair->after.iteration_cnt);
	if (repair->before.iteration_cnt >= REPAIR_ITERATIONS_MIN &&
	    repair->after.iteration_cnt >= REPAIR_ITERATIONS_MIN)
		repair->chance_ms =
			fmax(half_interval(estimate_of(before, repair->before.iteration_cnt),
					   estimate_of(after, repair->after.iteration_cnt)),
			     REPAIR_NOISE_FRAC * was);
	free(before);
	return 0;
}

/* --- the verdict --- */

static void conclude(struct repair *repair, enum repair_verdict verdict, const char *fmt, ...)
	_printf_(3, 4);
static void conclude(struct repair *repair, enum repair_verdict verdict, const char *fmt, ...)
{
	va_list args;

	repair->verdict = verdict;
	va_start(args, fmt);
	(void)vsnprintf(repair->reason, sizeof(repair->reason), fmt, args);
	va_end(args);
}

/* The finding is gone, and a difference beyond chance came back. */
static void weigh_returned(struct repair *repair)
{
	double promised = repair->promised_ms, got = repair->returned_ms;
	double most = got + repair->chance_ms;

	if (repair->is_bound ||
	    (most >= promised * REPAIR_KEPT_FRAC && got >= promised * REPAIR_HALF_FRAC))
		conclude(repair, REPAIR_FIXED, "the finding is gone, and its time came back");
	else if (most >= promised * REPAIR_KEPT_FRAC)
		conclude(
			repair, REPAIR_UNDECIDED,
			"the finding is gone, but whether half of its time came back is uncertain");
	else if (most >= promised * REPAIR_HALF_FRAC)
		conclude(repair, REPAIR_PARTLY,
			 "the finding is gone, but only a part of its time came back");
	else
		conclude(repair, REPAIR_NO_GAIN,
			 "the finding is gone, but less than half of its time came back");
}

/* The finding is gone: did its time come back? */
static void weigh_gone(struct repair *repair)
{
	double promised = repair->promised_ms, got = repair->returned_ms;
	double chance = repair->chance_ms;
	double least = repair->is_bound ? 0 : promised * REPAIR_HALF_FRAC;

	if (!isfinite(chance))
		conclude(repair, REPAIR_UNDECIDED,
			 "the finding is gone, but a window has fewer than %d iterations: whether "
			 "the time came back cannot be told from chance",
			 REPAIR_ITERATIONS_MIN);
	else if (!isfinite(promised) || (promised <= chance && got <= chance))
		conclude(
			repair, REPAIR_UNDECIDED,
			"the finding is gone, but it promised no more than the %.3g ms by which two "
			"runs may differ by chance",
			chance);
	else if (got > chance)
		weigh_returned(repair);
	else if (got + chance < least)
		conclude(
			repair, REPAIR_NO_GAIN,
			"the finding is gone, but its time did not come back: something else takes "
			"it now, or the promise was wrong");
	else
		conclude(repair, REPAIR_UNDECIDED,
			 "the finding is gone, but the difference of %.3g ms may be chance", got);
}

/* A job that hung, and iterates again. */
static bool weigh_hang(struct repair *repair)
{
	if (isfinite(repair->before.iteration_ms))
		return false;
	if (isfinite(repair->after.iteration_ms))
		conclude(repair, REPAIR_FIXED, "the job hung before, and iterates after");
	else
		conclude(repair, REPAIR_UNDECIDED, "no iteration ended in the window after");
	return true;
}

static void weigh(struct repair *repair)
{
	switch (repair->findings.data[repair->judged].state) {
	case REPAIR_UNSEEN:
		(void)repair_is_blind(repair, repair->reason);
		repair->verdict = REPAIR_UNDECIDED;
		return;
	case REPAIR_STILL:
		conclude(repair, REPAIR_NOT_FIXED, "the finding is still there");
		return;
	case REPAIR_LARGER:
		conclude(repair, REPAIR_NOT_FIXED, "the finding is larger than before");
		return;
	case REPAIR_MOVED:
		conclude(repair, REPAIR_NOT_FIXED, "the finding accuses other ranks now");
		return;
	case REPAIR_SMALLER:
		conclude(repair, REPAIR_PARTLY, "the finding is smaller than before");
		return;
	case REPAIR_GONE:
		if (!weigh_hang(repair))
			weigh_gone(repair);
		return;
	}
}

/* Times and findings of two jobs are not compared. */
static void abstain(struct repair *repair, const char *reason)
{
	conclude(repair, REPAIR_UNDECIDED, "%s", reason);
	repair->returned_ms = repair->chance_ms = (double)NAN;
	repair->appeared.cnt = 0;
	vec_foreach(one, &repair->findings) {
		one->state = REPAIR_UNSEEN;
		one->after = NULL;
	}
}

/* --- all of it --- */

static int take_side(struct repair_side *side, const struct repair_side *from, struct err *err)
{
	const char *schema = repair_member(from->root, "schema");

	*side = *from;
	if (strncmp(schema, "perftracker.report.", 19) != 0)
		return err_set(err, EINVAL, "%s: expected a report in JSON, found %.80s",
			       from->name, schema[0] != '\0' ? schema : "another document");
	side->iteration_ms = repair_number(json_object_get(from->root, "job"), "iteration_ms");
	if (!(side->iteration_ms > 0))
		side->iteration_ms = (double)NAN;
	return 0;
}

static int choose(struct repair *repair, const char *word, struct err *err)
{
	char name[24];

	for (size_t i = 0; i < repair->findings.cnt; i++) {
		const json_t *finding = repair->findings.data[i].before;

		(void)snprintf(name, sizeof(name), "F%zu", i + 1);
		if (word != NULL && strcmp(word, name) != 0 &&
		    strcmp(word, repair_member(finding, "id")) != 0)
			continue;
		repair->judged = i;
		repair->promised_ms = repair_number(finding, "gain_ms_per_iteration");
		repair->is_bound = strcmp(repair_member(finding, "gain_is"), "bound") == 0;
		return 0;
	}
	return word == NULL ? 0
			    : err_set(err, EINVAL,
				      "%s has no finding %.40s: expected F1 to F%zu, or an id such "
				      "as PT-103",
				      repair->before.name, word, repair->findings.cnt);
}

int repair_judge(const struct repair_side *before, const struct repair_side *after,
		 const char *finding, struct repair *ret, struct err *err)
{
	char reason[REPAIR_REASON_BYTES];
	int r;

	*ret = (struct repair){ .promised_ms = (double)NAN };
	r = take_side(&ret->before, before, err);
	if (r == 0)
		r = take_side(&ret->after, after, err);
	if (r == 0)
		r = match_findings(ret);
	if (r == 0)
		r = choose(ret, finding, err);
	if (r == 0)
		r = repair_measure(ret);
	if (r < 0)
		return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
	if (ret->findings.cnt == 0)
		conclude(ret, REPAIR_UNDECIDED,
			 "the report before has no finding: nothing was promised");
	else if (!repair_is_one_job(ret, reason))
		abstain(ret, reason);
	else
		weigh(ret);
	return 0;
}
