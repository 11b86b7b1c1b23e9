/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU drivers and libraries. Each library is opened in a child, by SONAME or from torch's path, and
 * asked for its version and its devices: a faulty driver may hang.
 * Source: API references of CUDA's driver, NVML, CUPTI, NCCL, HIP and rocprofiler-sdk; NVIDIA's
 * driver documentation of NVreg_RestrictProfilingToAdminUsers (/proc/driver/nvidia/params).
 */
#include "doctor/check.h"
#include "doctor/child.h"
#include "host/counters/cuptipath.h"
#include "host/counters/pmsampling.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY_TEXT 1024
#define OLDEST_NCCL 22300 /* the first with a profiler plugin */

/* A library that a child opens. */
struct library {
	const char *const *names; /* SONAMEs, newest first; ends with NULL */
	const char *path;	  /* tried before names; NULL: none */
	bool of_driver;		  /* needs a device: without one its errors are meaningless */
	void (*ask)(void *handle, int fd);
};

/* Looks up an entry point into a function pointer of the right type. */
#define RESOLVE(function, handle, name)                         \
	({                                                      \
		void *_symbol = dlsym(handle, name);            \
		memcpy(&(function), &_symbol, sizeof(_symbol)); \
		(function) != NULL;                             \
	})

/*
 * Opens the first name that works. why: the error of the first name that exists but does not open;
 * else all names.
 */
static void *open_names(const char *const *names, char *why, size_t size)
{
	static const char absent[] = "cannot open shared object file";
	size_t len = (size_t)snprintf(why, size, "no ");
	bool said = false;

	for (size_t i = 0; names[i] != NULL; i++) {
		void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		const char *error = handle == NULL ? dlerror() : NULL;

		if (handle != NULL)
			return handle;
		/* If a dependency is missing, the error begins with the dependency's name. */
		if (!said && error != NULL &&
		    (strstr(error, absent) == NULL ||
		     strncmp(error, names[i], strlen(names[i])) != 0)) {
			(void)snprintf(why, size, "%s: %s", names[i], error);
			said = true;
		}
		if (!said && len < size)
			len += (size_t)snprintf(why + len, size - len, "%s%s", i > 0 ? ", " : "",
						names[i]);
	}
	return NULL;
}

static void open_library(const void *arg, int fd)
{
	char why[LIBRARY_TEXT / 2];
	const struct library *library = arg;
	void *handle = NULL;

	/* The check must not load another profiler. */
	(void)unsetenv("CUDA_INJECTION64_PATH");
	(void)unsetenv("NVTX_INJECTION64_PATH");
	if (library->path != NULL)
		handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		handle = open_names(library->names, why, sizeof(why));
	if (handle == NULL) {
		dprintf(fd, "missing=%s\n", why);
		return;
	}
	dprintf(fd, "opened=1\n");
	library->ask(handle, fd);
}

/* Copies the library's answer to text, or sets the check's result if there is none. */
static bool ask_library(const struct doctor *doctor, const struct library *library, bool expected,
			char *text, size_t size, struct doctor_result *ret)
{
	int limit_ms = doctor->setup.library_ms != 0 ? doctor->setup.library_ms : DOCTOR_LIBRARY_MS;
	char how[64], value[256];
	struct child_end end;

	if (!doctor->here) {
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
		return false;
	}
	if (child_call(open_library, library, limit_ms, text, size, &end) < 0) {
		check_set(ret, DOCTOR_NOT_TRIED, "the child process could not be started");
		return false;
	}
	child_end_text(&end, how, sizeof(how));
	if (how[0] != '\0')
		check_set(ret, DOCTOR_FAILED, "%s %s", library->names[0], how);
	else if (facts_get(text, "missing", value, sizeof(value)))
		check_set(ret, expected ? DOCTOR_FAILED : DOCTOR_ABSENT, "%s", value);
	else if (facts_get(text, "error", value, sizeof(value)))
		check_set(ret, library->of_driver && !expected ? DOCTOR_ABSENT : DOCTOR_FAILED,
			  "%s", value);
	else
		return true;
	return false;
}

