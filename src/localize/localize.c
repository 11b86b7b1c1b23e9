/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/localize.h"

#include "base/stats.h"
#include "base/str.h"
#include "localize/absences.h"
#include "localize/activity/activity.h"
#include "localize/compose.h"
#include "localize/flows/by_flow.h"
#include "localize/groups/groups.h"
#include "localize/growth.h"
#include "localize/late/absentee.h"
#include "localize/late/chance.h"
#include "localize/late/collections.h"
#include "localize/late/felt.h"
#include "localize/late/gain.h"
#include "localize/late/tail.h"
#include "localize/occasions/beginning.h"
#include "localize/parts.h"
#include "localize/peers.h"
#include "localize/pictures/pictures.h"
#include "localize/shares.h"
#include "localize/stalls/by_stalls.h"
#include "localize/usercode.h"
#include "localize/usual.h"
#include "localize/verdict/conclude.h"
#include "localize/witness/by_past.h"
#include "localize/witness/by_usage.h"
#include "localize/witness/companions.h"
#include "localize/witness/part.h"
#include "localize/witness/weighing.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct localize_options localize_defaults(void)
{
	return (struct localize_options){ .min_gain_pct = 1, .seed = 1 };
}

void report_done(struct report *report)
{
	arena_done(&report->arena);
	*report = (struct report){ 0 };
}

/* One run; the report's arena owns what stays, the job's what does not. */
struct run {
	const struct localize_options *options;
	struct job job;
	struct blame blame;
	struct past past;
	accusations accusations;
	struct conclude_late unequal;
	struct expect_table expect;
	struct report *out;
	const char **notes;
};

#define NOTE(r, ...) parts_note((r)->out, (r)->notes, arena_printf(&(r)->out->arena, __VA_ARGS__))

/* --- the workers --- */

static int join_workers(struct run *r, const struct fingerprint *const *fps, size_t cnt,
			struct err *err)
{
	const struct fingerprint **sorted = NULL;
	int error = parts_sort_workers(fps, cnt, &sorted, err);

	if (error == 0)
		error = job_init(&r->job, sorted, cnt);
	if (error == 0)
		error = peers_find(&r->job);
	free(sorted);
	return error;
}

/* --- what the report says about its input --- */

static int describe_job(struct run *r)
{
	size_t cnt = r->job.worker_cnt;
	_cleanup_free_ double *scratch = calloc(cnt + 1, sizeof(*scratch));
	_cleanup_free_ int *ranks = calloc(cnt + 1, sizeof(*ranks));
	struct parts_job job = {
		.ranks = ranks,
		.worker_cnt = cnt,
		.input_cnt = cnt + r->options->failure_cnt,
		.iteration_ns = r->job.iteration_ns,
		.job_id = r->options->job_id,
	};

	if (scratch == NULL || ranks == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < cnt; w++) {
		const struct fingerprint *fp = r->job.workers[w].fp;

		ranks[w] = fp->rank;
		scratch[w] = r->job.workers[w].iterations;
		job.world_size = MAX(job.world_size, fp->world_size);
		job.group_size = MAX(job.group_size, job_largest_group(fp));
		if (job.job_id == NULL && fp->job_id[0] != '\0')
			job.job_id = fp->job_id;
	}
	job.iterations = stats_median(scratch, cnt);
	return parts_describe_job(r->out, r->options, &job);
}

static int describe_input(struct run *r)
{
	int error = describe_job(r);

	if (error == 0)
		error = parts_describe_workers(r->out, &r->job);
	if (error == 0)
		error = activity_totals(&r->job, r->out);
	return error == 0 ? parts_copy_failures(r->out, r->options) : error;
}

static int list_shares(struct run *r)
{
	return shares_list(&r->job, r->out);
}

static int list_collectives(struct run *r)
{
	return activity_collectives(&r->job, &r->blame, r->out);
}

static int list_absences(struct run *r)
{
	return absences_list(&r->job, r->out);
}

