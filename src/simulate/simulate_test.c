/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/simulate.h"

#include "base/test_alloc.h"
#include "format/sidecar/sidecar.h"
#include "simulate/layout.h"
#include "simulate/network.h"
#include "simulate/player.h"
#include "simulate/ringpass.h"
#include "simulate/scenario.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct simulation *open_sim(const struct simulate_options *options)
{
	struct simulation *sim;
	struct err err = { "" };

	if (simulate_open(options, &sim, &err) < 0)
		fail_msg("%s", err.text);
	return sim;
}

static struct simulation *open_named(const char *scenario, int workers, enum simulate_level level)
{
	struct simulate_options options = simulate_defaults(scenario);

	options.worker_cnt = workers;
	options.level = level;
	return open_sim(&options);
}

/* --- layout --- */

static const struct layout layouts[] = {
	{ .worker_cnt = 16 },
	{ .worker_cnt = 64, .tp = 4, .pp = 2 },
	{ .worker_cnt = 48, .tp = 2, .pp = 3, .ep = 4 },
	{ .worker_cnt = 64, .shard = 16 },
	{ .worker_cnt = 340, .ep = 40 },
	{ .worker_cnt = 7, .tp = 2, .pp = 2 },
	{ .worker_cnt = 1 },
};

/* By definition: ranks that differ only in the group's own coordinate. */
static bool share_group(const struct layout *l, enum group_kind kind, int a, int b)
{
	int da = layout_input(l, a), db = layout_input(l, b);
	bool tensor = a % l->tp == b % l->tp, stage = layout_stage(l, a) == layout_stage(l, b);

	switch (kind) {
	case GROUP_TENSOR:
		return stage && da == db;
	case GROUP_DATA:
		return stage && tensor && da / l->shard == db / l->shard;
	case GROUP_REPLICA:
		return stage && tensor && da % l->shard == db % l->shard;
	case GROUP_EXPERT:
		return stage && tensor && da / l->ep == db / l->ep;
	case GROUP_KIND_CNT:
		break;
	}
	return false;
}

static void check_group(const struct layout *l, enum group_kind kind, int rank)
{
	struct group g = layout_group(l, kind, rank);
	int members = 0;

	assert_true(g.index < layout_group_cnt(l, kind));
	for (int other = 0; other < l->worker_cnt; other++) {
		struct group h = layout_group(l, kind, other);
		bool listed = other >= g.first && (other - g.first) % g.stride == 0 &&
			      (other - g.first) / g.stride < g.size;

		assert_int_equal(share_group(l, kind, rank, other), listed);
		assert_int_equal(h.index == g.index, listed);
		members += listed;
	}
	assert_int_equal(members, g.size);
}

static void groups_are_the_ranks_that_share_all_other_coordinates(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct layout l;

		assert_int_equal(layout_init(&layouts[i], &l, NULL), 0);
		for (int kind = 0; kind < GROUP_KIND_CNT; kind++) {
			for (int rank = 0; rank < l.worker_cnt; rank++)
				check_group(&l, (enum group_kind)kind, rank);
		}
	}
}

static void a_layout_takes_what_divides_the_workers(_unused_ void **state)
{
	struct layout l, wish = { .worker_cnt = 7, .tp = 2, .pp = 2 };
	struct err err = { "" };

	assert_int_equal(layout_init(&wish, &l, &err), 0);
	assert_int_equal(l.tp * l.pp * l.dp, 7);
	wish.worker_cnt = 0;
	assert_int_equal(layout_init(&wish, &l, &err), -EINVAL);
	assert_non_null(strstr(err.text, "workers"));
}

/* --- rings --- */

#define NODES 6
#define STEPS 24

struct run {
	double slow[NODES];
	int64_t ready_ns[NODES];
	struct ring_burst bursts[NODES * STEPS];
	int64_t end_ns;
};

