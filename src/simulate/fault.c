/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/fault.h"

#include "simulate/random.h"

#include <errno.h>

const struct fault_text *fault_text(enum fault_kind kind)
{
	static const struct fault_text texts[FAULT_KIND_CNT] = {
#define X(id, name, cause, also, functions, help) { name, cause, also, functions, help },
		FAULT_LIST(X)
#undef X
	};

	return &texts[kind];
}

const char *fault_when_name(enum fault_when when)
{
	static const char *const names[] = { [WHEN_ALWAYS] = "always",
					     [WHEN_BY_HOST] = "by host and iteration",
					     [WHEN_RANDOM] = "at random",
					     [WHEN_TURNS] = "by turns",
					     [WHEN_PERIOD] = "periodic" };

	return names[when];
}

/* The units that a fault selects from: workers, inputs, hosts or pairs of NICs. */
static int unit_of(const struct fault_plan *plan, const struct layout *layout, int rank)
{
	int rails = (layout->host_gpus + 1) / 2;

	if (plan->who == WHO_HOSTS || plan->who == WHO_RACKS)
		return layout_host(layout, rank);
	if (plan->who == WHO_RAIL)
		return layout_host(layout, rank) * rails + layout_rail(layout, rank);
	return plan->kind == FAULT_IMBALANCE ? layout_input(layout, rank) : rank;
}

static double share_wanted(const struct fault_plan *plan, int unit_cnt)
{
	if (plan->who == WHO_SHARE || plan->who == WHO_RACKS)
		return fmax(1, round(plan->who_amount * unit_cnt));
	return fmin(plan->who_amount, unit_cnt);
}

/* Racks differ: hosts of the first racks in a random order are more likely. */
static uint64_t lot_of(const struct fault_plan *plan, const struct layout *layout, uint64_t seed,
		       uint32_t salt, int unit)
{
	uint64_t own = random_at(seed, RANDOM_CHOICE, salt, 0, (uint64_t)unit);

	if (plan->who != WHO_RACKS)
		return own;
	return (random_at(seed, RANDOM_CHOICE, salt, 1, (uint64_t)(unit / layout->rack_hosts)) &
		~0xffffULL) |
	       own >> 48;
}

static int lot_cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The largest selected lot. */
static int winning_lot(const struct fault_plan *plan, const struct layout *layout, uint64_t seed,
		       uint32_t salt, uint64_t *ret)
{
	int unit_cnt = unit_of(plan, layout, layout->worker_cnt - 1) + 1;
	int wanted = (int)share_wanted(plan, unit_cnt);
	_cleanup_free_ uint64_t *lots = calloc((size_t)unit_cnt, sizeof(*lots));

	if (lots == NULL)
		return -ENOMEM;
	for (int u = 0; u < unit_cnt; u++)
		lots[u] = lot_of(plan, layout, seed, salt, u);
	qsort(lots, (size_t)unit_cnt, sizeof(*lots), lot_cmp);
	*ret = plan->who == WHO_ALL ? UINT64_MAX : lots[MAX(wanted, 1) - 1];
	return 0;
}

int fault_init(struct fault *fault, const struct fault_plan *plan, const struct layout *layout,
	       uint64_t seed, uint32_t salt)
{
	size_t cnt = (size_t)layout->worker_cnt;
	uint64_t winning;

	*fault = (struct fault){ .plan = *plan, .size = plan->size, .salt = salt };
	fault->hits = calloc(cnt, sizeof(*fault->hits));
	fault->ranks = calloc(cnt, sizeof(*fault->ranks));
	if (fault->hits == NULL || fault->ranks == NULL ||
	    winning_lot(plan, layout, seed, salt, &winning) < 0)
		return -ENOMEM;
	for (int rank = 0; rank < layout->worker_cnt; rank++) {
		if (lot_of(plan, layout, seed, salt, unit_of(plan, layout, rank)) > winning)
			continue;
		fault->hits[rank] = 1;
		fault->ranks[fault->rank_cnt++] = rank;
	}
	return 0;
}

void fault_done(struct fault *fault)
{
	free(fault->hits);
	free(fault->ranks);
	*fault = (struct fault){ 0 };
}

static bool is_time(const struct fault *f, const struct fault_place *p)
{
	uint64_t who = (uint64_t)p->rank;

	switch (f->plan.when) {
	case WHEN_ALWAYS:
		return true;
	case WHEN_BY_HOST:
		who = (uint64_t)layout_host(p->layout, p->rank);
		break;
	case WHEN_RANDOM:
		break;
	case WHEN_TURNS:
		return f->ranks[random_at(p->seed, RANDOM_WHEN, f->salt, p->iteration, 0) %
				f->rank_cnt] == p->rank;
	case WHEN_PERIOD:
		return fmod((double)p->time_ns / 1e6, f->plan.when_amount) <
		       f->plan.when_amount / 2;
	}
	return random_uniform(random_at(p->seed, RANDOM_WHEN, f->salt, p->iteration, who)) <
	       f->plan.when_amount;
}

static bool is_ever(const struct fault *fault, struct fault_place *place, uint32_t iteration_cnt)
{
	if (fault->plan.when == WHEN_PERIOD)
		return true;
	for (uint32_t i = fault->onset; i < iteration_cnt; i++) {
		place->iteration = i;
		if (is_time(fault, place))
			return true;
	}
	return false;
}

int fault_ranks_hit(const struct fault *fault, const struct layout *layout, uint64_t seed,
		    uint32_t iteration_cnt, rankset_vec *ret)
{
	for (size_t i = 0; i < fault->rank_cnt; i++) {
		struct fault_place place = { .layout = layout,
					     .seed = seed,
					     .rank = fault->ranks[i] };

		if (is_ever(fault, &place, iteration_cnt) && vec_push(ret, fault->ranks[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

double fault_size(const struct fault *faults, size_t cnt, enum fault_kind kind,
		  const struct fault_place *place)
{
	double sum = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct fault *f = &faults[i];
		double size = f->size;

		if (f->plan.kind != kind || f->off || !f->hits[place->rank] ||
		    place->iteration < f->onset || !is_time(f, place))
			continue;
		if (kind == FAULT_IMBALANCE && f->plan.who == WHO_ALL)
			size *= random_uniform(
				random_at(place->seed, RANDOM_SIZE, f->salt, place->iteration,
					  (uint64_t)layout_input(place->layout, place->rank)));
		sum += size;
	}
	return sum;
}
