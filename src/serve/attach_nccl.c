/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/attach_nccl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SETTING "NCCL_PROFILER_PLUGIN="
#define PLUGIN "libnccl-profiler.so"
#define CACHE "/etc/ld.so.cache"
#define CACHE_MAX (4u << 20)

static void close_file(FILE **file)
{
	if (*file != NULL)
		(void)fclose(*file);
}

/* As NCCL reads it: the name begins the line, nothing is trimmed, the first one counts. */
static bool look_in_settings(const char *path, char ret[static PATH_MAX])
{
	_cleanup_(close_file) FILE *file = fopen(path, "re");
	char line[2048];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, SETTING, strlen(SETTING)) != 0)
			continue;
		(void)snprintf(ret, PATH_MAX, "%s (%s)", line + strlen(SETTING), path);
		return true;
	}
	return false;
}

static bool is_there(const char *root, const char *folder, size_t len, char ret[static PATH_MAX])
{
	(void)snprintf(ret, PATH_MAX, "%s%.*s/" PLUGIN, root, (int)len, folder);
	return access(ret, R_OK) == 0;
}

/* Folders between colons; an empty one is the working directory. */
static bool look_on_path(const char *root, const char *path, char ret[static PATH_MAX])
{
	while (path != NULL) {
		size_t len = strcspn(path, ":");

		if (is_there(root, len > 0 ? path : ".", len > 0 ? len : 1, ret))
			return true;
		path = path[len] == ':' ? path + len + 1 : NULL;
	}
	return false;
}

/* The loader's cache holds paths as texts that end with NUL. */
static bool look_in_cache(const char *root, char ret[static PATH_MAX])
{
	_cleanup_free_ char *text = malloc(CACHE_MAX);
	_cleanup_(close_file) FILE *file = NULL;
	char path[PATH_MAX];
	const char *found;
	size_t size;

	(void)snprintf(path, sizeof(path), "%s" CACHE, root);
	file = fopen(path, "re");
	if (file == NULL || text == NULL)
		return false;
	size = fread(text, 1, CACHE_MAX, file);
	found = memmem(text, size, PLUGIN, sizeof(PLUGIN)); /* with its NUL */
	if (found == NULL)
		return false;
	(void)snprintf(ret, PATH_MAX, PLUGIN " (%.1024s)", path);
	return true;
}

bool attach_nccl_find(const struct attach_nccl_places *places, char ret[static PATH_MAX])
{
	static const char *const defaults[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
	char path[PATH_MAX];

	if (places->conf != NULL && places->conf[0] != '\0')
		(void)snprintf(path, sizeof(path), "%s", places->conf);
	else
		(void)snprintf(path, sizeof(path), "%s/.nccl.conf", places->home);
	if (look_in_settings(path, ret))
		return true;
	(void)snprintf(path, sizeof(path), "%s/etc/nccl.conf", places->root);
	if (look_in_settings(path, ret) || look_on_path("", places->library_path, ret) ||
	    look_in_cache(places->root, ret))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		if (is_there(places->root, defaults[i], strlen(defaults[i]), ret))
			return true;
	}
	return false;
}
