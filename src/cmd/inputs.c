/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/runfolder.h"
#include "read/foreign.h"
#include "read/reader.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* of folders in folders */

void path_list_done(path_list *list)
{
	for (size_t i = 0; i < list->cnt; i++)
		free(list->data[i]);
	vec_done(list);
}

static int add_path(path_list *out, const char *path)
{
	char *copy = strdup(path);

	if (copy == NULL || vec_push(out, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static bool is_input_name(const char *name)
{
	/* truth.json is written by `simulate` beside the traces of a job. */
	return name[0] != '.' && strcmp(name, "truth.json") != 0 && reader_of_name(name) != NULL;
}

/* "rank10" comes after "rank9". */
static int path_cmp(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* What is known of the other files of a folder: of the first that is recognized. */
static void append_others(const char *folder, struct str *out)
{
	struct dirent *entry;
	DIR *dir = opendir(folder);
	const char *what = NULL;

	while (dir != NULL && what == NULL && (entry = readdir(dir)) != NULL) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX)
			continue;
		what = entry->d_name[0] != '.' ? foreign_describe(path) : NULL;
		if (what != NULL)
			str_printf(out, "; %s is %s", entry->d_name, what);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

static int no_inputs(const char *folder, struct err *err)
{
	struct str traces = { 0 }, fingerprints = { 0 }, others = { 0 };

	reader_list_suffixes(CONTENT_TRACE, &traces);
	reader_list_suffixes(CONTENT_FINGERPRINT, &fingerprints);
	append_others(folder, &others);
	(void)err_set(err, ENOENT,
		      "%s: expected traces (%s) or fingerprints (%s) in the folder, found none%s",
		      folder, str_borrow(&traces), str_borrow(&fingerprints), str_borrow(&others));
	str_done(&traces);
	str_done(&fingerprints);
	str_done(&others);
	return -ENOENT;
}

/* A file in a folder. What is known to be no trace is no rank: said, and left out. */
static int list_file(const char *path, const char *name, path_list *out)
{
	const char *what = is_input_name(name) ? foreign_describe(path) : NULL;

	if (what == NULL)
		return is_input_name(name) ? add_path(out, path) : 0;
	(void)fprintf(stderr, "perftracker: left out: %s: %s\n", path, what);
	return 0;
}

static int expand_run(const char *folder, path_list *out, struct err *err);

static int list_folder(const char *path, int depth, path_list *out, struct err *err);

/* A file or folder in a folder. A link to a folder would bring its files twice. */
static int list_entry(const char *path, const char *name, int depth, path_list *out,
		      struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		if (depth == DEPTH_MAX)
			return 0;
		return runfolder_is(path) ? expand_run(path, out, err)
					  : list_folder(path, depth + 1, out, err);
	}
	return list_file(path, name, out);
}

static int list_folder(const char *path, int depth, path_list *out, struct err *err)
{
	size_t len = strlen(path);
	const char *slash = len > 1 && path[len - 1] == '/' ? "" : "/";
	struct dirent *entry;
	DIR *dir = opendir(path);
	int error = 0;

	if (dir == NULL)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	while (error == 0 && (entry = readdir(dir)) != NULL) {
		struct str full = { 0 };

		if (entry->d_name[0] == '.')
			continue;
		str_printf(&full, "%s%s%s", path, slash, entry->d_name);
		error = str_error(&full) < 0
				? -ENOMEM
				: list_entry(str_borrow(&full), entry->d_name, depth, out, err);
		str_done(&full);
	}
	(void)closedir(dir);
	return error;
}

static int expand_folder(const char *path, path_list *out, struct err *err)
{
	size_t before = out->cnt;
	int error = list_folder(path, 0, out, err);

	if (error == 0 && out->cnt == before)
		return no_inputs(path, err);
	if (out->cnt > before)
		qsort(out->data + before, out->cnt - before, sizeof(char *), path_cmp);
	return error;
}

/* Adds "FILE#WORKER" for each worker of a file that holds several, else path. */
static int expand_workers(const char *path, path_list *out)
{
	reader_worker_vec workers;
	int error = reader_list_workers(path, &workers);

	if (error == 0 && workers.cnt == 0)
		error = add_path(out, path);
	for (size_t i = 0; i < workers.cnt && error == 0; i++) {
		struct str name = { 0 };

		str_printf(&name, "%s#%lld", path, (long long)workers.data[i]);
		error = str_error(&name) < 0 ? -ENOMEM : add_path(out, str_borrow(&name));
		str_done(&name);
	}
	vec_done(&workers);
	return error;
}

static int expand_all_workers(path_list *out)
{
	path_list all = { 0 };
	int error = 0;

	for (size_t i = 0; i < out->cnt && error == 0; i++)
		error = expand_workers(out->data[i], &all);
	path_list_done(error < 0 ? &all : out);
	if (error < 0)
		return error;
	*out = all;
	return 0;
}

/* The traces of one family, and the others. */
struct family_counts {
	const char *family, *path, *other_path; /* the last path of each */
	size_t cnt, other_cnt;
};

/* Whether the reader will report this file: missing, or not in the format that its name says. */
static bool is_unreadable(const char *path, const struct reader *reader)
{
	const struct reader *named = reader_of_name(path);

	return reader->is_path != NULL || access(path, F_OK) < 0 ||
	       (named != NULL && named->family != NULL);
}

static void count_families(const path_list *paths, struct family_counts *counts)
{
	vec_foreach(path, paths) {
		const struct reader *reader = reader_of(*path);

		if (reader->family != NULL &&
		    (counts->family == NULL || strcmp(counts->family, reader->family) == 0)) {
			counts->family = reader->family;
			counts->path = *path;
			counts->cnt++;
		} else if (reader->content != CONTENT_FINGERPRINT &&
			   (reader->family != NULL || !is_unreadable(*path, reader))) {
			counts->other_path = *path;
			counts->other_cnt++;
		}
	}
}

int inputs_check_families(const path_list *paths, const path_list *more, struct err *err)
{
	struct family_counts counts = { 0 };

	count_families(paths, &counts);
	if (more != NULL)
		count_families(more, &counts);
	if (counts.cnt == 0 || counts.other_cnt == 0)
		return 0;
	return err_set(
		err, EINVAL,
		"expected traces of one kind, found %zu of %s (%s) and %zu others (%s): they "
		"name and hold different functions, so that each kind is only comparable "
		"with itself; give them one kind at a time",
		counts.cnt, counts.family, counts.path, counts.other_cnt, counts.other_path);
}

/* Says which of a run's files are read: it may have several profiles. */
static int expand_run(const char *folder, path_list *out, struct err *err)
{
	char inner[PATH_MAX];
	int error = runfolder_inputs(folder, inner, err);

	if (error < 0)
		return error;
	(void)fprintf(stderr, "perftracker: reading %s\n", inner);
	return expand_folder(inner, out, err);
}

static int expand_one(const char *word, path_list *out, struct err *err)
{
	char resolved[PATH_MAX];
	const char *path = runfolder_resolve(word, resolved);
	struct stat st;

	if (runfolder_is(path))
		return expand_run(path, out, err);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return expand_folder(path, out, err);
	return add_path(out, path); /* load_one() reports what is wrong */
}

int inputs_expand(char *const *paths, size_t cnt, path_list *out, struct err *err)
{
	int error = 0;

	for (size_t i = 0; i < cnt && error == 0; i++)
		error = expand_one(paths[i], out, err);
	if (error == 0)
		error = expand_all_workers(out);
	return error == 0 ? inputs_check_families(out, NULL, err) : error;
}
