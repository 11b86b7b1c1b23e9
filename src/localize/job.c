/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/job.h"

#include "base/stats.h"
#include "base/strtab.h"
#include "model/usage/gpucall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JOB_APART_FACTOR 1.5 /* between the paces of workers that do not wait for one another */
#define JOB_WHOLE_FRAC 0.95  /* of all time: in a job of another framework, what runs its loop */
#define JOB_LOOP_FRAC 0.1    /* of the time in backward passes and optimizers */

void job_done(struct job *job)
{
	arena_done(&job->arena);
	vec_done(&job->frames);
	vec_done(&job->functions);
	idmap_done(&job->frame_by_key);
	idmap_done(&job->function_by_frame);
	*job = (struct job){ 0 };
}

static uint64_t function_key(uint32_t frame, uint8_t class)
{
	return (uint64_t)frame << 8 | class;
}

static int join_frame(struct job *job, struct job_worker *w, uint32_t idx)
{
	const struct fp_frame *f = &w->fp->frames[idx];
	uint32_t found = idmap_get(&job->frame_by_key, f->key.lo);

	/* The low half decides: two of some thousand 64-bit hashes do not meet. */
	if (found == IDMAP_NONE) {
		found = (uint32_t)job->frames.cnt;
		if (vec_push(&job->frames,
			     (struct job_frame){
				     .key = f->key,
				     .parent = f->parent == FRAME_NONE ? FRAME_NONE
								       : w->frame_of[f->parent],
				     .kind = f->kind,
				     .name = f->name,
			     }) < 0 ||
		    idmap_set(&job->frame_by_key, f->key.lo, found) < 0)
			return -ENOMEM;
	}
	w->frame_of[idx] = found;
	return 0;
}

static int join_function(struct job *job, size_t worker, uint32_t idx)
{
	struct job_worker *w = &job->workers[worker];
	const struct fp_function *f = &w->fp->functions[idx];
	uint32_t frame = f->frame == FRAME_NONE ? FRAME_NONE : w->frame_of[f->frame];
	uint32_t found = idmap_get(&job->function_by_frame, function_key(frame, f->class));

	if (found == IDMAP_NONE) {
		struct job_function fresh = { .frame = frame, .class = f->class };

		found = (uint32_t)job->functions.cnt;
		fresh.of = arena_calloc(&job->arena, job->worker_cnt, sizeof(void *));
		if (fresh.of == NULL || vec_push(&job->functions, fresh) < 0 ||
		    idmap_set(&job->function_by_frame, function_key(frame, f->class), found) < 0)
			return -ENOMEM;
	}
	job->functions.data[found].of[worker] = f;
	w->function_of[idx] = found;
	return 0;
}

