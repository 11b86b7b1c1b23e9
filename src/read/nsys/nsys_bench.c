/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the only worker of an export and says what it holds: the probe of bench/nsys/run. */
#include "read/nsys/nsys.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct trace trace;
	struct err err;
	size_t samples = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: nsys_bench EXPORT\n");
		return 2;
	}
	if (nsys_read(argv[1], NULL, -1, NULL, &trace, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < trace.track_cnt; i++)
		samples += trace.tracks[i].cnt;
	printf("events=%zu samples=%zu\n", trace.event_cnt, samples);
	trace_done(&trace);
	return 0;
}
