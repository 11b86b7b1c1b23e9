/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one trace and prints what it took: the probe of bench/reader/run. */
#include "base/clock.h"
#include "read/kineto/kineto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/*
 * Peak resident bytes of this program. Not ru_maxrss: that one is inherited
 * over execve() from the parent process.
 */
static uint64_t peak_bytes(void)
{
	char line[128];
	uint64_t kib = 0;
	FILE *f = fopen("/proc/self/status", "re");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
			break;
	}
	(void)fclose(f);
	return kib * 1024;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_drops(const struct trace_drops *drops)
{
#define X(field, one, many) printf(" " #field "=%" PRIu64, drops->field);
	TRACE_DROP_LIST(X)
#undef X
}

int main(int argc, char **argv)
{
	int64_t start_ns = clock_mono_ns();
	struct trace trace;
	struct err err;
	double seconds;

	if (argc != 2) {
		fprintf(stderr, "usage: kineto_bench TRACE\n");
		return 2;
	}
	if (kineto_read(argv[1], NULL, &trace, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
	printf("events=%zu names=%zu args=%zu lanes=%zu tracks=%zu text_bytes=%" PRIu64
	       " seconds=%.4f cpu_seconds=%.4f peak_bytes=%" PRIu64,
	       trace.event_cnt, trace.strings.cnt, trace.args_cnt, trace.lane_cnt, trace.track_cnt,
	       trace.meta.text_bytes, seconds, cpu_seconds(), peak_bytes());
	print_drops(&trace.drops);
	putchar('\n');
	trace_done(&trace);
	return 0;
}
