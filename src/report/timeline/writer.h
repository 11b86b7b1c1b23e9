/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the timeline's trace events. For the timeline's files alone. */
#pragma once

#include "report/timeline/timeline.h"

/* Ids of threads are numbers of rows, other ones in each process. */
#define PID_TIDS 10000u

struct rank_view;

/* Trace events, one a line. out remembers its failures. */
struct writer {
	FILE *out;
	bool comma;		 /* an event was written */
	int64_t zero_ns;	 /* moment 0 of the trace, on the reference's clock */
	struct slice_sink *sink; /* NULL: none */
};

/* A track of a process: rows first_tid, first_tid + 1, ... */
struct place {
	struct writer *writer;
	struct rank_view *view;
	uint32_t pid, first_tid;
	char name[64];
};

/* Text as a JSON string. What is no UTF-8 becomes U+FFFD. */
void writer_text(struct writer *w, const char *text);

/* Metadata of a process (tid 0) or a thread: ph "M" with args {key: text} or {key: number}. */
void writer_name(struct writer *w, const char *event, uint32_t pid, uint32_t tid, const char *key,
		 const char *text);
void writer_index(struct writer *w, const char *event, uint32_t pid, uint32_t tid, int64_t index);

/* An argument of the event that is being written; *first: of the first, then false. */
void writer_number(struct writer *w, bool *first, const char *key, int64_t value);
void writer_string(struct writer *w, bool *first, const char *key, const char *text);

/* The beginning of an event at time_ns of the rank's clock; the caller goes on after ts. */
void writer_begin(struct place *to, char phase, uint32_t tid, int64_t time_ns);

/* The same of a slice that is not empty; the caller goes on after dur. */
void writer_slice(struct place *to, uint32_t tid, int64_t start_ns, int64_t end_ns);

/*
 * Gives the sink, if there is one, a slice that writer_slice() wrote. name and shown as in struct sink_slice;
 * finding may be NULL.
 */
void writer_sink(struct place *to, uint32_t tid, const struct sink_slice *slice);

/* Tells the sink, if there is one, what is shown. */
void writer_sink_begin(struct writer *w, int64_t zero_wall_ns, int64_t length_ns);

/* The curves: what the kernel counted of the training thread, as rates. */
void timeline_counters(struct place *to);