/* --- NVIDIA --- */

static bool has_nvidia(const struct doctor *doctor)
{
	return look_exists(doctor, "/proc/driver/nvidia/version") ||
	       look_exists(doctor, "/dev/nvidiactl");
}

static int count_names(const struct doctor *doctor, const char *folder)
{
	char path[4096];
	struct dirent *entry;
	int cnt = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s%s", doctor->setup.root, folder);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		cnt += entry->d_name[0] != '.';
	if (dir != NULL)
		(void)closedir(dir);
	return cnt;
}

/* "NVRM version: NVIDIA UNIX ... Module  580.95.05  Thu ..." has only one such number. */
static void driver_version(const char *line, char *ret, size_t size)
{
	(void)snprintf(ret, size, "unknown");
	for (const char *at = line; *at != '\0'; at += strspn(at, " \t")) {
		size_t len = strcspn(at, " \t\n"), digits = strspn(at, "0123456789.");

		if (digits == len && len >= 3 && memchr(at, '.', len) != NULL) {
			(void)snprintf(ret, size, "%.*s", (int)len, at);
			return;
		}
		at += len;
	}
}

void check_nvidia_driver(const struct doctor *doctor, struct doctor_result *ret)
{
	char line[512], version[64];
	int gpus = count_names(doctor, "/proc/driver/nvidia/gpus");

	if (!has_nvidia(doctor)) {
		check_set(ret, DOCTOR_ABSENT, "no NVIDIA driver is loaded");
		return;
	}
	if (look_line(doctor, "/proc/driver/nvidia/version", line, sizeof(line)) < 0) {
		check_set(ret, DOCTOR_LIMITED, "device files exist, but no /proc/driver/nvidia");
		return;
	}
	driver_version(line, version, sizeof(version));
	check_set(ret, gpus > 0 ? DOCTOR_OK : DOCTOR_FAILED, "driver %s, %d GPUs", version, gpus);
}

void check_gpu_counters(const struct doctor *doctor, struct doctor_result *ret)
{
	char params[8192], value[32];
	bool admin_only = true;

	if (!has_nvidia(doctor)) {
		check_set(ret, DOCTOR_ABSENT, "no NVIDIA driver is loaded");
		return;
	}
	if (look_file(doctor, "/proc/driver/nvidia/params", params, sizeof(params)) > 0 &&
	    look_field(params, "RmProfilingAdminOnly:", value, sizeof(value)))
		admin_only = strcmp(value, "0") != 0;
	if (!admin_only)
		check_set(ret, DOCTOR_OK, "RmProfilingAdminOnly 0: for every user");
	else if (look_privileged(doctor))
		check_set(ret, DOCTOR_OK, "RmProfilingAdminOnly 1, and this process is privileged");
	else
		check_set(ret, DOCTOR_LIMITED, "RmProfilingAdminOnly 1: for privileged users only");
}

static void ask_cuda(void *handle, int fd)
{
	int (*init)(unsigned), (*version)(int *), (*count)(int *), (*name)(char *, int, int);
	int (*error_name)(int, const char **);
	char text[128] = "";
	const char *error = "an error";
	int number = 0, cnt = 0, status;

	if (!RESOLVE(init, handle, "cuInit") || !RESOLVE(version, handle, "cuDriverGetVersion") ||
	    !RESOLVE(count, handle, "cuDeviceGetCount") ||
	    !RESOLVE(name, handle, "cuDeviceGetName") ||
	    !RESOLVE(error_name, handle, "cuGetErrorName")) {
		dprintf(fd, "error=libcuda.so.1 lacks an entry point: %s\n", dlerror());
		return;
	}
	(void)version(&number);
	dprintf(fd, "version=%d.%d\n", number / 1000, number % 1000 / 10);
	status = init(0);
	if (status != 0) {
		(void)error_name(status, &error);
		dprintf(fd, "error=cuInit: %s (%d)\n", error != NULL ? error : "?", status);
		return;
	}
	(void)count(&cnt);
	if (cnt > 0)
		(void)name(text, (int)sizeof(text) - 1, 0);
	dprintf(fd, "devices=%d\nname=%s\n", cnt, text);
}

