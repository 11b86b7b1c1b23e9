/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/instances.h"

#include "base/vec.h"
#include "model/thresholds.h"

#include <errno.h>

#define DRIFT_MAX_NS (INT64_C(1) << 50) /* of one pair: so many of them don't overflow */

struct member {
	struct instance_event *event;
	int64_t start_ns, end_ns; /* aligned */
	uint32_t rank;
};

/* What is known of one collective. */
struct found {
	int64_t latest_start_ns, first_end_ns;
	uint32_t instance; /* its place in counts */
};

typedef VEC(struct member) member_vec;
typedef VEC(struct found) found_vec;
typedef VEC(uint32_t) count_vec;

struct matcher {
	int64_t together_ns; /* as exact as clocks are */
	count_vec counts;    /* members of each instance; [0] is no instance */
	found_vec found;     /* of one name, by time */
	found_vec merged;
};

static int by_identity(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	bool x_numbered = x->event->seq >= 0, y_numbered = y->event->seq >= 0;

	if (x->event->key != y->event->key)
		return x->event->key < y->event->key ? -1 : 1;
	if (x_numbered != y_numbered)
		return x_numbered ? -1 : 1;
	if (x_numbered && x->event->seq != y->event->seq)
		return x->event->seq < y->event->seq ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int collect_members(const struct instance_rank *ranks, size_t cnt, member_vec *ret)
{
	for (size_t r = 0; r < cnt; r++) {
		for (size_t i = 0; i < ranks[r].cnt; i++) {
			struct instance_event *event = &ranks[r].events[i];
			struct member member = { event, event->start_ns + ranks[r].offset_ns,
						 event->end_ns + ranks[r].offset_ns, (uint32_t)r };

			event->instance = 0;
			if (vec_push(ret, member) < 0)
				return -ENOMEM;
		}
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_identity);
	return 0;
}

static int64_t together_ns(const struct instance_rank *ranks, size_t cnt)
{
	int64_t spread_ns = 0;

	for (size_t i = 0; i < cnt; i++)
		spread_ns = MAX(spread_ns, ranks[i].spread_ns);
	spread_ns = MIN(spread_ns, INSTANCE_TOGETHER_MAX_NS / INSTANCE_TOGETHER_SPREADS);
	return MAX(INSTANCE_TOGETHER_SPREADS * spread_ns, INSTANCE_TOGETHER_MIN_NS);
}

/* --- by number --- */

/* A number that a rank has twice identifies neither execution. */
static bool is_unique(const struct member *m, size_t cnt, size_t i)
{
	return (i == 0 || m[i - 1].rank != m[i].rank) &&
	       (i + 1 == cnt || m[i + 1].rank != m[i].rank);
}

/* members[cnt] have the same number. */
static int match_number(struct matcher *matcher, const struct member *members, size_t cnt)
{
	uint32_t instance = (uint32_t)matcher->counts.cnt, found = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!is_unique(members, cnt, i))
			continue;
		members[i].event->instance = instance;
		found++;
	}
	return vec_push(&matcher->counts, found);
}

/* --- by order --- */

static bool may_be_one(const struct matcher *matcher, const struct found *f, const struct member *m)
{
	return m->start_ns <= f->first_end_ns + matcher->together_ns &&
	       f->latest_start_ns <= m->end_ns + matcher->together_ns;
}

static int64_t apart_ns(const struct found *f, const struct member *m)
{
	int64_t ns = f->first_end_ns - m->end_ns;

	return MIN(ns < 0 ? -ns : ns, DRIFT_MAX_NS);
}

/* Ends agree, and with neither neighbor better. */
static bool is_clear(const struct matcher *matcher, size_t i, const struct member *members,
		     size_t cnt)
{
	const struct found *f = &matcher->found.data[i];
	int64_t ns = apart_ns(f, members);

	return ns <= matcher->together_ns &&
	       (i + 1 == matcher->found.cnt || apart_ns(f + 1, members) > ns) &&
	       (cnt == 1 || apart_ns(f, members + 1) > ns);
}

/* How far apart ends are when found[i] and members[0] are taken for one, and so on. */
struct drift {
	int64_t first_ns, mean_ns;
};

static struct drift drift_of(const struct matcher *matcher, size_t i, const struct member *members,
			     size_t cnt)
{
	size_t pairs = i < matcher->found.cnt ? MIN(matcher->found.cnt - i, cnt) : 0;
	struct drift drift = { INT64_MAX, INT64_MAX };
	int64_t sum_ns = 0;

	pairs = MIN(pairs, (size_t)INSTANCE_AHEAD_CNT);
	for (size_t k = 0; k < pairs; k++)
		sum_ns += apart_ns(&matcher->found.data[i + k], &members[k]);
	if (pairs > 0) {
		drift.first_ns = apart_ns(&matcher->found.data[i], members);
		drift.mean_ns = sum_ns / (int64_t)pairs;
	}
	return drift;
}

