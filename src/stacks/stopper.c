/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/stopper.h"

#include "base/clock.h"
#include "stacks/proc/taskfiles.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { TOGETHER = 8 }; /* threads that are asked to stop at a time */

static void note_refusal(struct stop_thread *thread, int error)
{
	thread->result = error == ESRCH ? STOP_GONE : STOP_REFUSED;
	thread->error = error;
}

static void request(struct stop_thread *thread)
{
	if (ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) != 0) {
		note_refusal(thread, errno);
		return;
	}
	thread->begin_ns = clock_mono_ns();
	if (ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) != 0)
		note_refusal(thread, errno);
}

#ifdef __x86_64__
static bool read_registers(pid_t tid, struct registers *ret)
{
	struct user_regs_struct user;
	struct iovec into = { &user, sizeof(user) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &into) != 0)
		return false;
	registers_set(ret, REGISTER_BX, user.rbx);
	registers_set(ret, REGISTER_BP, user.rbp);
	registers_set(ret, REGISTER_SP, user.rsp);
	registers_set(ret, REGISTER_PC, user.rip);
	registers_set(ret, 0, user.rax);
	registers_set(ret, 1, user.rdx);
	registers_set(ret, 2, user.rcx);
	registers_set(ret, 4, user.rsi);
	registers_set(ret, 5, user.rdi);
	registers_set(ret, 8, user.r8);
	registers_set(ret, 9, user.r9);
	registers_set(ret, 10, user.r10);
	registers_set(ret, 11, user.r11);
	registers_set(ret, 12, user.r12);
	registers_set(ret, 13, user.r13);
	registers_set(ret, 14, user.r14);
	registers_set(ret, 15, user.r15);
	return true;
}
#else
static bool read_registers(pid_t tid, struct registers *ret)
{
	(void)tid;
	(void)ret;
	return false; /* native stacks are read on x86-64 only */
}
#endif

static void copy(const struct stopper *stopper, struct stop_thread *thread)
{
	const struct module_area *area;
	uintptr_t sp;

	if (read_registers(thread->tid, &thread->registers)) {
		sp = (uintptr_t)thread->registers.value[REGISTER_SP];
		area = modules_area(stopper->modules, sp);
		/* Without a stack the frame of the program counter is left. */
		if (area == NULL ||
		    stackcopy_take(&thread->stack, thread->tid, sp, area->end, STACKCOPY_MAX) < 0)
			stackcopy_done(&thread->stack);
	}
	if (stopper->visit != NULL)
		stopper->visit(stopper->context, thread);
}

/* The thread's state changed. Copies it if it is stopped, and lets it go. */
static void take(const struct stopper *stopper, struct stop_thread *thread, int status)
{
	/* A signal on its way to the thread may come first: it must get it. */
	uintptr_t signal = 0;

	if (!WIFSTOPPED(status)) {
		thread->result = STOP_GONE;
		return;
	}
	if (status >> 16 == 0)
		signal = (uintptr_t)WSTOPSIG(status);
	copy(stopper, thread);
	(void)ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)signal);
	thread->stopped_ns = clock_mono_ns() - thread->begin_ns;
	thread->result = STOP_DONE;
}

static struct stop_thread *find(struct stop_thread *threads, size_t cnt, pid_t tid)
{
	for (size_t i = 0; i < cnt; i++)
		if (threads[i].tid == tid && threads[i].result == STOP_PENDING)
			return &threads[i];
	return NULL;
}

/* Sleeps until a traced thread changes its state, at most so long. */
static void await_change(int64_t left_ns)
{
	const struct timespec limit = { left_ns / NSEC_PER_SEC, left_ns % NSEC_PER_SEC };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigtimedwait(&child, NULL, &limit);
}

/* Whether a thread that has not stopped waits for a CPU: it is not held up by waiting for it. */
static bool any_runnable(const struct stopper *stopper, const struct stop_thread *threads,
			 size_t cnt)
{
	struct taskfiles_status status;
	char path[32], text[4096];

	for (size_t i = 0; i < cnt; i++) {
		if (threads[i].result != STOP_PENDING)
			continue;
		(void)snprintf(path, sizeof(path), "task/%d/status", (int)threads[i].tid);
		if (taskfiles_read(stopper->modules->proc, path, text, sizeof(text)) > 0 &&
		    taskfiles_parse_status(text, &status) == 0 && status.state == 'R')
			return true;
	}
	return false;
}

/* Takes threads[cnt], which were asked to stop, until the deadline. */
static void collect(const struct stopper *stopper, struct stop_thread *threads, size_t cnt,
		    int64_t begin_ns)
{
	/* Threads before may have used up the time; these have a tenth of it in any case. */
	int64_t deadline_ns =
		MAX(begin_ns + stopper->limit_ns, clock_mono_ns() + stopper->limit_ns / 10);
	size_t left = 0;

	for (size_t i = 0; i < cnt; i++)
		left += threads[i].result == STOP_PENDING;
	while (left > 0) {
		int status;
		const pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
		struct stop_thread *thread = tid > 0 ? find(threads, cnt, tid) : NULL;
		const int64_t left_ns = deadline_ns - clock_mono_ns();

		if (thread != NULL) {
			take(stopper, thread, status);
			left--;
		} else if (tid < 0) {
			break;
		} else if (left_ns <= 0) {
			if (deadline_ns >= begin_ns + stopper->busy_limit_ns ||
			    !any_runnable(stopper, threads, cnt))
				break;
			deadline_ns += stopper->limit_ns;
		} else if (tid == 0) {
			await_change(left_ns);
		}
	}
	for (size_t i = 0; i < cnt; i++)
		if (threads[i].result == STOP_PENDING)
			threads[i].result = STOP_LATE;
}

/* On a busy machine a stopped thread would wait until the tracer gets a CPU. */
static void hurry(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	(void)pthread_setschedparam(pthread_self(), SCHED_RR, &least); /* as root */
}

static void *trace(void *arg)
{
	const struct stopper *stopper = arg;
	const int64_t begin_ns = clock_mono_ns();

	hurry();
	for (size_t i = 0; i < stopper->cnt; i += TOGETHER) {
		const size_t cnt = MIN(stopper->cnt - i, (size_t)TOGETHER);

		for (size_t j = i; j < i + cnt; j++) {
			stopper->threads[j].result = STOP_PENDING;
			if (clock_mono_ns() < begin_ns + stopper->busy_limit_ns)
				request(&stopper->threads[j]);
		}
		collect(stopper, &stopper->threads[i], cnt, begin_ns);
	}
	return NULL;
}

int stopper_run(struct stopper *stopper)
{
	sigset_t child;
	pthread_t tracer;
	int error;

	if (stopper->cnt == 0)
		return 0;
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, NULL);
	error = pthread_create(&tracer, NULL, trace, stopper);
	if (error != 0)
		return -error;
	return -pthread_join(tracer, NULL);
}
