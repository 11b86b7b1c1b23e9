/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/pictures/iterationlanes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LANES_MAX 3u
#define PARTS_MAX 400u	 /* of a lane: closer collectives become one */
#define BEYOND_FRAC 0.02 /* of the iteration is drawn before and after it */

/* The stretch of time that is drawn, on the culprit's clock. */
struct range {
	double begin_ns, end_ns;
	int64_t step;
};

/* What a lane needs of a worker. */
struct chosen {
	size_t worker;
	const char *role;
	double offset_ns; /* added to its clock; NAN: no common collective */
};

/* The iteration in which others waited longest for it, else its longest one. */
static bool choose_iteration(const struct job *job, const struct blame *blame, size_t culprit,
			     struct range *ret)
{
	const struct fingerprint *fp = job->workers[culprit].fp;
	const double *lost = blame != NULL ? blame->workers[culprit].iteration_lost_ns : NULL;
	size_t best = 0;

	for (size_t i = 1; i < fp->iteration_cnt; i++) {
		double more = lost != NULL ? lost[i] - lost[best] : 0;
		int64_t longer_ns = fp->iterations[i].dur_ns - fp->iterations[best].dur_ns;

		if (more > 0 || (more == 0 && longer_ns > 0))
			best = i;
	}
	if (fp->iteration_cnt == 0 || fp->iterations[best].dur_ns <= 0)
		return false;
	*ret = (struct range){ .begin_ns = (double)fp->iterations[best].start_ns,
			       .end_ns = (double)(fp->iterations[best].start_ns +
						  fp->iterations[best].dur_ns),
			       .step = fp->iterations[best].number };
	return true;
}

/* Whether worker w is another one than those chosen. */
static bool is_new(const struct chosen *list, size_t cnt, size_t w)
{
	for (size_t i = 0; i < cnt; i++) {
		if (list[i].worker == w)
			return false;
	}
	return true;
}

static size_t choose_waiter(const struct job *job, const struct blame *blame, size_t culprit)
{
	size_t found = SIZE_MAX;
	double longest = 0;

	if (blame == NULL)
		return SIZE_MAX;
	vec_foreach(wait, &blame->waits) {
		if (wait->from == culprit && wait->to < job->worker_cnt && wait->ns > longest) {
			longest = wait->ns;
			found = wait->to;
		}
	}
	return found;
}

static double lost_ns(const struct blame *blame, size_t w)
{
	return blame != NULL ? blame->workers[w].lost_ns : 0;
}

/* The peer that others wait least for, of one group with the culprit where there is one. */
static size_t choose_typical(const struct job *job, const struct blame *blame,
			     const struct chosen *list, size_t cnt)
{
	size_t found = SIZE_MAX;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		if (!is_new(list, cnt, w) || job->workers[w].fp->collective_cnt == 0 ||
		    job->workers[w].group != job->workers[list[0].worker].group)
			continue;
		if (found == SIZE_MAX || lost_ns(blame, w) < lost_ns(blame, found))
			found = w;
	}
	return found;
}

static double member_offset(const struct shift_group *group, size_t worker)
{
	for (size_t i = 0; i < group->member_cnt; i++) {
		if (group->members[i].worker == worker)
			return group->members[i].offset_ns;
	}
	return NAN;
}

/* What is added to the clock of a worker so that it is the culprit's; NAN: unknown. */
static double find_offset(const struct blame *blame, size_t worker, size_t culprit)
{
	if (worker == culprit)
		return 0;
	for (size_t g = 0; blame != NULL && g < blame->groups.cnt; g++) {
		const struct shift_group *group = &blame->groups.data[g];
		double offset = member_offset(group, culprit) - member_offset(group, worker);

		if (!isnan(offset))
			return offset;
	}
	return NAN;
}

static size_t choose(const struct job *job, const struct blame *blame, size_t culprit,
		     struct chosen ret[static LANES_MAX])
{
	size_t cnt = 1, waiter = choose_waiter(job, blame, culprit), typical;

	ret[0] = (struct chosen){ culprit, "culprit", 0 };
	if (waiter != SIZE_MAX)
		ret[cnt++] = (struct chosen){ waiter, "waits most for it", 0 };
	typical = choose_typical(job, blame, ret, cnt);
	if (typical != SIZE_MAX)
		ret[cnt++] = (struct chosen){ typical, "another rank", 0 };
	for (size_t i = 0; i < cnt; i++)
		ret[i].offset_ns = find_offset(blame, ret[i].worker, culprit);
	return cnt;
}

