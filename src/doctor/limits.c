/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of this process on the machine: CPUs, memory, and restrictions of a container. */
#include "doctor/check.h"
#include "format/shared/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1024 * 1024)
#define PATH_BYTES 2048
#define SHM_SMALL_BYTES (1024LL * MIB) /* data loaders of one worker use 64 MB at once */

/* --- cgroups --- */

/* Path of this process's cgroup in the unified hierarchy (controller "") or a controller's. */
static bool cgroup_path(const struct doctor *doctor, const char *controller, char *ret, size_t size)
{
	char text[8192], *save = NULL;

	if (look_file(doctor, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'),
		     *path = names != NULL ? strchr(names + 1, ':') : NULL;
		size_t len = strlen(controller);

		if (path == NULL)
			continue;
		*path++ = '\0';
		names++;
		if ((len == 0 && names[0] == '\0') ||
		    (len > 0 && strncmp(names, controller, len) == 0 &&
		     (names[len] == '\0' || names[len] == ','))) {
			(void)snprintf(ret, size, "%s", strcmp(path, "/") == 0 ? "" : path);
			return true;
		}
	}
	return false;
}

/* CPUs granted by a file like cpu.max; 0: no limit there. */
static double read_quota(const struct doctor *doctor, const char *folder, bool unified)
{
	char path[PATH_BYTES + 128], text[64];
	int64_t quota_us, period_us;

	if (unified) {
		(void)snprintf(path, sizeof(path), "%s/cpu.max", folder);
		if (look_line(doctor, path, text, sizeof(text)) < 0 ||
		    sscanf(text, "%" SCNd64 " %" SCNd64, &quota_us, &period_us) != 2)
			return 0;
	} else {
		(void)snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
		if (look_number(doctor, path, &quota_us) < 0)
			return 0;
		(void)snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
		if (look_number(doctor, path, &period_us) < 0)
			return 0;
	}
	return quota_us > 0 && period_us > 0 ? (double)quota_us / (double)period_us : 0;
}

/* Removes the last component of a path below base; false at base itself. */
static bool go_up(char *path, size_t base_len)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || (size_t)(slash - path) < base_len || path[base_len] == '\0')
		return false;
	*slash = '\0';
	return true;
}

/* The smallest grant on the way up; 0: none. */
static double cpu_quota(const struct doctor *doctor, char *ret_folder, size_t size)
{
	static const struct {
		const char *controller, *base;
	} places[] = { { "", "/sys/fs/cgroup" }, { "cpu", "/sys/fs/cgroup/cpu" } };
	double least = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char path[PATH_BYTES], folder[PATH_BYTES + 64];

		if (!cgroup_path(doctor, places[i].controller, path, sizeof(path)))
			continue;
		(void)snprintf(folder, sizeof(folder), "%s%s", places[i].base, path);
		do {
			double quota = read_quota(doctor, folder, i == 0);

			if (quota > 0 && (least <= 0 || quota < least)) {
				least = quota;
				(void)snprintf(ret_folder, size, "%s", folder);
			}
		} while (go_up(folder, strlen(places[i].base)));
	}
	return least;
}

void check_cpu_limit(const struct doctor *doctor, struct doctor_result *ret)
{
	char folder[PATH_BYTES + 64] = "", path[PATH_BYTES + 128], text[2048], value[32];
	double quota = cpu_quota(doctor, folder, sizeof(folder));
	long long periods = 0;

	if (quota <= 0) {
		check_set(ret, DOCTOR_OK, "no limit on CPU time");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	if (look_file(doctor, path, text, sizeof(text)) > 0 &&
	    look_field(text, "nr_throttled ", value, sizeof(value)))
		periods = strtoll(value, NULL, 10);
	check_set(ret, periods > 0 ? DOCTOR_LIMITED : DOCTOR_OK,
		  "%.2f CPUs by its cgroup; throttled in %lld periods so far", quota, periods);
}

/* The smallest memory limit on the way up, in bytes; 0: none. */
static int64_t memory_limit(const struct doctor *doctor)
{
	static const struct {
		const char *controller, *base, *file;
	} places[] = { { "", "/sys/fs/cgroup", "memory.max" },
		       { "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes" } };
	int64_t least = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char path[PATH_BYTES], folder[PATH_BYTES + 64], file[PATH_BYTES + 128];
		int64_t limit;

		if (!cgroup_path(doctor, places[i].controller, path, sizeof(path)))
			continue;
		(void)snprintf(folder, sizeof(folder), "%s%s", places[i].base, path);
		do {
			(void)snprintf(file, sizeof(file), "%s/%s", folder, places[i].file);
			/* cgroup v1 writes "no limit" as a number near 2^63, v2 as "max". */
			if (look_number(doctor, file, &limit) == 0 && limit < (INT64_MAX >> 1) &&
			    (least == 0 || limit < least))
				least = limit;
		} while (go_up(folder, strlen(places[i].base)));
	}
	return least;
}

void check_memory_limit(const struct doctor *doctor, struct doctor_result *ret)
{
	int64_t limit = memory_limit(doctor);

	if (limit == 0)
		check_set(ret, DOCTOR_OK, "no limit");
	else
		check_set(ret, limit < 32LL * FLIGHT_TOTAL_MAX ? DOCTOR_LIMITED : DOCTOR_OK,
			  "%lld MiB by its cgroup", (long long)(limit / MIB));
}

/* --- memory files --- */