static void run_ring(struct run *r, size_t node_cnt)
{
	struct ring ring = { node_cnt, STEPS, 1e6, r->slow, r->ready_ns, 42 };

	r->end_ns = ring_play(&ring, r->bursts);
}

static struct run healthy_ring(void)
{
	struct run r;

	for (int i = 0; i < NODES; i++) {
		r.slow[i] = 1;
		r.ready_ns[i] = 0;
	}
	return r;
}

/* Mean and deviation of a node's utilization from its first chunk to the ring's end. */
static void utilization_of(const struct run *r, int node, double *mu, double *sigma)
{
	const struct ring_burst *own = &r->bursts[node * STEPS];
	int64_t busy = 0, length = r->end_ns - own[0].start_ns;

	for (int s = 0; s < STEPS; s++)
		busy += own[s].end_ns - own[s].start_ns;
	*mu = (double)busy / (double)length / r->slow[node];
	*sigma = sqrt((double)busy / (double)length * (1 - (double)busy / (double)length)) /
		 r->slow[node];
}

static void all_links_of_a_healthy_ring_are_busy_all_the_time(_unused_ void **state)
{
	struct run r = healthy_ring();
	double mu, sigma;

	run_ring(&r, NODES);
	for (int i = 0; i < NODES; i++) {
		utilization_of(&r, i, &mu, &sigma);
		assert_true(mu > 0.93);
	}
}

/* Figures 4 and 5: low and steady at the slow link, low and fluctuating elsewhere. */
static void a_slow_link_halves_the_ring_and_is_steady_itself(_unused_ void **state)
{
	struct run r = healthy_ring();
	double mu, sigma;

	r.slow[2] = 2;
	run_ring(&r, NODES);
	for (int i = 0; i < NODES; i++) {
		utilization_of(&r, i, &mu, &sigma);
		assert_true(fabs(mu - 0.5) < 0.04);
		if (i == 2)
			assert_true(sigma < 0.1);
		else
			assert_true(sigma > 0.45);
	}
}

static void a_ring_begins_when_its_last_member_is_there(_unused_ void **state)
{
	struct run r = healthy_ring(), late = healthy_ring();

	late.ready_ns[3] = 50 * NSEC_PER_MSEC;
	run_ring(&r, NODES);
	run_ring(&late, NODES);
	assert_true(late.end_ns - 50 * NSEC_PER_MSEC <= r.end_ns);
	/* Early nodes send as far ahead as the buffers allow. */
	for (int i = 0; i < NODES; i++)
		assert_true(late.bursts[i * STEPS + NODES + RING_BUFFERS].start_ns >=
			    50 * NSEC_PER_MSEC);
}

static void no_chunk_is_sent_before_it_came_or_without_a_buffer(_unused_ void **state)
{
	for (unsigned int seed = 0; seed < 200; seed++) {
		struct run r = healthy_ring();
		size_t cnt = 2 + seed % (NODES - 1);

		for (size_t i = 0; i < cnt; i++) {
			r.slow[i] = 1 + (seed * 7 + i * 13) % 5;
			r.ready_ns[i] = (int64_t)((seed * 31 + i * 17) % 9) * NSEC_PER_MSEC;
		}
		run_ring(&r, cnt);
		for (size_t i = 0; i < cnt * STEPS; i++) {
			size_t node = i / STEPS, step = i % STEPS;
			size_t before = (node + cnt - 1) % cnt, after = (node + 1) % cnt;
			int64_t start = r.bursts[i].start_ns;

			assert_true(start >= r.ready_ns[node] && start >= r.ready_ns[after]);
			if (step > 0)
				assert_true(start >= r.bursts[before * STEPS + step - 1].end_ns &&
					    start >= r.bursts[i - 1].end_ns);
			if (step >= RING_BUFFERS)
				assert_true(start >=
					    r.bursts[after * STEPS + step - RING_BUFFERS].end_ns);
		}
	}
}

