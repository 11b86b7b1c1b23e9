/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process groups that do the same collectives side by side, such as the data-parallel groups of a
 * job with tensor parallelism: what one of them needs for a transfer of as many bytes, so do its
 * sisters. The member that arrives last waits for none, so its time is that of the transfer. A
 * group whose transfers take longer has a slow link, with or without counters; which of its
 * members has it is known where by_link.c accuses one. O(collectives log collectives).
 * Source: PerfTracker section 3, figures 3-5: the rings without the slow link are as fast as ever.
 */
#include "base/stats.h"
#include "localize/groups/groups.h"
#include "localize/late/work.h"
#include "localize/witness/weighing.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* One transfer of a group. Sisters have the same kind. */
struct transfer {
	uint64_t name;
	int64_t bytes;
	uint32_t member_cnt, host_cnt;
	uint32_t leader; /* without bytes only groups of workers with the same work are sisters */
	uint32_t group;
	double ns, critical_ns; /* of the last arrival */
};

/* The transfers of one kind in one group. */
struct part {
	size_t first, cnt; /* in transfers */
	double typical_ns;
	double low_ns, high_ns; /* quartiles */
};

#define SISTERS_LEADERS 512u

struct sisters {
	const struct job *job;
	const struct blame *blame;
	const struct accuse_options *options;
	struct arena *arena;
	VEC(struct transfer) transfers;
	VEC(struct part) parts; /* of one kind */
	double *scratch;
	uint32_t leaders[SISTERS_LEADERS]; /* found so far: one of each kind of work */
	size_t leader_cnt;
};

