/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "memory/earlier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of Student's distribution with 2, 3, ... degrees of freedom: exceeded once in 1,000 times. */
static const double student_999[] = {
	22.33, 10.21, 7.173, 5.893, 5.208, 4.785, 4.501, 4.297, 4.144,
	4.025, 3.930, 3.852, 3.787, 3.733, 3.686, 3.646, 3.610, 3.579
};

static const char *const verdict_names[] = { "none", "unknown", "alike", "slower", "faster" };

static const char *const why_names[] = { "",	  "running", "command", "workers", "machine",
					 "short", "sick",    "beside",	"flagged" };

/* Behind a number of runs. */
static const char *const why_phrases[] = {
	"",
	"ran at the same time",
	"had another command",
	"had another number of ranks",
	"ran on another kind of machine, or one not known",
	"ran too shortly",
	"had findings or were slow",
	"shared the machine with another job",
	"were slower than their own earlier runs",
};
_Static_assert(ARRAY_SIZE(verdict_names) == EARLIER_VERDICT_CNT, "one name a verdict");
_Static_assert(ARRAY_SIZE(why_names) == EARLIER_WHY_CNT, "one name a reason");
_Static_assert(ARRAY_SIZE(why_phrases) == EARLIER_WHY_CNT, "one phrase a reason");

const char *earlier_verdict_name(enum earlier_verdict verdict)
{
	return verdict_names[verdict];
}

const char *earlier_why_name(enum earlier_why why)
{
	return why_names[why];
}

static enum earlier_why why_of(const struct earlier_run *run, uint32_t workers)
{
	if (run->why > EARLIER_COMMAND || run->why == EARLIER_FITS)
		return run->workers != workers ? EARLIER_WORKERS : run->why;
	return run->why;
}

/* Whether the newest runs that may be compared were all slower than those before: the usual pace now. */
static bool is_usual(const struct earlier *earlier, uint32_t workers)
{
	size_t cnt = 0;

	vec_foreach(run, &earlier->runs) {
		enum earlier_why why = why_of(run, workers);

		if (why == EARLIER_FITS)
			return false;
		if (why == EARLIER_FLAGGED && ++cnt == EARLIER_AGAIN)
			return true;
	}
	return false;
}

/* The runs that count, the newest first. */
struct chosen {
	const struct earlier_run *runs[EARLIER_USED_MAX];
	size_t cnt;
};

static void choose(const struct earlier *earlier, uint32_t workers, struct earlier_answer *answer,
		   struct chosen *ret)
{
	enum earlier_why wanted = is_usual(earlier, workers) ? EARLIER_FLAGGED : EARLIER_FITS;

	ret->cnt = 0;
	vec_foreach(run, &earlier->runs) {
		enum earlier_why why = why_of(run, workers);

		answer->run_cnt++;
		if (why != wanted) {
			/* Before the pace became usual. */
			answer->whys[why == EARLIER_FITS ? EARLIER_FLAGGED : why]++;
			continue;
		}
		if (ret->cnt < EARLIER_USED_MAX &&
		    (wanted == EARLIER_FITS || ret->cnt < EARLIER_AGAIN))
			ret->runs[ret->cnt++] = run;
	}
	answer->used_cnt = ret->cnt;
}

struct spread {
	double mean, deviation; /* of logarithms */
};

static struct spread spread_of(const struct chosen *chosen)
{
	struct spread ret = { 0 };
	double squares = 0;

