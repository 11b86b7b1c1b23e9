/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/pagestore.h"

#include "live/run/rundir.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 512

static const char *const ends[] = { "", "-wal", "-shm", "-journal" };

void pagestore_remove(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		char file[PATH_BYTES];

		if ((size_t)snprintf(file, sizeof(file), "%s%s", path, ends[i]) < sizeof(file))
			(void)unlink(file);
	}
}

/* A daemon that is stopped writes nothing, and listens still. */
static bool has_daemon(const char *path)
{
	char socket[PATH_BYTES];

	(void)snprintf(socket, sizeof(socket), "%s", path);
	socket[strlen(socket) - strlen(PAGESTORE_END)] = '\0';
	return rundir_is_served(socket);
}

static bool is_stale(const char *path, int64_t now_ns)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		char file[PATH_BYTES];
		struct stat info;

		if ((size_t)snprintf(file, sizeof(file), "%s%s", path, ends[i]) >= sizeof(file))
			return false;
		if (stat(file, &info) == 0 &&
		    now_ns - info.st_mtim.tv_sec * NSEC_PER_SEC < PAGESTORE_STALE_NS)
			return false;
	}
	return !has_daemon(path);
}

static bool is_store(const char *name)
{
	static const char end[] = ".sock" PAGESTORE_END;
	size_t len = strlen(name);

	return len > strlen(end) && strcmp(name + len - strlen(end), end) == 0;
}

void pagestore_remove_stale(const char *folder, int64_t now_ns)
{
	DIR *dir = opendir(folder);

	if (dir == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		char path[PATH_BYTES];

		if (is_store(entry->d_name) &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
			    sizeof(path) &&
		    is_stale(path, now_ns))
			pagestore_remove(path);
	}
	(void)closedir(dir);
}
