/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/others.h"

#include "base/text/pythoncode.h"
#include "model/syscall.h"
#include "read/flight/loaderchildren.h"

#include <errno.h>
#include <string.h>

#define THREAD_MAX 64u
#define ENDS_FRAC 0.5		     /* of the ends of waits, at which one ran that counts */
#define BUSY_FRAC 0.9		     /* of the time within waits: it runs always */
#define NEAR_NS (10 * NSEC_PER_MSEC) /* who is woken may get its CPU so much later */
#define WAITS_MIN 3u		     /* fewer ends show nothing */
#define ENDED_NS NSEC_PER_SEC	     /* a thread that lives is sampled more often, while any is */

/* Another thread of the process, as of its last sample. */
struct other {
	uint32_t tid, node;
	uint16_t detail;
	bool ran; /* since the sample before, at this tick */
	int64_t ran_ns;
	uint32_t ends, within;
};

/* Samples of all threads at one moment are one tick. */
struct watch {
	const struct flightlog *log;
	struct placing *placing;
	bool *waits; /* by node: its innermost function waits for others, if the kernel says so */
	struct other others[THREAD_MAX];
	size_t other_cnt;
	bool waiting, ended; /* the training thread; a wait ended since the tick before */
	uint32_t ends, within;
	bool direct; /* the user's functions wait themselves, for a lock or a SimpleQueue */
	bool counts; /* the second pass: samples of related threads are placed */
	bool all;
	uint32_t wait_ticks;
};

/* What Python's own modules do while their caller waits for another thread or process. */
static bool is_wait_node(const struct flightlog *log, uint32_t node)
{
	static const char *const files[] = {
		"/threading.py",
		"/queue.py",
		"/selectors.py",
		"/socketserver.py",
		"/subprocess.py",
		"/concurrent/futures/_base.py",
		"/concurrent/futures/thread.py",
		"/concurrent/futures/process.py",
		"/multiprocessing/connection.py",
		"/multiprocessing/queues.py",
		"/multiprocessing/synchronize.py",
		"/multiprocessing/pool.py",
		"/multiprocessing/managers.py",
		"/multiprocessing/popen_fork.py",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (flight_node_is(log, node, files[i], ""))
			return true;
	}
	return false;
}

static bool is_wait(const struct watch *w, uint32_t node, uint16_t detail)
{
	return w->waits[node] && (detail & FLIGHT_SAMPLE_SYSCALL) != 0 &&
	       (detail & FLIGHT_SAMPLE_GIL_WAIT) == 0;
}

/*
 * Python's locks have no function of their own. The threads of an operator are waited for in the same
 * system call.
 */
static bool is_direct_wait(const struct watch *w, uint32_t node, uint16_t detail)
{
	const char *call = syscall_name(detail >> 4);

	return w->placing->users[node] && (detail & FLIGHT_SAMPLE_SYSCALL) != 0 &&
	       (detail & FLIGHT_SAMPLE_GIL_WAIT) == 0 && call != NULL && strcmp(call, "futex") == 0;
}

static bool is_idle(const struct watch *w, uint32_t node, uint16_t detail)
{
	return is_wait(w, node, detail) || (w->direct && is_direct_wait(w, node, detail));
}

static struct other *other_of(struct watch *w, uint32_t tid)
{
	for (size_t i = 0; i < w->other_cnt; i++) {
		if (w->others[i].tid == tid)
			return &w->others[i];
	}
	if (w->other_cnt == THREAD_MAX)
		return NULL;
	w->others[w->other_cnt] = (struct other){ .tid = tid, .ran_ns = INT64_MIN / 2 };
	return &w->others[w->other_cnt++];
}

/* Whether it works for the training thread, as far as its samples tell. */
static bool is_related(const struct watch *w, const struct other *other, bool busy_too)
{
	if (w->all)
		return true;
	return w->ends >= WAITS_MIN && other->ends >= ENDS_FRAC * w->ends &&
	       (busy_too || other->within < BUSY_FRAC * w->within);
}

static bool any_related(const struct watch *w, bool busy_too)
{
	for (size_t i = 0; i < w->other_cnt; i++) {
		if (is_related(w, &w->others[i], busy_too))
			return true;
	}
	return false;
}

/* A node of the program: not the start of a thread, nor Python's idle loops. */
static bool is_at_work(const struct watch *w, const struct other *other)
{
	return other->node != 0 && !is_idle(w, other->node, other->detail) &&
	       w->placing->names.frames[w->log->nodes.data[other->node].frame].part != PART_OWN;
}