/* By how much the worker's execution of each collective exceeds that of the last member. */
static void find_waits(const struct blame *blame, size_t worker, const struct fp_collective *all,
		       double *ret_ns)
{
	for (size_t g = 0; blame != NULL && g < blame->groups.cnt; g++) {
		const struct shift_group *group = &blame->groups.data[g];
		const struct shift_list *mine = NULL;

		for (size_t i = 0; i < group->member_cnt; i++) {
			if (group->members[i].worker == worker)
				mine = &group->members[i];
		}
		for (int64_t k = group->first; mine != NULL && k <= group->last; k++) {
			const struct fp_collective *of = shift_borrow(mine, k);
			int64_t least_ns = INT64_MAX;

			for (size_t i = 0; of != NULL && i < group->member_cnt; i++) {
				const struct fp_collective *c = shift_borrow(&group->members[i], k);

				least_ns = c != NULL ? MIN(least_ns, c->dur_ns) : least_ns;
			}
			if (of != NULL)
				ret_ns[of - all] = (double)(of->dur_ns - least_ns);
		}
	}
}

/* The lane under construction. */
struct drawing {
	const struct fingerprint *fp;
	const struct range *range;
	double offset_ns;
	const double *waits_ns;
	struct report_stretch *stretches;
	struct report_meeting *meetings;
	size_t stretch_cnt, meeting_cnt;
};

static double to_ms(const struct drawing *d, double own_ns)
{
	return (own_ns + d->offset_ns - d->range->begin_ns) / 1e6;
}

static double length_ms(const struct range *range)
{
	return (range->end_ns - range->begin_ns) / 1e6;
}

static void add_meeting(struct drawing *d, const struct fp_collective *c)
{
	double begin = to_ms(d, (double)c->start_ns),
	       end = to_ms(d, (double)(c->start_ns + c->dur_ns));
	double close = length_ms(d->range) / PARTS_MAX;
	double wait_ms = d->waits_ns[c - d->fp->collectives] / 1e6;
	struct report_meeting *last = d->meeting_cnt > 0 ? &d->meetings[d->meeting_cnt - 1] : NULL;

	if (end <= 0 || d->meetings == NULL)
		return;
	if (last != NULL && (begin < last->end_ms + close || d->meeting_cnt == PARTS_MAX)) {
		last->end_ms = fmax(last->end_ms, end);
		last->wait_ms = fmin(last->wait_ms + wait_ms, last->end_ms - last->begin_ms);
		return;
	}
	d->meetings[d->meeting_cnt++] = (struct report_meeting){ begin, end, wait_ms };
}

/* Shares of length_ns before c, by class; what is communication is known. */
static void add_lead(const struct drawing *d, const struct fp_collective *c, double length_ns,
		     double comm, double ret[static CLASS_CNT])
{
	double sum = 0, scale;

	for (uint32_t i = 0; i < c->lead_cnt; i++) {
		const struct fp_share *share = &d->fp->shares[c->lead_first + i];
		uint8_t class;

		if (share->function >= d->fp->function_cnt)
			continue; /* what is not listed is left blank */
		class = d->fp->functions[share->function].class;
		if (class == CLASS_COMM)
			continue;
		ret[class] += (double)share->ns / length_ns;
		sum += (double)share->ns / length_ns;
	}
	scale = sum > 1 - comm ? (1 - comm) / sum : 1;
	for (int i = 0; i < CLASS_CNT; i++)
		ret[i] *= scale;
	ret[CLASS_COMM] = comm;
}

/* What ran from the start of the collective before, or of what is known, to that of c. */
static void add_stretch(struct drawing *d, const struct fp_collective *before,
			const struct fp_collective *c)
{
	double begin_ns = before != NULL ? (double)before->start_ns
					 : (double)MAX(c->start_ns - c->lead_ns, 0);
	double length_ns = (double)c->start_ns - begin_ns;
	double comm = before != NULL ? (double)before->critical_ns : 0;
	struct report_stretch s = { .begin_ms = to_ms(d, begin_ns),
				    .end_ms = to_ms(d, (double)c->start_ns) };

	if (length_ns <= 0 || s.end_ms <= 0 || d->stretch_cnt == PARTS_MAX ||
	    s.end_ms - s.begin_ms < length_ms(d->range) / PARTS_MAX ||
	    to_ms(d, begin_ns) > length_ms(d->range))
		return;
	add_lead(d, c, length_ns, fmin(1, comm / length_ns), s.class_frac);
	d->stretches[d->stretch_cnt++] = s;
}

