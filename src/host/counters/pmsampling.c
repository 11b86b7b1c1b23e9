/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/pmsampling.h"

#include "base/symbols.h"
#include "host/counters/cuptipath.h"
#include "host/counters/pmsampling_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CANDIDATES_MAX 2
#define SHARE(metric) metric ".avg.pct_of_peak_sustained_elapsed"
#define RATE(metric) metric ".sum.per_second"
#define CLOCK(unit) unit "__cycles_elapsed.avg.per_second"

/*
 * The cycles of a "realtime" metric fit where its count of instructions needs two passes
 * (GH100, GA100). Blackwell counts memory as dram, others at its controllers.
 */
static const char *const candidates[PM_KIND_CNT][CANDIDATES_MAX] = {
	[PM_ACTIVE] = { SHARE("gr__cycles_active") },
	[PM_CORES_ACTIVE] = { SHARE("sm__cycles_active") },
	[PM_ISSUE] = { SHARE("sm__inst_executed_realtime") },
	[PM_MATRIX] = { SHARE("sm__pipe_tensor_cycles_active_realtime"),
			SHARE("sm__inst_executed_pipe_tensor") },
	[PM_MEMORY_READ] = { SHARE("dramc__read_throughput"), SHARE("dram__read_throughput") },
	[PM_MEMORY_WRITE] = { SHARE("dramc__write_throughput"), SHARE("dram__write_throughput") },
	[PM_PCIE_READ] = { RATE("pcie__read_bytes") },
	[PM_PCIE_WRITE] = { RATE("pcie__write_bytes") },
	[PM_PCIE_BOTH] = { SHARE("pcie__throughput") },
	[PM_LINK_RX] = { RATE("nvlrx__bytes") },
	[PM_LINK_TX] = { RATE("nvltx__bytes") },
	[PM_CORE_CLOCK] = { CLOCK("gpc") },
	[PM_SYSTEM_CLOCK] = { CLOCK("sys") },
	[PM_MEMORY_CLOCK] = { CLOCK("dram") },
};

/* --- the library --- */

/* Fills the table. Returns the first symbol that isn't there, else NULL. */
static const char *resolve(void *handle, struct pm_functions *functions)
{
	const struct symbol table[] = {
		{ &functions->open, "cuptiProfilerHostInitialize" },
		{ &functions->close, "cuptiProfilerHostDeinitialize" },
		{ &functions->chips, "cuptiProfilerHostGetSupportedChips" },
		{ &functions->add, "cuptiProfilerHostConfigAddMetrics" },
		{ &functions->config_size, "cuptiProfilerHostGetConfigImageSize" },
		{ &functions->config_get, "cuptiProfilerHostGetConfigImage" },
		{ &functions->config_passes, "cuptiProfilerHostGetNumOfPasses" },
	};

	return symbols_find(handle, table, ARRAY_SIZE(table));
}

const char *pm_library_file(const struct pm_library *library)
{
	Dl_info info = { 0 };
	void *symbol;

	memcpy(&symbol, &library->functions->open, sizeof(symbol));
	return dladdr(symbol, &info) != 0 ? info.dli_fname : NULL;
}

/*
 * libcupti opens these by name alone: those of a wheel are not on the loader's path, and a toolkit
 * on it would supply another version. Once open, they are found by SONAME.
 */
static void open_companions(struct pm_library *library)
{
	static const char *const names[PM_COMPANIONS] = { "libnvperf_host.so",
							  "libnvperf_target.so" };
	const char *file = pm_library_file(library),
		   *slash = file != NULL ? strrchr(file, '/') : NULL;
	char path[PATH_MAX];

	for (size_t i = 0; slash != NULL && i < PM_COMPANIONS; i++) {
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - file), file, names[i]) <
		    (int)sizeof(path))
			library->functions->companions[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
}

