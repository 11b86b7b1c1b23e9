/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the simulation of a large job: opens it, makes every worker's fingerprint in memory and
 * frees it.
 *
 *	simulate_bench WORKERS [SCENARIO [ITERATIONS]]
 */
#include "base/clock.h"
#include "simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double seconds_since(int64_t start_ns)
{
	return (double)(clock_mono_ns() - start_ns) / (double)NSEC_PER_SEC;
}

static int make_all(const struct simulation *sim)
{
	int64_t start_ns = clock_mono_ns();
	size_t functions = 0, collectives = 0, bytes = 0;
	int cnt = simulate_worker_cnt(sim);
	struct rusage usage;

	for (int rank = 0; rank < cnt; rank++) {
		struct fingerprint fp;

		if (simulate_fingerprint(sim, rank, &fp) < 0)
			return 1;
		functions += fp.function_cnt;
		collectives += fp.collective_cnt;
		bytes += fp.arena.total_bytes;
		fingerprint_done(&fp);
	}
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("fingerprints %.2f s, %.0f a second; each %.1f functions, %.1f collectives, "
	       "%.0f bytes\nmemory %ld MB\n",
	       seconds_since(start_ns), cnt / seconds_since(start_ns), (double)functions / cnt,
	       (double)collectives / cnt, (double)bytes / cnt, usage.ru_maxrss / 1024);
	return 0;
}

int main(int argc, char **argv)
{
	struct simulate_options options = simulate_defaults(argc > 2 ? argv[2] : "C1");
	int64_t start_ns = clock_mono_ns();
	struct simulation *sim;
	struct err err = { "" };
	int status;

	options.level = SIMULATE_FINGERPRINTS;
	options.worker_cnt = argc > 1 ? atoi(argv[1]) : 0;
	options.iteration_cnt = argc > 3 ? atoi(argv[3]) : 0;
	if (simulate_open(&options, &sim, &err) < 0) {
		fprintf(stderr, "simulate_bench: %s\n", err.text);
		return 1;
	}
	printf("%d workers\nopen %.2f s\n", simulate_worker_cnt(sim), seconds_since(start_ns));
	status = make_all(sim);
	simulate_close(sim);
	return status;
}
