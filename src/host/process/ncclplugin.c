/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/ncclplugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SETTING "NCCL_PROFILER_PLUGIN="
#define PLUGIN "libnccl-profiler.so"
#define CACHE "/etc/ld.so.cache"
#define CACHE_MAX (4u << 20)
#define LINE_BYTES 2048

static void close_file(FILE **file)
{
	if (*file != NULL)
		(void)fclose(*file);
}

static FILE *open_below(const char *root, const char *path)
{
	char full[2 * PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	return fopen(full, "re");
}

/* As NCCL reads it: the name begins the line, nothing is trimmed, the first one counts. */
static bool look_in_settings(const char *root, const char *path, struct ncclplugin *ret)
{
	_cleanup_(close_file) FILE *file = open_below(root, path);
	char line[LINE_BYTES];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, SETTING, strlen(SETTING)) != 0)
			continue;
		(void)snprintf(ret->name, sizeof(ret->name), "%s", line + strlen(SETTING));
		(void)snprintf(ret->place, sizeof(ret->place), "%s", path);
		ret->is_set = true;
		return true;
	}
	return false;
}

static bool is_there(const char *root, const char *folder, size_t len, struct ncclplugin *ret)
{
	char full[2 * PATH_MAX];

	(void)snprintf(ret->name, sizeof(ret->name), "%.*s/" PLUGIN, (int)len, folder);
	(void)snprintf(full, sizeof(full), "%s%s", root, ret->name);
	ret->place[0] = '\0';
	ret->is_set = false;
	return access(full, R_OK) == 0;
}

/* Folders between colons; an empty one is the working directory, which is below no root. */
static bool look_on_path(const char *root, const char *path, struct ncclplugin *ret)
{
	while (path != NULL) {
		size_t len = strcspn(path, ":");
		bool relative = len == 0 || path[0] != '/';

		if ((!relative || root[0] == '\0') &&
		    is_there(root, len > 0 ? path : ".", len > 0 ? len : 1, ret))
			return true;
		path = path[len] == ':' ? path + len + 1 : NULL;
	}
	return false;
}

/* The loader's cache holds paths as texts that end with NUL. */
static bool look_in_cache(const char *root, struct ncclplugin *ret)
{
	_cleanup_free_ char *text = malloc(CACHE_MAX);
	_cleanup_(close_file) FILE *file = open_below(root, CACHE);
	size_t size;

	if (file == NULL || text == NULL)
		return false;
	size = fread(text, 1, CACHE_MAX, file);
	if (memmem(text, size, PLUGIN, sizeof(PLUGIN)) == NULL) /* with its NUL */
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), PLUGIN);
	(void)snprintf(ret->place, sizeof(ret->place), CACHE);
	ret->is_set = false;
	return true;
}

static bool look_in_users_settings(const struct ncclplugin_places *places, struct ncclplugin *ret)
{
	char path[PATH_MAX];

	if (places->conf != NULL && places->conf[0] != '\0')
		(void)snprintf(path, sizeof(path), "%s", places->conf);
	else
		(void)snprintf(path, sizeof(path), "%s/.nccl.conf", places->home);
	return look_in_settings(places->root, path, ret);
}

bool ncclplugin_find(const struct ncclplugin_places *places, struct ncclplugin *ret)
{
	static const char *const defaults[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
	const char *root = places->root;

	if (look_in_users_settings(places, ret) || look_in_settings(root, "/etc/nccl.conf", ret) ||
	    look_on_path(root, places->library_path, ret) || look_in_cache(root, ret))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		if (is_there(root, defaults[i], strlen(defaults[i]), ret))
			return true;
	}
	return false;
}
