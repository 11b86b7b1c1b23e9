/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/worker.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRAIN_CNT 512 /* records copied at once */

/* A worker silent for so long is looked up in /proc: it may be stopped, in the kernel, or gone. */
#define SILENT_NS (1 * NSEC_PER_SEC)

static struct detector *new_detector(const struct run_options *options)
{
	struct detector_config config = detector_default_config;

	config.pace.slow_frac = options->slowdown_frac;
	config.pace.window_cnt = options->recent_cnt;
	config.sequence.repeat_cnt = options->learn_cnt;
	config.blocked_factor = options->blocked_factor;
	return detector_new(&config);
}

int worker_init(struct worker *worker, const struct message *hello, uint32_t pid, int block_fd,
		const struct run_options *options, struct err *err)
{
	struct worker fresh = {
		.pid = pid,
		.tid = hello->tid,
		.rank = hello->rank,
		.local_rank = hello->local_rank,
		.world_size = hello->world_size,
	};
	int ret = block_open(block_fd, &fresh.block, err);

	if (ret < 0)
		return ret;
	fresh.detector = new_detector(options);
	if (fresh.detector == NULL) {
		block_close(&fresh.block);
		return err_set(err, ENOMEM, "worker: out of memory");
	}
	*worker = fresh;
	return 0;
}

void worker_done(struct worker *worker)
{
	worker_abandon(worker);
	worker->metrics = metrics_worker_free(worker->metrics);
	worker->detector = detector_free(worker->detector);
	block_close(&worker->block);
}

static void record_gc(struct worker_window *window, const struct ring_record *record)
{
	struct sidecar_gc gc = {
		.start_ns = record->time_ns - record->value,
		.dur_ns = record->value,
		.generation = record->detail,
	};

	/* Without memory the sidecar lacks this collection. */
	if (gc.start_ns >= window->side.header.start_ns)
		(void)vec_push(&window->side.collections, gc);
}

/* What the detector made of a mark. */
static void take_events(struct worker *worker, const struct ring_record *record, unsigned events)
{
	struct detector_view view;

	detector_look(worker->detector, &view);
	if ((events & DETECTOR_ITERATION) != 0)
		metrics_worker_iteration(worker->metrics, view.iteration_ns);
	if (worker->window.sampling)
		bounds_mark(&worker->window.bounds, record,
			    &(struct bounds_view){ .learned = view.step_cnt > 0,
						   .ended = (events & DETECTOR_ITERATION) != 0,
						   .bound_ns = view.bound_ns,
						   .end_ns = view.end_ns,
						   .step_cnt = view.step_cnt },
			    &worker->window.side);
}

static void take_record(struct worker *worker, const struct ring_record *record)
{
	unsigned events;

	if (record->kind != MARK_GC) {
		/* A backward pass that counts no step is within one. */
		if (record->kind != MARK_BACKWARD || record->extra != 0)
			worker->last_mark = record->kind;
		worker->last_ns = record->time_ns;
	}
	events = detector_mark(worker->detector, record);
	metrics_worker_mark(worker->metrics, record);
	if (worker->overhead.id != 0 && record->extra != 0)
		slices_mark(&worker->overhead.slices, record->extra, record->time_ns);
	if (worker->window.sampling && record->kind == MARK_GC)
		record_gc(&worker->window, record);
	if ((events & DETECTOR_ITERATION) != 0 || worker->window.sampling)
		take_events(worker, record, events);
}

