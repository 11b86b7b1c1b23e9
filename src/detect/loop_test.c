/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose iterations vary, as streams of marks: what is learned, and that a slowdown shows. */
#include "detect/loop.h"

#include "detect/detector.h"
#include "detect/test_detect.h"

#include <inttypes.h>
#include <string.h>

#define MS ((double)NSEC_PER_MSEC)
#define SEEDS 3u

/* A job with its own clock; factor: how slow it is now. */
struct job {
	struct detector *det;
	uint64_t rng, step;
	double now_ns, factor;
	unsigned events, learned_cnt;
	uint64_t batch; /* counts batches, for loops that depend on it */
};

static void job_mark(struct job *job, enum mark kind, uint16_t detail, double after_ms)
{
	double jitter = 1 + 0.05 * rng_normal(&job->rng);
	struct ring_record record = { .kind = (uint16_t)kind, .detail = detail };
	unsigned events;

	job->now_ns += after_ms * MS * fmax(jitter, 0.2);
	record.time_ns = (int64_t)job->now_ns;
	if (kind == MARK_OPTIMIZER)
		record.extra = ++job->step;
	events = detector_mark(job->det, &record);
	job->events |= events;
	job->learned_cnt += (events & DETECTOR_LEARNED) != 0;
}

static void load(struct job *job)
{
	job_mark(job, MARK_DATALOADER, 1, 0.5);
}

static void step(struct job *job, uint16_t optimizer, double ms)
{
	job_mark(job, MARK_OPTIMIZER, optimizer, ms * job->factor);
}

static uint64_t below(struct job *job, uint64_t limit)
{
	return splitmix_next(&job->rng) % limit;
}

/* --- loops, one call for some iterations --- */

static void plain(struct job *job)
{
	load(job);
	step(job, 2, 10);
}

static void gan_of_five_critic_steps(struct job *job)
{
	for (int i = 0; i < 5; i++) {
		load(job);
		step(job, 2, 10);
	}
	step(job, 3, 15);
}

static void gan_of_random_steps(struct job *job)
{
	load(job);
	step(job, 2, 10);
	if (below(job, 10) < 3)
		step(job, 3, 15);
}

static void gan_of_random_steps_without_a_loader(struct job *job)
{
	step(job, 2, 10);
	if (below(job, 10) < 3)
		step(job, 3, 15);
}

/* The end of an epoch asks once more; then it evaluates. */
static void epochs_of_eight_batches(struct job *job)
{
	for (int i = 0; i < 8; i++)
		plain(job);
	load(job);
	for (int i = 0; i < 4; i++)
		job_mark(job, MARK_DATALOADER, 5, 3 * job->factor);
	load(job);
}

static void epochs_of_two_batches(struct job *job)
{
	for (int i = 0; i < 2; i++)
		plain(job);
	load(job);
}

static void short_last_accumulation(struct job *job)
{
	for (int batch = 0; batch < 43; batch++) {
		job_mark(job, MARK_DATALOADER, 1, 5 * job->factor);
		if (batch % 4 == 3 || batch == 42)
			step(job, 2, 5);
	}
	load(job);
}

static void an_optimizer_per_parameter(struct job *job)
{
	for (uint16_t parameter = 100; parameter > 0; parameter--)
		step(job, parameter, parameter == 100 ? 20 : 0.1);
}

static void rollouts_and_updates_of_random_length(struct job *job)
{
	uint64_t environment_steps = 64 + below(job, 192), epochs = 2 + below(job, 5);

	job->now_ns += (double)environment_steps * 1.5 * MS * job->factor;
	for (uint64_t i = 0; i < epochs * environment_steps / 32; i++)
		step(job, 2, 4);
}

static void rollouts_that_a_loader_reads(struct job *job)
{
	uint64_t environment_steps = 64 + below(job, 192), epochs = 2 + below(job, 5);

	job->now_ns += (double)environment_steps * 1.5 * MS * job->factor;
	for (; epochs > 0; epochs--) {
		for (uint64_t i = 0; i < environment_steps / 32; i++) {
			load(job);
			step(job, 2, 4);
		}
		load(job);
	}
}

