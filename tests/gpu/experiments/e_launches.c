/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments E2, E3 and E4: what a deep window costs threads that launch kernels, what stays of
 * it afterwards, and what it knows of graphs. Prints lines of JSON, one for each phase.
 *
 *	e_launches init			time of cuInit
 *	e_launches windows [ROUNDS]	empty kernels: before, in and after three windows
 *	e_launches graphs [REPLAYS]	a graph that was captured before the first of two windows
 *
 * Exit status 77: no device. e2_overhead.py, e3_residue.py and e4_graphs.py judge it.
 */
#include "base/clock.h"
#include "e_driver.h"
#include "e_window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256 /* launches that surely fit into the queue, so that only the host is timed */
#define NODES 32u /* of the graph */
#define WINDOWS 3
#define ROUNDS_MAX 4096

struct rounds {
	int64_t enqueue_ns[ROUNDS_MAX], whole_ns[ROUNDS_MAX]; /* of a batch */
	size_t cnt;
};

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* ns for each of the batch's: the middle, and the least. Sorts. */
static void print_times(const char *name, int64_t *times_ns, size_t cnt, double each)
{
	qsort(times_ns, cnt, sizeof(*times_ns), compare);
	printf(", \"%s_ns\": %.1f, \"%s_least_ns\": %.1f", name, (double)times_ns[cnt / 2] / each,
	       name, (double)times_ns[0] / each);
}

static void print_phase(const char *phase, unsigned window, struct rounds *rounds, double each)
{
	printf("{\"phase\": \"%s\", \"window\": %u, \"rounds\": %zu", phase, window, rounds->cnt);
	print_times("enqueue", rounds->enqueue_ns, rounds->cnt, each);
	print_times("whole", rounds->whole_ns, rounds->cnt, each);
	printf("}\n");
}

static void print_window(unsigned number, const struct window *w, uint64_t launched)
{
	printf("{\"phase\": \"window\", \"window\": %u, \"launched\": %" PRIu64
	       ", \"kernels\": %" PRIu64 ", \"graph_kernels\": %" PRIu64 ", \"nodes\": %u"
	       ", \"calls\": %" PRIu64 ", \"unlaunched\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"untimed\": %" PRIu64 ", \"open_ms\": %.3f, \"close_ms\": %.3f"
	       ", \"drain_cpu_ms\": %.3f, \"stayed\": \"%s\"}\n",
	       number, launched, w->kernels, w->graph_kernels, w->nodes, w->calls, w->unlaunched,
	       w->dropped, w->untimed, (double)w->open_ns / 1e6, (double)w->close_ns / 1e6,
	       (double)w->drain_cpu_ns / 1e6, w->detach);
}

static int launch_round(struct driver *driver, struct rounds *rounds)
{
	int64_t begin_ns = clock_mono_ns();
	int status = 0;

	for (int i = 0; i < BATCH && status == 0; i++)
		status = driver_launch(driver);
	rounds->enqueue_ns[rounds->cnt] = clock_mono_ns() - begin_ns;
	if (status == 0)
		status = driver_synchronize(driver);
	rounds->whole_ns[rounds->cnt++] = clock_mono_ns() - begin_ns;
	return status;
}

static int replay_round(struct driver *driver, void *graph, struct rounds *rounds)
{
	int64_t begin_ns = clock_mono_ns();
	int status = driver_replay(driver, graph);

	rounds->enqueue_ns[rounds->cnt] = clock_mono_ns() - begin_ns;
	if (status == 0)
		status = driver_synchronize(driver);
	rounds->whole_ns[rounds->cnt++] = clock_mono_ns() - begin_ns;
	return status;
}

/* graph NULL: launches one by one; its presence on a double is `graphs`. */
static int run_phase(struct driver *driver, bool graphs, void *graph, const char *phase,
		     unsigned window, size_t cnt)
{
	static struct rounds rounds;
	int status = 0;

	rounds.cnt = 0;
	while (rounds.cnt < cnt && status == 0)
		status = graphs ? replay_round(driver, graph, &rounds)
				: launch_round(driver, &rounds);
	if (status == 0)
		print_phase(phase, window, &rounds, graphs ? 1 : BATCH);
	return status;
}

static int fail(const char *what, int status)
{
	fprintf(stderr, "e_launches: %s failed: %d\n", what, status);
	return 2;
}

/* The first round of a window carries what the library does once. */
static int run_windows(struct driver *driver, bool graphs, void *graph, unsigned windows,
		       size_t rounds)
{
	uint64_t launched = (uint64_t)(rounds + 1) * (graphs ? NODES : BATCH);
	char why[128] = "";
	int status, opened;

	status = run_phase(driver, graphs, graph, "warm", 0, 2);
	if (status == 0)
		status = run_phase(driver, graphs, graph, "before", 0, rounds);
	for (unsigned i = 1; i <= windows && status == 0; i++) {
		opened = window_open(why);
		if (opened < 0) {
			fprintf(stderr, "e_launches: %s\n", why);
			return opened == -ENOTSUP ? 77 : 2;
		}
		status = run_phase(driver, graphs, graph, "first", i, 1);
		if (status == 0)
			status = run_phase(driver, graphs, graph, "in", i, rounds);
		print_window(i, window_close(), launched);
		if (status == 0)
			status = run_phase(driver, graphs, graph, "after", i, rounds);
	}
	return status == 0 ? 0 : fail("a launch", status);
}

static int run_graphs(struct driver *driver, size_t replays)
{
	void *graph = NULL;
	int status = driver_capture(driver, NODES, &graph);

	if (status != 0)
		return fail("the capture", status);
	return run_windows(driver, true, graph, 2, replays);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long wanted = argc > 2 ? strtol(argv[2], NULL, 10) : 200;
	size_t rounds = (size_t)MIN(MAX(wanted, 1L), (long)ROUNDS_MAX);
	char why[DRIVER_WHY] = "";
	struct driver *driver;
	int64_t init_ns = 0;
	int status = driver_open(&driver, &init_ns, why);

	if (status != 0) {
		fprintf(stderr, "e_launches: %s\n", why);
		return status;
	}
	printf("{\"phase\": \"init\", \"init_ms\": %.3f, \"driver\": %d, \"nodes\": %u}\n",
	       (double)init_ns / 1e6, driver_version(driver), NODES);
	if (strcmp(mode, "init") == 0)
		return 0;
	if (strcmp(mode, "windows") == 0)
		return run_windows(driver, false, NULL, WINDOWS, rounds);
	if (strcmp(mode, "graphs") == 0)
		return run_graphs(driver, rounds);
	fprintf(stderr, "usage: e_launches init | windows [ROUNDS] | graphs [REPLAYS]\n");
	return 2;
}