static int note_drops(struct run *r)
{
	int error = parts_note_drops(r->out, r->notes, &r->job);

	if (error == 0)
		error = parts_note_warmup(r->out, r->notes, &r->job);
	if (error == 0 && r->blame.unmatched_cnt > 0 && r->job.worker_cnt > 1)
		error = NOTE(r, "collectives without a counterpart on another rank: %llu",
			     (unsigned long long)r->blame.unmatched_cnt);
	return error;
}

static int note_guesses(struct run *r)
{
	return parts_note_guesses(r->out, r->notes, &r->job);
}

/* Whether every worker of the job is here. */
static bool all_present(const struct run *r)
{
	return r->out->missing_cnt == 0 && r->job.worker_cnt >= (size_t)MAX(r->out->world_size, 0);
}

/* With much communication and an absent rank, transfer cannot be separated from waiting for it. */
static bool may_wait_for_absent(const struct run *r)
{
	return !all_present(r) &&
	       absentee_comm_frac(&r->job, &r->blame) > r->expect.of_class[CLASS_COMM].beta[1];
}

static int note_unmatched_comm(struct run *r)
{
	double comm = absentee_comm_frac(&r->job, &r->blame);

	if (comm < NOTE_COMM_FRAC || (r->blame.matched_cnt > 0 && !may_wait_for_absent(r)))
		return 0;
	return NOTE(
		r,
		"communication holds %.0f %% of the window: whether that is transfer or waiting "
		"for another rank needs the traces of its peers",
		100 * comm);
}

/* A report has one time of an iteration. */
static int note_apart(struct run *r)
{
	double least = HUGE_VAL, most = 0;

	if (!r->job.apart)
		return 0;
	for (uint32_t w = 0; w < r->job.worker_cnt; w++) {
		double own = job_iteration_of_ns(&r->job, &w, 1);

		least = fmin(least, own);
		most = fmax(most, own);
	}
	return NOTE(r, "no collectives: each rank has its own pace, iterations of %.1f to %.1f ms",
		    least / 1e6, most / 1e6);
}

/* A job can be bound by its host on all workers alike: worth saying, no one's fault. */
static int note_observations(struct run *r)
{
	size_t cnt = r->job.worker_cnt, devices = 0, groups = r->job.group_cnt;
	_cleanup_free_ double *host = calloc(cnt + 1, sizeof(*host));
	double frac;
	int error = 0;

	if (host == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < cnt; w++) {
		const struct fingerprint *fp = r->job.workers[w].fp;

		devices += fp->has_device;
		host[w] = activity_idle_frac(fp);
	}
	frac = stats_median(host, cnt);
	if (devices == cnt && cnt > 0 && frac > NOTE_HOST_FRAC &&
	    !by_usage_says_starved(&r->accusations))
		error = NOTE(
			r,
			"the device has no work for %.0f %% of the window on the typical worker: "
			"the job is bound by its host",
			100 * frac);
	if (error == 0)
		error = note_unmatched_comm(r);
	if (error == 0)
		error = note_apart(r);
	if (error == 0 && groups > 1)
		error = NOTE(r, "%zu groups of workers do different work and were compared apart",
			     groups);
	return error;
}

static bool is_accused(const struct run *r, uint32_t w)
{
	vec_foreach(a, &r->accusations) {
		if (accusation_has(a, w))
			return true;
	}
	return false;
}

/* Whether a loss, per iteration, is worth reporting. */
static bool matters(const struct run *r, double ns)
{
	return ns * 100 >= r->options->min_gain_pct * r->job.iteration_ns;
}

static const char by_chance[] = "only in some iterations: normal variation";

/* Why a late worker is no evidence of a fault; NULL: it is. */
static const char *excuse(const struct run *r, uint32_t w)
{
	double iterations = r->job.workers[w].iterations;

	if (!matters(r, chance_own_loss(&r->blame, w) / iterations))
		return "because it waits for other ranks itself";
	if (chance_explains(&r->job, &r->blame, w))
		return by_chance;
	if (!matters(r, felt_loss(&r->job, &r->blame, w) / iterations))
		return "but only GPUs waited for it, no training thread";
	return NULL;
}

