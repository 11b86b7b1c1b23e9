/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_files.h"

#include "cmd/timeline/timeline_ask.h"
#include "format/flightlog/flightlog.h"
#include "format/sidecar/sidecar_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool timeline_is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int path_cmp(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return name[0] != '.' && len > end_len && strcmp(name + len - end_len, end) == 0;
}

static int add_path(path_list *out, const char *folder, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name) < 0)
		return -ENOMEM;
	if (vec_push(out, path) < 0) {
		free(path);
		return -ENOMEM;
	}
	return 0;
}

/* Adds the files of folder with this suffix, sorted. */
static int list_folder(const char *folder, const char *end, path_list *out, struct err *err)
{
	DIR *dir = opendir(folder);
	size_t before = out->cnt;
	struct dirent *entry;
	int ret = 0;

	if (dir == NULL)
		return err_set(err, errno, "%s: cannot open: %s", folder, strerror(errno));
	while (ret == 0 && (entry = readdir(dir)) != NULL) {
		if (ends_in(entry->d_name, end))
			ret = add_path(out, folder, entry->d_name);
	}
	(void)closedir(dir);
	if (out->cnt > before)
		qsort(out->data + before, out->cnt - before, sizeof(*out->data), path_cmp);
	return ret;
}

/* The flight recorders of a job's folder: in its flight/, or in the folder itself. */
static int add_folder(const char *folder, bool ask, path_list *out, struct err *err)
{
	_cleanup_free_ char *inner = NULL;
	size_t before = out->cnt;
	struct err why = { "" };
	int ret;

	if (asprintf(&inner, "%s/flight", folder) < 0)
		return -ENOMEM;
	if (ask && ask_flight(folder, &why) < 0)
		(void)fprintf(stderr,
			      "perftracker: the job was not asked for newer records (%s); "
			      "going on with the files that are there\n",
			      why.text);
	ret = list_folder(timeline_is_folder(inner) ? inner : folder, FLIGHT_SUFFIX, out, err);
	if (ret < 0 || out->cnt > before)
		return ret;
	return err_set(
		err, ENOENT,
		"%s: no flight recorders (flight/rank*.flight) there. 'perftracker run -o "
		"%s' saves one for each training process when that ends; of a job that runs, "
		"name the folder that it was started with",
		folder, folder);
}

static int find_flights(char *const *words, int cnt, bool ask, path_list *ret, struct err *err)
{
	int error = 0;

	for (int i = 0; i < cnt && error == 0; i++)
		error = timeline_is_folder(words[i]) ? add_folder(words[i], ask, ret, err)
						     : add_path(ret, "", words[i]);
	return error;
}

int timeline_find_flights(char *const *words, int cnt, path_list *ret, struct err *err)
{
	return find_flights(words, cnt, true, ret, err);
}

int timeline_list_flights(char *const *words, int cnt, path_list *ret, struct err *err)
{
	return find_flights(words, cnt, false, ret, err);
}

/* Without traces/ the job kept no traces. */
static int add_kept(const char *folder, path_list *ret)
{
	_cleanup_free_ char *traces = NULL;

	if (asprintf(&traces, "%s/traces", folder) < 0)
		return -ENOMEM;
	return timeline_is_folder(traces) &&
			       list_folder(traces, SIDECAR_SUFFIX, ret, NULL) == -ENOMEM
		       ? -ENOMEM
		       : 0;
}

static int add_beside(const char *flight, path_list *ret)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s" SIDECAR_SUFFIX, flight) < 0)
		return -ENOMEM;
	return access(path, F_OK) == 0 ? add_path(ret, "", path) : 0;
}

int timeline_find_sidecars(char *const *words, int cnt, const path_list *flights, path_list *ret)
{
	int error = 0;

	for (int i = 0; i < cnt && error == 0; i++)
		error = timeline_is_folder(words[i]) ? add_kept(words[i], ret) : 0;
	for (size_t i = 0; i < flights->cnt && error == 0; i++)
		error = add_beside(flights->data[i], ret);
	return error;
}
