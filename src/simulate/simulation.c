/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/simulation.h"

#include "simulate/network.h"
#include "simulate/player.h"
#include "simulate/random.h"

#include <errno.h>
#include <string.h>

#define ITERATIONS 5
#define ITERATIONS_MAX 1000
#define EVENT_WORKERS 32
#define SKEW_MS 15
#define LAYERS 2
#define STRENGTH_MAX 100

struct simulate_options simulate_defaults(const char *scenario)
{
	return (struct simulate_options){ .scenario = scenario,
					  .seed = 1,
					  .strength = 1,
					  .skew_ms = -1,
					  .counters = UINT32_MAX };
}

int simulate_worker_cnt(const struct simulation *sim)
{
	return sim->layout.worker_cnt;
}

/* --- memory --- */

static void meetings_done(struct simulation *sim)
{
	for (int k = 0; k < GROUP_KIND_CNT; k++) {
		free(sim->meetings[k].of);
		free(sim->meetings[k].ready_ns);
		free(sim->meetings[k].slow);
		sim->meetings[k] = (struct meetings){ 0 };
	}
	free(sim->messages);
	sim->messages = NULL;
}

void simulate_close(struct simulation *sim)
{
	if (sim == NULL)
		return;
	meetings_done(sim);
	for (int s = 0; sim->programs != NULL && s < sim->layout.pp; s++)
		program_done(&sim->programs[s]);
	free(sim->programs);
	places_done(&sim->places);
	for (size_t i = 0; i < SCENARIO_FAULTS; i++)
		fault_done(&sim->faults[i]);
	free(sim->name);
	free(sim->missing);
	free(sim->late);
	free(sim);
}

static int meetings_init(struct simulation *sim)
{
	bool chunks = sim->options.level == SIMULATE_EVENTS;

	for (int k = 0; k < GROUP_KIND_CNT; k++) {
		struct meetings *m = &sim->meetings[k];
		struct group group = layout_group(&sim->layout, (enum group_kind)k, 0);
		size_t cnt = layout_group_cnt(&sim->layout, (enum group_kind)k);

		m->slot_cnt = 0;
		for (int s = 0; s < sim->layout.pp; s++)
			m->slot_cnt = MAX(m->slot_cnt, (size_t)sim->programs[s].slot_cnt[k]);
		m->size = group.size;
		m->ring_cnt = network_ring_cnt(sim, &group);
		cnt *= m->slot_cnt * sim->iteration_cnt;
		m->of = calloc(cnt + 1, sizeof(*m->of));
		m->slow = calloc(cnt * (size_t)m->ring_cnt + 1, sizeof(*m->slow));
		if (chunks)
			m->ready_ns = calloc(cnt * (size_t)m->size + 1, sizeof(*m->ready_ns));
		if (m->of == NULL || m->slow == NULL || (chunks && m->ready_ns == NULL))
			return -ENOMEM;
	}
	return 0;
}

