/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/capture.h"

#include "base/clock.h"
#include "base/text/clean.h"
#include "stacks/native/resolve.h"
#include "stacks/proc/denial.h"
#include "stacks/proc/threadwaits.h"
#include "stacks/roles.h"
#include "stacks/task.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ENVIRON_BYTES = 256 << 10,
	CHILDREN_MAX = 256,
	MANY_THREADS = 64,
	STOP_LIMIT_MS = 50,
	BUSY_LIMIT_MS = 1000,
};

struct capture {
	struct stackreading_shared *shared;
	struct stacks_process *process;
	struct region *region;
	int proc;
	uint32_t uid;
	pid_t living; /* a thread that has not ended, for the process's memory */
	task_vec tasks;
	struct modules modules;
	struct unwinder unwinder;
	struct pytarget python;
	struct resolver resolver;
};

/* Whether its memory is gone, or the process itself. */
static bool has_ended(const struct capture *capture)
{
	char path[32], text[4096];
	struct taskfiles_status status;

	(void)snprintf(path, sizeof(path), "task/%d/status",
		       capture->living != 0 ? (int)capture->living : (int)capture->process->pid);
	return taskfiles_read(capture->proc, path, text, sizeof(text)) <= 0 ||
	       taskfiles_parse_status(text, &status) < 0 || !status.has_memory;
}

/* The first thing that went wrong is what counts. */
static void fail(struct capture *capture, int error)
{
	struct stacks_process *process = capture->process;
	struct denial denial = { .pid = process->pid, .error = -error, .uid = capture->uid };

	if (process->error[0] != '\0')
		return;
	if (error == -ESRCH || error == -ENOENT || has_ended(capture)) {
		(void)snprintf(process->error, sizeof(process->error),
			       "process %u ended while it was read", process->pid);
		return;
	}
	denial_look(&denial);
	denial_explain(&denial, process->error, sizeof(process->error));
}

/* Who it is. */

/* Arguments in one line. */
static void read_command(int proc, char *ret, size_t size)
{
	int len = taskfiles_read(proc, "cmdline", ret, size);

	if (len < 0)
		ret[0] = '\0';
	while (len > 0 && ret[len - 1] == '\0')
		len--;
	for (int i = 0; i < len; i++)
		if (iscntrl((unsigned char)ret[i]))
			ret[i] = ' ';
}

/* Launchers name the rank differently; torchrun's word counts first. */
static void read_rank(const struct capture *capture)
{
	static const char *const NAMES[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID" };
	_cleanup_free_ char *text = malloc(ENVIRON_BYTES);
	const char *value;
	size_t value_len;
	int len = text != NULL ? taskfiles_read(capture->proc, "environ", text, ENVIRON_BYTES) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(NAMES) && len > 0; i++) {
		value = taskfiles_find_variable(text, (size_t)len, NAMES[i], &value_len);
		if (value != NULL && isdigit((unsigned char)*value)) {
			capture->process->rank = (int32_t)strtol(value, NULL, 10);
			return;
		}
	}
}

/* Returns 0, or -errno: there is no such process. */
static int identify(struct capture *capture)
{
	struct stacks_process *process = capture->process;
	struct taskfiles_status status;
	char path[32], text[4096];
	int error;

	(void)snprintf(path, sizeof(path), "/proc/%u", process->pid);
	capture->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (capture->proc < 0 || taskfiles_read(capture->proc, "status", text, sizeof(text)) < 0) {
		(void)snprintf(process->error, sizeof(process->error),
			       "there is no process %u: `ps -e` lists them", process->pid);
		return -ESRCH;
	}
	error = taskfiles_parse_status(text, &status);
	if (error < 0)
		return error;
	process->own_pid = status.own_pid;
	process->parent = status.ppid;
	process->tracer = status.tracer;
	process->state = status.state;
	capture->uid = status.uid;
	(void)snprintf(process->name, sizeof(process->name), "%s", status.name);
	read_command(capture->proc, process->command, sizeof(process->command));
	read_rank(capture);
	if (status.tgid == status.pid)
		return 0;
	(void)snprintf(process->error, sizeof(process->error),
		       "%u is a thread of process %u: give the process", process->pid, status.tgid);
	return -EINVAL;
}