/* Notes each worker that is late and is not accused. */
static int note_lateness(struct run *r)
{
	int error = 0;

	for (uint32_t w = 0; w < r->job.worker_cnt && error == 0; w++) {
		double lost = r->blame.workers[w].lost_ns / r->job.workers[w].iterations;
		const char *why = excuse(r, w);

		if (!matters(r, lost) || is_accused(r, w))
			continue;
		error = NOTE(r, "rank %d is late by %.1f ms per iteration (%.1f %%), %s",
			     r->job.workers[w].fp->rank, lost / 1e6,
			     100 * lost / r->job.iteration_ns,
			     why != NULL ? why : "but no function explains it");
	}
	return error;
}

static int copy_notes(struct run *r)
{
	return parts_copy_notes(r->out, r->notes, r->options);
}

/* A healthy window of the same job, if the caller has one. */
static int join_past(struct run *r)
{
	return past_init(&r->past, &r->job, r->options->past, r->options->past_cnt, &r->job.arena);
}

/* Without a trigger the past itself shows how fast the job was. */
static int set_accuse_options(struct run *r, struct accuse_options *ret)
{
	int error;

	*ret = parts_accuse_options(r->options, &r->expect, r->job.iteration_ns);
	ret->all_present = all_present(r);
	ret->past = &r->past;
	if (ret->live || r->past.known_cnt == 0)
		return 0;
	ret->live = true;
	error = past_slowdown(&r->past, &ret->slowdown_ns);
	ret->slow = ret->slowdown_ns >= PAST_SLOW_FRAC * r->job.iteration_ns;
	return error;
}

static int list_growth(struct run *r)
{
	struct accuse_options options;
	int error = set_accuse_options(r, &options);

	if (error < 0 || options.slowdown_ns < options.min_common_frac * r->job.iteration_ns)
		return error;
	return growth_list(&r->past, options.min_gain_frac * r->job.iteration_ns, r->out);
}

static int list_waits(struct run *r)
{
	return pictures_waits(&r->job, &r->blame, r->out);
}

static int fill_pictures(struct run *r)
{
	return pictures_fill(&r->job, &r->blame, r->out);
}

/* --- the verdict --- */

static int compose(void *arg, const struct accusation *a, struct finding *ret)
{
	struct run *r = arg;
	int error = compose_finding(&r->job, &r->blame, a, &r->expect, &r->out->arena, ret);

	if (error == 0 && r->options->perhaps_two_jobs)
		ret->confidence =
			ret->confidence == CONFIDENCE_LOW ? CONFIDENCE_LOW : CONFIDENCE_MEDIUM;
	return error;
}

static int make_findings(struct run *r)
{
	int error =
		parts_make_findings(r->out, &r->accusations, r->options->min_gain_pct, compose, r);

	return error == 0 ? usual_note_starved(r->out, r->notes) : error;
}

/* A rank with collectives of which none was matched with another rank; -1: no such rank. */
static int unmatched_rank(const struct run *r)
{
	for (size_t w = 0; w < r->job.worker_cnt && r->job.worker_cnt > 1; w++) {
		const struct fingerprint *fp = r->job.workers[w].fp;

		if (fp->collective_cnt > 2 && !r->blame.workers[w].matched)
			return fp->rank;
	}
	return -1;
}

/* The worker that lost the largest share of its records. */
static const struct fingerprint *find_lossy(const struct run *r)
{
	const struct fingerprint *ret = r->job.workers[0].fp;

	for (size_t w = 1; w < r->job.worker_cnt; w++) {
		if (job_lost_frac(r->job.workers[w].fp) > job_lost_frac(ret))
			ret = r->job.workers[w].fp;
	}
	return ret;
}

/*
 * The unaccused worker with this excuse that makes others wait the longest, and by more than
 * least_pct of an iteration.
 */
static struct conclude_late find_late(const struct run *r, const char *why, double least_pct)
{
	struct conclude_late ret = { .rank = -1 };

