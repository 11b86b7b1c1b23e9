/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/samplereader.h"

#include "base/clock.h"
#include "stacks/proc/denial.h"
#include "stacks/sampling/loaderprocs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	THREADS_MAX = 1024,
	CHILDREN_MAX = 64,
	LIST_BYTES = 4096,
	THREADS_KEPT = 8,
	QUIET_NICE = 19,
	STATUS_BYTES = 4096
};

struct child_account {
	uint32_t pid;
	int64_t ran_ns, queued_ns;
};

struct samplereader {
	struct sampling_shared *shared;
	struct region *region;
	int proc; /* /proc/PID: remains this process also when its number is used again */
	uint32_t pid, own_pid, uid;
	struct modules modules;
	struct unwinder unwinder;
	struct pytarget python;
	struct resolver resolver;
	struct uniquestacks unique;
	struct loaderprocs children;
	uintptr_t tstate;
	struct sampled_moment *moments;
	struct sampled_thread before[THREADS_MAX];
	size_t before_cnt;
	struct child_account accounts[CHILDREN_MAX];
	size_t account_cnt;
	int64_t account_ns; /* when they were read */
};

static void fail(struct samplereader *reader, int error)
{
	struct sampling_shared *shared = reader->shared;
	struct denial denial = { .pid = reader->pid, .error = -error, .uid = reader->uid };

	if (shared->error[0] != '\0')
		return;
	if (error == -ESRCH || error == -ENOENT) {
		(void)snprintf(
			shared->error, sizeof(shared->error),
			"process %u ended before it was sampled: `ps -e` lists those that run",
			reader->pid);
		return;
	}
	denial_look(&denial);
	denial_explain(&denial, shared->error, sizeof(shared->error));
}

/* --- before the window --- */

static int read_status(const struct samplereader *reader, struct taskfiles_status *ret)
{
	char text[STATUS_BYTES];
	const int len = taskfiles_read(reader->proc, "status", text, sizeof(text));

	return len <= 0 ? -ESRCH : taskfiles_parse_status(text, ret);
}

static void read_command(const struct samplereader *reader)
{
	char *ret = reader->shared->command;
	int len = taskfiles_read(reader->proc, "cmdline", ret, sizeof(reader->shared->command));

	while (len > 0 && ret[len - 1] == '\0')
		len--;
	for (int i = 0; i < len; i++)
		if (iscntrl((unsigned char)ret[i]))
			ret[i] = ' ';
}

static int identify(struct samplereader *reader)
{
	struct taskfiles_status status;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%u", reader->pid);
	reader->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (reader->proc < 0 || read_status(reader, &status) < 0)
		return -ESRCH;
	reader->uid = status.uid;
	reader->own_pid = status.own_pid;
	read_command(reader);
	return 0;
}

static int tell_no_python(struct samplereader *reader)
{
	struct sampling_shared *shared = reader->shared;

	if (reader->python.why[0] != '\0')
		(void)snprintf(shared->error, sizeof(shared->error),
			       "process %u runs Python that cannot be read: %s", reader->pid,
			       reader->python.why);
	else
		(void)snprintf(shared->error, sizeof(shared->error),
			       "process %u runs no Python: give a rank of the job or its launcher; "
			       "`perftracker stacks %u` shows what it does",
			       reader->pid, reader->pid);
	return -EINVAL;
}

static int find_python(struct samplereader *reader)
{
	const struct selfmem mem = { .pid = (pid_t)reader->pid, .fd = -1 };
	unsigned char byte;
	int error = modules_read(&reader->modules, reader->proc, (pid_t)reader->pid);

	if (error < 0)
		return error;
	if (reader->modules.areas.cnt == 0)
		return -ESRCH;
	errno = 0;
	if (!selfmem_read(&mem, reader->modules.areas.data[0].start, &byte, 1) && errno != EFAULT)
		return errno != 0 ? -errno : -EIO;
	unwinder_init(&reader->unwinder, &reader->modules);
	error = pytarget_open(&reader->python, &reader->modules, reader->own_pid);
	if (error < 0)
		return error;
	if (!reader->python.present)
		return tell_no_python(reader);
	reader->tstate = pytarget_find(&reader->python, reader->own_pid);
	return reader->tstate != 0 ? 0 : tell_no_python(reader);
}

/* "RAN QUEUED SLICES", in ns. */
static void read_account(int proc, uint32_t tid, int64_t *ret_ran, int64_t *ret_queued)
{
	char text[96], *end;

	if (taskfiles_read_of(proc, tid, "schedstat", text, sizeof(text)) <= 0)
		return;
	*ret_ran = strtoll(text, &end, 10);
	*ret_queued = strtoll(end, NULL, 10);
}

