/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of Nsight Systems as inputs. One file holds several workers: "FILE#PID" names
 * one of them, wherever a path of a trace can stand.
 */
#include "cmd/load.h"
#include "read/nsys/nsys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The part of path that is a file's name, in an owned copy, and the process behind it or -1. */
static char *split_path(const char *path, int64_t *ret_pid)
{
	const char *mark = strrchr(path, '#');
	char *file = strdup(path);

	*ret_pid = -1;
	if (file == NULL || mark == NULL || access(path, F_OK) == 0 ||
	    cmd_parse_int(mark + 1, 0, 0xffffff, ret_pid) < 0)
		return file;
	file[mark - path] = '\0';
	return file;
}

bool load_is_nsys(const char *path)
{
	int64_t pid;
	_cleanup_free_ char *file = split_path(path, &pid);

	return file != NULL && load_file_kind(file) == FILE_SQLITE;
}

int load_nsys_trace(const char *path, struct trace *ret, struct err *err)
{
	int64_t pid;
	_cleanup_free_ char *file = split_path(path, &pid);

	if (file == NULL)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	return nsys_read(file, path, pid, NULL, ret, err);
}

static int add_worker(const char *path, const struct nsys_worker *worker, path_list *out)
{
	char *name;

	if (asprintf(&name, "%s#%lld", path, (long long)worker->pid) < 0)
		return -ENOMEM;
	if (vec_push(out, name) == 0)
		return 0;
	free(name);
	return -ENOMEM;
}

int load_nsys_expand(const char *path, path_list *out)
{
	nsys_worker_vec workers = { 0 };
	int64_t pid;
	_cleanup_free_ char *file = split_path(path, &pid);
	int error = file != NULL ? 0 : -ENOMEM;

	/* What is wrong with the file is said when it is read. */
	if (error < 0 || pid >= 0 || load_file_kind(file) != FILE_SQLITE ||
	    nsys_workers(file, &workers, NULL) < 0)
		return MIN(error, 0);
	for (size_t i = 0; i < workers.cnt && workers.cnt > 1 && error == 0; i++)
		error = add_worker(path, &workers.data[i], out);
	if (error == 0 && workers.cnt > 1)
		error = 1;
	vec_done(&workers);
	return error;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t len = strlen(name), want = strlen(suffix);

	return len > want && strcmp(name + len - want, suffix) == 0;
}

bool load_is_nsys_report(const char *path)
{
	return ends_with(path, ".nsys-rep") || ends_with(path, ".qdrep");
}

/* Traces by kind; fingerprints do not tell what they were made of. */
struct kinds {
	const char *export, *other; /* one of each */
	size_t export_cnt, other_cnt;
};

/* What is wrong with a file that is not there, or no export, is said when it is read. */
static bool is_other(const char *path)
{
	return access(path, F_OK) == 0 && load_file_kind(path) != FILE_FINGERPRINT &&
	       !load_is_nsys_report(path) && !ends_with(path, NSYS_SUFFIX);
}

static void count_kinds(const path_list *paths, struct kinds *kinds)
{
	vec_foreach(path, paths) {
		if (load_is_nsys(*path)) {
			kinds->export = *path;
			kinds->export_cnt++;
		} else if (is_other(*path)) {
			kinds->other = *path;
			kinds->other_cnt++;
		}
	}
}

int load_check_kinds(const path_list *paths, const path_list *more, struct err *err)
{
	struct kinds kinds = { 0 };

	count_kinds(paths, &kinds);
	if (more != NULL)
		count_kinds(more, &kinds);
	if (kinds.export == NULL || kinds.other == NULL)
		return 0;
	return err_set(err, EINVAL,
		       "expected traces of one kind, found %zu of Nsight Systems (%s) and %zu "
		       "others (%s): they name and hold different functions, so that each kind "
		       "is only comparable with itself; give them one kind at a time",
		       kinds.export_cnt, kinds.export, kinds.other_cnt, kinds.other);
}
