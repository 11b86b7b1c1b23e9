/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/stallwatch.h"

#include "base/clock.h"
#include "host/process/procfs.h"
#include "host/stallwatch/hostcounters.h"
#include "host/stallwatch/perfdenial.h"
#include "host/stallwatch/stallwatch_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS (10 * NSEC_PER_MSEC)
#define LOOK_RARE_NS (200 * NSEC_PER_MSEC)   /* where events tell more */
#define LOOK_THREAD_NS (500 * NSEC_PER_USEC) /* looks take at most some percent of a CPU */
#define QUOTA_NS (20 * NSEC_PER_MSEC)
#define SWITCHES_NS (50 * NSEC_PER_MSEC)
#define HOST_NS (500 * NSEC_PER_MSEC)

enum { THREADS_EACH_MAX = 16 };

static int tell_process(uint32_t pid, int error, struct err *err)
{
	return err_set(err, -error, "process %u: %s", pid,
		       error == -ESRCH ? "there is no such process" : strerror(-error));
}

static uint32_t read_tracer(const char *root, uint32_t pid)
{
	char path[64], text[4096];
	const char *at;

	(void)snprintf(path, sizeof(path), "%u/status", pid);
	if (procfs_read(root, path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nTracerPid:");
	return at != NULL ? (uint32_t)strtoul(at + strlen("\nTracerPid:"), NULL, 10) : 0;
}

/* Its threads, its cgroup's limit, its GIL. */
static int add_process(struct stallwatch *watch, const struct stallwatch_options *options,
		       uint32_t pid)
{
	struct watched_quota quota = { .pid = pid };
	const size_t max = MIN(STALL_THREADS_MAX / options->pid_cnt, (size_t)THREADS_EACH_MAX);
	struct stall_process *process;
	int error = watchedthreads_add(&watch->threads, pid, max, watch->recording);

	if (error == 0)
		error = seenprocesses_see(&watch->seen, pid, watch->recording);
	if (error < 0)
		return error;
	process = &watch->recording->processes.data[idmap_get(&watch->seen.by_pid, pid)];
	process->watched = true;
	process->tracer = read_tracer(options->root, pid);
	if (options->gil != NULL)
		(void)options->gil(options->python_context, pid, &process->gil_begin,
				   &process->gil_end);
	cpuquota_open(&quota.quota, options->root, pid);
	process->quota_us = quota.quota.quota_us;
	process->period_us = quota.quota.period_us;
	error = vec_push(&watch->quotas, quota);
	if (error < 0)
		cpuquota_close(&quota.quota);
	if (error == 0 && process->tracer != 0)
		error = seenprocesses_see(&watch->seen, process->tracer, watch->recording);
	return error;
}

static uint64_t read_switches(const char *root)
{
	char text[64 << 10];
	const char *at;

	if (procfs_read(root, "stat", text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "\nctxt ");
	return at != NULL ? strtoull(at + strlen("\nctxt "), NULL, 10) : 0;
}

/* Whether the host changes threads so often that recording each change would cost too much. */
static bool switches_too_often(const char *root)
{
	const struct timespec moment = { .tv_nsec = SWITCHES_NS };
	const uint64_t before = read_switches(root);

	(void)nanosleep(&moment, NULL);
	return read_switches(root) - before >
	       STALLWATCH_SWITCHES_MAX / (uint64_t)(NSEC_PER_SEC / SWITCHES_NS);
}

/* Events of threads in the order of the threads: both lists have the same indices. */
static int add_events(struct stallwatch *watch, const char *root)
{
	struct stall_recording *recording = watch->recording;
	int error = perfevents_open(&watch->events, recording), denied = 0;

	for (size_t i = 0; i < watch->threads.list.cnt && error == 0; i++) {
		struct watchedthread *thread = &watch->threads.list.data[i];
		const struct perfthread none = { .ring.fd = -1, .tid = thread->tid };

		error = perfevents_add_thread(&watch->events, thread->tid, recording);
		if (error == -ENOMEM || error == 0)
			continue;
		if (error != -ESRCH)
			denied = error;
		error = vec_push(&watch->events.threads, none);
	}
	if (denied < 0) {
		char text[200];

		if (perfdenial_find(-denied))
			(void)snprintf(text, sizeof(text), "exact times of threads: %s",
				       PERFDENIAL_FILTER);
		else
			(void)snprintf(
				text, sizeof(text),
				"exact times of threads: the kernel refuses their events (%s)",
				strerror(-denied));
		error = stallrecording_note(recording, text);
	}
	if (error < 0)
		return error;
	const bool often = switches_too_often(root);

	error = perfevents_add_cpus(&watch->events, STALLWATCH_HZ, !often, recording);
	return error < 0 || !often
		       ? error
		       : stallrecording_note(recording,
					     "who had the CPUs exactly: the host changes threads "
					     "too often, so samples tell");
}

static int read_names(struct stallwatch *watch)
{
	const int error = kernelnames_read(&watch->names, "");

	watch->named = error == 0;
	if (error == -ENOMEM)
		return error;
	return error == 0 ? 0
			  : stallrecording_note(watch->recording,
						"names of kernel functions: they need root or "
						"kernel.kptr_restrict 0");
}

static int read_counters(struct stallwatch *watch, const char *root, int64_t now_ns, bool host)
{
	struct stall_counters counters = { .time_ns = now_ns };
	int error = 0;

	if (host) {
		hostcounters_read(root, &counters);
		error = vec_push(&watch->recording->counters, counters);
	}
	vec_foreach(quota, &watch->quotas) {
		struct stall_counters of = { .time_ns = now_ns, .pid = quota->pid };

		if (error == 0 && cpuquota_read(&quota->quota, &of.throttled_cnt, &of.throttled_ns))
			error = vec_push(&watch->recording->counters, of);
	}
	return error;
}

/* When each kind of reading comes next. */
struct due {
	int64_t look_ns, quota_ns, host_ns;
};

static int read_due(struct stallwatch *watch, const struct stallwatch_options *options,
		    struct due *due, int64_t now_ns)
{
	const uint32_t exact = STALL_BY_SWITCHES | STALL_BY_STACKS;
	const bool stacks = (watch->recording->sources & exact) != exact;
	int error = 0;

	if (now_ns >= due->look_ns) {
		/* A thread that is blocked at the begin may have no event in the window. */
		error = watchedthreads_look(&watch->threads, now_ns, stacks || due->look_ns == 0,
					    watch->recording);
		due->look_ns =
			now_ns +
			(stacks ? MAX(TICK_NS, (int64_t)watch->threads.list.cnt * LOOK_THREAD_NS)
				: LOOK_RARE_NS);
		if (error == 0)
			return 1; /* all have ended */
	}
	if (error >= 0 && now_ns >= due->quota_ns) {
		const bool host = now_ns >= due->host_ns;

		error = read_counters(watch, options->root, now_ns, host);
		if (error == 0 && host && (watch->recording->sources & STALL_BY_CPUS) == 0)
			error = seenprocesses_used(&watch->seen, now_ns, watch->recording);
		due->quota_ns = now_ns + QUOTA_NS;
		if (host)
			due->host_ns = now_ns + HOST_NS;
	}
	return MIN(error, 0);
}

static int watch_loop(struct stallwatch *watch, const struct stallwatch_options *options)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };
	struct stall_recording *recording = watch->recording;
	struct due due = { 0 };
	int error = 0;

	recording->begin_ns = clock_mono_ns();
	watch->collections.looked_ns = recording->begin_ns;
	do {
		const int64_t now_ns = clock_mono_ns();

		error = read_due(watch, options, &due, now_ns);
		if (error == 0 && options->collects != NULL)
			error = gccollections_look(&watch->collections, options, now_ns, recording);
		if (error == 0)
			error = perfevents_drain(&watch->events, stallwatch_take, watch);
		if (watch->filters_stale)
			perfevents_filter(&watch->events, recording);
		watch->filters_stale = false;
		if (error != 0 || now_ns - recording->begin_ns >= options->window_ns)
			break;
		(void)nanosleep(&tick, NULL);
	} while (options->stop == NULL || *options->stop == 0);
	if (error < 0)
		return error;
	recording->end_ns = clock_mono_ns();
	if (error == 1)
		(void)stallrecording_note(recording, "the rest of the window: the process ended");
	error = gccollections_end(&watch->collections, recording->end_ns, recording);
	if (error == 0)
		error = perfevents_drain(&watch->events, stallwatch_take, watch);
	if (error == 0)
		error = MIN(
			watchedthreads_look(&watch->threads, recording->end_ns, false, recording),
			0);
	return error < 0 ? error : read_counters(watch, options->root, recording->end_ns, true);
}

static int watch_all(struct stallwatch *watch, const struct stallwatch_options *options,
		     struct err *err)
{
	struct stall_recording *recording = watch->recording;
	int error;

	recording->cpu_cnt = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	recording->own_pid = (uint32_t)getpid();
	recording->sources = STALL_BY_LOOKS | STALL_BY_COUNTERS;
	for (size_t i = 0; i < options->pid_cnt; i++) {
		error = add_process(watch, options, options->pids[i]);
		if (error < 0)
			return tell_process(options->pids[i], error, err);
	}
	error = options->without_events
			? stallrecording_note(recording, "events of the kernel: not wanted")
			: read_names(watch);
	if (error == 0 && !options->without_events)
		error = add_events(watch, options->root);
	if (error == 0 && (recording->sources & STALL_BY_SAMPLES) != 0)
		recording->sample_ns = NSEC_PER_SEC / STALLWATCH_HZ;
	if (error == 0)
		error = watch_loop(watch, options);
	if (error < 0)
		return err_set(err, -error, "cannot watch: %s", strerror(-error));
	watchedthreads_finish(&watch->threads, recording);
	if (watch->threads.left_out > 0) {
		char text[120];

		(void)snprintf(text, sizeof(text), "%zu threads that used less CPU than others",
			       watch->threads.left_out);
		(void)stallrecording_note(recording, text);
	}
	recording->dropped += watch->seen.dropped;
	stallrecording_sort(recording);
	return 0;
}

static void watch_done(struct stallwatch *watch)
{
	perfevents_close(&watch->events);
	kernelnames_done(&watch->names);
	watchedthreads_done(&watch->threads);
	seenprocesses_done(&watch->seen);
	vec_foreach(quota, &watch->quotas)
		cpuquota_close(&quota->quota);
	vec_done(&watch->quotas);
	idmap_done(&watch->chains);
	gccollections_done(&watch->collections);
}

int stallwatch_run(const struct stallwatch_options *options, struct stall_recording *ret,
		   struct err *err)
{
	struct stallwatch watch = {
		.recording = ret,
		.threads.root = options->root,
		.seen.root = options->root,
	};
	int error = stallrecording_init(ret);

	error = error < 0 ? err_set(err, ENOMEM, "out of memory") : watch_all(&watch, options, err);
	watch_done(&watch);
	if (error < 0)
		stallrecording_done(ret);
	return error;
}
