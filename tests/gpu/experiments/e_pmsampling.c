/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiments E5, E6 and E7: PM sampling of a device whose work another process does.
 *
 *	e_pmsampling SECONDS [MICROSECONDS]	means over so long [1000]
 *
 * Prints lines of JSON: what the session counted and cost, the mean of each metric, and the
 * edges: when the cores went from idle to busy, CLOCK_MONOTONIC. Exit status 77: can't be sampled
 * here, with the reason; CUPTI_LIBRARY names the copy of libcupti where the system's isn't it.
 * With the doubles of PM sampling the device's clock is the host's.
 */
#include "base/clock.h"
#include "host/counters/pmsampling_session.h"
#include "pm_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EDGE_MAX 8192
#define BUSY 0.5
#define IDLE 0.1
#define DOUBLE_DEVICE 3 /* the only one that the double has */

static struct {
	double sums[GPU_METRIC_CNT], most[GPU_METRIC_CNT];
	uint64_t cnts[GPU_METRIC_CNT];
	int64_t first_ns, last_ns, edges_ns[EDGE_MAX];
	size_t edge_cnt;
	bool busy;
} seen;

static void find_edge(int64_t time_ns, double active)
{
	if (!seen.busy && active >= BUSY && seen.edge_cnt < EDGE_MAX)
		seen.edges_ns[seen.edge_cnt++] = time_ns;
	if (active >= BUSY)
		seen.busy = true;
	else if (active <= IDLE)
		seen.busy = false;
}

static void take(void *arg, int64_t time_ns, const struct gpuhw_values *values)
{
	(void)arg;
	if (seen.first_ns == 0)
		seen.first_ns = time_ns;
	seen.last_ns = time_ns;
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if ((values->set >> metric & 1) == 0)
			continue;
		seen.sums[metric] += values->values[metric];
		seen.most[metric] = MAX(seen.most[metric], values->values[metric]);
		seen.cnts[metric]++;
	}
	if ((values->set >> GPU_METRIC_CORES_ACTIVE & 1) != 0)
		find_edge(time_ns, values->values[GPU_METRIC_CORES_ACTIVE]);
}

static struct pm_double *find_double(const struct pm_library *library)
{
	void *symbol = dlsym(library->handle, "double_pm");
	pm_double_fn *get;

	if (symbol == NULL)
		return NULL;
	memcpy(&get, &symbol, sizeof(get));
	return get();
}

static int64_t cpu_ns(void)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int drain_until(struct pm_session *session, struct pm_double *twin, int64_t end_ns,
		       char why[static GPUHW_WHY])
{
	const struct timespec pause = { .tv_nsec = GPUCOUNTERS_DRAIN_MS * NSEC_PER_MSEC };
	int ret = 0;

	while (ret == 0 && clock_mono_ns() < end_ns) {
		(void)nanosleep(&pause, NULL);
		if (twin != NULL)
			twin->clock_ns = clock_mono_ns();
		ret = pm_session_drain(session, why);
	}
	return ret;
}

static void print_session(uint32_t hz, const struct pm_counts *counts, int64_t spent_ns,
			  const char *why)
{
	printf("{\"session\": {\"hz\": %u, \"samples\": %" PRIu64 ", \"means\": %" PRIu64
	       ", \"overflows\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"unfinished\": %" PRIu64
	       ", \"begin_ns\": %" PRId64 ", \"end_ns\": %" PRId64
	       ", \"cpu_ms\": %.3f, \"ended\": \"%s\"}}\n",
	       hz, counts->samples, counts->buckets, counts->overflows, counts->failed,
	       counts->unfinished, seen.first_ns, seen.last_ns, (double)spent_ns / 1e6, why);
}

static void print_metrics(void)
{
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		if (seen.cnts[metric] > 0)
			printf("{\"metric\": \"%s\", \"mean\": %g, \"most\": %g}\n",
			       gpu_metric_name(metric),
			       seen.sums[metric] / (double)seen.cnts[metric], seen.most[metric]);
	}
	printf("{\"edges_ns\": [");
	for (size_t i = 0; i < seen.edge_cnt; i++)
		printf("%s%" PRId64, i > 0 ? ", " : "", seen.edges_ns[i]);
	printf("]}\n");
}

static int sample(const struct pm_library *library, double seconds, int64_t bucket_ns)
{
	struct pm_double *twin = find_double(library);
	const struct gpucounters_setup setup = { .bucket_ns = bucket_ns,
						 .now_ns = clock_mono_ns,
						 .take = take };
	int64_t begin_ns = clock_mono_ns(), begin_cpu_ns;
	struct pm_session *session = NULL;
	struct pm_counts counts = { 0 };
	char why[GPUHW_WHY] = "";
	uint32_t hz;

	if (twin != NULL)
		twin->clock_ns = begin_ns;
	if (pm_session_start(library, twin != NULL ? DOUBLE_DEVICE : 0, &setup, &session, why) <
	    0) {
		fprintf(stderr, "e_pmsampling: %s\n", why);
		return 77;
	}
	begin_cpu_ns = cpu_ns();
	(void)drain_until(session, twin, begin_ns + (int64_t)(seconds * (double)NSEC_PER_SEC), why);
	hz = pm_session_hz(session);
	(void)pm_session_stop(session, &counts);
	print_session(hz, &counts, cpu_ns() - begin_cpu_ns, why);
	print_metrics();
	return 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
	int64_t bucket_ns = (argc > 2 ? strtol(argv[2], NULL, 10) : 1000) * NSEC_PER_USEC;
	const char *twin = getenv("PM_DOUBLE_CUDA");
	struct pm_library library;
	char why[GPUHW_WHY] = "";
	int status;

	if (twin != NULL)
		(void)dlopen(twin, RTLD_NOW);
	if (pm_library_find(&library, getenv("CUPTI_LIBRARY"), NULL, 0, why) < 0) {
		fprintf(stderr, "e_pmsampling: %s\n", why);
		return 77;
	}
	status = sample(&library, seconds, bucket_ns);
	pm_library_close(&library);
	return status;
}