/* Its threads and children. */

static int compare_ids(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The main thread has the lowest number, unless numbers began anew. */
static size_t list_tasks(const struct capture *capture, uint32_t *ret, size_t cap, size_t *dropped)
{
	int fd = openat(capture->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t cnt = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (cnt < cap)
			ret[cnt++] = (uint32_t)strtoul(entry->d_name, NULL, 10);
		else
			++*dropped;
	}
	if (dir != NULL)
		(void)closedir(dir);
	else if (fd >= 0)
		(void)close(fd);
	qsort(ret, cnt, sizeof(*ret), compare_ids);
	for (size_t i = 1; i < cnt; i++)
		if (ret[i] == capture->process->pid) {
			memmove(ret + 1, ret, i * sizeof(*ret));
			ret[0] = capture->process->pid;
		}
	return cnt;
}

static int open_tasks(struct capture *capture)
{
	struct stacks_process *process = capture->process;
	_cleanup_free_ uint32_t *ids = calloc(STACKS_THREADS_MAX, sizeof(*ids));
	struct task task;
	size_t cnt;

	if (ids == NULL)
		return -ENOMEM;
	cnt = list_tasks(capture, ids, STACKS_THREADS_MAX, &process->threads_dropped);
	process->threads = region_alloc(capture->region, cnt * sizeof(*process->threads));
	if (process->threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (task_open(&task, capture->proc, ids[i],
			      &process->threads[process->thread_cnt]) < 0)
			continue;
		if (vec_push(&capture->tasks, task) < 0)
			return -ENOMEM;
		process->thread_cnt++;
		if (capture->living == 0 && strchr("ZX", task.thread->state) == NULL)
			capture->living = (pid_t)ids[i];
	}
	return process->thread_cnt > 0 ? 0 : -ESRCH;
}

static void add_child(struct capture *capture, uint32_t pid)
{
	struct stacks_process *process = capture->process;
	struct stacks_child *child = &process->children[process->child_cnt];
	struct taskfiles_status status;
	char path[32], text[4096];
	int proc;

	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return;
	if (taskfiles_read(proc, "status", text, sizeof(text)) > 0 &&
	    taskfiles_parse_status(text, &status) == 0) {
		child->pid = pid;
		child->state = status.state;
		read_command(proc, child->command, sizeof(child->command));
		if (child->command[0] == '\0')
			(void)snprintf(child->command, sizeof(child->command), "[%.60s]",
				       status.name);
		process->child_cnt++;
	}
	(void)close(proc);
}

/* Each thread has a list of the children that it started. */
static void find_children(struct capture *capture)
{
	struct stacks_process *process = capture->process;
	char text[8192];

	process->children =
		region_alloc(capture->region, CHILDREN_MAX * sizeof(*process->children));
	if (process->children == NULL)
		return;
	vec_foreach(task, &capture->tasks) {
		char *at = text, *end;

		/* As a rule the main thread has them all. */
		if (task - capture->tasks.data >= MANY_THREADS)
			break;
		if (taskfiles_read_of(capture->proc, task->thread->tid, "children", text,
				      sizeof(text)) <= 0)
			continue;
		for (unsigned long pid; (pid = strtoul(at, &end, 10)) > 0 && end != at; at = end) {
			if (process->child_cnt < CHILDREN_MAX)
				add_child(capture, (uint32_t)pid);
			else
				process->children_dropped++;
		}
	}
}

/* Their stacks. */

/* A thread in D, or one that ended, would never stop; a traced one has a tracer. */
static bool may_stop(const struct task *task)
{
	return task->wants_stop && strchr("DZXt", task->thread->state) == NULL;
}

static void visit_stopped(void *context, const struct stop_thread *thread)
{
	struct capture *capture = context;

	if (capture->python.present)
		task_walk_python(&capture->tasks.data[thread->tag], &capture->python);
}

static void take_stopped(struct capture *capture, struct stop_thread *stopped)
{
	struct stacks_process *process = capture->process;
	struct task *task = &capture->tasks.data[stopped->tag];

	task_unwind_stopped(task, &capture->unwinder, stopped);
	process->stopped_ns += stopped->stopped_ns;
	process->stopped_max_ns = MAX(process->stopped_max_ns, stopped->stopped_ns);
	if (stopped->result == STOP_REFUSED && stopped->error != ESRCH && process->tracer == 0 &&
	    task->pcs.cnt == 0)
		fail(capture, -stopped->error);
	stackcopy_done(&stopped->stack);
}

static int stop_and_read(struct capture *capture)
{
	_cleanup_free_ struct stop_thread *threads =
		calloc(capture->tasks.cnt + 1, sizeof(*threads));
	struct stopper stopper = {
		.modules = &capture->modules,
		.threads = threads,
		.limit_ns = STOP_LIMIT_MS * NSEC_PER_MSEC,
		.busy_limit_ns = BUSY_LIMIT_MS * NSEC_PER_MSEC,
		.visit = visit_stopped,
		.context = capture,
	};
	int error;

	if (threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < capture->tasks.cnt; i++)
		if (may_stop(&capture->tasks.data[i]))
			threads[stopper.cnt++] = (struct stop_thread){
				.tid = (pid_t)capture->tasks.data[i].thread->tid,
				.tag = i,
			};
	error = stopper_run(&stopper);
	for (size_t i = 0; i < stopper.cnt && error == 0; i++)
		take_stopped(capture, &threads[i]);
	return error;
}

static void find_python(struct capture *capture)
{
	struct stacks_process *process = capture->process;
	struct pytarget *python = &capture->python;

	if (pytarget_open(python, &capture->modules, process->own_pid) < 0)
		return;
	(void)snprintf(process->python_why, sizeof(process->python_why), "%s", python->why);
	if (!python->present)
		return;
	(void)snprintf(process->python, sizeof(process->python), "3.%u", python->minor % 100);
	vec_foreach(task, &capture->tasks)
		task->tstate = pytarget_find(python, task->thread->own_tid);
}

/* Returns 0, -ENOMEM, or why the memory can't be read. */
static int read_stacks(struct capture *capture)
{
	const struct selfmem mem = { .pid = capture->living, .fd = -1 };
	unsigned char byte;
	int error = modules_read(&capture->modules, capture->proc, capture->living);

	if (error < 0)
		return error;
	if (capture->modules.areas.cnt == 0)
		return -ESRCH;
	unwinder_init(&capture->unwinder, &capture->modules);
	errno = 0;
	if (!selfmem_read(&mem, capture->modules.areas.data[0].start, &byte, 1) &&
	    (errno == EPERM || errno == ENOSYS || errno == ESRCH))
		return -errno;
	find_python(capture);
	vec_foreach(task, &capture->tasks) {
		task_read_blocked(task, &capture->unwinder, &capture->python);
	}
	error = stop_and_read(capture);
	vec_foreach(task, &capture->tasks) {
		if (capture->python.present && !task->python_done)
			task_walk_python_twice(task, &capture->python);
	}
	return error;
}

static int name_stacks(struct capture *capture)
{
	int error = 0;

	capture->resolver.modules = &capture->modules;
	capture->resolver.region = capture->region;
	capture->resolver.interpreter = capture->python.module;
	vec_foreach(task, &capture->tasks) {
		if (error == 0)
			error = resolver_add(&capture->resolver, task->pcs.data, task->pcs.cnt);
	}
	if (error == 0)
		error = resolver_run(&capture->resolver);
	vec_foreach(task, &capture->tasks) {
		if (error == 0)
			error = task_join(task, &capture->python, &capture->resolver,
					  capture->region);
		/* It takes long: of many threads only where it says most. */
		if (task->thread->state == 'D' || task->call.where != TASK_SYSCALL ||
		    capture->tasks.cnt <= MANY_THREADS)
			task_read_kernel(task, capture->region);
		roles_assign(task->thread, task->thread->tid == capture->process->pid,
			     capture->process->name);
	}
	capture->process->replaced_libraries = capture->modules.replaced_cnt;
	return error;
}

/* What they wait for. */

static bool lives(void *context, uint32_t own_tid)
{
	const struct capture *capture = context;

	vec_foreach(task, &capture->tasks) {
		if (task->thread->own_tid == own_tid)
			return true;
	}
	return false;
}

static uint32_t outer_tid(const struct capture *capture, uint32_t own_tid)
{
	vec_foreach(task, &capture->tasks) {
		if (task->thread->own_tid == own_tid)
			return task->thread->tid;
	}
	return 0;
}

static void find_waits(struct capture *capture)
{
	struct pywalk_gil gil = { 0 };
	struct threadwaits waits;

	if (!capture->python.present || pywalk_gil(&capture->python.source, &gil) < 0)
		gil = (struct pywalk_gil){ 0 };
	vec_foreach(task, &capture->tasks) {
		struct stacks_thread *thread = task->thread;

		threadwaits_find(capture->proc, (pid_t)thread->tid, &task->call, lives, capture,
				 &waits);
		(void)snprintf(thread->call, sizeof(thread->call), "%s", waits.call);
		(void)snprintf(thread->waits, sizeof(thread->waits), "%s", waits.text);
		thread->owner_tid = outer_tid(capture, waits.owner);
		if (gil.holder_tid != 0 && gil.holder_tid == thread->own_tid)
			thread->gil = STACKS_GIL_HOLDS;
		else if (waits.futex && waits.futex_addr >= gil.begin && waits.futex_addr < gil.end)
			thread->gil = STACKS_GIL_WAITS;
	}
}

static void advance(struct capture *capture, enum stacks_progress progress)
{
	atomic_store_explicit(&capture->shared->progress, progress, memory_order_release);
}

/* A process without memory: a zombie, a kernel thread. True: that is all there is. */
static bool explain_no_memory(struct capture *capture)
{
	struct stacks_process *process = capture->process;

	if (capture->living == 0) {
		(void)snprintf(process->error, sizeof(process->error),
			       "process %u is a zombie: it has ended, and its parent %u has not "
			       "taken its exit status; look at the parent",
			       process->pid, process->parent);
		return true;
	}
	if (process->command[0] != '\0' || process->parent > 2 || !has_ended(capture))
		return false;
	(void)snprintf(process->error, sizeof(process->error),
		       "process %u is a thread of the kernel: it has no stack in user space",
		       process->pid);
	return true;
}

static void run(struct capture *capture)
{
	int error = identify(capture);

	if (error < 0)
		return;
	advance(capture, STACKS_KNOWN);
	error = open_tasks(capture);
	if (error < 0) {
		fail(capture, error);
		return;
	}
	find_children(capture);
	advance(capture, STACKS_LISTED);
	if (capture->living == 0 && explain_no_memory(capture))
		return;
	error = read_stacks(capture);
	if (error < 0 && explain_no_memory(capture))
		return;
	if (error == 0)
		find_waits(capture);
	if (error == 0)
		error = name_stacks(capture);
	if (error < 0)
		fail(capture, error);
}

void capture_run(struct stackreading_shared *shared)
{
	struct stacks_process *process = &shared->process;
	struct capture capture = {
		.shared = shared,
		.process = process,
		.region = shared->region,
		.proc = -1,
	};
	const int64_t begin_ns = clock_mono_ns();

	run(&capture);
	process->read_ns = clock_mono_ns() - begin_ns;
	vec_foreach(task, &capture.tasks)
		task_done(task);
	vec_done(&capture.tasks);
	resolver_done(&capture.resolver);
	pytarget_done(&capture.python);
	unwinder_done(&capture.unwinder);
	modules_done(&capture.modules);
	if (capture.proc >= 0)
		(void)close(capture.proc);
	advance(&capture, STACKS_DONE);
}