static void the_closed_form_is_near_the_played_ring(_unused_ void **state)
{
	for (int slow = 1; slow <= 8; slow *= 2) {
		struct run r = healthy_ring();
		struct ring ring = { NODES, STEPS, 1e6, r.slow, r.ready_ns, 42 };
		double length;

		r.slow[1] = slow;
		run_ring(&r, NODES);
		length = ring_length_ns(&ring);
		assert_true(fabs((double)r.end_ns - length) < 0.06 * length);
	}
}

/* --- jobs --- */

static void check_shares(const struct fingerprint *fp)
{
	int64_t shares = fp->rest_ns, classes = 0;

	for (int c = 0; c < CLASS_CNT; c++)
		classes += fp->class_ns[c];
	for (size_t i = 0; i < fp->function_cnt; i++)
		shares += fp->functions[i].share_ns;
	assert_int_equal(classes, fp->window_ns);
	/* Overlapping collectives are divided in whole nanoseconds. */
	assert_true(llabs(shares - fp->window_ns) < 10000);
}

static void check_leads(const struct fingerprint *fp)
{
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];
		int64_t lead = 0, host = 0;

		for (uint32_t k = 0; k < c->lead_cnt; k++)
			lead += fp->shares[c->lead_first + k].ns;
		for (uint32_t k = 0; k < c->host_cnt; k++)
			host += fp->shares[c->host_first + k].ns;
		assert_int_equal(lead, c->lead_ns);
		assert_int_equal(host, c->host_ns);
		assert_true(c->dur_ns > 0 && c->critical_ns <= c->dur_ns);
	}
}

static void shares_of_every_worker_add_up(_unused_ void **state)
{
	static const char *const names[] = { "healthy-megatron", "healthy-expert", "C1",
					     "EROICA",		 "late-workers",   "neighbor" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct simulation *sim = open_named(names[i], 32, SIMULATE_FINGERPRINTS);

		for (int rank = 0; rank < 32; rank++) {
			struct fingerprint fp;

			assert_int_equal(simulate_fingerprint(sim, rank, &fp), 0);
			check_shares(&fp);
			check_leads(&fp);
			fingerprint_done(&fp);
		}
		simulate_close(sim);
	}
}

static int64_t end_of(const struct fingerprint *fp, size_t idx)
{
	return fp->window_start_wall_ns + fp->collectives[idx].start_ns +
	       fp->collectives[idx].dur_ns;
}

static void a_collective_ends_on_all_its_members_at_once(_unused_ void **state)
{
	struct simulate_options options = simulate_defaults("C2");
	struct simulation *sim;
	struct fingerprint a, b;
	size_t met = 0;

	options.level = SIMULATE_FINGERPRINTS;
	options.worker_cnt = 64;
	options.skew_ms = 0;
	sim = open_sim(&options);
	assert_int_equal(simulate_fingerprint(sim, 0, &a), 0);
	assert_int_equal(simulate_fingerprint(sim, 5, &b), 0);
	for (size_t i = 0; i < a.collective_cnt; i++) {
		if (a.collectives[i].group != b.collectives[i].group)
			continue;
		/* Clocks drift by some 20 ppm, whatever the skew. */
		assert_true(llabs(end_of(&a, i) - end_of(&b, i)) < NSEC_PER_MSEC / 4);
		met++;
	}
	assert_true(met > 0);
	fingerprint_done(&a);
	fingerprint_done(&b);
	simulate_close(sim);
}

