/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/jobfolders.h"

#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS 16

struct folder {
	char name[256];
	int64_t used_s; /* when its job began */
};

typedef VEC(struct folder) folder_vec;

/* A folder without a lock is not one of a job, or is just being made. */
static bool is_over(const char *parent, const char *name, int64_t *ret_used_s)
{
	char path[PATH_MAX + 300];
	struct stat st;
	int fd;
	bool ret;

	(void)snprintf(path, sizeof(path), "%s/%s/lock", parent, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	ret = flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &st) == 0;
	(void)close(fd);
	if (ret)
		*ret_used_s = st.st_mtime;
	return ret;
}

static int newest_first(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;

	if (x->used_s != y->used_s)
		return x->used_s > y->used_s ? -1 : 1;
	return strcmp(y->name, x->name);
}

static void find(const char *parent, const char *own, folder_vec *ret)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		struct folder folder = { .used_s = 0 };

		(void)snprintf(folder.name, sizeof(folder.name), "%s", entry->d_name);
		if (folder.name[0] == '.' || strcmp(folder.name, own) == 0 ||
		    !is_over(parent, folder.name, &folder.used_s))
			continue;
		if (vec_push(ret, folder) < 0)
			break;
	}
	if (dir != NULL)
		(void)closedir(dir);
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
		      struct FTW *ftw _unused_)
{
	(void)remove(path);
	return 0;
}

void jobfolders_prune(const char *own, unsigned keep)
{
	char parent[PATH_MAX], path[PATH_MAX + 300];
	folder_vec folders = { 0 };
	char *slash;

	(void)snprintf(parent, sizeof(parent), "%s", own);
	slash = strrchr(parent, '/');
	if (slash == NULL || slash == parent)
		return;
	*slash = '\0';
	find(parent, slash + 1, &folders);
	if (folders.cnt > 0)
		qsort(folders.data, folders.cnt, sizeof(*folders.data), newest_first);
	for (size_t i = keep; i < folders.cnt; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", parent, folders.data[i].name);
		(void)nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
	}
	vec_done(&folders);
}
