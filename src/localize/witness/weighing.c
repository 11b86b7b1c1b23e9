/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/witness/weighing.h"

#include "base/stats.h"
#include "localize/late/work.h"
#include "localize/usercode.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool weighing_shares_workers(const struct accusation *a, const struct accusation *b)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		if (accusation_has(b, a->workers[i]))
			return true;
	}
	return false;
}

void weighing_drop_covered(const struct job *job, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];
		bool covered = false;

		vec_foreach(other, list) {
			bool common = other->witness == WITNESS_EXPECTATION &&
				      other->frame != FRAME_NONE &&
				      other->worker_cnt == job->worker_cnt;

			covered |= common && a->witness == WITNESS_BLAME && a->spread &&
				   a->function != FRAME_NONE && other->gain_ns > a->gain_ns &&
				   job_frame_below(job, job->functions.data[a->function].frame,
						   other->frame);
		}
		if (!covered)
			list->data[kept++] = *a;
	}
	list->cnt = kept;
}

void weighing_drop_network(const struct job *job, accusations *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		const struct accusation *a = &list->data[i];

		if (a->class != CLASS_COMM || a->witness != WITNESS_EXPECTATION ||
		    a->worker_cnt < job->worker_cnt)
			list->data[kept++] = *a;
	}
	list->cnt = kept;
}

/* Whether a worker grew there beyond the noise of both windows, and more than the rest of it did. */
static bool worker_grew_surely(const struct past *past, size_t w, uint32_t frame)
{
	double sure = past_sure_growth_ns(past, w, frame, PAST_SURE);

	return sure > 0 && past_growth_beyond_ns(past, w, frame) >= PAST_ALIKE * sure;
}

/* Whether half of the accused workers that have a past did. */
static bool grew_surely(const struct past *past, const struct accusation *a)
{
	size_t known = 0, grown = 0;

	for (size_t i = 0; i < a->worker_cnt; i++) {
		uint32_t w = a->workers[i];

		known += past->workers[w].known;
		grown += worker_grew_surely(past, w, a->frame);
	}
	return 2 * grown >= known;
}

/* A job whose operators are not known, as one of numpy, has its computing in Python functions. */
static bool computes_in_python(const struct job *job, const struct accusation *a)
{
	const struct fingerprint *fp = job->workers[a->workers[0]].fp;

	return (double)fp->class_ns[CLASS_COMPUTE] < WORK_KNOWN_FRAC * (double)fp->window_ns;
}

/*
 * Whether the place takes so much longer than a whole iteration did before that this explains the
 * slowdown: it can't have been there then.
 */
static bool exceeds_all_before(const struct job *job, const struct accuse_options *options,
			       const struct accusation *a)
{
	double least = HUGE_VAL;

	if (!options->slow || options->baseline_ns <= 0)
		return false;
	for (size_t i = 0; i < a->worker_cnt; i++)
		least = fmin(least, job_subtree_ns(job, a->frame, a->workers[i], ~0u));
	return least - options->baseline_ns >= EXCESS_SLOWDOWN * options->slowdown_ns;
}

/*
 * Whether all of it lies in one iteration: what it usually takes is not known then, and a pause
 * may strike any function. One value that is not 0 of n has the root of n as its relative deviation.
 */
static bool is_once(const struct job *job, const struct accusation *a)
{
	for (size_t i = 0; i < a->worker_cnt; i++) {
		const struct job_worker *worker = &job->workers[a->workers[i]];
		const struct fp_function *f =
			a->function != FRAME_NONE
				? job->functions.data[a->function].of[a->workers[i]]
				: NULL;

		if (f == NULL || worker->iterations < ONCE_ITERATIONS ||
		    f->spread_ns * sqrt(worker->iterations) < ONCE_FRAC * (double)f->share_ns)
			return false;
	}
	return true;
}

void weighing_doubt(const struct job *job, const struct past *past,
		    const struct accuse_options *options, accusations *list)
{
	vec_foreach(a, list) {
		if (a->witness != WITNESS_EXPECTATION || a->frame == FRAME_NONE)
			continue;
		a->unsure = a->recalled ? !grew_surely(past, a)
					: !exceeds_all_before(job, options, a) &&
						  (computes_in_python(job, a) ||
						   !usercode_is(&job->frames.data[a->frame]));
		a->once = !a->recalled && is_once(job, a);
	}
}

/* --- waits at sockets --- */