static void assert_same(const struct fingerprint *a, const struct fingerprint *b)
{
	assert_int_equal(a->window_ns, b->window_ns);
	assert_int_equal(a->window_start_wall_ns, b->window_start_wall_ns);
	assert_int_equal(a->function_cnt, b->function_cnt);
	assert_int_equal(a->collective_cnt, b->collective_cnt);
	assert_int_equal(a->share_cnt, b->share_cnt);
	for (size_t i = 0; i < a->collective_cnt; i++) {
		assert_int_equal(a->collectives[i].group, b->collectives[i].group);
		assert_int_equal(a->collectives[i].start_ns, b->collectives[i].start_ns);
		assert_int_equal(a->collectives[i].dur_ns, b->collectives[i].dur_ns);
	}
	for (size_t i = 0; i < a->share_cnt; i++) {
		assert_int_equal(a->shares[i].function, b->shares[i].function);
		assert_int_equal(a->shares[i].ns, b->shares[i].ns);
	}
	for (size_t i = 0; i < a->function_cnt; i++) {
		assert_int_equal(a->functions[i].share_ns, b->functions[i].share_ns);
		assert_int_equal(a->functions[i].executions, b->functions[i].executions);
	}
}

static void a_worker_is_the_same_in_any_order(_unused_ void **state)
{
	struct simulation *x = open_named("C1", 64, SIMULATE_FINGERPRINTS);
	struct simulation *y = open_named("C1", 64, SIMULATE_FINGERPRINTS);
	struct fingerprint a, b;

	for (int rank = 0; rank < 64; rank++) {
		assert_int_equal(simulate_fingerprint(x, rank, &a), 0);
		assert_int_equal(simulate_fingerprint(y, 63 - rank, &b), 0);
		fingerprint_done(&b);
		assert_int_equal(simulate_fingerprint(y, rank, &b), 0);
		assert_same(&a, &b);
		fingerprint_done(&a);
		fingerprint_done(&b);
	}
	simulate_close(x);
	simulate_close(y);
}

static const struct fp_function *function_named(const struct fingerprint *fp, const char *word)
{
	for (size_t i = 0; i < fp->function_cnt; i++) {
		if (strstr(fp->frames[fp->functions[i].frame].name, word) != NULL)
			return &fp->functions[i];
	}
	return NULL;
}

/* Section 3: green, blue and red workers of the paper's figure 4. */
static void a_degraded_bond_shows_as_in_figure_5(_unused_ void **state)
{
	struct simulation *sim = open_named("nic-bond", 32, SIMULATE_FINGERPRINTS);
	const struct fault *f = &sim->faults[0];
	int rails[3] = { 0 };

	for (int rank = 0; rank < 32; rank++) {
		const struct fp_function *reduce;
		struct fingerprint fp;
		bool red = f->hits[rank];
		bool blue = !red && layout_rail(&sim->layout, rank) ==
					    layout_rail(&sim->layout, f->ranks[0]);

		assert_int_equal(simulate_fingerprint(sim, rank, &fp), 0);
		reduce = function_named(&fp, "AllReduce");
		assert_non_null(reduce);
		assert_int_equal(reduce->resource, RESOURCE_PCIE_TX);
		assert_true(red || blue ? reduce->mu_frac < 0.42 : reduce->mu_frac > 0.7);
		assert_true(blue ? reduce->sigma_frac > 0.3 : reduce->sigma_frac < 0.1);
		rails[red ? 2 : blue]++;
		fingerprint_done(&fp);
	}
	assert_int_equal(rails[0], 24);
	assert_int_equal(rails[1], 6);
	assert_int_equal(rails[2], 2);
	simulate_close(sim);
}

static void one_late_worker_makes_its_group_wait(_unused_ void **state)
{
	struct simulation *sim = open_named("python-slow-one", 16, SIMULATE_FINGERPRINTS);
	int late = sim->faults[0].ranks[0];
	double shortest = 1;
	int last = -1;

	for (int rank = 0; rank < 16; rank++) {
		struct fingerprint fp;
		const struct fp_function *reduce, *forward;

		assert_int_equal(simulate_fingerprint(sim, rank, &fp), 0);
		reduce = function_named(&fp, "AllReduce");
		forward = function_named(&fp, "forward");
		assert_non_null(reduce);
		if (reduce->beta_frac < shortest) {
			shortest = reduce->beta_frac;
			last = rank;
		}
		assert_int_equal(forward != NULL && forward->beta_frac > 0.1, rank == late);
		fingerprint_done(&fp);
	}
	assert_int_equal(last, late);
	simulate_close(sim);
}

