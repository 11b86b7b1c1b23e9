/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampledpace.h"

#include "model/thresholds.h"

#include <math.h>

#define SPREAD_MAX 0.5 /* deviation of the lengths, by their mean */

/* Runs of one phase in the samples of a rank. */
struct runs {
	size_t cnt;		/* that began in the window */
	size_t inside, outside; /* samples from the first begin to the last one */
	int64_t first_ns, last_ns;
	double squares; /* of the lengths between begins, in ms */
};

static void count_runs(const struct sampledview *view, size_t index, enum sampled_phase phase,
		       struct runs *ret)
{
	const struct sampled_rank *rank = &view->job->ranks[index];
	size_t inside = 0, outside = 0;
	bool was = true; /* a run that goes on at the begin does not count */

	*ret = (struct runs){ 0 };
	for (size_t i = 0; i < rank->moment_cnt; i++) {
		const struct sampled_moment *moment = &rank->moments[i];
		bool is;

		if (moment->stack == SAMPLED_NONE)
			continue;
		is = view->stacks[index][moment->stack].phase == phase;
		if (is && !was) {
			const double ms = (double)(moment->time_ns - ret->last_ns) / NSEC_PER_MSEC;

			if (ret->cnt > 0)
				ret->squares += ms * ms;
			else
				ret->first_ns = moment->time_ns;
			ret->inside += inside;
			ret->outside += outside;
			inside = outside = 0;
			ret->last_ns = moment->time_ns;
			ret->cnt++;
		}
		if (ret->cnt > 0) {
			inside += is;
			outside += !is;
		}
		was = is;
	}
}

/* Whether the runs are iterations: none missed, and about equally long. */
static bool are_iterations(const struct runs *runs, double *ret_ms)
{
	const double cnt = (double)runs->cnt - 1;
	double mean, spread;

	if (runs->cnt < SAMPLED_CYCLES_MIN || (double)runs->inside < cnt * SAMPLED_RUN_MIN ||
	    (double)runs->outside < cnt * SAMPLED_RUN_MIN)
		return false;
	mean = (double)(runs->last_ns - runs->first_ns) / NSEC_PER_MSEC / cnt;
	spread = sqrt(MAX(runs->squares / cnt - mean * mean, 0.0)) / mean;
	*ret_ms = mean;
	return spread <= SPREAD_MAX;
}

void sampledpace_find(const struct sampledview *view, size_t rank, struct sampledpace *ret)
{
	static const struct {
		enum sampled_phase phase;
		const char *name;
	} PHASES[] = { { PHASE_OPTIMIZER, "optimizer steps" },
		       { PHASE_LOADER, "loader calls" },
		       { PHASE_BACKWARD, "backward passes" } };

	*ret = (struct sampledpace){ .iteration_ms = (double)NAN, .by = "" };
	for (size_t i = 0; i < ARRAY_SIZE(PHASES) && ret->iteration_cnt == 0; i++) {
		struct runs runs;
		double ms;

		count_runs(view, rank, PHASES[i].phase, &runs);
		if (are_iterations(&runs, &ms))
			*ret = (struct sampledpace){ ms, runs.cnt - 1, PHASES[i].name };
	}
}
