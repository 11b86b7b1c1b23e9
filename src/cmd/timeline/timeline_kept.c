/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a run's folder have the window of a report. */
#include "cmd/serve/reportinput.h"
#include "cmd/timeline/timeline_files.h"
#include "cmd/timeline/timeline_report.h"
#include "read/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int timeline_report_read(const char *store, const char *word, struct timeline_report *ret,
			 struct err *err)
{
	struct str text = { 0 };
	int error;

	*ret = (struct timeline_report){ .root = NULL };
	error = reportinput_read(store, word, &text, err);
	if (error == 0)
		error = timeline_report_parse(word, str_borrow(&text), text.len, ret, err);
	str_done(&text);
	return error;
}

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