static void strength_scales_what_a_fault_costs(_unused_ void **state)
{
	struct simulate_options options = simulate_defaults("gpu-throttle");
	double before = 0;

	for (options.strength = 0; options.strength < 3; options.strength++) {
		struct simulation *sim = open_sim(&options);

		if (options.strength <= 0)
			assert_true(fabs(sim->iteration_ns - sim->healthy_ns) < 1);
		else
			assert_true(sim->iteration_ns > 1.1 * before);
		before = sim->iteration_ns;
		simulate_close(sim);
	}
}

static void faults_begin_at_their_onset(_unused_ void **state)
{
	struct simulate_options options = simulate_defaults("storage-slow");
	struct simulation *sim;
	struct fingerprint fp;

	options.level = SIMULATE_FINGERPRINTS;
	options.onset = 3;
	sim = open_sim(&options);
	assert_int_equal(simulate_fingerprint(sim, 2, &fp), 0);
	assert_int_equal(fp.iteration_cnt, 5);
	assert_true((double)fp.iterations[2].dur_ns < 1.05 * sim->healthy_ns);
	assert_true((double)fp.iterations[3].dur_ns > 1.1 * sim->healthy_ns);
	fingerprint_done(&fp);
	simulate_close(sim);
}

static void a_sidecar_names_the_process_that_takes_the_cpu(_unused_ void **state)
{
	struct simulation *sim = open_named("neighbor", 16, SIMULATE_EVENTS);
	char path[] = "/tmp/simulate_test_XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	(void)close(fd);
	for (int rank = 0; rank < 16; rank++) {
		struct sidecar sidecar;
		struct sidecar_info info;

		assert_int_equal(simulate_sidecar(sim, rank, path, NULL), 0);
		assert_int_equal(sidecar_read(path, &sidecar, NULL), 0);
		sidecar_summarize(&sidecar, &info);
		assert_int_equal(info.rank, rank);
		assert_int_equal(info.thief_cnt, sim->faults[0].hits[rank]);
		assert_int_equal(info.psi_cpu_frac > 0.01, sim->faults[0].hits[rank]);
		sidecar_done(&sidecar);
	}
	(void)unlink(path);
	simulate_close(sim);
}

static void workers_may_be_missing_or_late(_unused_ void **state)
{
	struct simulation *sim = open_named("missing-workers", 16, SIMULATE_FINGERPRINTS);
	struct fingerprint fp;
	int present = 0;

	for (int rank = 0; rank < 16; rank++)
		present += simulate_has_worker(sim, rank);
	assert_int_equal(present, 14);
	simulate_close(sim);
	sim = open_named("late-workers", 16, SIMULATE_FINGERPRINTS);
	assert_int_equal(sim->late_cnt, 2);
	assert_int_equal(simulate_fingerprint(sim, sim->late[1], &fp), 0);
	assert_int_equal(fp.iteration_cnt, 3);
	assert_int_equal(fp.iterations[0].start_ns, 0);
	fingerprint_done(&fp);
	simulate_close(sim);
}

static void every_scenario_says_what_is_true_of_it(_unused_ void **state)
{
	size_t cnt;
	const struct scenario *list = scenario_list(&cnt);

	for (size_t i = 0; i < cnt; i++) {
		struct simulation *sim = open_named(list[i].name, 64, SIMULATE_FINGERPRINTS);
		bool faulty = scenario_fault_cnt(&list[i]) > 0;
		struct str truth = { 0 };

		assert_int_equal(simulate_truth(sim, &truth), 0);
		assert_non_null(strstr(str_borrow(&truth), faulty ? "\"verdict\": \"abnormal\""
								  : "\"verdict\": \"healthy\""));
		assert_true(sim->iteration_ns >= sim->healthy_ns);
		str_done(&truth);
		simulate_close(sim);
	}
}

