/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recovery/takennumbers.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0: the name is none of prefix and a number. */
static uint64_t number_of(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 && isdigit((unsigned char)name[len])
		       ? strtoull(name + len, NULL, 10)
		       : 0;
}

/* Of numbers beyond any that a job reaches, which are not PerfTracker's, none counts. */
static uint64_t greatest(const char *path, const char *prefix)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	uint64_t ret = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		uint64_t number = number_of(entry->d_name, prefix);

		ret = number < UINT32_MAX ? MAX(ret, number) : ret;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return ret;
}

uint64_t takennumbers_find(const char *out_dir, uint64_t *ret_report)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/fingerprints", out_dir);
	*ret_report = greatest(out_dir, "report-");
	return MAX(*ret_report, greatest(path, ""));
}