/* System calls that return when another process has sent something, or wants to. */
static bool is_wait(const char *name)
{
	static const char *const calls[] = { "recvfrom",    "recvmsg",	    "recvmmsg",
					     "poll",	    "ppoll",	    "epoll_wait",
					     "epoll_pwait", "epoll_pwait2", "accept",
					     "accept4" };
	static const char prefix[] = "<system call ";

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		size_t len = strlen(calls[i]);

		if (strncmp(name, calls[i], len) == 0 && name[len] == '>')
			return true;
	}
	return false;
}

static bool is_of_loader(const struct job *job, uint32_t frame)
{
	for (; frame != FRAME_NONE; frame = job->frames.data[frame].parent) {
		if (strstr(job->frames.data[frame].name, "utils/data/dataloader.py") != NULL)
			return true;
	}
	return false;
}

static bool waits(const struct job *job, const struct accusation *a)
{
	uint32_t frame =
		a->function != FRAME_NONE ? job->functions.data[a->function].frame : a->frame;

	/*
	 * A rank that collectives show to be late is waited for, whatever it waits for itself. What
	 * became longer only beside the rank's own past may be a wait for its own threads, too,
	 * which wait for another rank.
	 */
	return a->witness != WITNESS_BLAME && frame != FRAME_NONE && a->place_cnt == 0 &&
	       !a->spread && !is_of_loader(job, frame) &&
	       (is_wait(job->frames.data[frame].name) ||
		(a->witness == WITNESS_PAST &&
		 strcmp(job->frames.data[frame].name, "<system call futex>") == 0));
}

static bool is_victim(const struct job *job, const accusations *list, const struct accusation *a)
{
	if (!waits(job, a))
		return false;
	vec_foreach(other, list) {
		if ((a->usual || !other->usual) && !waits(job, other) &&
		    !weighing_shares_workers(a, other) && other->own_ns >= LEDGER_MOST * a->own_ns)
			return true;
	}
	return false;
}

void weighing_drop_victims(const struct job *job, accusations *list)
{
	size_t kept = 0;

	/* Who does not wait stays, so the order does not matter. */
	for (size_t i = 0; i < list->cnt; i++) {
		struct accusation a = list->data[i];

		if (!is_victim(job, list, &a))
			list->data[kept++] = a;
	}
	list->cnt = kept;
}

/* --- what a repair alone gives back --- */

static double net_gain(const struct accusation *a)
{
	return a->gain_ns - a->hidden_ns;
}

/* Whether a fault of other workers hides it. Of two faults each may hide the other. */
static bool is_behind(const accusations *list, const struct accusation *a)
{
	vec_foreach(other, list) {
		if (!other->usual && !weighing_shares_workers(a, other) &&
		    other->gain_ns >= LEDGER_MOST * a->gain_ns)
			return true;
	}
	return false;
}

static bool is_always_late(const struct job *job, const struct blame *blame,
			   const struct accusation *a)
{
	bool always = true;

	for (size_t i = 0; i < a->worker_cnt; i++) {
		uint32_t w = a->workers[i];

		always &= (double)blame->workers[w].late_iterations >= job->workers[w].iterations;
	}
	return always;
}

/* scratch: a number for each worker. */
static int drop_where(const struct job *job,
		      bool (*is_wrong)(const struct job *, const struct accusation *,
				       double *scratch),
		      accusations *list)
{
	_cleanup_free_ double *scratch = calloc(job->worker_cnt + 1, sizeof(*scratch));
	size_t kept = 0;

	if (scratch == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < list->cnt; i++) {
		struct accusation a = list->data[i];

		if (!is_wrong(job, &a, scratch))
			list->data[kept++] = a;
	}
	list->cnt = kept;
	return 0;
}

/* Thread time of the accused in the function, and of the others, per iteration: medians. */
static double median_thread_ns(const struct job *job, const struct accusation *a, bool accused,
			       double *scratch)
{
	const struct job_function *f = &job->functions.data[a->function];
	size_t cnt = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (accusation_has(a, w) == accused)
			scratch[cnt++] = f->of[w] != NULL ? (double)f->of[w]->thread_ns /
								    job->workers[w].iterations
							  : 0;
	}
	return stats_median(scratch, cnt);
}

/*
 * Where hosts are slower than devices, each rank is late now and then, by what all of their threads
 * do for as long.
 */