int pm_library_open(struct pm_library *library, const char *path, char why[static GPUHW_WHY])
{
	struct pm_library opened = { .functions = calloc(1, sizeof(*opened.functions)) };
	const char *missing;

	if (opened.functions == NULL)
		return -ENOMEM;
	opened.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (opened.handle == NULL) {
		(void)snprintf(why, GPUHW_WHY, "no libcupti of CUDA 12.6 or later that opens");
		free(opened.functions);
		return -ENOENT;
	}
	missing = resolve(opened.handle, opened.functions);
	if (missing != NULL) {
		(void)snprintf(why, GPUHW_WHY, "libcupti lacks %.40s", missing);
		pm_library_close(&opened);
		return -ENOTSUP;
	}
	open_companions(&opened);
	*library = opened;
	return 0;
}

int pm_library_find(struct pm_library *library, const char *named, const char *path_list,
		    int driver, char why[static GPUHW_WHY])
{
	struct cuptipath paths;
	char reason[GPUHW_WHY];
	int ret = -ENOENT;

	(void)snprintf(why, GPUHW_WHY, "no libcupti for a driver of CUDA %d.%d", driver / 1000,
		       driver % 1000 / 10);
	cuptipath_find(named, path_list, driver, &paths);
	for (size_t i = 0; paths.names[i] != NULL && ret != 0; i++) {
		int error = pm_library_open(library, paths.names[i], reason);

		/* A library that is too old is a better reason than a missing one. */
		if (error == 0 || ret == -ENOENT) {
			ret = error;
			(void)snprintf(why, GPUHW_WHY, "%s", error < 0 ? reason : "");
		}
	}
	return ret;
}

void pm_library_close(struct pm_library *library)
{
	for (size_t i = 0; library->functions != NULL && i < PM_COMPANIONS; i++) {
		if (library->functions->companions[i] != NULL)
			(void)dlclose(library->functions->companions[i]);
	}
	if (library->handle != NULL)
		(void)dlclose(library->handle);
	free(library->functions);
	*library = (struct pm_library){ 0 };
}

int pm_library_chips(const struct pm_library *library, const char *const **ret_names,
		     size_t *ret_cnt)
{
	struct pm_host_chips request = { .size = sizeof(request) };

	if (library->functions->chips(&request) != PM_OK)
		return -EIO;
	*ret_names = request.names;
	*ret_cnt = request.cnt;
	return 0;
}

/* --- choosing --- */

struct chooser {
	const struct pm_functions *functions;
	const char *chip;
	const uint8_t *availability;
	struct pm_choice choice;
};

/* A host object cannot forget a metric: each trial has its own. Returns CUPTI's status. */
static int open_host(const struct chooser *chooser, struct pm_host **ret)
{
	struct pm_host_open request = { .size = PM_SIZE(pm_host_open, host),
					.profiler = PM_SAMPLING_PROFILER,
					.chip = chooser->chip,
					.availability = chooser->availability };
	int status = chooser->functions->open(&request);

	if (status == PM_OK)
		*ret = request.host;
	return status;
}

static void close_host(const struct chooser *chooser, struct pm_host *host)
{
	struct pm_host_close request = { .size = sizeof(request), .host = host };

	(void)chooser->functions->close(&request);
}

/* What the host object has, as a device wants it. Returns 0, -EIO or -ENOMEM. */
static int build_config(const struct pm_functions *functions, struct pm_host *host,
			uint8_t **ret_config, size_t *ret_bytes)
{
	struct pm_config_size bytes = { .size = sizeof(bytes), .host = host };
	struct pm_config_get get = { .size = sizeof(get), .host = host };
	_cleanup_free_ uint8_t *config = NULL;

	if (functions->config_size(&bytes) != PM_OK)
		return -EIO;
	config = calloc(1, MAX(bytes.bytes, (size_t)1));
	if (config == NULL)
		return -ENOMEM;
	get.bytes = bytes.bytes;
	get.config = config;
	if (functions->config_get(&get) != PM_OK)
		return -EIO;
	*ret_config = take_ptr(config);
	*ret_bytes = bytes.bytes;
	return 0;
}

/* How often the work would have to run for what the host object has; 0: it can't be had. */
static size_t count_passes(const struct chooser *chooser, struct pm_host *host)
{
	struct pm_config_passes passes = { .size = sizeof(passes) };
	_cleanup_free_ uint8_t *config = NULL;

	if (build_config(chooser->functions, host, &config, &passes.bytes) < 0)
		return 0;
	passes.config = config;
	return chooser->functions->config_passes(&passes) == PM_OK ? passes.cnt : 0;
}

