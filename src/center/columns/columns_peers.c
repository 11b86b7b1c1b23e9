/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h for columns: the same similarity to the same leaders, but a worker costs as
 * much as it has computing functions, however many there are in the job.
 */
#include "center/columns/columns.h"
#include "localize/peers.h"
#include "model/code16.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* The first worker of a group. */
struct leader {
	double *beta; /* by role */
	double total;
};

struct roles {
	uint32_t *of; /* by function; FRAME_NONE: computes nothing */
	size_t cnt;
	double *beta;	  /* of the worker at hand, by role; 0 but for those listed */
	uint32_t *listed; /* roles that it has */
	size_t listed_cnt;
	VEC(struct leader) leaders;
};

static void roles_done(struct roles *roles)
{
	vec_foreach(leader, &roles->leaders)
		free(leader->beta);
	vec_done(&roles->leaders);
	free(roles->of);
	free(roles->beta);
	free(roles->listed);
}

static const char *name_of(const struct columns *columns, const struct columns_function *f)
{
	return f->frame != FRAME_NONE ? columns->frames.data[f->frame].name : "";
}

/* Functions of one name are one role, regardless of their callers. */
static int roles_init(struct roles *r, const struct columns *columns)
{
	size_t cnt = columns->functions.cnt;

	r->of = calloc(cnt + 1, sizeof(*r->of));
	r->beta = calloc(cnt + 1, sizeof(*r->beta));
	r->listed = calloc(cnt + 1, sizeof(*r->listed));
	if (r->of == NULL || r->beta == NULL || r->listed == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct columns_function *f = &columns->functions.data[i];
		size_t same = 0;

		r->of[i] = FRAME_NONE;
		if (f->class != CLASS_COMPUTE)
			continue;
		while (same < i && (r->of[same] == FRAME_NONE ||
				    strcmp(name_of(columns, &columns->functions.data[same]),
					   name_of(columns, f)) != 0))
			same++;
		r->of[i] = same < i ? r->of[same] : (uint32_t)r->cnt++;
	}
	return 0;
}

static void load_worker(struct roles *r, const struct columns *columns,
			const struct columns_worker *w)
{
	for (size_t i = 0; i < r->listed_cnt; i++)
		r->beta[r->listed[i]] = 0;
	r->listed_cnt = 0;
	for (size_t row = w->first; row < w->first + w->cnt; row++) {
		uint32_t role = r->of[columns->added_function.data[row]];
		uint16_t code = columns->added[COLUMN_BETA].data[row];

		if (role == FRAME_NONE || code == 0 || code == CODE16_ABSENT)
			continue;
		if (r->beta[role] <= 0)
			r->listed[r->listed_cnt++] = role;
		r->beta[role] += code16_frac(code);
	}
}

/* Weighted Jaccard similarity; the weight of a role is the larger of the two betas. */
static bool alike(const struct roles *r, const struct leader *leader)
{
	double both = 0, either = leader->total;

	for (size_t i = 0; i < r->listed_cnt; i++) {
		double mine = r->beta[r->listed[i]], its = leader->beta[r->listed[i]];
		double weight = fmax(mine, its);

		either += weight - its;
		if (its > 0)
			both += weight;
	}
	return peers_alike(both, either);
}

static int lead(struct roles *r)
{
	struct leader leader = { .beta = calloc(r->cnt + 1, sizeof(double)) };

	if (leader.beta == NULL || vec_push(&r->leaders, leader) < 0) {
		free(leader.beta);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->listed_cnt; i++) {
		leader.beta[r->listed[i]] = r->beta[r->listed[i]];
		r->leaders.data[r->leaders.cnt - 1].total += r->beta[r->listed[i]];
	}
	return 0;
}

static int count_groups(struct columns *columns, size_t group_cnt)
{
	size_t sum = 0;

	columns->group_first.cnt = 0;
	for (size_t group = 0; group <= group_cnt; group++) {
		if (vec_push(&columns->group_first, 0) < 0)
			return -ENOMEM;
	}
	vec_foreach(w, &columns->workers)
		columns->group_first.data[w->group]++;
	for (size_t group = 0; group <= group_cnt; group++) {
		size_t cnt = columns->group_first.data[group];

		columns->group_first.data[group] = sum;
		sum += cnt;
	}
	return 0;
}

int columns_peers(struct columns *columns)
{
	_cleanup_(roles_done) struct roles roles = { 0 };
	int error = roles_init(&roles, columns);

	for (size_t w = 0; w < columns->workers.cnt && error == 0; w++) {
		uint32_t group = 0;

		load_worker(&roles, columns, &columns->workers.data[w]);
		while (group < roles.leaders.cnt && !alike(&roles, &roles.leaders.data[group]))
			group++;
		columns->workers.data[w].group = group;
		if (group == roles.leaders.cnt)
			error = lead(&roles);
	}
	return error == 0 ? count_groups(columns, roles.leaders.cnt) : error;
}