void check_cuda(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "libcuda.so.1", NULL };
	const struct library library = { .names = names, .of_driver = true, .ask = ask_cuda };
	char text[LIBRARY_TEXT], version[32] = "?", devices[16] = "0", name[128] = "";

	if (!ask_library(doctor, &library, has_nvidia(doctor), text, sizeof(text), ret))
		return;
	(void)facts_get(text, "version", version, sizeof(version));
	(void)facts_get(text, "devices", devices, sizeof(devices));
	(void)facts_get(text, "name", name, sizeof(name));
	check_set(ret,
		  strcmp(devices, "0") != 0 ? DOCTOR_OK
		  : has_nvidia(doctor)	    ? DOCTOR_FAILED
					    : DOCTOR_ABSENT,
		  "CUDA %s, %s devices, the first: %s", version, devices, name);
}

static void ask_nvml(void *handle, int fd)
{
	int (*init)(void), (*driver)(char *, unsigned), (*count)(unsigned *), (*end)(void);
	const char *(*error_text)(int);
	char text[96] = "";
	unsigned cnt = 0;
	int status;

	if (!RESOLVE(init, handle, "nvmlInit_v2") || !RESOLVE(end, handle, "nvmlShutdown") ||
	    !RESOLVE(driver, handle, "nvmlSystemGetDriverVersion") ||
	    !RESOLVE(count, handle, "nvmlDeviceGetCount_v2") ||
	    !RESOLVE(error_text, handle, "nvmlErrorString")) {
		dprintf(fd, "error=libnvidia-ml.so.1 lacks an entry point: %s\n", dlerror());
		return;
	}
	status = init();
	if (status != 0) {
		dprintf(fd, "error=nvmlInit: %s (%d)\n", error_text(status), status);
		return;
	}
	(void)driver(text, sizeof(text));
	(void)count(&cnt);
	dprintf(fd, "driver=%s\ndevices=%u\ngpm=%d\n", text, cnt,
		dlsym(handle, "nvmlGpmMetricsGet") != NULL);
	(void)end();
}

void check_nvml(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "libnvidia-ml.so.1", NULL };
	const struct library library = { .names = names, .of_driver = true, .ask = ask_nvml };
	char text[LIBRARY_TEXT], driver[96] = "?", devices[16] = "0", gpm[4] = "0";

	if (!ask_library(doctor, &library, has_nvidia(doctor), text, sizeof(text), ret))
		return;
	(void)facts_get(text, "driver", driver, sizeof(driver));
	(void)facts_get(text, "devices", devices, sizeof(devices));
	(void)facts_get(text, "gpm", gpm, sizeof(gpm));
	check_set(ret, strcmp(devices, "0") == 0 ? DOCTOR_LIMITED : DOCTOR_OK,
		  "NVML of driver %s, %s devices%s", driver, devices,
		  gpm[0] == '1' ? ", with GPM" : ", without GPM");
}

static void ask_cupti(void *handle, int fd)
{
	int (*version)(uint32_t *);
	uint32_t number = 0;

	/* Without libcuda, CUDA 13.2's library crashes when asked; later ones return an error. */
	if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == NULL)
		dprintf(fd, "version=0\n");
	else if (!RESOLVE(version, handle, "cuptiGetVersion") || version(&number) != 0)
		dprintf(fd, "error=libcupti does not report its version\n");
	else
		dprintf(fd, "version=%u\n", number);
}

