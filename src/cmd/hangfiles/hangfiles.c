/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hangfiles/hangfiles.h"

#include "cmd/runfolder.h"
#include "hang/hangdiagnosis.h"
#include "read/reader.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 3

/* --- which files --- */

struct search {
	path_list *out;
	char other[PATH_MAX]; /* a file that may be a trace */
	int error;
};

static void add_file(struct search *search, const char *path)
{
	char *copy;

	if (!dumps_is(path)) {
		if (search->other[0] == '\0' && reader_of_name(path) != NULL)
			(void)snprintf(search->other, sizeof(search->other), "%s", path);
		return;
	}
	copy = strdup(path);
	if (copy == NULL || vec_push(search->out, copy) < 0) {
		free(copy);
		search->error = -ENOMEM;
	}
}

static void add_path(struct search *search, const char *path, int depth);

static void add_folder(struct search *search, const char *path, int depth)
{
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir != NULL && search->error == 0 && (entry = readdir(dir)) != NULL) {
		char full[PATH_MAX];

		/* truth.json is written by `simulate` beside the dumps of a job. */
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "truth.json") != 0 &&
		    snprintf(full, sizeof(full), "%s/%s", path, entry->d_name) < PATH_MAX)
			add_path(search, full, depth + 1);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

static void add_path(struct search *search, const char *path, int depth)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return;
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX && !runfolder_is(path))
		add_folder(search, path, depth);
	else if (S_ISREG(st.st_mode))
		add_file(search, path);
}

static int path_cmp(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

int hangfiles_find(char *const *paths, size_t cnt, path_list *out, char **ret_other)
{
	struct search search = { .out = out };

	for (size_t i = 0; i < cnt && search.error == 0; i++)
		add_path(&search, paths[i], 0);
	if (search.error < 0)
		return search.error;
	*ret_other = search.other[0] != '\0' ? strdup(search.other) : NULL;
	if (out->cnt > 0)
		qsort(out->data, out->cnt, sizeof(char *), path_cmp);
	return (int)MIN(out->cnt, (size_t)INT_MAX);
}

/* --- the report --- */

static int add_failure(struct report *report, struct report_failure *failures, const char *path,
		       const struct err *err)
{
	const size_t len = strlen(path);
	const char *why = strncmp(err->text, path, len) == 0 && err->text[len] == ':'
				  ? err->text + len + 2
				  : err->text;
	struct report_failure *failure = &failures[report->failure_cnt];

	failure->source = arena_strdup(&report->arena, path);
	failure->why = arena_strdup(&report->arena, why);
	report->failure_cnt++;
	return failure->source != NULL && failure->why != NULL ? 0 : -ENOMEM;
}

static int read_all(const path_list *paths, struct dumps *dumps, struct report *report)
{
	struct report_failure *failures =
		arena_calloc(&report->arena, paths->cnt + 1, sizeof(*failures));
	int error = failures != NULL ? 0 : -ENOMEM;

	report->failures = failures;
	for (size_t i = 0; error == 0 && i < paths->cnt; i++) {
		struct err err = { "" };

		error = dumps_read(paths->data[i], dumps, &err);
		if (error == -EINVAL || (error < 0 && error != -ENOMEM)) {
			(void)cmd_fail("%s", err.text);
			error = add_failure(report, failures, paths->data[i], &err);
		}
	}
	return error;
}

/* The greatest rank that the members of any group name, "[0, 4, 8]"; -1: none. */
static int greatest_member(const struct hang_record *record)
{
	long greatest = -1;

	for (size_t i = 0; i < record->entered_cnt; i++) {
		const char *p = record->entered[i].members;

		for (p += strcspn(p, "0123456789"); *p != '\0'; p += strcspn(p, "0123456789")) {
			const long number = strtol(p, NULL, 10);

			greatest = number < DUMPS_RANKS_MAX ? MAX(greatest, number) : greatest;
			p += strspn(p, "0123456789");
		}
	}
	return (int)greatest;
}

static int find_missing(const struct dumps *dumps, struct report *report)
{
	int *missing =
		arena_calloc(&report->arena, (size_t)report->world_size + 1, sizeof(*missing));
	size_t at = 0;

	if (missing == NULL)
		return -ENOMEM;
	for (int rank = 0; rank < report->world_size; rank++) {
		while (at < dumps->records.cnt && dumps->records.data[at].rank < rank)
			at++;
		if (at == dumps->records.cnt || dumps->records.data[at].rank != rank)
			missing[report->missing_cnt++] = rank;
	}
	report->missing = missing;
	return 0;
}

static int fill_job(const struct dumps *dumps, int world_size, struct report *report)
{
	int size = world_size;

	vec_foreach(record, &dumps->records) {
		size = MAX(size, record->rank + 1);
		size = MAX(size, record->world_size);
		size = MAX(size, greatest_member(record) + 1);
	}
	report->job_id = "dumps";
	report->rank_source = "the dumps, or the names of their files";
	report->world_size = report->workers_expected = size;
	report->workers_analyzed = (int)dumps->records.cnt;
	report->iterations = report->iteration_ms = (double)NAN;
	return find_missing(dumps, report);
}

static int copy_notes(const struct dumps *dumps, struct report *report)
{
	const char **notes = arena_calloc(&report->arena, report->note_cnt + dumps->notes.cnt + 1,
					  sizeof(*notes));

	if (notes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < report->note_cnt; i++)
		notes[i] = report->notes[i];
	vec_foreach(note, &dumps->notes)
		notes[report->note_cnt++] = arena_strdup(&report->arena, *note);
	report->notes = notes;
	return 0;
}

static int judge(const path_list *paths, int world_size, struct dumps *dumps, struct report *report,
		 struct err *err)
{
	struct hang_facts facts = { 0 };
	int error = read_all(paths, dumps, report);

	if (error == 0 && dumps->records.cnt == 0)
		return err_set(err, EINVAL, "none of the inputs could be used");
	if (error == 0) {
		dumps_join(dumps);
		facts.records = dumps->records.data;
		facts.cnt = dumps->records.cnt;
		error = hangdiagnosis_make(&facts, report);
	}
	if (error == 0)
		error = fill_job(dumps, world_size, report);
	if (error == 0)
		error = copy_notes(dumps, report);
	return error < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int hangfiles_report(const path_list *paths, int world_size, struct dumps *dumps,
		     struct report *ret, struct err *err)
{
	struct report report = { 0 };
	int error;

	arena_init(&report.arena);
	error = judge(paths, world_size, dumps, &report, err);
	if (error < 0) {
		arena_done(&report.arena);
		return error;
	}
	*ret = report;
	return 0;
}
