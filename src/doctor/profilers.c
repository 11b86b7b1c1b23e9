/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other profilers and the resources they occupy: a job has one slot for CUDA's injection, one for
 * NVTX, one for NCCL's plugin, and, with most drivers, one client of CUPTI. Only names of processes
 * are shown, never command lines.
 */
#include "doctor/check.h"
#include "doctor/secrets.h"
#include "host/process/ncclplugin.h"
#include "host/process/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NCCL_PROFILER "NCCL_PROFILER_PLUGIN"
#define DCGM_PORT 5555
#define TCP_LISTEN 0x0a
#define PIDS_MAX 16384

/* "NAME=value; NAME=value" of the variables that are set; false if none is. */
static bool list_set(const struct doctor *doctor, const char *const *names, size_t cnt, char *ret,
		     size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < cnt && len < size; i++) {
		const char *value = look_env(doctor, names[i]);
		char shown[256];

		if (value == NULL)
			continue;
		mask_value(value, shown, sizeof(shown));
		len += (size_t)snprintf(ret + len, size - len, "%s%s=%s", len > 0 ? "; " : "",
					names[i], shown);
	}
	return len > 0;
}

static bool is_perftracker(const char *path)
{
	return strstr(path, "libperftracker") != NULL;
}

void check_injection(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
					     "ROCP_TOOL_LIBRARIES", "HSA_TOOLS_LIB" };
	const char *cuda = look_env(doctor, "CUDA_INJECTION64_PATH");
	char text[400];

	if (!list_set(doctor, names, ARRAY_SIZE(names), text, sizeof(text)))
		check_set(ret, DOCTOR_OK, "the slots of CUDA, NVTX and ROCm are free");
	else
		check_set(ret, cuda != NULL && is_perftracker(cuda) ? DOCTOR_OK : DOCTOR_LIMITED,
			  "%s", text);
}

/* --- NCCL's slot: the environment precedes settings files, these precede a library --- */

static bool look_for_plugin(const struct doctor *doctor, struct ncclplugin *ret)
{
	const char *home = look_env(doctor, "HOME"), *set = look_env(doctor, NCCL_PROFILER);
	struct ncclplugin_places places = { .root = doctor->setup.root,
					    .home = home != NULL ? home : "",
					    .conf = look_env(doctor, "NCCL_CONF_FILE"),
					    .library_path = look_env(doctor, "LD_LIBRARY_PATH") };

	if (set == NULL)
		return ncclplugin_find(&places, ret);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", set);
	ret->place[0] = '\0';
	ret->is_set = true;
	return true;
}

/* Also compares the target of a symbolic link. */
static bool plugin_is_perftracker(const struct doctor *doctor, const struct ncclplugin *plugin)
{
	char path[2 * PATH_MAX], target[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", doctor->setup.root, plugin->name);
	return is_perftracker(plugin->name) ||
	       (plugin->name[0] == '/' && realpath(path, target) != NULL && is_perftracker(target));
}

static const char *whose_plugin(const struct doctor *doctor, const struct ncclplugin *plugin)
{
	if (plugin_is_perftracker(doctor, plugin))
		return "perftracker's own";
	return plugin->is_set && strcasecmp(plugin->name, "none") == 0 ? "disabled"
								       : "another profiler's";
}

static void describe_plugin(const struct doctor *doctor, const struct ncclplugin *plugin,
			    struct doctor_result *ret)
{
	char name[256], place[256];

	mask_value(plugin->name, name, sizeof(name));
	mask_value(plugin->place, place, sizeof(place));
	check_set(ret, plugin_is_perftracker(doctor, plugin) ? DOCTOR_OK : DOCTOR_LIMITED,
		  "%s%s%s%s%s: %s", plugin->is_set ? NCCL_PROFILER "=" : "", name,
		  place[0] != '\0' ? " in " : "", place,
		  plugin->is_set ? "" : ", which NCCL loads by default",
		  whose_plugin(doctor, plugin));
	if (!plugin->is_set)
		check_advise(ret, NULL,
			     "remove it from the loader's folders and LD_LIBRARY_PATH for "
			     "runs to be profiled by perftracker");
	else if (place[0] != '\0')
		check_advise(ret, NULL,
			     "remove that line from the file for runs to be profiled by "
			     "perftracker");
}

void check_nccl_plugin(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const others[] = { "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN" };
	struct ncclplugin plugin;
	char text[400];
	size_t len;

	if (look_for_plugin(doctor, &plugin))
		describe_plugin(doctor, &plugin, ret);
	else
		check_set(ret, DOCTOR_OK, "NCCL's slot is free");
	len = strlen(ret->found);
	if (list_set(doctor, others, ARRAY_SIZE(others), text, sizeof(text)))
		(void)snprintf(ret->found + len, sizeof(ret->found) - len, "; %s", text);
}

/* Whether a list of libraries has one of a tool: compares file names, not folders. */
static bool lists_tool(const char *list)
{
	static const char *const tools[] = { "libcupti",     "libToolsInjection", "libnsys",
					     "libxpu_timer", "libdarshan",	  "libprofiler",
					     "libasan",	     "libclang_rt.asan" };

	for (size_t len; *list != '\0'; list += len + (list[len] != '\0')) {
		const char *name = list;

		len = strcspn(list, ": ");
		for (size_t i = 0; i < len; i++) {
			if (list[i] == '/')
				name = &list[i + 1];
		}
		for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
			if (strncmp(name, tools[i], strlen(tools[i])) == 0)
				return true;
		}
	}
	return false;
}