/* Whether a metric fits into one pass with all that are chosen. */
static bool fits(const struct chooser *chooser, const char *name)
{
	const char *names[PM_KIND_CNT + 1];
	struct pm_host_add add = { .size = sizeof(add), .names = names };
	struct pm_host *host;
	bool ret;

	for (size_t kind = 0; kind < PM_KIND_CNT; kind++) {
		if (chooser->choice.names[kind] != NULL)
			names[add.cnt++] = chooser->choice.names[kind];
	}
	names[add.cnt++] = name;
	if (open_host(chooser, &host) != PM_OK)
		return false;
	add.host = host;
	ret = chooser->functions->add(&add) == PM_OK && count_passes(chooser, host) == 1;
	close_host(chooser, host);
	return ret;
}

static void choose_kind(struct chooser *chooser, enum pm_kind kind)
{
	for (size_t i = 0; i < CANDIDATES_MAX && candidates[kind][i] != NULL; i++) {
		if (!fits(chooser, candidates[kind][i]))
			continue;
		chooser->choice.names[kind] = candidates[kind][i];
		chooser->choice.cnt++;
		return;
	}
}

static void choose_kinds(struct chooser *chooser)
{
	for (enum pm_kind kind = 0; kind < PM_KIND_CNT; kind++) {
		/*
		 * The sum of both directions is the substitute on a chip without separate counters.
		 */
		if (kind == PM_PCIE_BOTH && (chooser->choice.names[PM_PCIE_READ] != NULL ||
					     chooser->choice.names[PM_PCIE_WRITE] != NULL))
			continue;
		choose_kind(chooser, kind);
	}
}

int pm_choose(const struct pm_library *library, const char *chip, const uint8_t *availability,
	      struct pm_choice *ret, char why[static GPUHW_WHY])
{
	struct chooser chooser = { .functions = library->functions,
				   .chip = chip,
				   .availability = availability };
	struct pm_host *host;
	int status = open_host(&chooser, &host);

	if (status != PM_OK) {
		(void)snprintf(why, GPUHW_WHY, "no PM sampling on %.16s (CUPTI: %d)", chip, status);
		return -ENOTSUP;
	}
	close_host(&chooser, host);
	choose_kinds(&chooser);
	if (chooser.choice.cnt == 0) {
		(void)snprintf(why, GPUHW_WHY, "%.16s has no counter that fits", chip);
		return -ENOTSUP;
	}
	*ret = chooser.choice;
	return 0;
}

/* --- the plan --- */

static int fill_plan(const struct chooser *chooser, struct pm_plan *plan)
{
	struct pm_host_add add = { .size = sizeof(add), .host = plan->host, .names = plan->names };

	for (enum pm_kind kind = 0; kind < PM_KIND_CNT; kind++) {
		if (chooser->choice.names[kind] == NULL)
			continue;
		plan->names[plan->cnt] = chooser->choice.names[kind];
		plan->kinds[plan->cnt++] = kind;
	}
	add.cnt = plan->cnt;
	if (chooser->functions->add(&add) != PM_OK)
		return -EIO;
	return build_config(chooser->functions, plan->host, &plan->config, &plan->config_bytes);
}

int pm_plan_open(const struct pm_library *library, const char *chip, const uint8_t *availability,
		 const struct pm_choice *choice, struct pm_plan *ret)
{
	struct chooser chooser = { .functions = library->functions,
				   .chip = chip,
				   .availability = availability,
				   .choice = *choice };
	struct pm_plan plan = { 0 };
	int error;

	if (open_host(&chooser, &plan.host) != PM_OK)
		return -EIO;
	error = fill_plan(&chooser, &plan);
	if (error < 0)
		pm_plan_close(library, &plan);
	else
		*ret = plan;
	return error;
}

void pm_plan_close(const struct pm_library *library, struct pm_plan *plan)
{
	const struct chooser chooser = { .functions = library->functions };

	if (plan->host != NULL)
		close_host(&chooser, plan->host);
	free(plan->config);
	*plan = (struct pm_plan){ 0 };
}