/* Every thread of the tick has been seen. */
static int end_tick(struct watch *w, int64_t now_ns)
{
	bool busy_too = !w->direct && !any_related(w, false);
	int error = 0;

	if (!w->counts && w->ended)
		w->ends++;
	else if (!w->counts && w->waiting)
		w->within++;
	for (size_t i = 0; i < w->other_cnt && error == 0; i++) {
		struct other *other = &w->others[i];

		if (other->ran)
			other->ran_ns = now_ns;
		if (!w->counts && w->ended)
			other->ends += now_ns - other->ran_ns <= NEAR_NS;
		else if (!w->counts && w->waiting)
			other->within += other->ran;
		else if (w->counts && w->waiting && is_related(w, other, busy_too) &&
			 is_at_work(w, other))
			error = vec_push(&w->placing->samples,
					 ((struct placing_sample){ other->node, other->detail }));
		other->ran = false;
	}
	w->wait_ticks += w->counts && w->waiting;
	w->ended = false;
	return error;
}

static void take_sample(struct watch *w, const struct ring_record *record)
{
	uint32_t tid = flight_sample_tid(record), node = (uint32_t)record->extra;
	struct other *other;

	if (tid == w->log->training_tid) {
		bool waiting = is_idle(w, node, record->detail);

		w->ended = w->waiting && (!waiting || record->value > 0);
		w->waiting = waiting;
		return;
	}
	other = other_of(w, tid);
	if (other == NULL)
		return;
	other->node = node;
	other->detail = record->detail;
	other->ran = record->value > 0;
}

static int pass(struct watch *w, int64_t start_ns, int64_t end_ns)
{
	int64_t tick_ns = -1;
	int error = 0;

	w->waiting = w->ended = false;
	for (size_t i = 0; i < w->log->samples.cnt && error == 0; i++) {
		const struct ring_record *record = &w->log->samples.data[i];

		if (record->kind != FLIGHT_SAMPLE || record->time_ns < start_ns ||
		    record->time_ns > end_ns)
			continue;
		if (tick_ns >= 0 && record->time_ns != tick_ns)
			error = end_tick(w, tick_ns);
		tick_ns = record->time_ns;
		take_sample(w, record);
	}
	return error == 0 && tick_ns >= 0 ? end_tick(w, tick_ns) : error;
}

/* Children are looked at by turns: each look counts that falls into a wait. */
static int add_children(struct watch *w, int64_t start_ns, int64_t end_ns)
{
	bool waiting = false;
	int error = 0;

	for (size_t i = 0; i < w->log->samples.cnt && error == 0; i++) {
		const struct ring_record *record = &w->log->samples.data[i];
		struct placing_sample sample = { (uint32_t)record->extra, record->detail };

		if (record->time_ns < start_ns || record->time_ns > end_ns)
			continue;
		if (record->kind == FLIGHT_SAMPLE &&
		    flight_sample_tid(record) == w->log->training_tid)
			waiting = is_wait(w, sample.node, sample.detail);
		else if (record->kind == FLIGHT_CHILD && waiting && sample.node != 0 &&
			 !is_wait(w, sample.node, sample.detail))
			error = vec_push(&w->placing->samples, sample);
	}
	return error;
}

/* What the parent of a forked child did when it forked is below the child's own functions. */
static void find_users(struct placing *p)
{
	for (uint32_t i = 1; i < p->node_cnt; i++) {
		uint32_t parent = p->log->nodes.data[i].parent;

		p->users[i] = pythoncode_is_users(placing_text(p, i));
		if (!flight_node_is(p->log, i, "/multiprocessing/process.py", "_bootstrap"))
			continue;
		for (; parent != 0; parent = p->log->nodes.data[parent].parent)
			p->users[parent] = false;
	}
}

/* What threads did that the training thread waited for: both passes. */
static int find_threads(struct watch *w, int64_t start_ns, int64_t end_ns)
{
	int error;

	w->other_cnt = 0;
	w->ends = w->within = w->wait_ticks = 0;
	w->counts = false;
	error = pass(w, start_ns, end_ns);
	w->counts = true;
	return error == 0 ? pass(w, start_ns, end_ns) : error;
}

/*
 * Threads first: where none was at work for half of the waits, it is children, if any. Where there
 * is neither, the user's functions may wait themselves.
 */
static int find(struct watch *w, int64_t start_ns, int64_t end_ns, struct flight_place *ret)
{
	int error = find_threads(w, start_ns, end_ns);

	ret->by = AWAITED_THREAD;
	if (error == 0 && 2 * w->placing->samples.cnt < w->wait_ticks) {
		w->placing->samples.cnt = 0;
		ret->by = AWAITED_CHILD;
		error = add_children(w, start_ns, end_ns);
	}
	if (error == 0 && w->placing->samples.cnt == 0 && !w->all) {
		ret->by = AWAITED_THREAD;
		w->direct = true;
		error = find_threads(w, start_ns, end_ns);
	}
	return error == 0 ? placing_find(w->placing, ret) : error;
}

