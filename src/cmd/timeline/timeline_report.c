/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_report.h"

#include "model/rankset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FINDINGS_MAX 50u

/* "2026-11-28T18:50:28.337Z", as reports have it; 0: something else. */
static int64_t wall_ns_of(const char *text)
{
	struct tm tm = { 0 };
	const char *end = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double frac = 0.0;

	if (end == NULL)
		return 0;
	if (*end == '.') {
		char *after;

		frac = strtod(end, &after);
		end = after;
	}
	if (strcmp(end, "Z") != 0 || !(frac >= 0.0 && frac < 1.0) || tm.tm_year < 70 ||
	    tm.tm_year > 200) /* years of a clock in ns since 1970 */
		return 0;
	return (int64_t)timegm(&tm) * NSEC_PER_SEC + (int64_t)(frac * 1e9);
}

static int take_finding(struct timeline_report *report, const json_t *from)
{
	const json_t *function = json_object_get(from, "function");
	const char *id = json_string_value(json_object_get(from, "id"));
	const char *scope = json_string_value(json_object_get(from, "scope"));
	const char *ranks = json_string_value(json_object_get(from, "ranks"));
	struct timebins_finding finding = {
		.id = id != NULL ? id : "",
		.name = json_string_value(json_object_get(function, "name")),
		.all_ranks = scope != NULL && strcmp(scope, "all") == 0,
	};
	rankset_vec set = { 0 };
	struct err ignored = { "" };

	if (!finding.all_ranks && ranks != NULL && rankset_parse(ranks, &set, &ignored) == 0) {
		finding.ranks = set.data;
		finding.rank_cnt = set.cnt;
		if (vec_push(&report->rank_sets, set.data) < 0) {
			vec_done(&set);
			return -ENOMEM;
		}
	}
	return vec_push(&report->findings, finding);
}

static int take(struct timeline_report *report)
{
	const json_t *findings = json_object_get(report->root, "findings");
	const json_t *origin = json_object_get(report->root, "origin");
	int ret = 0;

	for (size_t i = 0; i < MIN(json_array_size(findings), (size_t)FINDINGS_MAX); i++) {
		if (ret == 0)
			ret = take_finding(report, json_array_get(findings, i));
	}
	report->window_wall_ns[0] =
		wall_ns_of(json_string_value(json_object_get(origin, "window_begin")));
	report->window_wall_ns[1] =
		wall_ns_of(json_string_value(json_object_get(origin, "window_end")));
	return ret;
}

/* "out/report-3.json" and "JOB/3" are of window 3. */
static unsigned number_of(const char *word)
{
	static const char begin[] = "report-", end[] = ".json";
	const char *slash = strrchr(word, '/');
	const char *name = slash != NULL ? slash + 1 : word;
	bool file = strncmp(name, begin, strlen(begin)) == 0;
	size_t len;

	name += file ? strlen(begin) : 0;
	len = strspn(name, "0123456789");
	if (len == 0 || len > 9 || strcmp(name + len, file ? end : "") != 0)
		return 0;
	return (unsigned)strtoul(name, NULL, 10);
}

int timeline_report_parse(const char *word, const char *text, size_t len,
			  struct timeline_report *ret, struct err *err)
{
	json_error_t wrong = { .text = "" };

	*ret = (struct timeline_report){ .number = number_of(word) };
	ret->root = json_loadb(text, len, 0, &wrong);
	if (!json_is_object(ret->root))
		return err_set(err, EINVAL, "%s: line %d: expected a report as a JSON object: %s",
			       word, wrong.line, wrong.text);
	return take(ret) < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

void timeline_report_done(struct timeline_report *report)
{
	vec_foreach(set, &report->rank_sets)
		free(*set);
	vec_done(&report->rank_sets);
	vec_done(&report->findings);
	json_decref(report->root);
	report->root = NULL;
}
