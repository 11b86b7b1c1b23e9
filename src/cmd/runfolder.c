/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/runfolder.h"

#include "format/flightlog/flightlog.h"
#include "live/run/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINGERPRINTS "fingerprints"
#define FLIGHT "flight"

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Writes FOLDER/NAME; "" if it is too long. */
static void join(const char *folder, const char *name, char ret[static PATH_MAX])
{
	if (snprintf(ret, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		ret[0] = '\0';
}

bool runfolder_is(const char *path)
{
	char inner[PATH_MAX];

	join(path, FINGERPRINTS, inner);
	return is_folder(inner);
}

const char *runfolder_resolve(const char *word, char ret[static PATH_MAX])
{
	if (strcmp(word, OUTDIR_LATEST) == 0 && access(word, F_OK) != 0)
		word = OUTDIR_BASE;
	if (runfolder_is(word))
		return word;
	join(word, OUTDIR_LATEST, ret);
	return runfolder_is(ret) ? ret : word;
}

static bool has_file(const char *folder, const char *suffix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		size_t len = strlen(entry->d_name), end = strlen(suffix);

		found = len > end && strcmp(entry->d_name + len - end, suffix) == 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* The folder of the greatest number that has a fingerprint; returns whether there is one. */
static bool find_profile(const char *fingerprints, char ret[static PATH_MAX])
{
	DIR *dir = opendir(fingerprints);
	struct dirent *entry;
	unsigned long latest = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		unsigned long number = strtoul(entry->d_name, NULL, 10);
		char path[PATH_MAX];

		join(fingerprints, entry->d_name, path);
		if (number > latest && has_file(path, ".ptfp")) {
			latest = number;
			memcpy(ret, path, sizeof(path));
		}
	}
	if (dir != NULL)
		(void)closedir(dir);
	return latest > 0;
}

int runfolder_inputs(const char *path, char ret[static PATH_MAX], struct err *err)
{
	char inner[PATH_MAX];

	join(path, FINGERPRINTS, inner);
	if (find_profile(inner, ret))
		return 0;
	join(path, FLIGHT, inner);
	if (!has_file(inner, FLIGHT_SUFFIX))
		return err_set(err, ENOENT,
			       "%s: this run has made no profile, and no flight recorder was saved",
			       path);
	memcpy(ret, inner, sizeof(inner));
	return 0;
}
