/* SPDX-License-Identifier: Apache-2.0 */
#include "base/demangle.h"
#include "base/str.h"
#include "sampled/sampled_parts.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_KEY "00000000000000000000000000000000"
#define RESTART "restart it under `perftracker run` for marks, collectives and operators"
#define BLOCKED_FRAC 0.6 /* of the samples in a function: it waits there */
#define RUNS_LEAST 0.01	 /* of the time: a rank that runs less gives no measure of waits per work */
#define SURE_FRAC 0.2	 /* held up for so long, the finding is sure */

enum { EVIDENCE_MAX = 8 };

struct kind {
	const char *id, *cause, *title, *advice;
};

static const struct kind LOADER = {
	"PT-102",
	"slow-data-loading",
	"slow data loading",
	"Check the storage or service that the loader reads from, then raise num_workers and "
	"prefetch_factor, or move the data to faster storage.",
};
static const struct kind STALL = {
	"PT-101",
	"host-stall",
	"host stall",
	"Look at this place in the code: a lock, a sleep, a file or network call. `perftracker "
	"stacks` shows what its threads wait for.",
};
static const struct kind PYTHON = {
	"PT-103",
	"cpu-bound-python",
	"CPU-bound Python",
	"Move this function off the training thread (data-loader workers), vectorize it, or cache "
	"its result.",
};
static const struct kind DIFFERENCE = {
	"PT-302",
	"unexplained-difference",
	"difference from its peers",
	"Compare this worker's host, inputs and code path with a peer's.",
};

static const struct kind *kind_of(const struct sampledcase *c, const struct sampledplace *place)
{
	if (place->in_loader)
		return &LOADER;
	if (place->blocked_frac >= BLOCKED_FRAC)
		return &STALL;
	return sampledview_is_users(&c->view, place->deepest) ? &PYTHON : &DIFFERENCE;
}

static int evidence(struct sampledcase *c, struct finding *finding, const char *fmt, ...)
	_printf_(3, 4);

static int evidence(struct sampledcase *c, struct finding *finding, const char *fmt, ...)
{
	const char **lines = (const char **)(uintptr_t)finding->evidence;
	char text[400];
	va_list args;

	if (finding->evidence_cnt == EVIDENCE_MAX)
		return 0;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	lines[finding->evidence_cnt] = arena_strdup(c->arena, text);
	return lines[finding->evidence_cnt++] != NULL ? 0 : -ENOMEM;
}