void check_preload(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH" };
	char text[400];

	if (!list_set(doctor, names, ARRAY_SIZE(names), text, sizeof(text))) {
		check_set(ret, DOCTOR_OK, "nothing is preloaded");
		return;
	}
	check_set(ret, DOCTOR_OK, "%s", text);
	for (size_t i = 0; i < 2; i++) { /* a folder alone loads nothing */
		const char *list = look_env(doctor, names[i]);

		if (list != NULL && lists_tool(list))
			ret->state = DOCTOR_LIMITED;
	}
}

void check_torch_profiler(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "KINETO_USE_DAEMON",	  "KINETO_CONFIG",
					     "KINETO_LOG_LEVEL",	  "TEARDOWN_CUPTI",
					     "DISABLE_CUPTI_LAZY_REINIT", "ENABLE_PROFILER" };
	char text[400];

	if (!list_set(doctor, names, ARRAY_SIZE(names), text, sizeof(text)))
		check_set(ret, DOCTOR_OK, "torch's own profiler has default settings");
	else
		check_set(ret,
			  look_env(doctor, "KINETO_USE_DAEMON") != NULL ? DOCTOR_LIMITED
									: DOCTOR_OK,
			  "%s", text);
}

/* --- running programs --- */

/* Names as cut by the kernel to 15 characters. */
static const struct {
	const char *name, *holds;
} tools[] = {
	{ "nsys", "CUPTI of the profiled process" },
	{ "nsys-launcher", "CUPTI of the profiled process" },
	{ "ncu", "the hardware counters of the GPU" },
	{ "cuda-gdb", "CUPTI of the debugged process" },
	{ "compute-sanitiz", "CUPTI of the checked process" },
	{ "dynolog", "torch's profiler, on demand" },
	{ "rocprofv3", "ROCm's tracing of the profiled process" },
	{ "xpu_timer_daemo", "kernel launches of watched jobs" },
	{ "py-spy", "ptrace of the sampled process" },
	{ "perf", "perf events" },
	{ "gdb", "ptrace of the debugged process" },
	{ "strace", "ptrace of the traced process" },
};

/* Appends "NAME (pid N): resource" for each running process of the list. Returns their number. */
static size_t find_tools(const struct doctor *doctor, char *text, size_t size)
{
	uint32_t *pids = calloc(PIDS_MAX, sizeof(*pids));
	int cnt = pids != NULL ? procfs_list(doctor->setup.root, 0, pids, PIDS_MAX) : 0;
	size_t found = 0, len = 0;

	for (int i = 0; i < cnt; i++) {
		struct procfs_stat stat;

		if (procfs_read_stat(doctor->setup.root, pids[i], 0, &stat) < 0)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(tools); j++) {
			if (strcmp(stat.comm, tools[j].name) != 0)
				continue;
			found++;
			if (len < size)
				len += (size_t)snprintf(text + len, size - len,
							"%s%s (pid %u) holds %s",
							len > 0 ? "; " : "", tools[j].name,
							(unsigned)pids[i], tools[j].holds);
		}
	}
	free(pids);
	return found;
}

void check_profilers(const struct doctor *doctor, struct doctor_result *ret)
{
	char text[480] = "";

	if (find_tools(doctor, text, sizeof(text)) == 0)
		check_set(ret, DOCTOR_OK, "none is running");
	else
		check_set(ret, DOCTOR_LIMITED, "%s", text);
}

/* Whether a process listens on a port, in a table like /proc/net/tcp. */
static bool listens(const char *table, unsigned port)
{
	for (const char *line = strchr(table, '\n'); line != NULL; line = strchr(line + 1, '\n')) {
		unsigned local, state;

		if (sscanf(line + 1, "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local,
			   &state) == 2 &&
		    local == port && state == TCP_LISTEN)
			return true;
	}
	return false;
}

static bool dcgm_listens(const struct doctor *doctor)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	const size_t size = 1 << 20;
	char *table = malloc(size);
	bool found = false;

	for (size_t i = 0; table != NULL && i < ARRAY_SIZE(tables); i++) {
		if (look_file(doctor, tables[i], table, size) > 0)
			found |= listens(table, DCGM_PORT);
	}
	free(table);
	return found;
}

/* The name of DCGM's running program, or NULL. */
static const char *dcgm_running(const struct doctor *doctor)
{
	static const char *const names[] = { "nv-hostengine", "dcgm-exporter" };
	uint32_t *pids = calloc(PIDS_MAX, sizeof(*pids));
	int cnt = pids != NULL ? procfs_list(doctor->setup.root, 0, pids, PIDS_MAX) : 0;
	const char *found = NULL;

	for (int i = 0; i < cnt && found == NULL; i++) {
		struct procfs_stat stat;

		if (procfs_read_stat(doctor->setup.root, pids[i], 0, &stat) < 0)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
			if (strcmp(stat.comm, names[j]) == 0)
				found = names[j];
		}
	}
	free(pids);
	return found;
}

void check_dcgm(const struct doctor *doctor, struct doctor_result *ret)
{
	const char *running = dcgm_running(doctor);
	bool listening = dcgm_listens(doctor);

	if (listening || running != NULL)
		check_set(ret, DOCTOR_LIMITED, "%s%s%s", running != NULL ? running : "",
			  running == NULL ? ""
			  : listening	  ? " runs; "
					  : " runs",
			  listening ? "something listens on port 5555, as DCGM does" : "");
	else
		check_set(ret, DOCTOR_OK, "not running");
}