static void hand_written_updates(struct job *job)
{
	job_mark(job, MARK_BACKWARD, 0, 10 * job->factor);
}

static void hand_written_updates_with_a_loader(struct job *job)
{
	load(job);
	job_mark(job, MARK_BACKWARD, 0, 10 * job->factor);
}

/* Backward passes beside an optimizer's steps count nothing. */
static void an_optimizer_after_two_backward_passes(struct job *job)
{
	job_mark(job, MARK_BACKWARD, 0, 5 * job->factor);
	job_mark(job, MARK_BACKWARD, 0, 5 * job->factor);
	step(job, 2, 1);
}

static void steps_in_turns_of_random_length(struct job *job)
{
	for (uint64_t i = 3 + below(job, 9); i > 0; i--)
		step(job, 2, 5);
	for (uint64_t i = 3 + below(job, 9); i > 0; i--)
		step(job, 3, 9);
}

static void an_optional_third_optimizer(struct job *job)
{
	load(job);
	step(job, 2, 10);
	step(job, 3, 5);
	if (++job->batch % 20 == 0)
		step(job, 4, 30);
}

static void evaluation_now_and_then(struct job *job)
{
	plain(job);
	if (below(job, 50) == 0) {
		for (uint64_t i = 20 + below(job, 20); i > 0; i--)
			job_mark(job, MARK_DATALOADER, 5, 3);
	}
}

static void four_backward_passes_and_a_step(struct job *job)
{
	for (int i = 0; i < 4; i++)
		job_mark(job, MARK_BACKWARD, 0, 5);
	step(job, 2, 1);
}

static void rollouts_and_short_bursts_of_random_length(struct job *job)
{
	job->now_ns += (30 + (double)below(job, 60)) * MS * job->factor;
	for (uint64_t i = 2 + below(job, 4); i > 0; i--)
		step(job, 2, 4);
}

/* To its marks a loop that evaluates often, and not regularly, is one with rollouts. */
static void evaluation_after_a_few_steps(struct job *job)
{
	for (uint64_t i = 3 + below(job, 5); i > 0; i--)
		step(job, 2, 10);
	job->now_ns += 60 * MS * job->factor;
}

static void evaluation_and_checkpoints_without_marks(struct job *job)
{
	step(job, 2, 10);
	if (++job->batch % 25 == 0)
		job->now_ns += 200 * MS * job->factor;
	if (job->batch % 200 == 0)
		job->now_ns += 900 * MS * job->factor;
}

static const struct {
	const char *name;
	void (*iterate)(struct job *job);
	const char *text;
} loops[] = {
#define LOOP(function, text)              \
	{                                 \
#function, function, text \
	}
	LOOP(plain, "loader, optimizer 1"),
	LOOP(gan_of_five_critic_steps, "5 x (loader, optimizer 1), optimizer 2"),
	LOOP(gan_of_random_steps, "each step of an optimizer, in no fixed order"),
	LOOP(gan_of_random_steps_without_a_loader, "each step of an optimizer, in no fixed order"),
	LOOP(epochs_of_eight_batches, "loader, optimizer 1"),
	LOOP(epochs_of_two_batches, "loader, optimizer 1"),
	LOOP(short_last_accumulation, "4 x loader, optimizer 1"),
	LOOP(an_optimizer_per_parameter, "100 optimizer steps"),
	LOOP(rollouts_and_updates_of_random_length, "optimizer 1"),
	LOOP(rollouts_that_a_loader_reads, "loader, optimizer 1"),
	LOOP(hand_written_updates, "backward"),
	LOOP(hand_written_updates_with_a_loader, "loader, backward"),
	LOOP(an_optimizer_after_two_backward_passes, "optimizer 1"),
	LOOP(steps_in_turns_of_random_length, "each step of an optimizer, in no fixed order"),
	LOOP(an_optional_third_optimizer, "loader, optimizer 1, optimizer 2"),
	LOOP(evaluation_now_and_then, "loader, optimizer 1"),
	LOOP(rollouts_and_short_bursts_of_random_length, "optimizer 1"),
	LOOP(evaluation_after_a_few_steps, "optimizer 1"),
	LOOP(evaluation_and_checkpoints_without_marks, "optimizer 1"),
};

