/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments E2, E3 and E4: what each way to record (e_ways.h) costs loops of kernels that do
 * nothing, and what is left of it when it is switched off, then detached. Prints lines of JSON,
 * one for each phase; times are for one kernel, but those of calls and of the first round.
 *
 *	e_loops launches|graph WAY ROUNDS	256 kernels a round, one by one or in graphs of 32
 *
 * The GPU is kept busy while a round is queued, so its own time for a kernel, measured by two
 * events, is not that of the host. Exit status 77: no device, or this CUPTI can't. e2_overhead.py,
 * e3_residue.py and e4_graphs.py judge it.
 */
#include "base/clock.h"
#include "e_driver.h"
#include "e_ways.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 256 /* launches that surely fit into the queue, so that only the host is timed */
#define NODES 32u
#define BUSY_NS (2 * NSEC_PER_MSEC)
#define ROUNDS_MAX 4096

struct loop {
	struct driver *driver;
	void *graph; /* of NODES kernels */
	bool graphs;
	void *begin, *end; /* events; NULL: none on a double */
	size_t cnt;
	double queue_ns[ROUNDS_MAX], gpu_ns[ROUNDS_MAX]; /* for a kernel */
	int64_t others_ns;				 /* CPU time of other threads, all rounds */
};

static int64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static int64_t others_ns(void)
{
	return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int queue_batch(struct loop *loop)
{
	int status = 0;

	for (unsigned i = 0; i < BATCH && status == 0; i += loop->graphs ? NODES : 1)
		status = loop->graphs ? driver_replay(loop->driver, loop->graph)
				      : driver_launch(loop->driver);
	return status;
}

static int mark(struct loop *loop, void *event)
{
	return event == NULL ? 0
			     : driver_functions(loop->driver)
				       ->event_record(event, driver_stream(loop->driver));
}

static int play_round(struct loop *loop)
{
	float ms = 0;
	int64_t begin_ns;
	int status = loop->begin != NULL ? driver_spin(loop->driver, BUSY_NS) : 0;

	if (status == 0)
		status = mark(loop, loop->begin);
	begin_ns = clock_mono_ns();
	if (status == 0)
		status = queue_batch(loop);
	loop->queue_ns[loop->cnt] = (double)(clock_mono_ns() - begin_ns) / BATCH;
	if (status == 0)
		status = mark(loop, loop->end);
	if (status == 0)
		status = driver_synchronize(loop->driver);
	if (status == 0 && loop->begin != NULL)
		status = driver_functions(loop->driver)->event_elapsed(&ms, loop->begin, loop->end);
	loop->gpu_ns[loop->cnt++] = (double)ms * 1e6 / BATCH;
	return status;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), compare);
	return values[cnt / 2];
}

static int fail(const char *what, int status)
{
	fprintf(stderr, "e_loops: %s failed: %d\n", what, status);
	return 2;
}

/* name NULL: prints no figures. Returns an exit status. */
static int play(struct loop *loop, const char *name, size_t rounds)
{
	int64_t others = others_ns();
	int status = 0;

	loop->cnt = 0;
	while (loop->cnt < rounds && status == 0)
		status = play_round(loop);
	if (status != 0)
		return fail("a launch", status);
	if (name == NULL)
		return 0;
	others = others_ns() - others;
	printf("{\"phase\": \"%s\", \"launched\": %zu, \"queue_ns\": %.1f, \"gpu_ns\": %.1f, "
	       "\"others_ns\": %.1f}\n",
	       name, rounds * BATCH, middle(loop->queue_ns, rounds), middle(loop->gpu_ns, rounds),
	       (double)others / (double)(rounds * BATCH));
	return 0;
}

static void print_seen(const struct ways_seen *seen, size_t launched, double first_ns)
{
	printf("{\"phase\": \"seen\", \"launched\": %zu, \"kernels\": %" PRIu64
	       ", \"records\": %" PRIu64 ", \"buffers\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"dropped\": %" PRIu64 ", \"subscribe_ms\": %.3f, \"enable_ms\": %.3f"
	       ", \"first_round_ms\": %.3f, \"disable_ms\": %.3f, \"flush_ms\": %.3f}\n",
	       launched, seen->kernels, seen->records, seen->buffers, seen->bytes, seen->dropped,
	       (double)seen->subscribe_ns / 1e6, (double)seen->enable_ns / 1e6,
	       first_ns * BATCH / 1e6, (double)seen->disable_ns / 1e6,
	       (double)seen->flush_ns / 1e6);
}

/* The first round of a way carries what the library does once; its kernels count, too. */
static int record(struct loop *loop, const char *way, size_t rounds)
{
	char why[WAYS_WHY] = "";
	int opened = ways_open(way, why), status;
	struct ways_seen seen;
	double first_ns;

	if (opened < 0) {
		fprintf(stderr, "e_loops: %s\n", why);
		return opened == -ENOTSUP ? 77 : 2;
	}
	status = play(loop, NULL, 1);
	first_ns = loop->queue_ns[0];
	if (status == 0)
		status = play(loop, "in", rounds);
	ways_close(&seen);
	/* With those that keep the GPU busy. */
	print_seen(&seen, (rounds + 1) * (BATCH + (loop->begin != NULL)), first_ns);
	return status;
}

static int run(struct loop *loop, const char *way, size_t rounds)
{
	int status = play(loop, NULL, 2);
	bool detached;

	if (status == 0)
		status = play(loop, "before", rounds);
	if (status == 0)
		status = record(loop, way, rounds);
	if (status == 0)
		status = play(loop, "disabled", rounds);
	detached = status == 0;
	if (detached)
		printf("{\"phase\": \"detach\", \"finalize_ms\": %.3f}\n",
		       (double)ways_finalize() / 1e6);
	if (status == 0)
		status = play(loop, "detached", rounds);
	if (status != 0 && detached && loop->graphs) { /* with CUDA 13.0, 719: to be known */
		printf("{\"phase\": \"detached\", \"failed\": true}\n");
		status = 0;
	}
	return status;
}

static int prepare(struct loop *loop)
{
	const struct driver_functions *f = driver_functions(loop->driver);
	int status = driver_capture(loop->driver, NODES, &loop->graph);

	if (status == 0 && !driver_is_double(loop->driver))
		status = f->event_create(&loop->begin, 0);
	if (status == 0 && loop->begin != NULL)
		status = f->event_create(&loop->end, 0);
	return status;
}

int main(int argc, char **argv)
{
	static struct loop loop;
	char why[DRIVER_WHY] = "";
	long wanted = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	int status;

	if (wanted < 1 || wanted > ROUNDS_MAX ||
	    (strcmp(argv[1], "launches") != 0 && strcmp(argv[1], "graph") != 0)) {
		fprintf(stderr, "usage: e_loops launches|graph WAY ROUNDS\n");
		return 2;
	}
	loop.graphs = strcmp(argv[1], "graph") == 0;
	status = driver_open(&loop.driver, NULL, why);
	if (status != 0) {
		fprintf(stderr, "e_loops: %s\n", why);
		return status;
	}
	status = prepare(&loop);
	return status == 0 ? run(&loop, argv[2], (size_t)wanted) : fail("the capture", status);
}