static int messages_init(struct simulation *sim)
{
	size_t cnt;

	sim->message_cnt = sim->programs[0].message_cnt;
	cnt = (size_t)sim->layout.worker_cnt * sim->iteration_cnt * sim->message_cnt;
	if (cnt == 0)
		return 0;
	sim->messages = calloc(cnt, sizeof(*sim->messages));
	if (sim->messages == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		sim->messages[i] = (struct message){ TIME_UNKNOWN, TIME_UNKNOWN };
	return 0;
}

/* --- playing all workers --- */

struct crowd {
	struct simulation *sim;
	struct player *players;
	int *queue; /* a ring buffer of ranks that may resume */
	size_t first, cnt;
	struct wake_list wake;
};

static void crowd_queue(struct crowd *c, int rank)
{
	size_t size = (size_t)c->sim->layout.worker_cnt;

	if (c->players[rank].queued || c->players[rank].finished)
		return;
	c->players[rank].queued = true;
	c->queue[(c->first + c->cnt++) % size] = rank;
}

static int crowd_take(struct crowd *c)
{
	int rank = c->queue[c->first];

	c->first = (c->first + 1) % (size_t)c->sim->layout.worker_cnt;
	c->cnt--;
	c->players[rank].queued = false;
	return rank;
}

static int crowd_play(struct crowd *c)
{
	for (int rank = 0; rank < c->sim->layout.worker_cnt; rank++)
		crowd_queue(c, rank);
	while (c->cnt > 0) {
		int rank = crowd_take(c), state;

		c->wake.ranks.cnt = 0;
		state = player_run(c->sim, rank, &c->players[rank], &c->wake);
		if (state < 0)
			return state;
		vec_foreach(r, &c->wake.ranks)
			crowd_queue(c, *r);
	}
	return 0;
}

int simulation_meet(struct simulation *sim, double *ret_iteration_ns)
{
	size_t worker_cnt = (size_t)sim->layout.worker_cnt;
	struct crowd c = { .sim = sim };
	int64_t end_ns = 0;
	int error;

	meetings_done(sim);
	c.players = calloc(worker_cnt, sizeof(*c.players));
	c.queue = calloc(worker_cnt, sizeof(*c.queue));
	error = c.players == NULL || c.queue == NULL ? -ENOMEM : meetings_init(sim);
	if (error == 0)
		error = messages_init(sim);
	if (error == 0)
		error = crowd_play(&c);
	for (size_t r = 0; r < worker_cnt && error == 0; r++)
		end_ns = MAX(end_ns, c.players[r].host_ns);
	*ret_iteration_ns = (double)end_ns / sim->iteration_cnt;
	free(c.players);
	free(c.queue);
	vec_done(&c.wake.ranks);
	return error;
}

/* --- the job --- */

static int check_options(const struct simulate_options *o, struct err *err)
{
	if (!(o->strength >= 0 && o->strength <= STRENGTH_MAX))
		return err_set(err, EINVAL, "strength: expected 0..%d", STRENGTH_MAX);
	if (o->iteration_cnt < 0 || o->iteration_cnt > ITERATIONS_MAX)
		return err_set(err, EINVAL, "iterations: expected 1..%d", ITERATIONS_MAX);
	if (o->onset < 0)
		return err_set(err, EINVAL, "onset: expected an iteration from 0 on");
	if (o->level == SIMULATE_EVENTS && o->worker_cnt > SIMULATE_EVENTS_MAX)
		return err_set(err, EINVAL,
			       "events: expected at most %d workers, found %d; more at the level "
			       "of fingerprints",
			       SIMULATE_EVENTS_MAX, o->worker_cnt);
	return 0;
}

static int init_layout(struct simulation *sim, struct err *err)
{
	struct simulate_options *o = &sim->options;
	struct layout wish = sim->scenario.layout;

	if (o->worker_cnt > 0)
		wish.worker_cnt = o->worker_cnt;
	else if (o->level == SIMULATE_EVENTS && wish.worker_cnt > SIMULATE_EVENTS_MAX)
		wish.worker_cnt = EVENT_WORKERS;
	wish.tp = o->tp > 0 ? o->tp : wish.tp;
	wish.pp = o->pp > 0 ? o->pp : wish.pp;
	wish.ep = o->ep > 0 ? o->ep : wish.ep;
	wish.host_gpus = o->host_gpus > 0 ? o->host_gpus : wish.host_gpus;
	return layout_init(&wish, &sim->layout, err);
}

static int init_faults(struct simulation *sim)
{
	sim->fault_cnt = scenario_fault_cnt(&sim->scenario);
	for (size_t i = 0; i < sim->fault_cnt; i++) {
		struct fault *f = &sim->faults[i];

		if (fault_init(f, &sim->scenario.faults[i], &sim->layout, sim->options.seed,
			       (uint32_t)i) < 0)
			return -ENOMEM;
		f->size *= sim->options.strength;
		f->onset = (uint32_t)sim->options.onset;
		sim->links_differ |= f->plan.kind == FAULT_NIC || f->plan.kind == FAULT_NVLINK ||
				     f->plan.kind == FAULT_AFFINITY;
	}
	return 0;
}

static int init_programs(struct simulation *sim)
{
	struct program_options options = { .layout = &sim->layout,
					   .layers = LAYERS,
					   .microbatches = sim->layout.pp > 1
								   ? MIN(2 * sim->layout.pp, 8)
								   : 2 };
	int error = 0;

	sim->programs = calloc((size_t)sim->layout.pp, sizeof(*sim->programs));
	if (sim->programs == NULL)
		return -ENOMEM;
	for (int s = 0; s < sim->layout.pp && error == 0; s++)
		error = program_build(&sim->programs[s], &sim->places, &options, s);
	return error;
}

static int int_cmp(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Selects distinct random ranks; salt separates the selections. */
static int choose_ranks(const struct simulation *sim, int cnt, uint64_t salt, int **ret,
			size_t *ret_cnt)
{
	int worker_cnt = sim->layout.worker_cnt;
	uint64_t first = random_at(sim->options.seed, RANDOM_CHOICE, 1000 + salt, 0, 0);

	cnt = MIN(cnt, worker_cnt / 2);
	*ret = calloc((size_t)cnt + 1, sizeof(**ret));
	if (*ret == NULL)
		return -ENOMEM;
	for (int i = 0; i < cnt; i++)
		(*ret)[i] = (int)((first + (uint64_t)i * (uint64_t)(worker_cnt / cnt)) %
				  (uint64_t)worker_cnt);
	qsort(*ret, (size_t)cnt, sizeof(**ret), int_cmp);
	*ret_cnt = (size_t)cnt;
	return 0;
}

static bool is_in(const int *ranks, size_t cnt, int rank)
{
	for (size_t i = 0; i < cnt; i++) {
		if (ranks[i] == rank)
			return true;
	}
	return false;
}

bool simulate_has_worker(const struct simulation *sim, int rank)
{
	return rank >= 0 && rank < sim->layout.worker_cnt &&
	       !is_in(sim->missing, sim->missing_cnt, rank);
}

uint32_t simulation_first_iteration(const struct simulation *sim, int rank)
{
	return is_in(sim->late, sim->late_cnt, rank) ? sim->iteration_cnt / 2 : 0;
}

/* Simulates the same job without faults, as the reference for their cost. */
static int measure_health(struct simulation *sim)
{
	int error;

	for (size_t i = 0; i < sim->fault_cnt; i++)
		sim->faults[i].off = true;
	error = simulation_meet(sim, &sim->healthy_ns);
	for (size_t i = 0; i < sim->fault_cnt; i++)
		sim->faults[i].off = false;
	return error;
}

static int open_job(struct simulation *sim, struct err *err)
{
	int error = scenario_mix(sim->options.scenario, &sim->scenario, err);

	sim->name = strdup(sim->options.scenario);
	if (sim->name == NULL)
		return -ENOMEM;
	if (error == 0)
		error = init_layout(sim, err);
	if (error == 0)
		error = init_faults(sim);
	if (error == 0)
		error = init_programs(sim);
	if (error == 0)
		error = choose_ranks(sim, sim->scenario.missing_cnt, 0, &sim->missing,
				     &sim->missing_cnt);
	if (error == 0)
		error = choose_ranks(sim, sim->scenario.late_cnt, 1, &sim->late, &sim->late_cnt);
	if (error == 0)
		error = measure_health(sim);
	if (error == 0 && sim->fault_cnt > 0)
		error = simulation_meet(sim, &sim->iteration_ns);
	else
		sim->iteration_ns = sim->healthy_ns;
	return error;
}

int simulate_open(const struct simulate_options *options, struct simulation **ret, struct err *err)
{
	struct simulation *sim;
	int error = check_options(options, err);

	if (error < 0)
		return error;
	sim = calloc(1, sizeof(*sim));
	if (sim == NULL)
		return err_set(err, ENOMEM, "out of memory");
	sim->options = *options;
	sim->options.skew_ms = options->skew_ms < 0 ? SKEW_MS : options->skew_ms;
	sim->iteration_cnt =
		(uint32_t)(options->iteration_cnt > 0 ? options->iteration_cnt : ITERATIONS);
	error = open_job(sim, err);
	if (error < 0) {
		simulate_close(sim);
		return error == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : error;
	}
	*ret = sim;
	return 0;
}