static struct job job_new(uint64_t seed)
{
	struct job job = { .det = detector_new(&detector_default_config),
			   .rng = seed,
			   .now_ns = 1e12,
			   .factor = 1 };

	assert_non_null(job.det);
	return job;
}

/* Runs for so many seconds of the job's own time. */
static void run(struct job *job, void (*iterate)(struct job *), double seconds)
{
	double end_ns = job->now_ns + seconds * 1e9;

	while (job->now_ns < end_ns)
		iterate(job);
}

struct result {
	unsigned missed, wrong;
};

static void try_loop(size_t which, uint64_t seed, struct result *result)
{
	struct job job = job_new(seed);
	struct detector_view view;
	char text[LOOP_TEXT];

	run(&job, loops[which].iterate, 120);
	detector_describe(job.det, text, sizeof(text));
	assert_string_equal(text, loops[which].text);
	result->wrong += (job.events & DETECTOR_BECAME_SLOW) != 0;
	job.factor = 2;
	run(&job, loops[which].iterate, 60);
	detector_look(job.det, &view);
	result->missed += view.state != DETECTOR_SLOW;
	detector_free(job.det);
}

static void each_loop_is_learned_healthy_and_slow_when_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		struct result result = { 0 };

		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			try_loop(i, seed, &result);
		if (result.missed + result.wrong > 0)
			fail_msg("%s: of %u jobs %u were slow and not seen, %u healthy and accused",
				 loops[i].name, SEEDS, result.missed, result.wrong);
	}
}

/*
 * Steps of a fixed order are one iteration. Steps in bursts of random number are one each: pauses
 * between bursts may be rollouts or evaluations, and marks do not show which.
 */
static void an_iteration_has_as_many_steps_as_are_in_a_fixed_order(void **state)
{
	static const struct {
		const char *name;
		void (*iterate)(struct job *job);
		uint64_t steps;
	} loops_of_steps[] = {
#define STEPS(function, steps) { #function, function, steps }
		STEPS(plain, 1),
		STEPS(short_last_accumulation, 1),
		STEPS(four_backward_passes_and_a_step, 1),
		STEPS(gan_of_five_critic_steps, 6),
		STEPS(epochs_of_eight_batches, 1),
		STEPS(epochs_of_two_batches, 1),
		STEPS(evaluation_after_a_few_steps, 1),
		STEPS(evaluation_and_checkpoints_without_marks, 1),
		STEPS(rollouts_and_short_bursts_of_random_length, 1),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(loops_of_steps); i++) {
		struct job job = job_new(1);
		struct detector_view before, after;
		uint64_t step;

		run(&job, loops_of_steps[i].iterate, 30);
		step = job.step;
		detector_look(job.det, &before);
		run(&job, loops_of_steps[i].iterate, 30);
		detector_look(job.det, &after);
		if ((after.iterations - before.iterations) * loops_of_steps[i].steps !=
			    job.step - step ||
		    after.step_cnt != loops_of_steps[i].steps || job.learned_cnt > 2)
			fail_msg("%s: %" PRIu64 " iterations of %u in %" PRIu64 " steps",
				 loops_of_steps[i].name, after.iterations - before.iterations,
				 after.step_cnt, job.step - step);
		detector_free(job.det);
	}
}

/* --- random loops --- */

/* A loop of up to three groups with optional and repeated parts, drawn by the seed. */
struct parts {
	size_t cnt;
	struct {
		uint16_t optimizer;
		uint32_t loads, repeats, optional_in; /* 0: always there */
	} part[3];
};

static struct parts draw_parts(uint64_t *rng)
{
	struct parts parts = { .cnt = 1 + splitmix_next(rng) % 3 };

	for (size_t i = 0; i < parts.cnt; i++) {
		parts.part[i].optimizer = (uint16_t)(2 + i);
		parts.part[i].loads = (uint32_t)(splitmix_next(rng) % 3);
		parts.part[i].repeats = 1 + (uint32_t)(splitmix_next(rng) % 3);
		if (i > 0 && splitmix_next(rng) % 2 == 0)
			parts.part[i].optional_in = 2 + (uint32_t)(splitmix_next(rng) % 6);
	}
	return parts;
}