static void add_parts(struct drawing *d)
{
	double margin = BEYOND_FRAC * (d->range->end_ns - d->range->begin_ns);
	const struct fp_collective *before = NULL;

	for (size_t i = 0; i < d->fp->collective_cnt; i++) {
		const struct fp_collective *c = &d->fp->collectives[i];
		double begin = (double)c->start_ns + d->offset_ns;

		if (begin + (double)c->dur_ns >= d->range->begin_ns - margin &&
		    begin <= d->range->end_ns + margin)
			add_meeting(d, c);
		if (begin >= d->range->begin_ns - margin)
			add_stretch(d, before, c);
		before = c;
	}
}

static int fill_lane(const struct job *job, const struct blame *blame, const struct chosen *of,
		     const struct range *range, struct report *out, struct report_lane *ret)
{
	const struct fingerprint *fp = job->workers[of->worker].fp;
	_cleanup_free_ double *waits_ns = calloc(fp->collective_cnt + 1, sizeof(*waits_ns));
	struct drawing d = {
		.fp = fp, .range = range, .offset_ns = of->offset_ns, .waits_ns = waits_ns
	};

	d.stretches = arena_calloc(&out->arena, PARTS_MAX, sizeof(*d.stretches));
	d.meetings = arena_calloc(&out->arena, PARTS_MAX, sizeof(*d.meetings));
	if (waits_ns == NULL || d.stretches == NULL || d.meetings == NULL)
		return -ENOMEM;
	find_waits(blame, of->worker, fp->collectives, waits_ns);
	add_parts(&d);
	*ret = (struct report_lane){ .rank = fp->rank,
				     .role = of->role,
				     .stretches = d.stretches,
				     .stretch_cnt = d.stretch_cnt,
				     .meetings = d.meetings,
				     .meeting_cnt = d.meeting_cnt };
	return 0;
}

/* Without a common collective, each rank's own iteration begins at 0. */
static void align_begins(const struct job *job, struct chosen *list, size_t cnt,
			 const struct range *range)
{
	int64_t nth = job_iteration_at(&job->workers[list[0].worker], (int64_t)range->begin_ns);

	for (size_t i = 1; i < cnt; i++) {
		const struct fingerprint *fp = job->workers[list[i].worker].fp;

		if (isnan(list[i].offset_ns) && nth >= 0 && (size_t)nth < fp->iteration_cnt)
			list[i].offset_ns = range->begin_ns - (double)fp->iterations[nth].start_ns;
	}
}

int iterationlanes_fill(const struct job *job, const struct blame *blame, size_t culprit,
			struct report *out)
{
	struct chosen list[LANES_MAX] = { 0 };
	struct range range;
	struct report_lane *lanes = arena_calloc(&out->arena, LANES_MAX, sizeof(*lanes));
	size_t cnt, kept = 0;
	int error = 0;

	if (lanes == NULL)
		return -ENOMEM;
	if (job->workers[culprit].fp->collective_cnt == 0 ||
	    !choose_iteration(job, blame, culprit, &range))
		return 0;
	cnt = choose(job, blame, culprit, list);
	out->lanes.aligned = true;
	for (size_t i = 0; i < cnt; i++)
		out->lanes.aligned &= !isnan(list[i].offset_ns);
	align_begins(job, list, cnt, &range);
	for (size_t i = 0; i < cnt && error == 0; i++) {
		if (isnan(list[i].offset_ns))
			continue;
		error = fill_lane(job, blame, &list[i], &range, out, &lanes[kept]);
		kept += error == 0 && lanes[kept].meeting_cnt > 0;
	}
	out->lanes.lanes = lanes;
	/* The first lane is drawn as the culprit's. */
	if (kept > 1 && lanes[0].rank == job->workers[culprit].fp->rank)
		out->lanes.lane_cnt = kept;
	out->lanes.length_ms = length_ms(&range);
	out->lanes.step_known = range.step >= 0;
	out->lanes.step = range.step;
	return error;
}
