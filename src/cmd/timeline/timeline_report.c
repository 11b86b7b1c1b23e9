/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_report.h"

#include "cmd/serve/reportinput.h"
#include "cmd/timeline/timeline_files.h"
#include "model/rankset.h"
#include "read/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FINDINGS_MAX 50u

/* --- the report --- */

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
	if (strcmp(end, "Z") != 0 || !(frac >= 0.0 && frac < 1.0) || tm.tm_year > 400)
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
	const char *slash = strrchr(word, '/');
	const char *name = slash != NULL ? slash + 1 : word;
	unsigned number = 0;
	int end = 0;

	if (sscanf(name, "report-%9u.json%n", &number, &end) == 1 && end > 0 && name[end] == '\0')
		return number;
	end = 0;
	return sscanf(name, "%9u%n", &number, &end) == 1 && name[end] == '\0' ? number : 0;
}

int timeline_report_read(const char *store, const char *word, struct timeline_report *ret,
			 struct err *err)
{
	struct str text = { 0 };
	json_error_t wrong = { .text = "" };
	int error;

	*ret = (struct timeline_report){ .number = number_of(word) };
	error = reportinput_read(store, word, &text, err);
	if (error == 0)
		ret->root = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	if (error == 0 && !json_is_object(ret->root))
		return err_set(err, EINVAL, "%s: line %d: expected a report as a JSON object: %s",
			       word, wrong.line, wrong.text);
	return error == 0 ? take(ret) : error;
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

/* --- its files --- */

/* A name that the report has is only followed inside the folder: a report may come from anywhere. */
static bool find_inside(const char *folder, const char *source, char ret[static PATH_MAX])
{
	char base[PATH_MAX], joined[PATH_MAX];
	struct stat st;
	size_t len;

	if (source == NULL || strchr(source, '#') != NULL || realpath(folder, base) == NULL)
		return false;
	if ((size_t)snprintf(joined, sizeof(joined), "%s%s%s", source[0] == '/' ? "" : base,
			     source[0] == '/' ? "" : "/", source) >= sizeof(joined))
		return false;
	len = strlen(base);
	return realpath(joined, ret) != NULL && strncmp(ret, base, len) == 0 && ret[len] == '/' &&
	       stat(ret, &st) == 0 && S_ISREG(st.st_mode) &&
	       reader_of(ret)->content != CONTENT_FINGERPRINT;
}

/* All or none: a timeline of some ranks would hide the others. */
static int add_sources(const json_t *root, const char *folder, path_list *ret)
{
	const json_t *workers = json_object_get(root, "workers");
	size_t cnt = json_array_size(workers), before = ret->cnt;

	for (size_t i = 0; i < cnt; i++) {
		const char *source =
			json_string_value(json_object_get(json_array_get(workers, i), "source"));
		char path[PATH_MAX], *copy;

		if (!find_inside(folder, source, path)) {
			while (ret->cnt > before)
				free(ret->data[--ret->cnt]);
			return 0;
		}
		copy = strdup(path);
		if (copy == NULL || vec_push(ret, copy) < 0) {
			free(copy);
			return -ENOMEM;
		}
	}
	return 0;
}

/* "traces/0-3.flight" is of rank 0 in window 3: keeps those of the window, if there are some. */
static void keep_window(path_list *paths, unsigned number)
{
	char end[32];
	size_t len = (size_t)snprintf(end, sizeof(end), "-%u.flight", number), kept = 0;

	vec_foreach(path, paths) {
		size_t path_len = strlen(*path);
		bool fits = path_len > len && strcmp(*path + path_len - len, end) == 0;
		char *moved = *path;

		if (!fits)
			continue;
		*path = paths->data[kept];
		paths->data[kept++] = moved;
	}
	while (kept > 0 && paths->cnt > kept)
		free(paths->data[--paths->cnt]);
}

int timeline_report_inputs(const struct timeline_report *report, const char *folder, path_list *ret,
			   struct err *err)
{
	char traces[PATH_MAX], *words[1] = { traces };
	struct err ignored = { "" };
	int error = add_sources(report->root, folder, ret);

	if (error < 0 || ret->cnt > 0)
		return error;
	if ((size_t)snprintf(traces, sizeof(traces), "%s/traces", folder) >= sizeof(traces))
		return err_set(err, ENAMETOOLONG, "%s: the name is too long", folder);
	if (timeline_is_folder(traces) && timeline_list_flights(words, 1, ret, &ignored) == 0 &&
	    ret->cnt > 0) {
		keep_window(ret, report->number);
		return 0;
	}
	words[0] = traces;
	(void)snprintf(traces, sizeof(traces), "%s", folder);
	return timeline_list_flights(words, 1, ret, err);
}
