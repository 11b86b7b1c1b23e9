/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a log line in three formats, made from one line of key=value pairs:
 *
 *	logfmt   ts=2026-11-23T12:03:41.250+01:00 level=info app=perftracker event=state state=slow
 *	JSON     {"ts":"2026-...","level":"info","app":"perftracker","event":"state","state":"slow"}
 *	people   perftracker 12:03:41 slow since step 650
 *
 * The sentence for people comes from a table of phrases that the program passes, so that call
 * sites have no wording of their own. Source: https://brandur.org/logfmt
 */
#pragma once

#include "base/base.h"

enum log_level { LOG_INFO, LOG_WARNING, LOG_ERROR };

enum log_format { LOG_LOGFMT, LOG_JSON, LOG_PEOPLE };

/*
 * A sentence for an event. "{key}" is replaced by the value, "{key|rank|ranks}" by the value and
 * the word for as many; "[...]" is omitted if the line lacks one of the keys inside. The first
 * phrase that matches is taken.
 */
struct log_phrase {
	const char *event;
	const char *when; /* a pair that the line must have, "state=slow"; NULL: any line */
	const char *text; /* "": the event is not for people */
};

struct log_setup {
	enum log_format format;
	bool color; /* of people's lines */
	const struct log_phrase *phrases;
	size_t phrase_cnt;
};

/* pairs: values with spaces are in double quotes; a quote inside needs no escape. */
struct log_event {
	enum log_level level;
	int64_t wall_ns;
	const char *pairs;
};

/*
 * Writes the line with its newline, truncated to size, which must be 2 or more. Returns its length;
 * 0: nothing is to be printed. An event without a phrase is shown to people as its pairs.
 */
size_t logtext_render(const struct log_setup *setup, const struct log_event *event, char *ret,
		      size_t size);