static void invalid_options_are_refused(_unused_ void **state)
{
	struct simulate_options options = simulate_defaults("no-such");
	struct simulation *sim = NULL;
	struct err err = { "" };

	assert_int_equal(simulate_open(&options, &sim, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-such"));
	options = simulate_defaults("Healthy");
	options.worker_cnt = 65;
	assert_int_equal(simulate_open(&options, &sim, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fingerprints"));
	options.worker_cnt = 4;
	options.strength = (double)NAN;
	assert_int_equal(simulate_open(&options, &sim, &err), -EINVAL);
	assert_null(sim);
}

static void scenarios_can_be_mixed(_unused_ void **state)
{
	struct simulate_options options = simulate_defaults("healthy-megatron+nic-bond+mixed");
	struct simulation *sim = open_sim(&options);
	struct err err = { "" };

	assert_int_equal(sim->fault_cnt, 3);
	assert_int_equal(sim->layout.tp, 4);
	simulate_close(sim);
	options.scenario = "EROICA+nic-bond";
	assert_int_equal(simulate_open(&options, &sim, &err), -E2BIG);
	options.scenario = "nic-bond+";
	assert_int_equal(simulate_open(&options, &sim, &err), 0);
	simulate_close(sim);
	options.scenario = "nic-bond+nothing";
	assert_int_equal(simulate_open(&options, &sim, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nothing"));
}

static int make_one(enum simulate_level level)
{
	struct simulate_options options = simulate_defaults("mixed");
	struct simulation *sim;
	struct fingerprint fp;
	int error;

	options.worker_cnt = 4;
	options.pp = 2;
	options.iteration_cnt = 1;
	options.level = level;
	error = simulate_open(&options, &sim, NULL);
	if (error < 0)
		return error;
	error = simulate_fingerprint(sim, 1, &fp);
	if (error == 0)
		fingerprint_done(&fp);
	simulate_close(sim);
	return error;
}

static void missing_memory_is_reported_at_every_allocation(_unused_ void **state)
{
	for (int level = 0; level < 2; level++) {
		int error = -ENOMEM;

		for (int n = 0; error < 0; n++) {
			assert_int_equal(error, -ENOMEM);
			allocations_left = n;
			error = make_one((enum simulate_level)level);
			allocations_left = -1;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_the_ranks_that_share_all_other_coordinates),
		cmocka_unit_test(a_layout_takes_what_divides_the_workers),
		cmocka_unit_test(all_links_of_a_healthy_ring_are_busy_all_the_time),
		cmocka_unit_test(a_slow_link_halves_the_ring_and_is_steady_itself),
		cmocka_unit_test(a_ring_begins_when_its_last_member_is_there),
		cmocka_unit_test(no_chunk_is_sent_before_it_came_or_without_a_buffer),
		cmocka_unit_test(the_closed_form_is_near_the_played_ring),
		cmocka_unit_test(shares_of_every_worker_add_up),
		cmocka_unit_test(a_collective_ends_on_all_its_members_at_once),
		cmocka_unit_test(a_worker_is_the_same_in_any_order),
		cmocka_unit_test(a_degraded_bond_shows_as_in_figure_5),
		cmocka_unit_test(one_late_worker_makes_its_group_wait),
		cmocka_unit_test(strength_scales_what_a_fault_costs),
		cmocka_unit_test(faults_begin_at_their_onset),
		cmocka_unit_test(a_sidecar_names_the_process_that_takes_the_cpu),
		cmocka_unit_test(workers_may_be_missing_or_late),
		cmocka_unit_test(every_scenario_says_what_is_true_of_it),
		cmocka_unit_test(invalid_options_are_refused),
		cmocka_unit_test(scenarios_can_be_mixed),
		cmocka_unit_test(missing_memory_is_reported_at_every_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
