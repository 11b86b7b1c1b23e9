/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/waits/waits.h"

#include "localize/usercode.h"
#include "model/place/awaited.h"
#include "model/place/pywait.h"

#include <string.h>

uint32_t waits_frame(const struct accusation *a, const struct job *job)
{
	return a->function != FRAME_NONE ? job->functions.data[a->function].frame : a->frame;
}

static const char *name_of(const struct job *job, uint32_t frame)
{
	return frame != FRAME_NONE ? job->frames.data[frame].name : "";
}

static uint32_t parent_of(const struct job *job, uint32_t frame)
{
	return frame != FRAME_NONE ? job->frames.data[frame].parent : FRAME_NONE;
}

static bool begins(const char *name, const char *word)
{
	return strncmp(name, word, strlen(word)) == 0;
}

/* Whether a name is that of a system call: then what follows the prefix, else NULL. */
static const char *call_of(const struct job *job, uint32_t frame)
{
	const char *name = name_of(job, frame);

	return begins(name, CALL_PREFIX) ? name + strlen(CALL_PREFIX) : NULL;
}

bool waits_sleeps(const struct job *job, uint32_t frame)
{
	static const char *const calls[] = { "nanosleep>", "clock_nanosleep>", "futex>",
					     "poll>",	   "ppoll>",	       "select>",
					     "pselect6>",  "epoll_wait>",      "epoll_pwait>",
					     "pause>",	   "wait4>",	       "waitid>",
					     "flock>" };
	const char *call = call_of(job, frame);

	for (size_t i = 0; i < ARRAY_SIZE(calls) && call != NULL; i++) {
		if (strcmp(call, calls[i]) == 0)
			return true;
	}
	return false;
}

bool waits_in_call(const struct job *job, uint32_t frame)
{
	return call_of(job, frame) != NULL ||
	       (frame != FRAME_NONE && job->frames.data[frame].kind == KIND_PYTHON &&
		pywait_is(name_of(job, frame)));
}

/* A function of Python's modules that waits for threads and processes. */
static bool is_wait_of_python(const char *name)
{
	static const char *const files[] = { "threading.py(",	    "queue.py(",
					     "selectors.py(",	    "subprocess.py(",
					     "concurrent/futures/", "multiprocessing/" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (begins(name, files[i]))
			return true;
	}
	return false;
}

/* Other threads were seen at work in waits of this worker. */
static bool awaits_thread(const struct job *job, uint32_t w)
{
	const char *text = job->workers[w].fp->host_stats.awaited;
	struct awaited awaited;

	return text != NULL && awaited_read(text, &awaited) && awaited.by == AWAITED_THREAD;
}

/*
 * The user's function waits for a lock or a SimpleQueue, which have no function of Python's. What is
 * known of the awaited is of these waits only where the worker has no others.
 */
static bool is_lock_of_user(const struct job *job, const struct accusation *a, uint32_t call)
{
	uint32_t caller = parent_of(job, call);

	if (a->worker_cnt == 0 || caller == FRAME_NONE ||
	    strcmp(name_of(job, call), CALL_PREFIX "futex>") != 0 ||
	    !usercode_is(&job->frames.data[caller]) || !awaits_thread(job, a->workers[0]))
		return false;
	for (uint32_t frame = 0; frame < job->frames.cnt; frame++) {
		if (is_wait_of_python(name_of(job, frame)) &&
		    job_thread_ns(job, frame, a->workers[0]) > 0)
			return false;
	}
	return true;
}

/* The frame, or around a system call its caller. */
static uint32_t without_call(const struct job *job, uint32_t frame)
{
	return begins(name_of(job, frame), CALL_PREFIX) ? parent_of(job, frame) : frame;
}

bool waits_for_others(const struct job *job, const struct accusation *a)
{
	uint32_t frame = waits_frame(a, job);

	return !a->spread && frame != FRAME_NONE &&
	       (is_wait_of_python(name_of(job, without_call(job, frame))) ||
		is_lock_of_user(job, a, frame));
}

/* Whether an event loop waits there until something is ready. */
static bool is_loop_wait(const struct job *job, const struct accusation *a)
{
	uint32_t frame = without_call(job, waits_frame(a, job));

	return !a->spread && a->worker_cnt > 0 && begins(name_of(job, frame), "selectors.py(") &&
	       begins(name_of(job, parent_of(job, frame)), "asyncio/base_events.py(");
}

const char *waits_coroutine(const struct job *job, const struct accusation *a)
{
	const char *found = NULL;
	double most_ns = 0;

	if (!is_loop_wait(job, a))
		return NULL;
	for (uint32_t frame = 0; frame < job->frames.cnt; frame++) {
		double ns;

		/* The loop calls what is ready; of a coroutine the outermost function is below that. */
		if (!usercode_is(&job->frames.data[frame]) ||
		    !begins(name_of(job, parent_of(job, frame)), "asyncio/events.py("))
			continue;
		ns = job_thread_ns(job, frame, a->workers[0]);
		if (ns > most_ns) {
			most_ns = ns;
			found = name_of(job, frame);
		}
	}
	return found;
}