static void note_pace(struct worker *worker, uint64_t step)
{
	size_t newest = (worker->pace_cnt + WORKER_PACE_CNT - 1) % WORKER_PACE_CNT;

	if (worker->pace_cnt > 0 && step < worker->pace[newest].step)
		worker->pace_cnt = 0; /* the worker now counts another kind of mark */
	if (worker->pace_cnt > 0 && step == worker->pace[newest].step)
		return;
	worker->pace[worker->pace_cnt % WORKER_PACE_CNT].step = step;
	worker->pace[worker->pace_cnt % WORKER_PACE_CNT].time_ns = worker->last_ns;
	worker->pace_cnt++;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

void worker_bye(struct worker *worker, const struct message *message)
{
	size_t len = strnlen(message->text, sizeof(worker->raised) - 1);

	worker->bye = true;
	/* It is printed: nothing but the characters of a name in ASCII. */
	for (size_t i = 0; i < len; i++)
		worker->raised[i] = is_word(message->text[i]) ? message->text[i] : '?';
	worker->raised[len] = '\0';
}

/* MSG_BYE of a program that ends may still be queued, so silence takes two ticks. */
static void note_silence(struct worker *worker, bool off)
{
	worker->silent = off && worker->off && !worker->bye;
	worker->off = off;
}

void worker_drain(struct worker *worker, int64_t now_ns)
{
	struct ring_record records[DRAIN_CNT];
	uint64_t state =
		atomic_load_explicit(&worker->block.block->worker_state, memory_order_acquire);
	size_t cnt = DRAIN_CNT;

	/* Two rings' length at most: a worker that never pauses must not block the daemon. */
	for (size_t done = 0; cnt == DRAIN_CNT && done < 2 * MARK_RING_CNT; done += cnt) {
		cnt = block_drain(&worker->block, now_ns, records, DRAIN_CNT);
		for (size_t i = 0; i < cnt; i++)
			take_record(worker, &records[i]);
	}
	metrics_worker_follow(worker->metrics, worker->block.flight, worker->window.open);
	worker->step = block_step(&worker->block);
	note_silence(worker, state == WORKER_DISABLED);
	(void)detector_tick(worker->detector, now_ns);
	if (!worker->window.open)
		note_pace(worker, worker->step);
	else if (state == WORKER_EXPORTING)
		worker->window.sampling = false;
}

static uint32_t count_cpus(uint32_t pid)
{
	char text[1024];
	cpu_set_t cpus;

	if (procfs_read_cpus("", pid, text, sizeof(text)) < 0 || procfs_parse_cpus(text, &cpus) < 0)
		return 0;
	return (uint32_t)CPU_COUNT(&cpus);
}

int worker_begin(struct worker *worker, uint64_t order_id, int64_t now_ns)
{
	worker_abandon(worker);
	worker_drain(worker, now_ns); /* marks before the window belong to the detector */
	worker->window = (struct worker_window){
		.open = true,
		.sampling = true,
		.order_id = order_id,
		.cpu_cnt = count_cpus(worker->pid),
		.side.header = { .pid = worker->pid,
				 .tid = worker->tid,
				 .rank = worker->rank,
				 .start_ns = now_ns },
	};
	thread_sampler_open(&worker->window.threads, "", worker->pid);
	return worker_sample(worker, now_ns);
}

int worker_sample(struct worker *worker, int64_t now_ns)
{
	struct worker_window *window = &worker->window;
	int ret;

	if (!window->open || !window->sampling)
		return 0;
	ret = thread_sampler_look(&window->threads, now_ns, window->cpu_cnt, &window->side);
	return ret == -ESRCH ? 0 : ret; /* -ESRCH: its socket reports that the process ended */
}

static int write_sidecar(const struct sidecar *side, int fd, struct err *err)
{
	int ret = sidecar_write_fd(side, fd);

	return ret < 0 ? err_set(err, -ret, "its sidecar cannot be written: %s", strerror(-ret))
		       : 0;
}

int worker_finish(struct worker *worker, const struct worker_finish *finish, struct err *err)
{
	struct sidecar *side = &worker->window.side;
	char path[4096];
	int ret;

	worker_drain(worker, finish->mono_ns);
	bounds_end(&worker->window.bounds, finish->last_step, side);
	side->header.mono_ns = finish->mono_ns;
	side->header.wall_ns = finish->wall_ns;
	side->header.end_ns = side->header.start_ns + (int64_t)(finish->window_ns & INT64_MAX);
	if (gethostname(side->header.host, sizeof(side->header.host) - 1) != 0)
		side->header.host[0] = '\0';
	if (finish->contenders != NULL &&
	    contenders_name(finish->contenders, finish->query, side) < 0)
		ret = err_set(err, ENOMEM, "worker: out of memory");
	else if (finish->sidecar_fd >= 0)
		ret = write_sidecar(side, finish->sidecar_fd, err);
	else if ((size_t)snprintf(path, sizeof(path), "%s" SIDECAR_SUFFIX, finish->trace_path) >=
		 sizeof(path))
		ret = err_set(err, ENAMETOOLONG, "%s: path too long", finish->trace_path);
	else
		ret = sidecar_write(side, path, err);
	worker_abandon(worker);
	return ret;
}

void worker_abandon(struct worker *worker)
{
	bool was_open = worker->window.open;

	thread_sampler_close(&worker->window.threads);
	sidecar_done(&worker->window.side);
	worker->window = (struct worker_window){ 0 };
	if (was_open)
		worker->pace_cnt = 0; /* the window's iterations are slowed by the profile */
}

void worker_measure_overhead(struct worker *worker, const struct overhead_plan *plan)
{
	const struct slices_plan slices = { .seed = overhead_seed(plan->id, plan->start_step),
					    .start_step = plan->start_step,
					    .slice_steps = plan->slice_steps,
					    .slice_cnt = plan->slice_cnt,
					    .stride = plan->stride };

	block_measure_overhead(&worker->block, plan);
	worker->overhead = (struct worker_overhead){ .id = plan->id };
	if (slices_begin(&worker->overhead.slices, &slices) < 0)
		worker->overhead.id = 0; /* ended */
}

bool worker_overhead_cost(struct worker *worker, struct wire_slices_cost *ret)
{
	struct worker_overhead *overhead = &worker->overhead;

	if (overhead->id == 0 || overhead->reported || !overhead->slices.over)
		return false;
	overhead->reported = true;
	*ret = (struct wire_slices_cost){ .worker = worker->id,
					  .id = overhead->id,
					  .switching_ns = slices_switching_ns(&overhead->slices) };
	ret->pair_cnt = (uint32_t)slices_pairs(&overhead->slices, ret->pairs);
	return true;
}

void worker_suspend(struct worker *worker, bool stops)
{
	detector_suspend(worker->detector, stops);
}

void worker_resume(struct worker *worker, int64_t now_ns)
{
	detector_resume(worker->detector, now_ns);
}

bool worker_accept(struct worker *worker)
{
	return detector_accept(worker->detector);
}

/* Mean time between iteration marks over worker->pace. */
static int64_t pace_ns(const struct worker *worker)
{
	size_t cnt = MIN(worker->pace_cnt, (size_t)WORKER_PACE_CNT);
	size_t newest = (worker->pace_cnt + WORKER_PACE_CNT - 1) % WORKER_PACE_CNT;
	size_t oldest = (worker->pace_cnt - cnt) % WORKER_PACE_CNT;

	if (cnt < 2)
		return 0;
	return (worker->pace[newest].time_ns - worker->pace[oldest].time_ns) /
	       (int64_t)(worker->pace[newest].step - worker->pace[oldest].step);
}

static char process_state(const struct worker *worker)
{
	struct procfs_stat stat;

	if (worker->gone || procfs_read_stat("", worker->pid, 0, &stat) < 0)
		return 'X';
	return stat.state;
}

static enum wire_phase phase_of(enum detector_state state)
{
	switch (state) {
	case DETECTOR_WATCHING:
		return PHASE_STEADY;
	case DETECTOR_SLOW:
		return PHASE_SLOW;
	case DETECTOR_BLOCKED:
		return PHASE_BLOCKED;
	case DETECTOR_LEARNING:
		break;
	}
	return PHASE_LEARNING;
}

static void look_at_detector(const struct detector *detector, struct wire_state *state)
{
	struct detector_view view;

	detector_look(detector, &view);
	state->phase = phase_of(view.state);
	state->stride = view.step_cnt * view.cycle_cnt;
	state->cycle = view.cycle_cnt;
	state->iterations = view.iterations;
	state->iteration_ns = view.pace.mean_ns != 0 ? view.pace.mean_ns : view.iteration_ns;
	state->baseline_ns = view.pace.baseline_ns;
	state->best_ns = view.pace.best_ns;
	state->slow_since_step = view.slow_since_step;
	state->learned_cnt = view.learned_cnt;
	state->learned_step = view.learned_step;
}

bool worker_is_blocked(const struct worker *worker)
{
	struct detector_view view;

	detector_look(worker->detector, &view);
	return view.state == DETECTOR_BLOCKED && !worker->gone && !worker->silent;
}

void worker_state(const struct worker *worker, int64_t now_ns, struct wire_state *ret)
{
	struct wire_state state = {
		.worker = worker->id,
		.pid = worker->pid,
		.tid = worker->tid,
		.rank = worker->rank,
		.world_size = worker->world_size,
		.last_mark = worker->last_mark,
		.last_ns = worker->last_ns,
		.step = worker->step,
		.step_ns = pace_ns(worker),
		.lost = worker->block.overrun + worker->block.torn + worker->block.invalid +
			block_worker_drops(&worker->block),
		.bye = worker->bye,
		.exit_known = worker->exit_known,
		.numbered = worker->numbered,
		.exit_status = worker->exit_status,
		.silent = worker->silent,
		.process = '?',
	};

	memcpy(state.raised, worker->raised, sizeof(state.raised));

	look_at_detector(worker->detector, &state);
	detector_describe(worker->detector, state.sequence, sizeof(state.sequence));
	if (worker->window.open && state.phase != PHASE_BLOCKED)
		state.phase = PHASE_PROFILING;
	if (worker->silent)
		state.phase = PHASE_SILENT;
	if (worker->gone)
		state.phase = PHASE_GONE;
	if (worker->gone || now_ns - worker->last_ns > SILENT_NS)
		state.process = process_state(worker);
	(void)gethostname(state.host, sizeof(state.host) - 1);
	*ret = state;
}