static bool is_common_work(const struct job *job, const struct accusation *a, double *scratch)
{
	if (a->witness != WITNESS_BLAME || a->class != CLASS_HOST || a->rotates || a->spread ||
	    a->place_cnt > 0 || a->function == FRAME_NONE || a->worker_cnt == job->worker_cnt)
		return false;
	return median_thread_ns(job, a, true, scratch) - median_thread_ns(job, a, false, scratch) <
	       COMMON_WORK * a->own_ns / (double)a->worker_cnt;
}

int weighing_drop_common(const struct job *job, accusations *list)
{
	return drop_where(job, is_common_work, list);
}

/* How many times as long as those with the same work a worker computes. 1: none has the same. */
static double compute_ratio(const struct job *job, uint32_t worker, double *scratch)
{
	size_t cnt = 0;

	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (w != worker && work_is_same(job, worker, w))
			scratch[cnt++] = work_compute_ns(job, w);
	}
	return cnt > 0 ? work_compute_ns(job, worker) / stats_median(scratch, cnt) : 1;
}

/* The same of the function that holds most of the accusation. */
static double function_ratio(const struct job *job, const struct accusation *a, double *scratch)
{
	const struct job_function *f;
	size_t cnt = 0;

	if (a->function == FRAME_NONE)
		return 1;
	f = &job->functions.data[a->function];
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		if (w != a->workers[0] && work_is_same(job, a->workers[0], w))
			scratch[cnt++] = job_time_ns(job, f, w);
	}
	return cnt > 0 ? job_time_ns(job, f, a->workers[0]) / stats_median(scratch, cnt) : 1;
}

/* Whether it is one device that is little slower in all that it does: no two are alike. */
static bool is_chip(const struct job *job, const struct accusation *a, double *scratch)
{
	double ratio;

	if (a->witness != WITNESS_BLAME || a->class != CLASS_COMPUTE || a->rotates ||
	    a->place_cnt > 0 || a->worker_cnt != 1 || !job->workers[a->workers[0]].fp->has_device)
		return false;
	ratio = compute_ratio(job, a->workers[0], scratch);
	return ratio > 1 && ratio < CHIP_RATIO &&
	       function_ratio(job, a, scratch) < 2 * CHIP_RATIO - 1;
}

int weighing_drop_chips(const struct job *job, accusations *list)
{
	return drop_where(job, is_chip, list);
}

/* The largest gain of another accusation: by blame, or, with all, of all workers outside of collectives. */
static double largest_gain(const struct job *job, const accusations *list, bool all)
{
	double most = 0;

	vec_foreach(a, list) {
		bool counts = all ? a->class != CLASS_COMM && a->worker_cnt == job->worker_cnt
				  : a->witness == WITNESS_BLAME;

		if (counts && !a->usual)
			most = fmax(most, net_gain(a));
	}
	return most;
}

/*
 * Collectives are longer where ranks wait. What is left of it beside the waits that are known, and is
 * little beside what the late ones cost, is no fault of links. All ranks communicate more than a
 * healthy job does by design, too: that is no finding beside what costs much more.
 */
void weighing_drop_minor(const struct job *job, accusations *list)
{
	double late = largest_gain(job, list, false), common = largest_gain(job, list, true);
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		struct accusation a = list->data[i];
		bool comm =
			a.witness != WITNESS_BLAME && a.class == CLASS_COMM && a.flow.slow_cnt == 0;
		bool design =
			comm && a.witness == WITNESS_EXPECTATION && a.worker_cnt == job->worker_cnt;

		if (!(comm && a.gain_ns < MINOR_COMM * late) &&
		    !(design && a.gain_ns < MINOR_DESIGN * common))
			list->data[kept++] = a;
	}
	list->cnt = kept;
}

void weighing_drop_slight(const struct job *job, const struct blame *blame,
			  const struct accuse_options *options, accusations *list)
{
	/* What is hidden keeps GAIN_LEAST of it. */
	double least = 1.01 * GAIN_LEAST * options->min_gain_frac * job->iteration_ns;
	size_t kept = 0;

	for (size_t i = 0; i < list->cnt; i++) {
		struct accusation a = list->data[i];
		double chance = a.rotates ? BLAME_ROTATE_FRAC : SPREAD_DEVICE_GAIN;
		bool chip = a.spread && a.class == CLASS_COMPUTE &&
			    net_gain(&a) < chance * job->iteration_ns;
		bool slight = a.witness == WITNESS_BLAME &&
			      (chip || (a.hidden_ns > 0 && net_gain(&a) <= least &&
					!is_always_late(job, blame, &a)));

		if (!slight || is_behind(list, &list->data[i]))
			list->data[kept++] = a;
	}
	list->cnt = kept;
}