	for (size_t i = 0; i < chosen->cnt; i++)
		ret.mean += log((double)chosen->runs[i]->pace.median_ns);
	ret.mean /= (double)chosen->cnt;
	for (size_t i = 0; i < chosen->cnt; i++) {
		double off = log((double)chosen->runs[i]->pace.median_ns) - ret.mean;

		squares += off * off;
	}
	ret.deviation = MAX(sqrt(squares / (double)(chosen->cnt - 1)), EARLIER_SPREAD_MIN);
	return ret;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void fill_range(const struct chosen *chosen, struct earlier_answer *answer)
{
	double medians[EARLIER_USED_MAX], nearest = (double)INFINITY;
	size_t cnt = chosen->cnt;

	for (size_t i = 0; i < cnt; i++)
		medians[i] = (double)chosen->runs[i]->pace.median_ns;
	qsort(medians, cnt, sizeof(*medians), by_value);
	answer->least_ns = medians[0];
	answer->most_ns = medians[cnt - 1];
	answer->median_ns = (medians[(cnt - 1) / 2] + medians[cnt / 2]) / 2;
	answer->since_ns = chosen->runs[cnt - 1]->started_ns;
	for (size_t i = 0; i < cnt; i++) {
		const struct earlier_run *run = chosen->runs[i];
		double off = fabs((double)run->pace.median_ns - answer->median_ns);

		/* Behind all that have fingerprints. */
		if (run->window_cnt == 0)
			off += answer->most_ns;
		if (off < nearest)
			memcpy(answer->like, run->key, sizeof(answer->like));
		nearest = MIN(nearest, off);
	}
}

/* Beyond what one more run like them shows, and of the others' times in nearly all of its own. */
static enum earlier_verdict compare(const struct chosen *chosen,
				    const struct earlier_answer *answer)
{
	struct spread spread = spread_of(chosen);
	size_t freedom = MIN(chosen->cnt - 1, ARRAY_SIZE(student_999) + 1);
	double reach =
		student_999[freedom - 2] * spread.deviation * sqrt(1 + 1 / (double)chosen->cnt);
	double off = log((double)answer->pace.median_ns) - spread.mean;

	if (off > reach && answer->factor >= EARLIER_FACTOR &&
	    (double)answer->pace.low_ns > answer->most_ns)
		return EARLIER_SLOWER;
	if (-off > reach && answer->factor <= 1 / EARLIER_FACTOR &&
	    (double)answer->pace.high_ns < answer->least_ns)
		return EARLIER_FASTER;
	return EARLIER_ALIKE;
}

void earlier_judge(const struct earlier *earlier, uint32_t workers, const struct runpace_sum *pace,
		   bool beside, struct earlier_answer *ret)
{
	struct chosen chosen;

	*ret = (struct earlier_answer){ .pace = *pace, .beside = beside };
	choose(earlier, workers, ret, &chosen);
	if (ret->run_cnt == 0)
		return;
	ret->verdict = EARLIER_UNKNOWN;
	if (chosen.cnt == 0)
		return;
	fill_range(&chosen, ret);
	if (!pace->known)
		return;
	ret->factor = (double)pace->median_ns / ret->median_ns;
	if (chosen.cnt >= EARLIER_RUNS_MIN && !beside)
		ret->verdict = compare(&chosen, ret);
}

static void append_factor(const struct earlier_answer *answer, struct str *out)
{
	double slower = answer->factor, faster = 1 / answer->factor;

	if (answer->verdict == EARLIER_SLOWER)
		str_printf(out, "%.*fx slower than", slower < 9.95 ? 1 : 0, slower);
	else if (answer->verdict == EARLIER_FASTER)
		str_printf(out, "%.*fx faster than", faster < 9.95 ? 1 : 0, faster);
	else
		str_append(out,
			   answer->verdict == EARLIER_ALIKE ? "as fast as" : "not comparable with");
}

void earlier_append_clause(const struct earlier_answer *answer, struct str *out)
{
	append_factor(answer, out);
	str_printf(out, " %zu earlier run%s of this name: %.1f ms an iteration, %.1f ms",
		   answer->used_cnt, plural((double)answer->used_cnt),
		   (double)answer->pace.median_ns / NSEC_PER_MSEC,
		   answer->median_ns / NSEC_PER_MSEC);
	if (answer->used_cnt > 1)
		str_printf(out, " (%.1f to %.1f)", answer->least_ns / NSEC_PER_MSEC,
			   answer->most_ns / NSEC_PER_MSEC);
	str_append(out, " then");
}

void earlier_append_whys(const struct earlier_answer *answer, struct str *out)
{
	bool first = true;

	for (size_t i = 1; i < EARLIER_WHY_CNT; i++) {
		if (answer->whys[i] == 0)
			continue;
		str_printf(out, "%s%zu %s", first ? "" : ", ", answer->whys[i], why_phrases[i]);
		first = false;
	}
	if (answer->beside)
		str_printf(out, "%sthis one shared its machine with another job",
			   first ? "" : ", ");
	else if (first && !answer->pace.known)
		str_append(out, "this one ran too shortly");
	else if (first && answer->used_cnt > 0 && answer->used_cnt < EARLIER_RUNS_MIN)
		str_printf(out, "%zu of the same kind %s too few to tell, %u are needed",
			   answer->used_cnt, answer->used_cnt == 1 ? "is" : "are",
			   EARLIER_RUNS_MIN);
}
