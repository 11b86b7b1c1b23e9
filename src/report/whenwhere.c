/* SPDX-License-Identifier: Apache-2.0 */
#include "report/whenwhere.h"

#include "base/text/clean.h"

#include <time.h>

#define HOST_CELLS 64
#define RUN_CELLS 100

/* A time that the calendar does not have is the year 1970. */
static struct tm parts_of(int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm ret = { .tm_year = 70, .tm_mday = 1 };

	(void)gmtime_r(&seconds, &ret);
	return ret;
}

static void append_date(struct str *out, int64_t wall_ns)
{
	struct tm tm = parts_of(wall_ns);

	str_printf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}

static void append_clock(struct str *out, int64_t wall_ns)
{
	struct tm tm = parts_of(wall_ns);

	str_printf(out, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void phrase_moment(struct str *out, int64_t wall_ns)
{
	append_date(out, wall_ns);
	str_append(out, " ");
	append_clock(out, wall_ns);
	str_append(out, " UTC");
}

static int64_t second_of(int64_t wall_ns)
{
	return wall_ns / NSEC_PER_SEC;
}

static void append_span(struct str *out, int64_t begin_ns, int64_t end_ns)
{
	if (second_of(begin_ns) == second_of(end_ns)) {
		phrase_moment(out, begin_ns);
		return;
	}
	append_date(out, begin_ns);
	str_append(out, " ");
	append_clock(out, begin_ns);
	str_append(out, " to ");
	if (second_of(begin_ns) / 86400 != second_of(end_ns) / 86400) {
		append_date(out, end_ns);
		str_append(out, " ");
	}
	append_clock(out, end_ns);
	str_append(out, " UTC");
}

void phrase_span(struct str *out, const struct report_origin *origin)
{
	if (origin->begin_ns > 0)
		append_span(out, origin->begin_ns, origin->end_ns);
}

void phrase_steps(struct str *out, const struct report_origin *origin)
{
	if (!origin->steps_known)
		return;
	if (origin->first_step == origin->last_step)
		str_printf(out, "step %lld", (long long)origin->first_step);
	else
		str_printf(out, "steps %lld to %lld", (long long)origin->first_step,
			   (long long)origin->last_step);
}

void phrase_when(struct str *out, const struct report_origin *origin)
{
	phrase_span(out, origin);
	if (origin->begin_ns > 0 && origin->steps_known)
		str_append(out, ", ");
	phrase_steps(out, origin);
}

void phrase_host_names(struct str *out, const struct report_origin *origin, size_t max)
{
	size_t shown = MIN(origin->host_cnt, max);

	for (size_t i = 0; i < shown; i++) {
		str_append(out, i > 0 ? ", " : "");
		clean_append_short(out, origin->hosts[i], HOST_CELLS);
	}
	if (shown < origin->host_cnt)
		str_printf(out, " and %zu more", origin->host_cnt - shown);
}

void phrase_hosts(struct str *out, const struct report_origin *origin, size_t max)
{
	if (origin->host_cnt > 1)
		str_printf(out, "%zu hosts: ", origin->host_cnt);
	phrase_host_names(out, origin, max);
}

void phrase_maker(struct str *out, const struct report_origin *origin)
{
	str_append(out, "PerfTracker " PT_VERSION);
	if (origin->made_ns > 0) {
		str_append(out, ", ");
		phrase_moment(out, origin->made_ns);
	}
	if (origin->run_id != NULL && origin->run_id[0] != '\0') {
		str_append(out, ", run ");
		clean_append_short(out, origin->run_id, RUN_CELLS);
	}
}

/* --- JSON --- */

static json_t *moment_json(int64_t wall_ns)
{
	_cleanup_(str_done) struct str text = { 0 };

	if (wall_ns <= 0)
		return json_null();
	append_date(&text, wall_ns);
	str_append(&text, "T");
	append_clock(&text, wall_ns);
	str_printf(&text, ".%03lldZ", (long long)(wall_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	return str_error(&text) == 0 ? jsonwriter_text(str_borrow(&text)) : NULL;
}

static json_t *text_or_null(const char *text)
{
	return text != NULL && text[0] != '\0' ? jsonwriter_text(text) : json_null();
}

static json_t *step_json(const struct report_origin *origin, int64_t step)
{
	return origin->steps_known ? json_integer((json_int_t)step) : json_null();
}

json_t *whenwhere_json(struct json_writer *w, const struct report_origin *origin)
{
	json_t *object = json_object();

	jsonwriter_put(w, object, "version", jsonwriter_text(PT_VERSION));
	jsonwriter_put(w, object, "made", moment_json(origin->made_ns));
	jsonwriter_put(w, object, "run", text_or_null(origin->run_id));
	jsonwriter_put(w, object, "command", text_or_null(origin->command));
	jsonwriter_put(w, object, "hosts",
		       jsonwriter_text_array(w, origin->hosts, origin->host_cnt));
	jsonwriter_put(w, object, "window_begin", moment_json(origin->begin_ns));
	jsonwriter_put(w, object, "window_end", moment_json(origin->end_ns));
	jsonwriter_put(w, object, "first_step", step_json(origin, origin->first_step));
	jsonwriter_put(w, object, "last_step", step_json(origin, origin->last_step));
	return object;
}