static void iterate_parts(struct job *job, const struct parts *parts)
{
	for (size_t i = 0; i < parts->cnt; i++) {
		uint32_t in = parts->part[i].optional_in;

		if (in > 0 && below(job, in) > 0)
			continue;
		for (uint32_t r = 0; r < parts->part[i].repeats; r++) {
			for (uint32_t n = 0; n < parts->part[i].loads; n++)
				load(job);
			step(job, parts->part[i].optimizer, 8 + 4 * (double)i);
		}
	}
}

static void loops_with_random_optional_parts_are_watched(void **state)
{
	struct result result = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= 10 * SEEDS; seed++) {
		struct job job = job_new(seed);
		struct parts parts = draw_parts(&job.rng);
		struct detector_view view;

		for (double end_ns = job.now_ns + 120e9; job.now_ns < end_ns;)
			iterate_parts(&job, &parts);
		detector_look(job.det, &view);
		assert_int_not_equal(view.state, DETECTOR_LEARNING);
		result.wrong += (job.events & DETECTOR_BECAME_SLOW) != 0;
		job.factor = 2;
		for (double end_ns = job.now_ns + 60e9; job.now_ns < end_ns;)
			iterate_parts(&job, &parts);
		detector_look(job.det, &view);
		result.missed += view.state != DETECTOR_SLOW;
		detector_free(job.det);
	}
	assert_int_equal(result.missed, 0);
	assert_int_equal(result.wrong, 0);
}

static void long_iterations_that_begin_later_are_a_slowdown(void **state)
{
	struct job job = job_new(1);

	(void)state;
	run(&job, plain, 60);
	assert_false(job.events & DETECTOR_BECAME_SLOW);
	for (unsigned i = 0; i < 400; i++) { /* two processes load, one of them is slow */
		plain(&job);
		job.now_ns += i % 2 == 0 ? 90 * MS : 0;
	}
	assert_true(job.events & DETECTOR_BECAME_SLOW);
	detector_free(job.det);
}

static void a_cycle_of_phases_has_as_many_iterations_as_come_between_two_rollouts(void **state)
{
	struct job job = job_new(1);
	struct detector_view view;

	(void)state;
	run(&job, plain, 60);
	detector_look(job.det, &view);
	assert_int_equal(view.cycle_cnt, 1);
	detector_free(job.det);
	job = job_new(1);
	run(&job, rollouts_and_updates_of_random_length, 60); /* 64 to 255 steps, 2 to 6 epochs */
	detector_look(job.det, &view);
	assert_in_range(view.cycle_cnt, 10, 30);
	detector_free(job.det);
}

/* Whichever step is the first one that is measured: it may have a rollout before it. */
static void short_bursts_are_phases_whatever_comes_first(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct job job = job_new(seed);
		struct detector_view view;

		run(&job, rollouts_and_short_bursts_of_random_length, 60); /* 2 to 5 steps */
		detector_look(job.det, &view);
		assert_in_range(view.cycle_cnt, 2, 5);
		assert_false(job.events & DETECTOR_BECAME_SLOW);
		detector_free(job.det);
	}
}

/* A checkpoint or a busy machine in the beginning does not make phases of what is slow later. */
static void a_slowdown_after_early_pauses_is_no_phase(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct job job = job_new(seed);
		uint64_t pauses = 1 + below(&job, 3), healthy = 75 + below(&job, 150);

		for (uint64_t i = 0; i < healthy; i++) {
			plain(&job);
			if (i > 20 && pauses > 0 && below(&job, 20) == 0) {
				job.now_ns += (double)(30 + below(&job, 80)) * MS;
				pauses--;
			}
		}
		job.events = 0;
		job.factor = 3.5 + (double)below(&job, 5);
		run(&job, plain, 30);
		if ((job.events & DETECTOR_BECAME_SLOW) == 0)
			print_error("seed %" PRIu64 "\n", seed);
		assert_true(job.events & DETECTOR_BECAME_SLOW);
		detector_free(job.det);
	}
}

