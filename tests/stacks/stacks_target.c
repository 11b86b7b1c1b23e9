/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose threads are in known functions, for the tests of `perftracker stacks`. The first
 * argument says what it does; it writes "ready" when it does so.
 *
 *	threads         four threads: one computes, one sleeps, one holds a mutex, one waits for it
 *	many COUNT      that many threads that wait
 *	vfork           is in uninterruptible sleep: its child, in the same memory, sleeps
 *	leader          the main thread has ended, another one sleeps
 *	zombie          has a child that ended and is not waited for
 *	trace PID       traces a process, which goes on
 *	hold PID        traces a process, which is stopped
 *	work SECONDS    computes and waits in turn; prints a sum, the same for each run; exits with 7
 *	gaps SECONDS    computes; prints the longest time, in us, for which it did not run
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t counter;

void *spin_outer(void *arg);
void *sleep_outer(void *arg);
void *hold_outer(void *arg);
void *wait_outer(void *arg);
void spin_inner(void);
void sleep_inner(int depth);
void hold_inner(void);
void wait_inner(void);

static void ready(void)
{
	(void)write(STDOUT_FILENO, "ready\n", 6);
}

static double now_s(void)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

NOINLINE void spin_inner(void)
{
	for (;;)
		counter++;
}

void *spin_outer(void *arg)
{
	spin_inner();
	return arg;
}

NOINLINE void sleep_inner(int depth)
{
	if (depth > 0)
		sleep_inner(depth - 1);
	else
		(void)sleep(1000);
	counter++; /* no tail call */
}

void *sleep_outer(void *arg)
{
	sleep_inner(3);
	return arg;
}

NOINLINE void hold_inner(void)
{
	(void)pthread_mutex_lock(&mutex);
	(void)sleep(1000);
	(void)pthread_mutex_unlock(&mutex);
}

void *hold_outer(void *arg)
{
	hold_inner();
	return arg;
}

NOINLINE void wait_inner(void)
{
	(void)usleep(200000);
	(void)pthread_mutex_lock(&mutex);
	(void)pthread_mutex_unlock(&mutex);
}

void *wait_outer(void *arg)
{
	wait_inner();
	return arg;
}

static void start(void *(*function)(void *), const char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, NULL) != 0)
		exit(1);
	(void)pthread_setname_np(thread, name);
}

static void run_threads(void)
{
	start(spin_outer, "spinner-1");
	start(sleep_outer, "sleeper");
	start(hold_outer, "holder");
	start(wait_outer, "waiter");
	(void)usleep(600000);
	ready();
	(void)pause();
}

static void run_many(int cnt)
{
	for (int i = 0; i < cnt; i++)
		start(sleep_outer, "sleeper");
	(void)usleep(200000);
	ready();
	(void)pause();
}

static void run_vfork(void)
{
	ready();
	if (vfork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(STDOUT_FILENO);
		(void)sleep(1000);
		_exit(0);
	}
}

static void run_zombie(void)
{
	const pid_t child = fork();
	char line[32];

	if (child == 0)
		_exit(3);
	(void)usleep(200000);
	(void)snprintf(line, sizeof(line), "ready %d\n", (int)child);
	(void)write(STDOUT_FILENO, line, strlen(line));
	(void)pause();
}

static void run_leader(void)
{
	start(sleep_outer, "sleeper");
	(void)usleep(100000);
	ready();
	pthread_exit(NULL);
}

static int run_trace(pid_t pid, int stop)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return 1;
	if (stop && (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 ||
		     waitpid(pid, &status, __WALL) != pid))
		return 1;
	ready();
	(void)pause();
	return 0;
}

static int run_work(double seconds)
{
	const double until = now_s() + seconds;
	const int epoll = epoll_create1(0);
	struct epoll_event event;
	uint64_t sum = 0;

	ready();
	for (int round = 0; now_s() < until; round++) {
		sum = 0;
		for (uint64_t i = 0; i < 300000; i++)
			sum = sum * 6364136223846793005u + i;
		(void)epoll_wait(epoll, &event, 1, round % 3);
		(void)usleep(200);
	}
	(void)printf("%llu\n", (unsigned long long)sum);
	return 7;
}

static int run_gaps(double seconds)
{
	const double until = now_s() + seconds;
	double last = now_s(), longest = 0;

	ready();
	while (last < until) {
		const double at = now_s();

		if (at - last > longest)
			longest = at - last;
		last = at;
	}
	(void)printf("%.0f\n", longest * 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const double number = argc > 2 ? atof(argv[2]) : 0;

	if (strcmp(what, "threads") == 0)
		run_threads();
	else if (strcmp(what, "many") == 0)
		run_many((int)number);
	else if (strcmp(what, "vfork") == 0)
		run_vfork();
	else if (strcmp(what, "zombie") == 0)
		run_zombie();
	else if (strcmp(what, "leader") == 0)
		run_leader();
	else if (strcmp(what, "trace") == 0)
		return run_trace((pid_t)number, 0);
	else if (strcmp(what, "hold") == 0)
		return run_trace((pid_t)number, 1);
	else if (strcmp(what, "work") == 0)
		return run_work(number);
	else if (strcmp(what, "gaps") == 0)
		return run_gaps(number);
	else
		return 2;
	return 0;
}
