/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cmd/load.h"
#include "format/flightlog/flightlog.h"
#include "read/nsys/nsys.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

static bool ends_with(const char *name, const char *suffix)
{
	size_t len = strlen(name), want = strlen(suffix);

	return len > want && strcmp(name + len - want, suffix) == 0;
}

static bool is_input_name(const char *name)
{
	/* What `simulate` writes beside the traces of a job is no trace. */
	return name[0] != '.' && strcmp(name, "truth.json") != 0 &&
	       (ends_with(name, ".json") || ends_with(name, ".json.gz") ||
		ends_with(name, ".ptfp") || ends_with(name, FLIGHT_SUFFIX) ||
		ends_with(name, NSYS_SUFFIX));
}

/* "rank10" comes after "rank9". */
static int path_cmp(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int expand_folder(const char *path, path_list *out, struct err *err)
{
	size_t before = out->cnt;
	struct dirent *entry;
	DIR *dir = opendir(path);
	int error = 0;

	if (dir == NULL)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	while (error == 0 && (entry = readdir(dir)) != NULL) {
		struct str full = { 0 };

		if (!is_input_name(entry->d_name))
			continue;
		str_printf(&full, "%s%s%s", path, ends_with(path, "/") ? "" : "/", entry->d_name);
		error = str_error(&full) < 0 ? -ENOMEM : add_path(out, str_borrow(&full));
		str_done(&full);
	}
	(void)closedir(dir);
	if (error == 0 && out->cnt == before)
		return err_set(err, ENOENT,
			       "%s: expected traces (*.json, *.json.gz, *.flight, *.sqlite) or "
			       "fingerprints (*.ptfp) in the folder, found none",
			       path);
	qsort(out->data + before, out->cnt - before, sizeof(char *), path_cmp);
	return error;
}

/* An export that holds several workers becomes as many paths. */
static int expand_exports(path_list *out)
{
	path_list all = { 0 };
	int error = 0;

	vec_foreach(path, out) {
		error = load_nsys_expand(*path, &all);
		if (error == 0)
			error = add_path(&all, *path);
		if (error < 0)
			break;
	}
	path_list_done(error < 0 ? &all : out);
	if (error < 0)
		return error;
	*out = all;
	return 0;
}

int inputs_expand(char *const *paths, size_t cnt, path_list *out, struct err *err)
{
	int error = 0;

	for (size_t i = 0; i < cnt && error == 0; i++) {
		struct stat st;

		if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			error = expand_folder(paths[i], out, err);
		else
			error = add_path(out, paths[i]); /* reading it tells what is wrong */
	}
	if (error == 0)
		error = expand_exports(out);
	return error == 0 ? load_check_kinds(out, NULL, err) : error;
}

int inputs_rank_of_name(const char *path)
{
	static const char *const words[] = { "rank", "worker", "proc" };
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *p = strcasestr(name, words[i]);

		for (; p != NULL; p = strcasestr(p + 1, words[i])) {
			const char *digits = p + strlen(words[i]);
			long rank;

			if (*digits == '-' || *digits == '_' || *digits == '.')
				digits++;
			if (!isdigit((unsigned char)*digits))
				continue;
			rank = strtol(digits, NULL, 10);
			return rank < (1 << 20) ? (int)rank : -1;
		}
	}
	return -1;
}

static int rank_cmp(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static bool known_and_distinct(int *ranks, size_t cnt)
{
	qsort(ranks, cnt, sizeof(*ranks), rank_cmp);
	for (size_t i = 0; i < cnt; i++) {
		if (ranks[i] < 0 || (i > 0 && ranks[i] == ranks[i - 1]))
			return false;
	}
	return true;
}

enum rank_origin inputs_assign_ranks(struct fingerprint *const *fps, size_t cnt)
{
	_cleanup_free_ int *ranks = calloc(cnt + 1, sizeof(*ranks));

	for (size_t i = 0; i < cnt && ranks != NULL; i++)
		ranks[i] = fps[i]->rank;
	if (ranks != NULL && known_and_distinct(ranks, cnt))
		return cnt > 0 && strstr(fps[0]->source, NSYS_SUFFIX) != NULL ? RANK_FROM_EXPORT
									      : RANK_FROM_TRACE;
	for (size_t i = 0; i < cnt && ranks != NULL; i++)
		ranks[i] = inputs_rank_of_name(fps[i]->source);
	if (ranks != NULL && known_and_distinct(ranks, cnt)) {
		for (size_t i = 0; i < cnt; i++)
			fps[i]->rank = inputs_rank_of_name(fps[i]->source);
		return RANK_FROM_NAME;
	}
	for (size_t i = 0; i < cnt; i++)
		fps[i]->rank = (int)i;
	return RANK_FROM_ORDER;
}

const char *rank_origin_name(enum rank_origin origin)
{
	static const char *const names[] = { [RANK_FROM_TRACE] = "distributedInfo",
					     [RANK_FROM_NAME] = "file names",
					     [RANK_FROM_ORDER] = "order of arguments",
					     [RANK_FROM_EXPORT] = "NCCL or MPI" };

	return names[origin];
}