/* Version numbers of old libraries, from the headers of each CUDA; newer ones report their own. */
static void cupti_version(unsigned number, char *ret, size_t size)
{
	static const struct {
		unsigned number;
		const char *cuda;
	} old[] = { { 17, "11.7" }, { 18, "11.8 to 12.1" }, { 20, "12.2" }, { 21, "12.3" },
		    { 22, "12.4" }, { 23, "12.5" },	    { 24, "12.6" }, { 26, "12.8" },
		    { 27, "12.9" }, { 28, "12.9" } };

	if (number == 0)
		(void)snprintf(ret, size, "found; its version is unknown without a driver");
	else if (number >= 100000)
		(void)snprintf(ret, size, "CUDA %u.%u", number / 10000, number / 100 % 100);
	else
		(void)snprintf(ret, size, "API version %u", number);
	for (size_t i = 0; i < ARRAY_SIZE(old); i++) {
		if (old[i].number == number)
			(void)snprintf(ret, size, "CUDA %s", old[i].cuda);
	}
}

static void find_pm_library(const void *arg, int fd)
{
	const struct doctor *doctor = arg;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct pm_library library;
	int (*version)(int *);
	char why[GPUHW_WHY];
	int driver = 0;

	if (cuda != NULL && RESOLVE(version, cuda, "cuDriverGetVersion"))
		(void)version(&driver);
	if (pm_library_find(&library, look_env(doctor, CUPTIPATH_ENV), look_env(doctor, "PATH"),
			    driver, why) == 0)
		dprintf(fd, "file=%s\n", pm_library_file(&library));
	else
		dprintf(fd, "why=%s\n", why);
}

/* Uses the sampler's search, not the copy of an older CUDA that traces kernels. */
static void describe_pm_sampling(const struct doctor *doctor, char *ret, size_t size)
{
	char text[LIBRARY_TEXT] = "", value[512];
	struct child_end end;

	if (child_call(find_pm_library, doctor, DOCTOR_LIBRARY_MS, text, sizeof(text), &end) == 0 &&
	    facts_get(text, "file", value, sizeof(value)))
		(void)snprintf(ret, size, "PM sampling by %s", value);
	else if (facts_get(text, "why", value, sizeof(value)))
		(void)snprintf(ret, size, "no PM sampling: %s", value);
	else
		(void)snprintf(ret, size, "no PM sampling: its libraries do not open");
}

/* A job must use the copy that torch has mapped: two copies conflict. */
void check_cupti(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
					     NULL };
	char text[LIBRARY_TEXT], path[512], number[32] = "0", version[64], sampling[600];
	bool mapped = facts_get(doctor->python, "libcupti", path, sizeof(path));
	const struct library library = {
		.names = names,
		.path = mapped ? path : "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
		.ask = ask_cupti
	};

	if (!ask_library(doctor, &library, false, text, sizeof(text), ret))
		return;
	(void)facts_get(text, "version", number, sizeof(number));
	cupti_version((unsigned)strtoul(number, NULL, 10), version, sizeof(version));
	describe_pm_sampling(doctor, sampling, sizeof(sampling));
	check_set(ret, DOCTOR_OK, "CUPTI: %s%s%s; %s", version, mapped ? ", of torch: " : "",
		  mapped ? path : "", sampling);
}

static void ask_nccl(void *handle, int fd)
{
	int (*version)(int *);
	int number = 0;

	if (!RESOLVE(version, handle, "ncclGetVersion") || version(&number) != 0)
		dprintf(fd, "error=libnccl does not report its version\n");
	else
		dprintf(fd, "version=%d\n", number);
}