int flight_others(const struct flightlog *log, int64_t start_ns, int64_t end_ns, bool all,
		  struct flight_place *ret)
{
	_cleanup_free_ bool *waits = calloc(log->nodes.cnt + 1, sizeof(*waits));
	struct flight_place found = { 0 };
	struct placing placing;
	struct watch watch = { .log = log, .placing = &placing, .waits = waits, .all = all };
	int error = placing_init(&placing, log);

	if (waits == NULL)
		error = -ENOMEM;
	if (error == 0) {
		for (uint32_t i = 1; i < log->nodes.cnt; i++)
			waits[i] = is_wait_node(log, i);
		find_users(&placing);
		error = find(&watch, start_ns, end_ns, &found);
	}
	placing_done(&placing);
	if (error == 0)
		*ret = found;
	return error;
}

int flight_awaited(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
		   struct flight_place *ret)
{
	struct flight_place found = { 0 };
	int error = flight_children(log, start_ns, end_ns, &found);

	if (error == 0 && found.sample_cnt == 0)
		error = flight_others(log, start_ns, end_ns, false, &found);
	if (error == 0)
		*ret = found;
	return error;
}

/*
 * Whether Python started the thread of this stack. Others, as those of the autograd engine, are in
 * Python's list only while they run some, and have not ended when they leave it.
 */
static bool is_of_python_thread(const struct flightlog *log, uint32_t node)
{
	while (node != 0 && log->nodes.data[node].parent != 0)
		node = log->nodes.data[node].parent;
	return node != 0 && flight_node_is(log, node, "/threading.py", "_bootstrap");
}

/* Whether Python writes the exception that ended the thread: what raised it comes before. */
static bool writes_exception(const struct flightlog *log, uint32_t node)
{
	while (node != 0 && !flight_node_is(log, node, "/threading.py", "invoke_excepthook"))
		node = log->nodes.data[node].parent;
	return node != 0;
}

/* An earlier sample of the same thread in its own code, else this one. */
static const struct ring_record *before_exception(const struct flightlog *log,
						  const struct ring_record *last)
{
	for (const struct ring_record *record = last; record >= log->samples.data; record--) {
		if (record->kind == FLIGHT_SAMPLE &&
		    flight_sample_tid(record) == flight_sample_tid(last) &&
		    !writes_exception(log, (uint32_t)record->extra))
			return record;
	}
	return last;
}

/* The last sample of the thread that ended last. NULL: none ended since start_ns. */
static const struct ring_record *last_of_ended(const struct flightlog *log, int64_t start_ns,
					       int64_t *now_ns)
{
	uint32_t alive[THREAD_MAX];
	size_t alive_cnt = 0;

	*now_ns = INT64_MIN;
	for (size_t i = log->samples.cnt; i-- > 0;) {
		const struct ring_record *record = &log->samples.data[i];
		uint32_t tid = flight_sample_tid(record);
		bool known = false;

		if (record->kind != FLIGHT_SAMPLE || tid == 0)
			continue;
		if (*now_ns == INT64_MIN && tid == log->training_tid)
			*now_ns = record->time_ns;
		if (record->time_ns < start_ns || *now_ns == INT64_MIN)
			continue;
		for (size_t j = 0; j < alive_cnt && !known; j++)
			known = alive[j] == tid;
		if (!known && *now_ns - record->time_ns > ENDED_NS &&
		    is_of_python_thread(log, (uint32_t)record->extra))
			return record;
		if (!known && alive_cnt < THREAD_MAX)
			alive[alive_cnt++] = tid;
	}
	return NULL;
}

int flight_ended_thread(const struct flightlog *log, int64_t start_ns, int64_t *ago_ns,
			struct flight_place *ret)
{
	int64_t now_ns;
	const struct ring_record *last = last_of_ended(log, start_ns, &now_ns);
	struct flight_place found = { .by = AWAITED_THREAD };
	struct placing placing;
	int error = placing_init(&placing, log);

	if (error == 0 && last != NULL && (uint32_t)last->extra != 0) {
		const struct ring_record *at = before_exception(log, last);

		find_users(&placing);
		error = vec_push(&placing.samples,
				 ((struct placing_sample){ (uint32_t)at->extra, at->detail }));
	}
	if (error == 0)
		error = placing_find(&placing, &found);
	placing_done(&placing);
	if (error == 0) {
		*ago_ns = last != NULL ? now_ns - last->time_ns : 0;
		*ret = found;
	}
	return error;
}