	for (uint32_t w = 0; w < r->job.worker_cnt; w++) {
		double own = chance_own_loss(&r->blame, w),
		       iterations = r->job.workers[w].iterations;
		double lost = own / iterations;

		/* What others felt takes long to find, and is asked only where it can matter. */
		if (lost / 1e6 > ret.ms && 100 * lost >= least_pct * r->job.iteration_ns)
			lost = fmin(own, felt_loss(&r->job, &r->blame, w)) / iterations;
		if (lost / 1e6 <= ret.ms || 100 * lost < least_pct * r->job.iteration_ns ||
		    is_accused(r, w) || excuse(r, w) != why)
			continue;
		ret = (struct conclude_late){ .rank = r->job.workers[w].fp->rank,
					      .ms = lost / 1e6,
					      .pct = 100 * lost / r->job.iteration_ns };
	}
	return ret;
}

/* How long an iteration was in the past, where only that shows a slowdown; 0: it shows none. */
static int find_past_ms(const struct run *r, double *ret)
{
	double slowdown_ns;
	int error;

	*ret = 0;
	if (r->options->trigger.present || r->past.known_cnt == 0)
		return 0;
	error = past_slowdown(&r->past, &slowdown_ns);
	if (error == 0 && slowdown_ns >= PAST_SLOW_FRAC * r->job.iteration_ns)
		*ret = (r->job.iteration_ns - slowdown_ns) / 1e6;
	return error;
}

/* Waiting for what is not here: an absent rank, or the network. */
static int find_wait_ms(const struct run *r, double *ret, double *ret_absent)
{
	double wait_ns = 0;

	if (all_present(r))
		return 0;
	if (absentee_wait(&r->job, &r->blame, &wait_ns) < 0)
		return -ENOMEM;
	*ret_absent = wait_ns / 1e6;
	if (may_wait_for_absent(r))
		wait_ns =
			fmax(wait_ns, absentee_comm_frac(&r->job, &r->blame) * r->job.iteration_ns);
	if (matters(r, wait_ns))
		*ret = wait_ns / 1e6;
	return 0;
}

/* Beside a finding, which says nothing of ranks that are not here. */
static int note_absent_wait(struct run *r, double wait_ms)
{
	if (wait_ms <= 0 || r->out->finding_cnt == 0 || r->out->missing_cnt == 0 ||
	    !(r->out->iteration_ms > 0))
		return 0;
	return NOTE(
		r,
		"the ranks analyzed wait %.1f ms per iteration (%.1f %%) for ranks whose traces are "
		"missing, or for the network",
		wait_ms, 100 * wait_ms / r->out->iteration_ms);
}

static int decide(struct run *r)
{
	struct conclude_facts facts = { .matched = r->blame.matched_cnt > 0,
					.unrelated = r->options->perhaps_two_jobs,
					.alone = r->job.worker_cnt == 1 && r->past.known_cnt == 0 &&
						 !r->options->trigger.present,
					.apart = r->job.worker_cnt > 1 &&
						 r->job.group_cnt == r->job.worker_cnt,
					.unmatched_rank = unmatched_rank(r),
					.min_gain_pct = r->options->min_gain_pct,
					.late = find_late(r, NULL, r->options->min_gain_pct),
					.chance = find_late(r, by_chance, CHANCE_PCT),
					.unequal = r->unequal };

	if (r->job.worker_cnt > 0) {
		const struct fingerprint *lossy = find_lossy(r);

		facts.met_cnt = blame_fewest_met(&r->job, &r->blame);
		facts.lossy_rank = lossy->rank;
		facts.lost_frac = job_lost_frac(lossy);
	}
	if (find_wait_ms(r, &facts.wait_ms, &facts.absent_ms) < 0 ||
	    job_find_starved_ns(&r->job, &facts.starved_ms) < 0)
		return -ENOMEM;
	facts.starved_ms /= 1e6;
	if (past_alike_factor(&r->past, &r->out->alike_factor) < 0 ||
	    find_past_ms(r, &facts.past_ms) < 0 || tail_find(&r->job, &facts.tail) < 0)
		return -ENOMEM;
	if (tail_find_pace(&r->job, &r->blame, &facts.pace) < 0 ||
	    note_absent_wait(r, facts.wait_ms) < 0)
		return -ENOMEM;
	return conclude(r->out, &facts);
}

