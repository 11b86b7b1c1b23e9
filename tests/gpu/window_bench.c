/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a deep window by CUPTI costs a process, on the doubles: the agent's own helper thread,
 * back end and recorder; what CUPTI does for its records is the double's work and left
 * out. DOUBLE_CUDA and DOUBLE_CUPTI name the doubles. Arguments: launches a second, seconds.
 * Prints a line of name=value, what a launch and its kernel cost together.
 */
#include "agent/core/collectors.h"
#include "agent/core/lane.h"
#include "agent/core/nametable.h"
#include "agent/gpu/gpu.h"
#include "base/clock.h"
#include "doubles/double.h"
#include "testcheck.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#define NAMES 200u
#define STREAM 7u
#define BURST_NS NSEC_PER_MSEC

void collectors_note(_unused_ enum flight_source source, const char *why)
{
	if (why != NULL)
		(void)fprintf(stderr, "the window failed: %s\n", why);
	CHECK(why == NULL);
}

void collectors_remark(enum flight_source source, const char *what)
{
	collectors_note(source, what);
}

static struct {
	__typeof__(&double_context) context;
	__typeof__(&double_launch) launch;
	__typeof__(&double_synchronize) synchronize;
	__typeof__(&double_count) count;
} job;

static char names[NAMES][32];

static void open_doubles(void)
{
	void *cuda = dlopen(getenv("DOUBLE_CUDA"), RTLD_NOW);
	void *cupti = dlopen(getenv("DOUBLE_CUPTI"), RTLD_NOW);

	CHECK(cuda != NULL && cupti != NULL);
	find(cuda, "double_context", &job.context);
	find(cuda, "double_launch", &job.launch);
	find(cuda, "double_synchronize", &job.synchronize);
	find(cupti, "double_count", &job.count);
	job.context(1);
	for (size_t i = 0; i < NAMES; i++)
		(void)snprintf(names[i], sizeof(names[i]), "_Z9kernel_%02zuPf", i);
}

/* The thread of this name; 0: none. */
static pid_t find_thread(const char *name)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	CHECK(folder != NULL);
	while (found == 0 && (entry = readdir(folder)) != NULL) {
		char path[300], text[32] = "";
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		if (fgets(text, sizeof(text), file) != NULL &&
		    strncmp(text, name, strlen(name)) == 0)
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		(void)fclose(file);
	}
	(void)closedir(folder);
	return found;
}

/* The kernel's number for the CPU clock of a thread. */
static clockid_t cpu_clock_of(pid_t tid)
{
	return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

/* Returns how many. */
static size_t launch_all(int64_t per_sec, int64_t seconds)
{
	int64_t due_ns = clock_mono_ns(), end_ns = due_ns + seconds * NSEC_PER_SEC;
	size_t cnt = 0, burst = (size_t)(per_sec * BURST_NS / NSEC_PER_SEC);

	for (; due_ns < end_ns; due_ns += BURST_NS) {
		struct timespec due = { due_ns / NSEC_PER_SEC, due_ns % NSEC_PER_SEC };

		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		for (size_t i = 0; i < burst; i++, cnt++)
			job.launch(names[cnt % NAMES], STREAM, 0, 1);
	}
	job.synchronize(STREAM);
	return cnt;
}

/* What is in the recorder: records, and the tables that they refer to. */
static uint64_t bytes_in(const struct flight *flight)
{
	return flight->lanes[0].window_head * sizeof(struct ring_record) + flight->text_len +
	       flight->string_cnt * sizeof(struct flight_string) +
	       flight->gpu_lane_cnt * sizeof(struct flight_gpu_lane);
}

static void measure(struct flight *flight, int64_t per_sec, int64_t seconds)
{
	uint64_t events = flight->lanes[0].window_head, bytes = bytes_in(flight);
	int64_t callbacks_ns = job.count("callback_ns"), helper_ns, ended_ns;
	char why[GPUTRACE_WHY_MAX];
	clockid_t clock;
	size_t launches;

	CHECK(gpu_open(why) == 0);
	while (find_thread("pt-gpu") == 0)
		(void)sched_yield();
	clock = cpu_clock_of(find_thread("pt-gpu"));
	helper_ns = clock_now_ns(clock);
	launches = launch_all(per_sec, seconds);
	gpu_close();
	ended_ns = clock_mono_ns();
	while (!gpu_is_closed())
		(void)sched_yield();
	ended_ns = clock_mono_ns() - ended_ns;
	helper_ns = clock_now_ns(clock) - helper_ns;
	callbacks_ns = job.count("callback_ns") - callbacks_ns;
	events = flight->lanes[0].window_head - events;
	bytes = bytes_in(flight) - bytes;
	(void)printf("attached=%lld launches=%zu events=%llu lost=%llu helper_ns=%.1f "
		     "callback_ns=%.1f record_bytes=%zu bytes=%.2f close_ms=%.1f\n",
		     (long long)job.count("attached"), launches, (unsigned long long)events,
		     (unsigned long long)flight->drops.gpu, (double)helper_ns / (double)launches,
		     (double)callbacks_ns / (double)launches, sizeof(struct ring_record),
		     (double)bytes / (double)events, (double)ended_ns / 1e6);
}

int main(int argc, char **argv)
{
	struct flight *flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(flight != MAP_FAILED);
	open_doubles();
	lane_attach(flight);
	CHECK(nametable_open(flight) == 0);
	measure(flight, argc > 1 ? strtoll(argv[1], NULL, 10) : 10000,
		argc > 2 ? strtoll(argv[2], NULL, 10) : 1);
	return 0;
}