static size_t list_threads(const struct samplereader *reader, struct sampled_thread *ret)
{
	const int fd = openat(reader->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t cnt = 0;

	while (dir != NULL && cnt < THREADS_MAX && (entry = readdir(dir)) != NULL) {
		struct sampled_thread *thread = &ret[cnt];
		int64_t queued_ns;
		int len;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		*thread = (struct sampled_thread){
			.tid = (uint32_t)strtoul(entry->d_name, NULL, 10),
		};
		read_account(reader->proc, thread->tid, &thread->ran_ns, &queued_ns);
		len = taskfiles_read_of(reader->proc, thread->tid, "comm", thread->name,
					sizeof(thread->name));
		if (len > 0 && thread->name[len - 1] == '\n')
			thread->name[len - 1] = '\0';
		cnt += thread->tid != reader->pid;
	}
	if (dir != NULL)
		(void)closedir(dir);
	else if (fd >= 0)
		(void)close(fd);
	return cnt;
}

/* Those that its main thread started, such as workers of a loader. */
static size_t list_children(const struct samplereader *reader,
			    struct child_account ret[static CHILDREN_MAX])
{
	char text[LIST_BYTES], *at = text, *end;
	size_t cnt = 0;

	if (taskfiles_read_of(reader->proc, reader->pid, "children", text, sizeof(text)) <= 0)
		return 0;
	for (unsigned long pid; (pid = strtoul(at, &end, 10)) > 0 && end != at; at = end) {
		struct child_account *child = &ret[cnt];
		char path[40], line[96], *next;

		(void)snprintf(path, sizeof(path), "/proc/%lu/schedstat", pid);
		if (cnt == CHILDREN_MAX || taskfiles_read(AT_FDCWD, path, line, sizeof(line)) <= 0)
			continue;
		*child = (struct child_account){ .pid = (uint32_t)pid };
		child->ran_ns = strtoll(line, &next, 10);
		child->queued_ns = strtoll(next, NULL, 10);
		cnt++;
	}
	return cnt;
}

/* --- the window --- */

static void sleep_until(int64_t at_ns)
{
	const struct timespec at = { at_ns / NSEC_PER_SEC, at_ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Names are read at once: the job may free a code object. */
static void name_codes(struct samplereader *reader, const struct task *task)
{
	for (size_t i = 0; i < task->codes.cnt; i++)
		(void)pytarget_code(&reader->python, reader->region, task->codes.data[i]);
}

static void read_stacks(struct samplereader *reader, struct task *task, struct sampled_moment *ret)
{
	task->tstate = reader->tstate;
	task_read_blocked(task, &reader->unwinder, &reader->python);
	if (!task->python_done)
		task_walk_python_twice(task, &reader->python);
	if (!task->python_done)
		return;
	name_codes(reader, task);
	if (loaderprocs_waits(&reader->python, reader->region, task))
		ret->child_stack = loaderprocs_sample(&reader->children, reader->proc, reader->pid,
						      &reader->python, reader->tstate,
						      &reader->unique, reader->region);
	ret->stack = uniquestacks_add(&reader->unique, task, 0);
}

/* Returns 0, or -errno: the process has ended, or may no longer be read. */
static int take_moment(struct samplereader *reader, uint32_t round)
{
	struct sampled_moment moment = {
		.round = round,
		.stack = SAMPLED_NONE,
		.child_stack = SAMPLED_NONE,
		.time_ns = clock_mono_ns(),
	};
	struct stacks_thread thread = { .why_incomplete = "" };
	struct task task;
	uint32_t cnt = atomic_load_explicit(&reader->shared->moment_cnt, memory_order_relaxed);
	int error = task_open(&task, reader->proc, reader->pid, &thread);

	if (error < 0)
		return error;
	moment.state = thread.state;
	read_account(reader->proc, reader->pid, &moment.ran_ns, &moment.queued_ns);
	if (strchr("ZX", thread.state) == NULL)
		read_stacks(reader, &task, &moment);
	task_done(&task);
	if (strchr("ZX", thread.state) != NULL)
		return -ESRCH;
	reader->moments[cnt] = moment;
	atomic_store_explicit(&reader->shared->moment_cnt, cnt + 1, memory_order_release);
	return 0;
}

static void sample(struct samplereader *reader)
{
	const struct sampling_plan *plan = &reader->shared->plan;
	struct sampled_rank *rank = &reader->shared->rank;

	for (uint32_t round = 0; round < plan->round_cnt; round++) {
		const int64_t at_ns = sampling_round_ns(plan, round);

		if (clock_mono_ns() > at_ns + plan->period_ns) {
			rank->late_cnt++;
			continue;
		}
		sleep_until(at_ns);
		if (atomic_load_explicit(&reader->shared->stop, memory_order_relaxed))
			return;
		if (take_moment(reader, round) < 0) {
			rank->ended = true;
			return;
		}
	}
}

/* --- after the window --- */

static int by_use(const void *a, const void *b)
{
	const struct sampled_thread *x = a, *y = b;

	return x->ran_ns != y->ran_ns ? (x->ran_ns < y->ran_ns ? 1 : -1)
				      : (x->tid > y->tid) - (x->tid < y->tid);
}

/* What each other thread used since the window began. */
static void compare_threads(struct samplereader *reader)
{
	struct sampled_thread *now = region_alloc(reader->region, THREADS_MAX * sizeof(*now));
	size_t cnt = now != NULL ? list_threads(reader, now) : 0;

	for (size_t i = 0; i < cnt; i++)
		for (size_t j = 0; j < reader->before_cnt; j++)
			if (reader->before[j].tid == now[i].tid)
				now[i].ran_ns -= reader->before[j].ran_ns;
	if (cnt > 0)
		qsort(now, cnt, sizeof(*now), by_use);
	reader->shared->rank.threads = now;
	reader->shared->rank.thread_cnt = MIN(cnt, (size_t)THREADS_KEPT);
}

static void compare_children(struct samplereader *reader)
{
	struct child_account now[CHILDREN_MAX];
	const size_t cnt = list_children(reader, now);
	const double ns = (double)(clock_mono_ns() - reader->account_ns);
	struct sampled_rank *rank = &reader->shared->rank;
	double ran = 0, queued = 0, both = 0;

	for (size_t i = 0; i < cnt; i++)
		for (size_t j = 0; j < reader->account_cnt; j++)
			if (reader->accounts[j].pid == now[i].pid) {
				ran += (double)(now[i].ran_ns - reader->accounts[j].ran_ns);
				queued +=
					(double)(now[i].queued_ns - reader->accounts[j].queued_ns);
				both++;
			}
	if (both <= 0 || ns <= 0)
		return;
	rank->children_ran_frac = ran / both / ns;
	rank->children_queued_frac = queued / both / ns;
}

static int64_t own_cpu_ns(void)
{
	return clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void advance(struct samplereader *reader, enum sampling_progress progress)
{
	atomic_store_explicit(&reader->shared->progress, progress, memory_order_release);
}

/* Names take longer than all samples: they may wait for a CPU that the job does not need. */
static int name_stacks(struct samplereader *reader)
{
	int error;

	(void)setpriority(PRIO_PROCESS, 0, QUIET_NICE);
	compare_threads(reader);
	compare_children(reader);
	reader->resolver.modules = &reader->modules;
	reader->resolver.region = reader->region;
	reader->resolver.interpreter = reader->python.module;
	error = uniquestacks_name_all(&reader->unique, &reader->python, &reader->resolver,
				      reader->region);
	reader->shared->rank.stacks = reader->unique.stacks;
	reader->shared->rank.stack_cnt = reader->unique.tasks.cnt;
	return error;
}

static void run(struct samplereader *reader)
{
	struct sampled_rank *rank = &reader->shared->rank;
	int error = identify(reader);
	int64_t begin_ns;

	if (error == 0)
		error = find_python(reader);
	if (error == 0)
		error = uniquestacks_init(&reader->unique, reader->region);
	if (error < 0) {
		fail(reader, error);
		return;
	}
	reader->before_cnt = list_threads(reader, reader->before);
	reader->account_cnt = list_children(reader, reader->accounts);
	reader->account_ns = clock_mono_ns();
	advance(reader, SAMPLING_READS);
	begin_ns = own_cpu_ns();
	sample(reader);
	rank->setup_ns = begin_ns;
	rank->reader_ns = own_cpu_ns() - begin_ns;
	advance(reader, SAMPLING_NAMES);
	error = name_stacks(reader);
	rank->setup_ns += own_cpu_ns() - begin_ns - rank->reader_ns;
	if (error < 0)
		(void)snprintf(reader->shared->error, sizeof(reader->shared->error),
			       "process %u: out of memory for its stacks", reader->pid);
}

void samplereader_run(struct sampling_shared *shared)
{
	struct samplereader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL) {
		(void)snprintf(shared->error, sizeof(shared->error), "out of memory");
		return;
	}
	reader->shared = shared;
	reader->region = shared->region;
	reader->pid = shared->rank.pid;
	reader->proc = -1;
	reader->moments = (struct sampled_moment *)(uintptr_t)shared->rank.moments;
	run(reader);
	loaderprocs_done(&reader->children);
	uniquestacks_done(&reader->unique);
	resolver_done(&reader->resolver);
	pytarget_done(&reader->python);
	unwinder_done(&reader->unwinder);
	modules_done(&reader->modules);
	if (reader->proc >= 0)
		(void)close(reader->proc);
	free(reader);
	advance(&(struct samplereader){ .shared = shared }, SAMPLING_DONE);
}