static int join_worker(struct job *job, size_t worker)
{
	struct job_worker *w = &job->workers[worker];
	const struct fingerprint *fp = w->fp;

	w->iterations = fp->iteration_cnt > 0 ? (double)fp->iteration_cnt : 1;
	w->frame_of = arena_calloc(&job->arena, fp->frame_cnt + 1, sizeof(uint32_t));
	w->function_of = arena_calloc(&job->arena, fp->function_cnt + 1, sizeof(uint32_t));
	if (w->frame_of == NULL || w->function_of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < fp->frame_cnt; i++) {
		if (join_frame(job, w, i) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < fp->function_cnt; i++) {
		if (join_function(job, worker, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Lists the functions of each subtree: they are asked for by worker. Returns 0 or -ENOMEM. */
static int list_subtrees(struct job *job)
{
	size_t frames = job->frames.cnt;
	uint32_t *first = arena_calloc(&job->arena, frames + 2, sizeof(*first)), *all;

	if (first == NULL)
		return -ENOMEM;
	vec_foreach(f, &job->functions) {
		for (uint32_t at = f->frame; at != FRAME_NONE; at = job->frames.data[at].parent)
			first[at + 2]++;
	}
	for (size_t i = 2; i < frames + 2; i++)
		first[i] += first[i - 1];
	all = arena_calloc(&job->arena, first[frames + 1] + 1, sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->functions.cnt; i++) {
		uint32_t at = job->functions.data[i].frame;

		for (; at != FRAME_NONE; at = job->frames.data[at].parent)
			all[first[at + 1]++] = i; /* it moves to where the next one begins */
	}
	job->subtree_first = first;
	job->subtree = all;
	return 0;
}

void job_sum_subtrees(const struct job *job, double *sums)
{
	for (size_t i = job->frames.cnt; i > 0; i--) {
		uint32_t parent = job->frames.data[i - 1].parent;

		if (parent != FRAME_NONE)
			sums[parent] += sums[i - 1];
	}
}

/* Whether a frame begins a backward pass or a step of an optimizer. */
static bool is_part_of_training(const struct job_frame *frame)
{
	static const char *const words[] = { "Optimizer.step", "_engine_run_backward",
					     "torch/optim/", "torch/_tensor.py", "autograd::" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(frame->name, words[i]) != NULL)
			return true;
	}
	return false;
}

static bool calls_others(const struct job *job, uint32_t frame)
{
	for (uint32_t i = frame + 1; i < job->frames.cnt; i++) {
		if (job->frames.data[i].parent == frame && job->frames.data[i].kind == KIND_PYTHON)
			return true;
	}
	return false;
}

/* Time of all workers in backward passes and optimizers, by frame, subtrees summed. */
static double sum_training(const struct job *job, double *ns)
{
	double total = 0;

	vec_foreach(f, &job->functions) {
		uint32_t frame = f->frame;

		while (frame != FRAME_NONE && !is_part_of_training(&job->frames.data[frame]))
			frame = job->frames.data[frame].parent;
		for (size_t w = 0; w < job->worker_cnt && frame != FRAME_NONE; w++) {
			double share = job_time_ns(job, f, w);

			total += share;
			ns[frame] += share;
		}
	}
	job_sum_subtrees(job, ns);
	return total;
}

/* Time of all workers, by frame, subtrees summed. */
static double sum_all(const struct job *job, double *ns)
{
	double total = 0;

	memset(ns, 0, job->frames.cnt * sizeof(*ns));
	vec_foreach(f, &job->functions) {
		for (size_t w = 0; w < job->worker_cnt; w++) {
			double share = job_time_ns(job, f, w);

			total += share;
			if (f->frame != FRAME_NONE)
				ns[f->frame] += share;
		}
	}
	job_sum_subtrees(job, ns);
	return total;
}

/*
 * JAX, numpy, another framework: no frame is known to be a backward pass. Functions of Python that
 * run nearly all the time, from the program's first one on, and call others, run the loop.
 */
static void find_whole_loops(struct job *job, double *ns)
{
	double total = sum_all(job, ns);

	for (size_t i = 0; i < job->frames.cnt; i++) {
		struct job_frame *frame = &job->frames.data[i];
		bool below = frame->parent == FRAME_NONE || job->frames.data[frame->parent].trains;

		frame->trains |= below && frame->kind == KIND_PYTHON &&
				 ns[i] >= JOB_WHOLE_FRAC * total && calls_others(job, (uint32_t)i);
	}
}

/*
 * The training loop: frames around a good part of such time, and what runs the program. A stack
 * that was read while it changed can show a backward pass below anything, but not for long.
 */
static int find_loops(struct job *job)
{
	_cleanup_free_ double *ns = calloc(job->frames.cnt + 1, sizeof(*ns));
	double total;

	if (ns == NULL)
		return -ENOMEM;
	total = sum_training(job, ns);
	for (size_t i = 0; i < job->frames.cnt; i++) {
		struct job_frame *frame = &job->frames.data[i];

		frame->trains = strstr(frame->name, ": <module>") != NULL ||
				(total > 0 && ns[i] >= JOB_LOOP_FRAC * total &&
				 !is_part_of_training(frame));
	}
	if (total <= 0)
		find_whole_loops(job, ns);
	return 0;
}

/* A worker without the name of a host has a host of its own. */
static int find_hosts(struct job *job)
{
	_cleanup_free_ uint32_t *first_of = calloc(job->worker_cnt + 2, sizeof(*first_of));
	struct strtab names = { 0 };
	int error = first_of != NULL ? strtab_init(&names) : -ENOMEM;

	for (uint32_t w = 0; w < job->worker_cnt && error == 0; w++) {
		const char *host = job->workers[w].fp->host;
		size_t known = names.cnt;
		uint32_t id = strtab_intern(&names, host, strlen(host));

		if (id == STRTAB_NONE) {
			error = -ENOMEM;
			break;
		}
		if (id >= known)
			first_of[id] = w;
		job->workers[w].host = host[0] != '\0' ? first_of[id] : w;
	}
	strtab_done(&names);
	return error;
}

static double length_ns(const struct job_worker *worker)
{
	return (double)worker->fp->window_ns / worker->iterations;
}

/* Without collectives none is known to wait for another: Hogwild, one model a process. */
static bool are_apart(const struct job *job, const double *lengths)
{
	double least = HUGE_VAL, most = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		if (fp->collective_cnt + fp->collective_dropped > 0)
			return false;
		least = fmin(least, lengths[w]);
		most = fmax(most, lengths[w]);
	}
	return most > JOB_APART_FACTOR * least;
}

int job_init(struct job *job, const struct fingerprint *const *fps, size_t cnt)
{
	_cleanup_free_ double *lengths = calloc(cnt + 1, sizeof(*lengths));

	*job = (struct job){ .worker_cnt = cnt };
	job->workers = arena_calloc(&job->arena, cnt + 1, sizeof(*job->workers));
	if (job->workers == NULL || lengths == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		job->workers[i].fp = fps[i];
		if (join_worker(job, i) < 0)
			return -ENOMEM;
		lengths[i] = length_ns(&job->workers[i]);
	}
	job->apart = are_apart(job, lengths);
	job->iteration_ns = stats_median(lengths, cnt);
	if (list_subtrees(job) < 0 || find_loops(job) < 0)
		return -ENOMEM;
	return find_hosts(job);
}

double job_iteration_of_ns(const struct job *job, const uint32_t *workers, size_t cnt)
{
	double sum = 0;

	if (!job->apart || cnt == 0)
		return job->iteration_ns;
	for (size_t i = 0; i < cnt; i++)
		sum += length_ns(&job->workers[workers[i]]);
	return sum / (double)cnt;
}

uint32_t job_function_find(const struct job *job, uint32_t frame, uint8_t class)
{
	uint32_t found = idmap_get(&job->function_by_frame, function_key(frame, class));

	return found == IDMAP_NONE ? FRAME_NONE : found;
}

double job_time_ns(const struct job *job, const struct job_function *f, size_t w)
{
	return f->of[w] != NULL ? (double)f->of[w]->share_ns / job->workers[w].iterations : 0;
}

int64_t job_iteration_at(const struct job_worker *worker, int64_t time_ns)
{
	const struct fingerprint *fp = worker->fp;
	int64_t found = -1;

	for (size_t i = 0; i < fp->iteration_cnt && fp->iterations[i].start_ns <= time_ns; i++)
		found = (int64_t)i;
	return found;
}

bool job_frame_collects(const struct job *job, uint32_t frame)
{
	const struct job_frame *f = &job->frames.data[frame];

	return f->kind == KIND_GC || strstr(f->name, "built-in method collect") != NULL ||
	       strstr(f->name, "built-in function collect") != NULL;
}

bool frames_below(const struct job_frame *frames, uint32_t frame, uint32_t anc)
{
	while (frame != FRAME_NONE && frame != anc)
		frame = frames[frame].parent;
	return frame == anc;
}

bool job_frame_below(const struct job *job, uint32_t frame, uint32_t anc)
{
	return frames_below(job->frames.data, frame, anc);
}

static double listed_subtree_ns(const struct job *job, uint32_t frame, size_t w,
				uint32_t class_mask)
{
	double sum = 0;

	for (uint32_t i = job->subtree_first[frame]; i < job->subtree_first[frame + 1]; i++) {
		const struct job_function *f = &job->functions.data[job->subtree[i]];

		if (f->of[w] != NULL && (class_mask & 1u << f->class) != 0)
			sum += job_time_ns(job, f, w);
	}
	return sum;
}

double job_subtree_ns(const struct job *job, uint32_t frame, size_t w, uint32_t class_mask)
{
	double sum = 0;

	if (job->subtree_first != NULL && frame != FRAME_NONE)
		return listed_subtree_ns(job, frame, w, class_mask);
	vec_foreach(f, &job->functions) {
		if (f->of[w] != NULL && (class_mask & 1u << f->class) != 0 &&
		    job_frame_below(job, f->frame, frame))
			sum += job_time_ns(job, f, w);
	}
	return sum;
}

double job_thread_ns(const struct job *job, uint32_t frame, size_t w)
{
	double sum = 0;

	vec_foreach(f, &job->functions) {
		if (f->of[w] != NULL && job_frame_below(job, f->frame, frame))
			sum += (double)f->of[w]->thread_ns / job->workers[w].iterations;
	}
	return sum;
}

double job_lost_frac(const struct fingerprint *fp)
{
	const struct trace_drops *drops = &fp->drops;
	double samples = (double)fp->window_ns / NSEC_PER_SEC * JOB_SAMPLE_HZ;
	double unseen = (double)drops->flight_late + (double)drops->flight_unreadable +
			(double)drops->flight_tables;
	double lost = (double)drops->flight_lost + (double)drops->flight_invalid +
		      (double)drops->flight_lanes;
	double records = lost + samples + (double)fp->event_cnt;

	return fmax(samples > 0 ? fmin(1, unseen / samples) : 0, lost > 0 ? lost / records : 0);
}

int job_largest_group(const struct fingerprint *fp)
{
	int largest = 0;

	for (size_t i = 0; i < fp->collective_cnt; i++)
		largest = MAX(largest, fp->collectives[i].group_size);
	return largest;
}

bool job_waits_for_device(const struct job *job, uint32_t function)
{
	uint32_t frame = function != FRAME_NONE ? job->functions.data[function].frame : FRAME_NONE;

	return frame != FRAME_NONE && job->frames.data[frame].kind == KIND_RUNTIME &&
	       gpucall_of(job->frames.data[frame].name) == GPUCALL_WAIT;
}

int job_find_starved_ns(const struct job *job, double *ret)
{
	_cleanup_free_ double *times = calloc(job->worker_cnt + 1, sizeof(*times));
	size_t cnt = 0;

	*ret = 0;
	if (times == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		if (fp->host_stats.run_delay_frac >= 0 && job->workers[w].iterations > 0)
			times[cnt++] = fp->host_stats.run_delay_frac * (double)fp->window_ns /
				       job->workers[w].iterations;
	}
	if (cnt > 0)
		*ret = stats_median(times, cnt);
	return 0;
}