/* The functions from the outermost one to the node. */
static int fill_stack(const struct sampledcase *c, uint32_t node, struct finding *ret)
{
	size_t at = c->view.nodes.data[node].depth;
	const char **stack = arena_calloc(c->arena, at + 1, sizeof(*stack));

	if (stack == NULL)
		return -ENOMEM;
	ret->stack = stack;
	ret->stack_cnt = at;
	for (; at > 0; node = c->view.nodes.data[node].parent) {
		stack[--at] = sampledview_name(&c->view, node);
		if (stack[at] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int fill_ranks(const struct sampledcase *c, const bool *which, const int **ret,
		      size_t *ret_cnt)
{
	int *ranks = arena_calloc(c->arena, c->job->cnt + 1, sizeof(*ranks));

	if (ranks == NULL)
		return -ENOMEM;
	*ret = ranks;
	for (size_t i = 0; i < c->job->cnt; i++)
		if (which[i])
			ranks[(*ret_cnt)++] = c->job->ranks[i].rank;
	return 0;
}

/* The function of the loader's workers, if they are known to be in one. */
static const char *name_of(const struct sampledcase *c, const struct sampledplace *place)
{
	const char *worker = sampledview_name(&c->view, place->worker);

	if (place->worker == SAMPLEDVIEW_ROOT || worker == NULL)
		return sampledview_name(&c->view, place->node);
	return arena_printf(c->arena, "%s (its loader's worker processes)", worker);
}

/* frac: of the time, that a repair saves at most. */
static int init_finding(struct sampledcase *c, const struct sampledplace *place, const bool *which,
			double frac, struct finding *ret)
{
	const struct kind *kind = kind_of(c, place);
	const char **lines = arena_calloc(c->arena, EVIDENCE_MAX, sizeof(*lines));
	int error;

	*ret = (struct finding){
		.id = kind->id,
		.cause = kind->cause,
		.title = arena_printf(c->arena, "%s: %s", sampledcase_ranks(c, which), kind->title),
		.key = NO_KEY,
		.name = name_of(c, place),
		.class = place->blocked_frac >= BLOCKED_FRAC ? CLASS_IDLE : CLASS_HOST,
		.evidence = lines,
		.advice = kind->advice,
		.time_ms_per_iteration = place->own_frac * c->pace.iteration_ms,
		.delta_ms_per_iteration =
			(place->own_frac - place->peers_frac) * c->pace.iteration_ms,
		.gain_ms_per_iteration = frac * c->pace.iteration_ms,
		.gain_pct = frac * 100.0,
		.gain_at_most = true,
		.confidence = CONFIDENCE_MEDIUM,
		.beta = { .present = true,
			  .value = place->own_frac,
			  .reference = place->peers_frac,
			  .reference_kind = REFERENCE_PEERS },
	};
	if (lines == NULL || ret->title == NULL || ret->name == NULL)
		return -ENOMEM;
	error = fill_stack(c, place->node, ret);
	if (error == 0)
		error = fill_ranks(c, which, &ret->ranks, &ret->rank_cnt);
	ret->all_workers = ret->rank_cnt == c->job->cnt;
	return error;
}

static int say_place(struct sampledcase *c, const struct sampledplace *place, const char *who,
		     struct finding *ret)
{
	_cleanup_(str_done) struct str native = { 0 };
	const char *name = sampledview_name(&c->view, place->node);
	const char *deepest = sampledview_name(&c->view, place->deepest);
	int error;

	if (name == NULL || deepest == NULL)
		return -ENOMEM;
	if (place->waits_in[0] != '\0')
		demangle(place->waits_in, &native);
	error = evidence(c, ret,
			 "%s: in %s in %.0f %% of the samples, blocked in %.0f %% of these%s%.120s",
			 who, name, place->own_frac * 100.0, place->blocked_frac * 100.0,
			 native.len > 0 ? ", in " : "", native.len > 0 ? str_borrow(&native) : "");
	if (error == 0 && place->deepest != place->node)
		error = evidence(c, ret, "mostly inside of it: %s", deepest);
	if (error == 0 && place->worker != SAMPLEDVIEW_ROOT)
		error = evidence(
			c, ret,
			"meanwhile its loader's worker processes are in %s, in %.0f %% of the "
			"samples",
			sampledview_name(&c->view, place->worker), place->worker_frac * 100.0);
	return error;
}

/* --- a rank for which the others wait --- */

static double mean_of(const struct sampledcase *c, const bool *which, bool flag, bool queued)
{
	double sum = 0, cnt = 0;

	for (size_t i = 0; i < c->job->cnt; i++) {
		if (which[i] != flag)
			continue;
		sum += queued ? c->blame.ranks[i].queued_frac : c->blame.ranks[i].runs_frac;
		cnt++;
	}
	return sum / MAX(cnt, 1.0);
}

static int say_accounts(struct sampledcase *c, const bool *behind, struct finding *ret)
{
	return evidence(
		c, ret,
		"by the kernel: on a CPU %.0f %% of the time and waiting for one %.0f %%; its "
		"peers %.0f %% and %.0f %%",
		mean_of(c, behind, true, false) * 100.0, mean_of(c, behind, true, true) * 100.0,
		mean_of(c, behind, false, false) * 100.0, mean_of(c, behind, false, true) * 100.0);
}

/* "rank 0 waits", "ranks 0, 2 wait" */
static const char *wait_of(const char *ranks)
{
	return strncmp(ranks, "ranks ", strlen("ranks ")) == 0 ? "wait" : "waits";
}

/* Where the others wait. */
static int say_victims(struct sampledcase *c, const bool *others, struct finding *ret)
{
	const struct sampledplace_search search = {
		.ranks = others,
		.phase = PHASE_PEERS,
		.least_frac = c->blame.hold_frac * SAMPLED_PLACE_FRAC,
	};
	const char *rest = sampledcase_ranks(c, others);
	struct sampledplace place;
	int error = rest != NULL ? sampledplace_find(&c->view, &search, &place) : -ENOMEM;

	if (error < 0 || place.deepest == SAMPLEDVIEW_ROOT)
		return error;
	return evidence(c, ret, "%s %s in %s, called by %s", rest, wait_of(rest),
			sampledview_name(&c->view, place.deepest),
			sampledview_name(&c->view, place.node));
}

static int accuse(struct sampledcase *c, const struct sampledplace *place, const bool *behind,
		  const bool *others)
{
	struct finding *finding = arena_calloc(c->arena, 1, sizeof(*finding));
	const char *who = sampledcase_ranks(c, behind), *rest = sampledcase_ranks(c, others);
	int error;

	if (finding == NULL || who == NULL || rest == NULL)
		return -ENOMEM;
	error = init_finding(c, place, behind, c->blame.hold_frac, finding);
	if (error == 0)
		error = fill_ranks(c, others, &finding->victims, &finding->victim_cnt);
	if (error == 0)
		error = evidence(c, finding,
				 "%s %s for %s in %.0f %% of %zu rounds of samples; for any other "
				 "rank in %.0f %% at most (%.1f standard errors)",
				 rest, wait_of(rest), who, c->blame.hold_frac * 100.0,
				 c->blame.round_cnt, c->blame.next_frac * 100.0, c->blame.t);
	if (error == 0)
		error = say_place(c, place, who, finding);
	if (error == 0)
		error = evidence(c, finding, "%s: there in %.0f %% of the samples", rest,
				 place->peers_frac * 100.0);
	if (error == 0)
		error = say_victims(c, others, finding);
	if (error == 0)
		error = say_accounts(c, behind, finding);
	if (c->blame.hold_frac >= SURE_FRAC)
		finding->confidence = CONFIDENCE_HIGH;
	c->report->findings = finding;
	c->report->finding_cnt = 1;
	c->report->verdict = VERDICT_ABNORMAL;
	c->report->reason = "others wait for a rank that is in a function in which they are not";
	return error;
}

static int suspect(struct sampledcase *c, const bool *behind, const char *why)
{
	for (size_t i = c->job->cnt; i > 0; i--)
		if (behind[i - 1])
			c->report->suspect = c->job->ranks[i - 1].rank;
	c->report->has_suspect = true;
	c->report->verdict = VERDICT_INCONCLUSIVE;
	c->report->reason =
		arena_printf(c->arena,
			     "the others wait for %s in %.0f %% of the samples, %s; a longer "
			     "window (--seconds) shows more, or " RESTART,
			     sampledcase_ranks(c, behind), c->blame.hold_frac * 100.0, why);
	return c->report->reason != NULL ? 0 : -ENOMEM;
}

/*
 * Whether the ranks lack CPUs for a large part of that time: they wait for one more than their peers
 * would for as much work. On a busy host each rank that computes waits for CPUs.
 */
static bool lacks_cpus(const struct sampledcase *c, const bool *behind)
{
	const double per_work =
		mean_of(c, behind, false, true) / MAX(mean_of(c, behind, false, false), RUNS_LEAST);
	const double expected = mean_of(c, behind, true, false) * per_work;

	return mean_of(c, behind, true, true) - expected >= SAMPLED_QUEUE_FRAC * c->blame.hold_frac;
}

/* The same of the workers of its loader, for a wait that takes wait_frac of the time. */
static bool workers_lack_cpus(const struct sampledcase *c, const bool *which, double wait_frac)
{
	double queued = 0;

	for (size_t i = 0; i < c->job->cnt; i++)
		if (which[i])
			queued = MAX(queued, c->job->ranks[i].children_queued_frac);
	return queued >= SAMPLED_QUEUE_FRAC * wait_frac;
}

/* Whether ranks wait for single other ranks, as stages of a pipeline do, a third of their waits. */
static bool are_stages(const struct sampledcase *c)
{
	size_t waits = 0, stages = 0;

	for (size_t i = 0; i < c->job->cnt; i++) {
		const struct sampled_rank *rank = &c->job->ranks[i];

		for (size_t k = 0; k < rank->moment_cnt; k++) {
			const struct sampledview_stack *stack =
				rank->moments[k].stack != SAMPLED_NONE
					? &c->view.stacks[i][rank->moments[k].stack]
					: NULL;

			if (stack == NULL || stack->phase != PHASE_PEERS)
				continue;
			waits++;
			stages += stack->stage;
		}
	}
	return stages * 3 > waits;
}

static int judge_behind(struct sampledcase *c)
{
	bool *behind = arena_calloc(c->arena, c->job->cnt + 1, sizeof(*behind));
	bool *others = arena_calloc(c->arena, c->job->cnt + 1, sizeof(*others));
	const struct sampledplace_search search = {
		.ranks = behind,
		.against_others = true,
		.phase = PHASE_CNT,
		.least_frac = c->blame.hold_frac * SAMPLED_PLACE_FRAC,
	};
	struct sampledplace place;
	int error;

	if (behind == NULL || others == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->cnt; i++) {
		behind[i] = c->blame.ranks[i].behind;
		others[i] = !behind[i];
	}
	if (are_stages(c))
		return suspect(
			c, behind,
			"and ranks that send to each other do different work: it may be so by "
			"design");
	if (lacks_cpus(c, behind))
		return suspect(
			c, behind,
			"which waits for a CPU meanwhile: see `perftracker stalls --pid` on it");
	error = sampledplace_find(&c->view, &search, &place);
	if (error < 0)
		return error;
	if (place.in_loader && workers_lack_cpus(c, behind, c->blame.hold_frac))
		return suspect(c, behind,
			       "whose loader's worker processes wait for a CPU meanwhile");
	if (place.node == SAMPLEDVIEW_ROOT || place.peers_frac > place.own_frac / 2)
		return suspect(c, behind, "and no single function of it explains that");
	return accuse(c, &place, behind, others);
}

/* --- waits for input --- */

static int judge_input(struct sampledcase *c, bool *ret_found)
{
	bool *all = arena_calloc(c->arena, c->job->cnt + 1, sizeof(*all));
	const struct sampledplace_search search = { .ranks = all,
						    .phase = PHASE_LOADER,
						    .least_frac = SAMPLED_INPUT_FRAC *
								  SAMPLED_PLACE_FRAC };
	struct finding *finding = arena_calloc(c->arena, 1, sizeof(*finding));
	struct sampledplace place;
	double least = 1.0;
	const char *who;
	int error;

	if (all == NULL || finding == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->job->cnt; i++) {
		const struct sampledblame_rank *rank = &c->blame.ranks[i];

		all[i] = true;
		least = MIN(least, rank->loader_frac - 3.0 * rank->loader_error);
	}
	*ret_found = false;
	if (least < SAMPLED_INPUT_FRAC)
		return 0;
	*ret_found = true;
	if (workers_lack_cpus(c, all, c->blame.ranks[0].loader_frac)) {
		c->report->verdict = VERDICT_INCONCLUSIVE;
		c->report->reason = arena_printf(
			c->arena,
			"the training threads wait for their loaders %.0f %% of the time, whose worker "
			"processes wait for a CPU meanwhile: `perftracker stalls` names who has it",
			c->blame.ranks[0].loader_frac * 100.0);
		return c->report->reason != NULL ? 0 : -ENOMEM;
	}
	who = sampledcase_ranks(c, all);
	error = sampledplace_find(&c->view, &search, &place);
	if (error < 0 || who == NULL)
		return -ENOMEM;
	*ret_found = place.node != SAMPLEDVIEW_ROOT && place.in_loader;
	if (!*ret_found)
		return 0;
	error = init_finding(c, &place, all, c->blame.ranks[0].loader_frac, finding);
	finding->beta.reference = 0.0;
	finding->beta.reference_kind = REFERENCE_EXPECTED;
	for (size_t i = 0; i < c->job->cnt && error == 0 && i < 4; i++)
		error = evidence(c, finding,
				 "rank %d is in its loader in %.0f %% of the samples (+- %.0f %%)",
				 c->job->ranks[i].rank, c->blame.ranks[i].loader_frac * 100.0,
				 c->blame.ranks[i].loader_error * 200.0);
	if (error == 0)
		error = say_place(c, &place, who, finding);
	c->report->findings = finding;
	c->report->finding_cnt = 1;
	c->report->verdict = VERDICT_ABNORMAL;
	c->report->reason = "the training threads wait for input";
	return error;
}

/* --- nothing --- */

static int say_nothing(struct sampledcase *c)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < c->job->cnt; i++)
		least = MIN(least, c->job->ranks[i].moment_cnt);
	if (least < SAMPLED_ROUNDS_MIN) {
		c->report->verdict = VERDICT_INCONCLUSIVE;
		c->report->reason = arena_printf(
			c->arena,
			"%zu samples are too few to judge: at least %u are needed of each rank",
			least, SAMPLED_ROUNDS_MIN);
	} else if (c->report->missing_cnt > 0) {
		c->report->verdict = VERDICT_INCOMPLETE;
		c->report->reason = arena_printf(
			c->arena,
			"nothing was found in %.1f s of samples, but %zu of %d ranks were not seen: "
			"attach on their hosts, too, or " RESTART,
			c->window_s, c->report->missing_cnt, c->report->world_size);
	} else {
		c->report->verdict = VERDICT_NOTHING_FOUND;
		c->report->reason = arena_printf(
			c->arena,
			"in %.1f s of samples %s. This does not show that the job is well: what "
			"slows all ranks alike, devices, and moments are not seen this way; " RESTART,
			c->window_s,
			c->job->cnt > 1
				? "no rank holds the others up, and not all wait for input for a quarter of the time"
				: "its training thread does not wait for input for a quarter of the time");
	}
	return c->report->reason != NULL ? 0 : -ENOMEM;
}

int sampledfindings_fill(struct sampledcase *c)
{
	bool found = false;
	int error = 0;

	if (c->blame.behind_cnt > 0)
		return judge_behind(c);
	if (c->job->round_cnt >= SAMPLED_ROUNDS_MIN)
		error = judge_input(c, &found);
	return error < 0 || found ? error : say_nothing(c);
}
