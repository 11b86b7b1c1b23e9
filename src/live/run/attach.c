/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/attach.h"

#include "format/shared/message.h"
#include "host/process/ncclplugin.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Relative to the directory of the executable; the first that exists is taken. */
static const char *const agent_places[] = {
	"../agent/libperftracker-agent.so", /* build tree */
	"../lib/perftracker/libperftracker-agent.so",
	"../lib/libperftracker-agent.so",
	"../lib/x86_64-linux-gnu/libperftracker-agent.so",
	"../lib/aarch64-linux-gnu/libperftracker-agent.so",
	"../lib64/libperftracker-agent.so",
	"../libexec/perftracker/libperftracker-agent.so", /* a wheel */
};

static const char *const package_places[] = {
	"../../../python", /* build tree inside the source tree */
	"../lib/perftracker/python", "../share/perftracker/python",
	"../libexec/perftracker/python", /* a wheel */
};

#define PACKAGE_FILE "perftracker/__init__.py"

/* Resolves folder/place/file when it is readable; ret gets folder/place. */
static bool try_place(const char *folder, const char *place, const char *file, char *ret)
{
	char path[2 * PATH_MAX], test[3 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, place);
	(void)snprintf(test, sizeof(test), "%s%s%s", path, file != NULL ? "/" : "",
		       file != NULL ? file : "");
	return access(test, R_OK) == 0 && realpath(path, ret) != NULL;
}

static int find(const char *program, const char *const *places, size_t cnt, const char *file,
		char *ret)
{
	char folder[PATH_MAX];
	char *slash;

	(void)snprintf(folder, sizeof(folder), "%s", program);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; i < cnt; i++) {
		if (try_place(folder, places[i], file, ret))
			return 0;
	}
	return -ENOENT;
}

static int find_agent(const char *program, char *ret, struct err *err)
{
	const char *chosen = getenv(PT_ENV_AGENT);

	if (chosen != NULL && realpath(chosen, ret) != NULL)
		return 0;
	if (find(program, agent_places, ARRAY_SIZE(agent_places), NULL, ret) == 0)
		return 0;
	return err_set(err, ENOENT,
		       "libperftracker-agent.so not found beside %s: set " PT_ENV_AGENT, program);
}

static int find_package(const char *program, char *ret, struct err *err)
{
	const char *chosen = getenv(ATTACH_ENV_PYTHONPATH);

	if (chosen != NULL && realpath(chosen, ret) != NULL)
		return 0;
	if (find(program, package_places, ARRAY_SIZE(package_places), PACKAGE_FILE, ret) == 0)
		return 0;
	return err_set(err, ENOENT,
		       "the Python package was not found beside %s: set " ATTACH_ENV_PYTHONPATH,
		       program);
}

int attach_find(const char *program, char agent[static PATH_MAX], char package[static PATH_MAX],
		struct err *err)
{
	int ret = find_agent(program, agent, err);

	return ret == 0 ? find_package(program, package, err) : ret;
}

/* Puts package in front of PYTHONPATH. An empty one means none: a trailing colon would add the
 * working directory. */
static int set_path(const char *package, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	const char *old = getenv("PYTHONPATH");

	if (asprintf(&path, "%s%s%s", package, old != NULL && old[0] != '\0' ? ":" : "",
		     old != NULL ? old : "") < 0) {
		path = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return setenv("PYTHONPATH", path, 1) != 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int attach_environment(const char *program, const struct daemon_ready *ready, struct err *err)
{
	char agent[PATH_MAX], package[PATH_MAX];
	int ret = attach_find(program, agent, package, err);

	if (ret == 0)
		ret = set_path(package, err);
	if (ret < 0)
		return ret;
	if (setenv(PT_ENV_AGENT, agent, 1) != 0 || setenv(PT_ENV_DIR, ready->trace_dir, 1) != 0 ||
	    setenv(PT_ENV_SOCKET, ready->socket, 1) != 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int attach_python(const char *program, struct err *err)
{
	char package[PATH_MAX];
	int ret = find_package(program, package, err);

	return ret == 0 ? set_path(package, err) : ret;
}

/* Finds the NCCL profiler plugin of the user's environment; false: none. */
static bool find_users_plugin(char ret[static PATH_MAX])
{
	const char *home = getenv("HOME");
	struct ncclplugin_places places = { .root = "",
					    .home = home != NULL ? home : "",
					    .conf = getenv("NCCL_CONF_FILE"),
					    .library_path = getenv("LD_LIBRARY_PATH") };
	struct ncclplugin found;

	if (!ncclplugin_find(&places, &found))
		return false;
	(void)snprintf(ret, PATH_MAX, "%.2000s%s%.2000s%s", found.name,
		       found.place[0] != '\0' ? " (" : "", found.place,
		       found.place[0] != '\0' ? ")" : "");
	return true;
}

/* A library built with a sanitizer cannot be preloaded before the sanitizer's runtime. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAY_PRELOAD false
#else
#define MAY_PRELOAD true
#endif

/*
 * Appends to LD_PRELOAD: the agent is still searched before all libraries that a program
 * links. Spaces and colons separate the list, so the path must contain neither.
 */
static void preload(const char *agent)
{
	const char *old = getenv("LD_PRELOAD");
	_cleanup_free_ char *list = NULL;

	if (!MAY_PRELOAD || agent[strcspn(agent, " :")] != '\0')
		return;
	if (old == NULL || old[0] == '\0')
		(void)setenv("LD_PRELOAD", agent, 1);
	else if (strstr(old, agent) == NULL && asprintf(&list, "%s:%s", old, agent) >= 0)
		(void)setenv("LD_PRELOAD", list, 1);
}

void attach_to_gpus(void)
{
	const char *agent = getenv(PT_ENV_AGENT);
	char other[PATH_MAX];

	if (agent == NULL)
		return;
	if (!find_users_plugin(other))
		(void)setenv(ATTACH_ENV_NCCL, agent, 0);
	(void)setenv(ATTACH_ENV_ROCM, agent, 0);
}

void attach_to_gpu_calls(void)
{
	const char *agent = getenv(PT_ENV_AGENT);

	if (agent == NULL)
		return;
	(void)setenv(ATTACH_ENV_TIMES, "1", 1);
	preload(agent);
}

bool attach_other_plugin(char ret[static PATH_MAX])
{
	const char *agent = getenv(PT_ENV_AGENT), *plugin = getenv(ATTACH_ENV_NCCL);

	if (plugin == NULL)
		return find_users_plugin(ret) &&
		       (agent == NULL || strncmp(ret, agent, strlen(agent)) != 0);
	(void)snprintf(ret, PATH_MAX, "%s", plugin);
	return agent == NULL || strcmp(plugin, agent) != 0;
}