static int compare_ids(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* By kind, then by group. */
static int transfer_cmp(const void *a, const void *b)
{
	const struct transfer *x = a, *y = b;
	int order = compare_ids(x->name, y->name);

	if (order == 0)
		order = (x->bytes > y->bytes) - (x->bytes < y->bytes);
	if (order == 0)
		order = compare_ids(x->member_cnt, y->member_cnt);
	if (order == 0)
		order = compare_ids(x->host_cnt, y->host_cnt);
	if (order == 0)
		order = compare_ids(x->leader, y->leader);
	return order == 0 ? compare_ids(x->group, y->group) : order;
}

static bool same_kind(const struct transfer *a, const struct transfer *b)
{
	return a->name == b->name && a->bytes == b->bytes && a->member_cnt == b->member_cnt &&
	       a->host_cnt == b->host_cnt && a->leader == b->leader;
}

/* seen: by host, the number of the group that it was last seen in; number: of this group. */
static uint32_t count_hosts(const struct job *job, const struct shift_group *group, uint32_t *seen,
			    uint32_t number)
{
	uint32_t cnt = 0;

	for (size_t m = 0; m < group->member_cnt; m++) {
		uint32_t host = job->workers[group->members[m].worker].host;

		cnt += seen[host] != number;
		seen[host] = number;
	}
	return cnt;
}

/*
 * The first worker that does the same work as the group's first member: one that leads other groups,
 * else one that is found among all. Where work is of more kinds than SISTERS_LEADERS no groups are
 * sisters, and each is led by its own member.
 */
static uint32_t leader_of(struct sisters *s, const struct shift_group *group)
{
	uint32_t own = group->members[0].worker, leader = 0;

	for (size_t i = 0; i < s->leader_cnt; i++) {
		if (work_is_same(s->job, s->leaders[i], own))
			return s->leaders[i];
	}
	if (s->leader_cnt == SISTERS_LEADERS)
		return own;
	while (leader < own && !work_is_same(s->job, leader, own))
		leader++;
	s->leaders[s->leader_cnt++] = leader;
	return leader;
}

/* False: not all members have it, so the last arrival may be unknown. */
static bool measure(const struct shift_group *group, int64_t instance, struct transfer *ret)
{
	const struct fp_collective *last = NULL;

	for (size_t m = 0; m < group->member_cnt; m++) {
		const struct fp_collective *c = shift_borrow(&group->members[m], instance);

		if (c == NULL || !c->group_known)
			return false;
		if (last == NULL || c->dur_ns < last->dur_ns)
			last = c;
	}
	if (last == NULL || (last->group_size > 0 && (size_t)last->group_size != group->member_cnt))
		return false;
	ret->name = last->name;
	ret->bytes = last->bytes;
	ret->ns = (double)last->dur_ns;
	ret->critical_ns = (double)last->critical_ns;
	return true;
}

static int collect(struct sisters *s)
{
	_cleanup_free_ uint32_t *seen = calloc(s->job->worker_cnt + 1, sizeof(*seen));

	if (seen == NULL)
		return -ENOMEM;
	for (uint32_t g = 0; g < s->blame->groups.cnt; g++) {
		const struct shift_group *group = &s->blame->groups.data[g];
		uint32_t leader =
			FRAME_NONE; /* not known yet: it takes time, and is rarely needed */
		struct transfer t = { .member_cnt = (uint32_t)group->member_cnt,
				      .host_cnt = count_hosts(s->job, group, seen, g + 1),
				      .group = g };

		for (int64_t k = group->first; k <= group->last; k++) {
			if (!measure(group, k, &t))
				continue;
			if (t.bytes < 0 && leader == FRAME_NONE)
				leader = leader_of(s, group);
			t.leader = t.bytes < 0 ? leader : 0;
			if (vec_push(&s->transfers, t) < 0)
				return -ENOMEM;
		}
	}
	if (s->transfers.cnt > 0)
		qsort(s->transfers.data, s->transfers.cnt, sizeof(*s->transfers.data),
		      transfer_cmp);
	return 0;
}

/* Divides the transfers of one kind, [first, end), by group. */
static int find_parts(struct sisters *s, size_t first, size_t end)
{
	s->parts.cnt = 0;
	while (first < end) {
		struct part part = { .first = first };

		for (; first < end &&
		       s->transfers.data[first].group == s->transfers.data[part.first].group;
		     first++)
			s->scratch[part.cnt++] = s->transfers.data[first].ns;
		part.low_ns = stats_quantile(s->scratch, part.cnt, 0.25);
		part.high_ns = stats_quantile(s->scratch, part.cnt, 0.75);
		part.typical_ns = stats_median(s->scratch, part.cnt);
		if (part.cnt >= SISTERS_TRANSFERS && vec_push(&s->parts, part) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* What a transfer takes in the sisters: in the faster half of them. */
static struct part usual_of(struct sisters *s)
{
	size_t half = (s->parts.cnt + 1) / 2;
	struct part usual = { 0 };

	for (size_t i = 0; i < s->parts.cnt; i++)
		s->scratch[i] = s->parts.data[i].typical_ns;
	usual.typical_ns = stats_quantile(s->scratch, s->parts.cnt,
					  (double)(half - 1) / fmax(1, (double)s->parts.cnt - 1));
	for (size_t i = 0; i < s->parts.cnt; i++) {
		if (s->parts.data[i].typical_ns <= usual.typical_ns)
			usual.high_ns = fmax(usual.high_ns, s->parts.data[i].high_ns);
	}
	return usual;
}

/* Clearly slower, not now and then: the quartiles are apart. */
static bool is_slow(const struct part *part, const struct part *usual)
{
	return part->typical_ns >= SISTERS_SLOWER * usual->typical_ns &&
	       part->low_ns > usual->high_ns;
}

/* Per iteration: what the transfers take longer, as far as that is on the critical path. */
static double saved_ns(const struct sisters *s, const struct part *part, const struct part *usual)
{
	const struct transfer *all = &s->transfers.data[part->first];
	const struct shift_group *group = &s->blame->groups.data[all[0].group];
	double more = (double)part->cnt * (part->typical_ns - usual->typical_ns);
	double critical = 0, iterations = 1;

	for (size_t i = 0; i < part->cnt; i++)
		critical += all[i].critical_ns;
	for (size_t m = 0; m < group->member_cnt; m++)
		iterations = fmax(iterations, s->job->workers[group->members[m].worker].iterations);
	return fmin(more, critical) / iterations;
}

/* The function of the members whose time is nearest to that of the transfers; FRAME_NONE. */
static uint32_t function_of(const struct sisters *s, const struct part *part)
{
	const struct shift_group *group =
		&s->blame->groups.data[s->transfers.data[part->first].group];
	const struct shift_list *member = &group->members[0];
	double all_ns = 0, nearest = (double)INFINITY;
	uint32_t found = FRAME_NONE;

	for (size_t i = 0; i < member->cnt; i++) {
		const struct fp_collective *c = &member->all[member->idx[i]];

		if (c->name == s->transfers.data[part->first].name)
			all_ns += (double)c->dur_ns;
	}
	for (uint32_t f = 0; f < s->job->functions.cnt; f++) {
		const struct job_function *fn = &s->job->functions.data[f];
		const struct fp_function *own = fn->of[member->worker];
		double off;

		if (fn->class != CLASS_COMM || own == NULL || fn->frame == FRAME_NONE)
			continue;
		off = fabs((double)own->total_ns - all_ns);
		if (off < nearest) {
			nearest = off;
			found = f;
		}
	}
	return found;
}

static int index_cmp(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Whether the link of some of the members is known already, or another kind of theirs is slow. */
static bool is_known(const struct accusation *a, accusations *list)
{
	vec_foreach(other, list) {
		if (other->class != CLASS_COMM || other->witness != WITNESS_DIFFERENCE ||
		    !weighing_shares_workers(a, other))
			continue;
		if (other->groups.sister_cnt > 0)
			other->gain_ns += a->gain_ns;
		return true;
	}
	return false;
}

static int accuse(struct sisters *s, const struct part *part, const struct part *usual,
		  accusations *out)
{
	const struct shift_group *group =
		&s->blame->groups.data[s->transfers.data[part->first].group];
	uint32_t *workers = arena_calloc(s->arena, group->member_cnt + 1, sizeof(*workers));
	struct accusation a = {
		.witness = WITNESS_DIFFERENCE,
		.workers = workers,
		.worker_cnt = group->member_cnt,
		.function = function_of(s, part),
		.class = CLASS_COMM,
		.groups = { .sister_cnt = s->parts.cnt - 1,
			    .sister_factor = part->typical_ns / usual->typical_ns },
	};

	if (workers == NULL)
		return -ENOMEM;
	for (size_t m = 0; m < group->member_cnt; m++)
		workers[m] = group->members[m].worker;
	qsort(workers, group->member_cnt, sizeof(*workers), index_cmp);
	a.own_ns = a.main_ns = a.gain_ns = saved_ns(s, part, usual);
	if (a.function == FRAME_NONE ||
	    a.gain_ns < s->options->min_gain_frac * s->job->iteration_ns || is_known(&a, out))
		return 0;
	a.frame = s->job->functions.data[a.function].frame;
	return vec_push(out, a);
}

static int accuse_kind(struct sisters *s, accusations *out)
{
	struct part usual;
	size_t slow = 0;
	int error = 0;

	if (s->parts.cnt < 2)
		return 0;
	usual = usual_of(s);
	vec_foreach(part, &s->parts)
		slow += is_slow(part, &usual);
	if (2 * slow > s->parts.cnt)
		return 0;
	vec_foreach(part, &s->parts) {
		if (error == 0 && is_slow(part, &usual))
			error = accuse(s, part, &usual, out);
	}
	return error;
}

static int accuse_all(struct sisters *s, accusations *out)
{
	size_t first = 0, before = out->cnt;
	int error = collect(s);

	s->scratch = arena_calloc(s->arena, s->transfers.cnt + 1, sizeof(*s->scratch));
	if (error < 0 || s->scratch == NULL)
		return -ENOMEM;
	while (first < s->transfers.cnt && error == 0) {
		size_t end = first + 1;

		while (end < s->transfers.cnt &&
		       same_kind(&s->transfers.data[first], &s->transfers.data[end]))
			end++;
		error = find_parts(s, first, end);
		if (error == 0)
			error = accuse_kind(s, out);
		first = end;
	}
	if (error == 0 && out->cnt > before)
		weighing_drop_network(s->job, out);
	return error;
}

int accuse_by_sisters(const struct job *job, const struct blame *blame,
		      const struct accuse_options *options, struct arena *arena, accusations *out)
{
	struct sisters s = { .job = job, .blame = blame, .options = options, .arena = arena };
	int error = accuse_all(&s, out);

	vec_done(&s.transfers);
	vec_done(&s.parts);
	return error;
}