static int find_accusations(struct run *r)
{
	struct accuse_options options;
	struct arena *arena = &r->job.arena;
	int error = set_accuse_options(r, &options);

	if (error == 0)
		error = blame_find(&r->job, arena, &r->blame);
	if (error == 0)
		error = accuse_by_blame(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_pauses(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_split(&r->job, &options, arena, &r->accusations);
	if (error == 0)
		error = weighing_drop_common(&r->job, &r->accusations);
	if (error == 0)
		error = accuse_by_inputs(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_difference(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_sisters(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_stages(&r->job, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_gil(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_past(&r->past, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_expectation(&r->job, &r->blame, &options, arena, &r->accusations);
	if (error == 0)
		error = accuse_by_flow(&r->job, &options, arena, &r->accusations);
	if (error == 0)
		error = part_find(&r->past, &options, arena, &r->accusations);
	if (error == 0) {
		weighing_drop_victims(&r->job, &r->accusations);
		error = usual_find_unequal(&r->job, &r->blame, &options, &r->accusations,
					   &r->unequal);
	}
	if (error == 0)
		error = usual_note(r->out, r->notes, &r->job, &options, &r->accusations);
	if (error == 0) {
		beginning_drop(&r->job, &r->accusations);
		weighing_drop_covered(&r->job, &r->accusations);
	}
	if (error == 0)
		error = companions_join(&r->job, arena, &r->accusations);
	if (error == 0)
		error = collections_weigh(&r->job, &r->blame, &r->accusations);
	if (error == 0)
		error = usercode_name(&r->job, &r->accusations);
	if (error == 0)
		error = by_past_recall(&r->past, &r->accusations);
	weighing_doubt(&r->job, &r->past, &options, &r->accusations);
	/* A running job shows how fast it can be: what it always has is no event. */
	if (error == 0 && !r->options->trigger.present)
		error = accuse_by_stalls(&r->job, &r->blame, arena, &r->accusations);
	if (error == 0 && !r->options->trigger.present)
		error = accuse_by_usage(&r->job, &r->blame, r->out, arena, &r->accusations);
	if (error == 0)
		error = gain_find_hidden(&r->job, &r->blame, &options, &r->accusations);
	weighing_drop_slight(&r->job, &r->blame, &options, &r->accusations);
	weighing_drop_minor(&r->job, &r->accusations);
	if (error == 0)
		error = weighing_drop_chips(&r->job, &r->accusations);
	return error;
}

static int run_all(struct run *r)
{
	static int (*const steps[])(struct run *) = {
		describe_input, list_absences, join_past,	  find_accusations,
		list_waits,	list_shares,   list_collectives,  list_growth,
		make_findings,	fill_pictures, copy_notes,	  note_lateness,
		note_guesses,	note_drops,    note_observations, decide,
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int error = steps[i](r);

		if (error < 0)
			return error;
	}
	return 0;
}

int localize(const struct fingerprint *const *fps, size_t cnt,
	     const struct localize_options *options, struct report *ret, struct err *err)
{
	struct report out = { 0 };
	struct run r = { .options = options, .out = &out };
	int error;

	arena_init(&out.arena);
	r.expect = options->expect != NULL ? *options->expect : expect_defaults();
	r.notes = arena_calloc(&out.arena, PARTS_MAX_NOTES, sizeof(*r.notes));
	error = r.notes != NULL ? join_workers(&r, fps, cnt, err) : -ENOMEM;
	out.notes = r.notes;
	if (error == 0)
		error = run_all(&r);
	blame_done(&r.blame);
	vec_done(&r.accusations);
	past_done(&r.past);
	job_done(&r.job);
	if (error < 0) {
		arena_done(&out.arena);
		return error == -ENOMEM ? err_set(err, ENOMEM,
						  "out of memory while comparing %zu workers", cnt)
					: error;
	}
	*ret = out;
	return 0;
}