/* The iteration that shows the phases may be the first slow one: what was before stays the measure. */
static void a_slowdown_that_begins_when_phases_are_found_is_seen(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct job job = job_new(seed);
		uint64_t healthy = 60 + seed;

		for (uint64_t i = 0; i < healthy; i++) {
			job.now_ns += i % 10 == 9 ? 100 * MS : 0;
			plain(&job);
		}
		job.factor = 5;
		for (uint64_t i = healthy; i < healthy + 100; i++) {
			job.now_ns += i % 10 == 9 ? 100 * MS : 0;
			plain(&job);
		}
		assert_true(job.events & DETECTOR_BECAME_SLOW);
		assert_false(job.events & DETECTOR_CLEARED);
		detector_free(job.det);
	}
}

static void rollout_and_eight_updates(struct job *job)
{
	job->now_ns += 200 * MS * job->factor;
	for (unsigned i = 0; i < 8; i++)
		step(job, 2, 4);
}

static void rollout_and_twenty_four_updates(struct job *job)
{
	job->now_ns += 600 * MS * job->factor * (1 + 0.1 * rng_normal(&job->rng));
	for (unsigned i = 0; i < 24; i++)
		step(job, 2, 20);
}

/* One iteration in 24 is a rollout: some tens of them are all that there is of the job. */
static void slower_rollouts_alone_are_a_slowdown(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct job job = job_new(seed);

		for (unsigned i = 0; i < 18; i++)
			rollout_and_twenty_four_updates(&job);
		assert_false(job.events & DETECTOR_BECAME_SLOW);
		for (unsigned i = 0; i < 14; i++) {
			job.now_ns += 600 * MS; /* only the rollout is slower */
			rollout_and_twenty_four_updates(&job);
		}
		assert_true(job.events & DETECTOR_BECAME_SLOW);
		detector_free(job.det);
	}
}

/* A window counts all iterations alike, so its mean must be that of all kinds, too. */
static void the_pace_of_a_slow_job_with_phases_is_that_of_all_its_iterations(void **state)
{
	struct job job = job_new(1);
	struct detector_view view;
	uint64_t iterations;
	float mean_ns;

	(void)state;
	run(&job, rollout_and_eight_updates, 60);
	job.factor = 2;
	run(&job, rollout_and_eight_updates, 60);
	detector_look(job.det, &view);
	iterations = view.iterations;
	mean_ns = -(float)job.now_ns;
	run(&job, rollout_and_eight_updates, 60);
	detector_look(job.det, &view);
	assert_int_equal(view.state, DETECTOR_SLOW);
	mean_ns = (mean_ns + (float)job.now_ns) / (float)(view.iterations - iterations);
	assert_float_equal((float)view.pace.mean_ns / mean_ns, 1.f, 0.2f);
	assert_float_equal((float)view.pace.baseline_ns / mean_ns, 0.5f, 0.15f);
	detector_free(job.det);
}

static void a_slow_kind_that_takes_little_time_is_no_slow_job(void **state)
{
	struct job job = job_new(1);

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		gan_of_random_steps(&job);
		if (below(&job, 100) == 0)
			step(&job, 9, i < 10000 ? 5 : 15); /* 1 % of the time */
	}
	assert_false(job.events & DETECTOR_BECAME_SLOW);
	detector_free(job.det);
}

int run_loop_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_loop_is_learned_healthy_and_slow_when_it_is),
		cmocka_unit_test(an_iteration_has_as_many_steps_as_are_in_a_fixed_order),
		cmocka_unit_test(loops_with_random_optional_parts_are_watched),
		cmocka_unit_test(long_iterations_that_begin_later_are_a_slowdown),
		cmocka_unit_test(
			a_cycle_of_phases_has_as_many_iterations_as_come_between_two_rollouts),
		cmocka_unit_test(short_bursts_are_phases_whatever_comes_first),
		cmocka_unit_test(a_slowdown_after_early_pauses_is_no_phase),
		cmocka_unit_test(a_slowdown_that_begins_when_phases_are_found_is_seen),
		cmocka_unit_test(slower_rollouts_alone_are_a_slowdown),
		cmocka_unit_test(the_pace_of_a_slow_job_with_phases_is_that_of_all_its_iterations),
		cmocka_unit_test(a_slow_kind_that_takes_little_time_is_no_slow_job),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