/* Creates a memory file like the agent's recorder, of the same size. Returns 0 or -errno. */
static int try_memory_file(void)
{
	int fd = memfd_create("perftracker-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)sizeof(struct flight)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		ret = -errno;
	(void)close(fd);
	return ret;
}

/* RLIMIT_FSIZE also limits the recorder's file, although it is in memory. */
static bool file_size_fits(const struct doctor *doctor, char *ret, size_t size)
{
	char limits[4096];

	return look_file(doctor, "/proc/self/limits", limits, sizeof(limits)) < 0 ||
	       !look_field(limits, "Max file size", ret, size) ||
	       strncmp(ret, "unlimited", 9) == 0 ||
	       strtoull(ret, NULL, 10) >= sizeof(struct flight);
}

void check_memory_files(const struct doctor *doctor, struct doctor_result *ret)
{
	char limit[64] = "";
	int64_t noexec = 0;
	int error = 0;

	(void)!look_number(doctor, "/proc/sys/vm/memfd_noexec", &noexec);
	if (doctor->here)
		error = try_memory_file();
	if (!file_size_fits(doctor, limit, sizeof(limit)))
		check_set(ret, DOCTOR_FAILED, "file size limit of %s bytes; a recorder is larger",
			  strtok(limit, " "));
	else if (error < 0 || noexec >= 2)
		check_set(ret, DOCTOR_FAILED, "memfd_create: %s; vm.memfd_noexec is %d",
			  error < 0 ? strerror(-error) : "will be refused", (int)noexec);
	else
		check_set(ret, DOCTOR_OK, "sealed memory files, large enough for a recorder");
}

/* "size=65536k" among mount options, in bytes; 0: none. */
static int64_t size_option(const char *options)
{
	const char *at = strstr(options, "size=");
	char *end;
	int64_t size;

	if (at == NULL)
		return 0;
	size = strtoll(at + 5, &end, 10);
	return *end == 'k' ? size * 1024 : *end == 'm' ? size * MIB : size;
}

void check_shm(const struct doctor *doctor, struct doctor_result *ret)
{
	char mounts[16384], options[512] = "", *save = NULL;
	int64_t size;

	if (look_file(doctor, "/proc/self/mounts", mounts, sizeof(mounts)) < 0) {
		check_set(ret, DOCTOR_NOT_TRIED, "/proc/self/mounts cannot be read");
		return;
	}
	for (char *line = strtok_r(mounts, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		char place[256], found[512];

		if (sscanf(line, "%*s %255s %*s %511s", place, found) == 2 &&
		    strcmp(place, "/dev/shm") == 0)
			memcpy(options, found, sizeof(options));
	}
	size = size_option(options);
	if (options[0] == '\0')
		check_set(ret, DOCTOR_LIMITED, "/dev/shm is not a mount of its own");
	else if (size == 0)
		check_set(ret, DOCTOR_OK, "/dev/shm of half the memory");
	else
		check_set(ret, size < SHM_SMALL_BYTES ? DOCTOR_LIMITED : DOCTOR_OK,
			  "/dev/shm of %lld MiB", (long long)(size / MIB));
}

/* --- other limits of a job --- */

void check_locked_memory(const struct doctor *doctor, struct doctor_result *ret)
{
	char limits[4096], limit[128];

	if (look_file(doctor, "/proc/self/limits", limits, sizeof(limits)) < 0 ||
	    !look_field(limits, "Max locked memory", limit, sizeof(limit))) {
		check_set(ret, DOCTOR_NOT_TRIED, "/proc/self/limits cannot be read");
		return;
	}
	limit[strcspn(limit, " ")] = '\0';
	if (strcmp(limit, "unlimited") == 0)
		check_set(ret, DOCTOR_OK, "unlimited");
	else
		check_set(ret,
			  look_exists(doctor, "/sys/class/infiniband") ? DOCTOR_LIMITED : DOCTOR_OK,
			  "%s bytes%s", limit,
			  look_exists(doctor, "/sys/class/infiniband")
				  ? ""
				  : "; enough without InfiniBand");
}

void check_cpus(const struct doctor *doctor, struct doctor_result *ret)
{
	char status[8192], allowed[256], online[256];

	if (look_file(doctor, "/proc/self/status", status, sizeof(status)) < 0 ||
	    !look_field(status, "Cpus_allowed_list:", allowed, sizeof(allowed)) ||
	    look_line(doctor, "/sys/devices/system/cpu/online", online, sizeof(online)) < 0)
		check_set(ret, DOCTOR_NOT_TRIED, "the list of CPUs cannot be read");
	else if (strcmp(allowed, online) == 0)
		check_set(ret, DOCTOR_OK, "%s, all online CPUs", allowed);
	else
		check_set(ret, DOCTOR_LIMITED, "%s of %s", allowed, online);
}

static const char *container_sign(const struct doctor *doctor)
{
	static const char *const words[] = { "docker", "kubepods", "containerd", "libpod", "lxc" };
	char text[8192];

	if (look_exists(doctor, "/.dockerenv"))
		return "docker";
	if (look_exists(doctor, "/run/.containerenv"))
		return "podman";
	if (look_file(doctor, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(text, words[i]) != NULL)
			return words[i];
	}
	return NULL;
}

void check_container(const struct doctor *doctor, struct doctor_result *ret)
{
	const char *sign = container_sign(doctor);
	char mounts[16384];

	if (look_file(doctor, "/proc/self/mounts", mounts, sizeof(mounts)) > 0 &&
	    (strstr(mounts, "hidepid=2") != NULL || strstr(mounts, "hidepid=invisible") != NULL ||
	     strstr(mounts, "hidepid=1") != NULL))
		check_set(ret, DOCTOR_LIMITED, "/proc hides other users' processes (hidepid)");
	else if (sign != NULL)
		check_set(ret, DOCTOR_LIMITED, "in a container (%s)", sign);
	else
		check_set(ret, DOCTOR_OK, "no container; all processes are visible");
}
