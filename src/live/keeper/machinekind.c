/* SPDX-License-Identifier: Apache-2.0 */
#include "live/keeper/machinekind.h"

#include "base/str.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define GPUS_MAX 64u

/* The value behind "NAME : " in the file; false: no such line. */
static bool read_value(const char *path, const char *name, char *ret, size_t size)
{
	size_t len = strlen(name);
	FILE *file = fopen(path, "re");
	char line[512];
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), file) != NULL) {
		const char *value = strchr(line, ':');

		if (strncmp(line, name, len) != 0 || value == NULL)
			continue;
		value += 1 + strspn(value + 1, " \t");
		(void)snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
		found = true;
	}
	(void)fclose(file);
	return found;
}

static unsigned count_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 0;
}

/* GPUs of one kind as a rule; of a mixture the model that comes first in the alphabet is named. */
static void append_gpus(const char *root, struct str *out)
{
	char folder[512], path[1024], model[128], first[128] = "";
	struct dirent *entry;
	unsigned cnt = 0;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "%s/proc/driver/nvidia/gpus", root);
	dir = opendir(folder);
	if (dir == NULL)
		return;
	while (cnt < GPUS_MAX && (entry = readdir(dir)) != NULL) {
		(void)snprintf(path, sizeof(path), "%s/%.255s/information", folder, entry->d_name);
		if (entry->d_name[0] == '.' || !read_value(path, "Model", model, sizeof(model)))
			continue;
		if (cnt++ == 0 || strcmp(model, first) < 0)
			(void)snprintf(first, sizeof(first), "%s", model);
	}
	(void)closedir(dir);
	if (cnt > 0)
		str_printf(out, ", %u %s", cnt, first);
}

void machinekind_describe(const char *root, char *ret, size_t size)
{
	char path[512], model[128] = "unknown CPUs";
	unsigned cpus = count_cpus();
	struct str text = { 0 };

	(void)snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	(void)read_value(path, "model name", model, sizeof(model));
	str_printf(&text, "%s, %u CPU%s", model, cpus, plural(cpus));
	append_gpus(root, &text);
	(void)snprintf(ret, size, "%s", str_borrow(&text));
	str_done(&text);
}
