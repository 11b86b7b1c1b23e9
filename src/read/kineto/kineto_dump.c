/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the reader made of a trace, one event a line, for the test that
 * compares it with an ordinary JSON library:
 * start_ns dur_ns kind lane_type pid tid parent bytes elements name
 */
#include "read/kineto/kineto.h"

#include <inttypes.h>
#include <stdio.h>

static void print_text(const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '\\' || c == 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
}

static void print_event(const struct trace *trace, const struct event *event)
{
	const struct event_args *args = event_args_borrow(trace, event);
	const struct lane *lane = &trace->lanes[event->lane];

	printf("%" PRId64 " %" PRId64 " %s %u %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
	       " %" PRId64 " ",
	       event->start_ns, event->dur_ns, event_kind_name((enum event_kind)event->kind),
	       lane->type, lane->pid, lane->tid,
	       event->parent == EVENT_NONE ? (int64_t)-1 : (int64_t)event->parent,
	       args != NULL ? args->bytes : -1, args != NULL ? args->elements : -1);
	print_text(event_name(trace, event));
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct trace trace;
	struct err err;
	uint64_t sample_cnt = 0, dropped = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: kineto_dump TRACE\n");
		return 2;
	}
	if (kineto_read(argv[1], NULL, &trace, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < trace.track_cnt; i++)
		sample_cnt += trace.tracks[i].cnt;
	/* Begin events count with their end: one interval each. */
	dropped = trace.drops.unknown_phase + trace.drops.no_interval + trace.drops.bad_event +
		  trace.drops.unmatched_begin + trace.drops.unmatched_end +
		  trace.drops.unsupported_overlap;
	printf("%zu %" PRIu64 " %" PRIu64 "\n", trace.event_cnt, dropped, sample_cnt);
	for (size_t i = 0; i < trace.event_cnt; i++)
		print_event(&trace, &trace.events[i]);
	trace_done(&trace);
	return 0;
}