/* Ends waver where threads wait for CPUs: only what is much better makes a shift. */
static bool is_better(const struct matcher *matcher, size_t i, const struct member *members,
		      size_t cnt, struct drift now)
{
	struct drift shifted = drift_of(matcher, i, members, cnt);

	return shifted.first_ns < now.first_ns && shifted.mean_ns < now.mean_ns / 2;
}

enum step {
	STEP_FOUND,  /* the rank lacks this one */
	STEP_MEMBER, /* the rank alone has it so far */
	STEP_BOTH,
};

static enum step next_step(const struct matcher *matcher, size_t i, const struct member *members,
			   size_t cnt)
{
	const struct found *f;
	struct drift now;

	if (i == matcher->found.cnt || cnt == 0)
		return cnt == 0 ? STEP_FOUND : STEP_MEMBER;
	f = &matcher->found.data[i];
	if (!may_be_one(matcher, f, members))
		return f->first_end_ns < members->end_ns ? STEP_FOUND : STEP_MEMBER;
	if (is_clear(matcher, i, members, cnt))
		return STEP_BOTH;
	now = drift_of(matcher, i, members, cnt);
	if (is_better(matcher, i + 1, members, cnt, now))
		return STEP_FOUND;
	return is_better(matcher, i, members + 1, cnt - 1, now) ? STEP_MEMBER : STEP_BOTH;
}

static int add_found(struct matcher *matcher, const struct member *m)
{
	struct found fresh = { m->start_ns, m->end_ns, (uint32_t)matcher->counts.cnt };

	m->event->instance = fresh.instance;
	if (vec_push(&matcher->counts, 1) < 0)
		return -ENOMEM;
	return vec_push(&matcher->merged, fresh);
}

static int join(struct matcher *matcher, struct found f, const struct member *m)
{
	f.latest_start_ns = MAX(f.latest_start_ns, m->start_ns);
	f.first_end_ns = MIN(f.first_end_ns, m->end_ns);
	m->event->instance = f.instance;
	matcher->counts.data[f.instance]++;
	return vec_push(&matcher->merged, f);
}

/* Matches members[cnt], those of one rank and name, with what was found on other ranks. */
static int match_rank(struct matcher *matcher, const struct member *members, size_t cnt)
{
	found_vec before;
	size_t i = 0, k = 0;
	int ret = 0;

	matcher->merged.cnt = 0;
	while (ret == 0 && (i < matcher->found.cnt || k < cnt)) {
		enum step step = next_step(matcher, i, members + k, cnt - k);

		if (step == STEP_BOTH)
			ret = join(matcher, matcher->found.data[i], &members[k]);
		else if (step == STEP_FOUND)
			ret = vec_push(&matcher->merged, matcher->found.data[i]);
		else
			ret = add_found(matcher, &members[k]);
		i += step != STEP_MEMBER;
		k += step != STEP_FOUND;
	}
	before = matcher->found;
	matcher->found = matcher->merged;
	matcher->merged = before;
	return ret;
}

/* --- all --- */

/* The end of the members that are like members[begin]: those of one number, or of one rank. */
static size_t run_end(const member_vec *members, size_t begin)
{
	const struct member *first = &members->data[begin];
	size_t i = begin;

	while (i < members->cnt && members->data[i].event->key == first->event->key &&
	       (first->event->seq >= 0
			? members->data[i].event->seq == first->event->seq
			: members->data[i].event->seq < 0 && members->data[i].rank == first->rank))
		i++;
	return i;
}

static int match_all(struct matcher *matcher, const member_vec *members)
{
	int ret = vec_push(&matcher->counts, 0);

	for (size_t i = 0, end; ret == 0 && i < members->cnt; i = end) {
		const struct member *first = &members->data[i];

		end = run_end(members, i);
		if (i == 0 || members->data[i - 1].event->key != first->event->key)
			matcher->found.cnt = 0;
		ret = first->event->seq >= 0 ? match_number(matcher, first, end - i)
					     : match_rank(matcher, first, end - i);
	}
	return ret;
}

/* An instance with one member gets 0. Returns how many are left, numbered from 1. */
static uint32_t number_instances(struct matcher *matcher, const member_vec *members)
{
	uint32_t cnt = 0;

	for (size_t i = 0; i < matcher->counts.cnt; i++)
		matcher->counts.data[i] = matcher->counts.data[i] > 1 ? ++cnt : 0;
	vec_foreach(member, members)
		member->event->instance = matcher->counts.data[member->event->instance];
	return cnt;
}

int instances_find(const struct instance_rank *ranks, size_t cnt, uint32_t *ret_cnt)
{
	struct matcher matcher = { .together_ns = together_ns(ranks, cnt) };
	member_vec members = { 0 };
	int ret = collect_members(ranks, cnt, &members);

	if (ret == 0)
		ret = match_all(&matcher, &members);
	if (ret == 0)
		*ret_cnt = number_instances(&matcher, &members);
	vec_done(&matcher.counts);
	vec_done(&matcher.found);
	vec_done(&matcher.merged);
	vec_done(&members);
	return ret;
}