void check_nccl(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "libnccl.so.2", NULL };
	char text[LIBRARY_TEXT], path[512], value[32] = "0";
	bool mapped = facts_get(doctor->python, "libnccl", path, sizeof(path));
	const struct library library = { .names = names,
					 .path = mapped ? path : NULL,
					 .ask = ask_nccl };
	int version;

	if (!ask_library(doctor, &library, false, text, sizeof(text), ret))
		return;
	(void)facts_get(text, "version", value, sizeof(value));
	version = atoi(value);
	check_set(ret, version < OLDEST_NCCL ? DOCTOR_LIMITED : DOCTOR_OK, "NCCL %d.%d.%d%s%s",
		  version / 10000, version / 100 % 100, version % 100, mapped ? ", of torch: " : "",
		  mapped ? path : "");
}

/* --- AMD --- */

void check_amd_driver(const struct doctor *doctor, struct doctor_result *ret)
{
	char version[128] = "of the kernel";

	if (!look_exists(doctor, "/dev/kfd") && !look_exists(doctor, "/sys/module/amdgpu")) {
		check_set(ret, DOCTOR_ABSENT, "no AMD driver is loaded");
		return;
	}
	(void)!look_line(doctor, "/sys/module/amdgpu/version", version, sizeof(version));
	if (!look_exists(doctor, "/dev/kfd"))
		check_set(ret, DOCTOR_LIMITED, "amdgpu %s, but no /dev/kfd", version);
	else if (doctor->here && access("/dev/kfd", R_OK | W_OK) != 0)
		check_set(ret, DOCTOR_LIMITED, "amdgpu %s; no permission to open /dev/kfd",
			  version);
	else
		check_set(ret, DOCTOR_OK, "amdgpu %s", version);
}

static void ask_hip(void *handle, int fd)
{
	int (*version)(int *), (*count)(int *);
	int number = 0, cnt = 0;

	if (!RESOLVE(version, handle, "hipRuntimeGetVersion") ||
	    !RESOLVE(count, handle, "hipGetDeviceCount")) {
		dprintf(fd, "error=libamdhip64.so lacks an entry point: %s\n", dlerror());
		return;
	}
	(void)version(&number);
	(void)count(&cnt);
	dprintf(fd, "version=%d.%d\ndevices=%d\n", number / 10000000, number / 100000 % 100, cnt);
}

void check_hip(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6",
					     "libamdhip64.so.5", NULL };
	char text[LIBRARY_TEXT], path[512], version[32] = "?", devices[16] = "0";
	bool mapped = facts_get(doctor->python, "libamdhip64", path, sizeof(path));
	const struct library library = {
		.names = names, .path = mapped ? path : NULL, .of_driver = true, .ask = ask_hip
	};

	if (!ask_library(doctor, &library, look_exists(doctor, "/dev/kfd"), text, sizeof(text),
			 ret))
		return;
	(void)facts_get(text, "version", version, sizeof(version));
	(void)facts_get(text, "devices", devices, sizeof(devices));
	check_set(ret, strcmp(devices, "0") == 0 ? DOCTOR_LIMITED : DOCTOR_OK, "HIP %s, %s devices",
		  version, devices);
}

static void ask_rocprofiler(void *handle, int fd)
{
	int (*version)(uint32_t *, uint32_t *, uint32_t *);
	uint32_t major = 0, minor = 0, patch = 0;

	if (!RESOLVE(version, handle, "rocprofiler_get_version") ||
	    version(&major, &minor, &patch) != 0)
		dprintf(fd, "error=librocprofiler-sdk does not report its version\n");
	else
		dprintf(fd, "version=%u.%u.%u\n", major, minor, patch);
}

void check_rocprofiler(const struct doctor *doctor, struct doctor_result *ret)
{
	static const char *const names[] = { "librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
					     NULL };
	const struct library library = { .names = names, .ask = ask_rocprofiler };
	char text[LIBRARY_TEXT], version[32] = "?";

	if (!ask_library(doctor, &library, look_exists(doctor, "/dev/kfd"), text, sizeof(text),
			 ret))
		return;
	(void)facts_get(text, "version", version, sizeof(version));
	check_set(ret, DOCTOR_OK, "rocprofiler-sdk %s", version);
}
