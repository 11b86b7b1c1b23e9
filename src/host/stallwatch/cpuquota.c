/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/cpuquota.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether "cpu" is one of the names with ',' between them. */
static bool has_cpu(const char *names, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *end = memchr(names + at, ',', len - at);
		const size_t word = end != NULL ? (size_t)(end - names) - at : len - at;

		if (word == 3 && memcmp(names + at, "cpu", 3) == 0)
			return true;
		at += word + 1;
	}
	return false;
}

/* Lines such as "4:cpu,cpuacct:/a/b", and "0::/a/b" of version 2. */
int cpuquota_find(const char *text, bool v2, char *ret, size_t size)
{
	for (const char *line = text; *line != '\0';) {
		const size_t len = strcspn(line, "\n");
		const char *names = memchr(line, ':', len), *path;

		if (names != NULL) {
			names++;
			path = memchr(names, ':', len - (size_t)(names - line));
			if (path != NULL && path[1] == '/' &&
			    (v2 ? path == names : has_cpu(names, (size_t)(path - names)))) {
				const size_t path_len = len - (size_t)(path + 1 - line);

				if (path_len >= size)
					return -ENAMETOOLONG;
				(void)snprintf(ret, size, "%.*s", (int)path_len, path + 1);
				return 0;
			}
		}
		line += len + (line[len] == '\n');
	}
	return -ENOENT;
}

void cpuquota_parse(const char *text, uint64_t *cnt, uint64_t *ns)
{
	static const struct {
		const char *key;
		uint64_t factor;
	} KEYS[] = { { "nr_throttled ", 0 },
		     { "throttled_time ", 1 },
		     { "throttled_usec ", 1000 } };

	for (const char *line = text; *line != '\0';) {
		for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++) {
			const size_t len = strlen(KEYS[i].key);

			if (strncmp(line, KEYS[i].key, len) != 0)
				continue;
			if (KEYS[i].factor == 0)
				*cnt += strtoull(line + len, NULL, 10);
			else
				*ns += strtoull(line + len, NULL, 10) * KEYS[i].factor;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
}

static void take_limit(struct cpuquota *quota, uint64_t limit_us, uint64_t period_us)
{
	if (limit_us == 0 || period_us == 0 || limit_us > UINT32_MAX || period_us > UINT32_MAX)
		return;
	if (quota->quota_us == 0 || limit_us * quota->period_us < quota->quota_us * period_us) {
		quota->quota_us = limit_us;
		quota->period_us = period_us;
	}
}

static bool read_file(const char *folder, const char *name, char *text, size_t size)
{
	char path[1300];
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, size - 1);
	(void)close(fd);
	text[MAX(len, 0)] = '\0';
	return len > 0;
}

static void read_limit(struct cpuquota *quota, const char *folder)
{
	char limit[64], period[64];
	uint64_t limit_us = 0, period_us = 0;

	if (read_file(folder, "cpu.max", limit, sizeof(limit))) {
		if (sscanf(limit, "%" SCNu64 " %" SCNu64, &limit_us, &period_us) == 2)
			take_limit(quota, limit_us, period_us);
	} else if (read_file(folder, "cpu.cfs_quota_us", limit, sizeof(limit)) &&
		   read_file(folder, "cpu.cfs_period_us", period, sizeof(period)) &&
		   limit[0] != '-') {
		take_limit(quota, strtoull(limit, NULL, 10), strtoull(period, NULL, 10));
	}
}

/* The cgroup and all above it, up to the mount. */
static void open_levels(struct cpuquota *quota, const char *base, char *path)
{
	for (;;) {
		char folder[1200], name[1300];
		char *slash;
		int fd;

		(void)snprintf(folder, sizeof(folder), "%s%s", base,
			       strcmp(path, "/") != 0 ? path : "");
		(void)snprintf(name, sizeof(name), "%s/cpu.stat", folder);
		fd = quota->cnt < CPUQUOTA_LEVELS_MAX ? open(name, O_RDONLY | O_CLOEXEC) : -1;
		if (fd >= 0) {
			quota->fds[quota->cnt++] = fd;
			read_limit(quota, folder);
		}
		slash = strrchr(path, '/');
		if (slash == NULL || path[0] == '\0' || strcmp(path, "/") == 0)
			return;
		*slash = '\0';
	}
}

void cpuquota_open(struct cpuquota *quota, const char *root, uint32_t pid)
{
	static const struct {
		const char *base;
		bool v2;
	} PLACES[] = { { "/sys/fs/cgroup/cpu", false },
		       { "/sys/fs/cgroup/cpu,cpuacct", false },
		       { "/sys/fs/cgroup", true },
		       { "/sys/fs/cgroup/unified", true } };
	char name[64], text[4096], path[600], base[512];

	*quota = (struct cpuquota){ 0 };
	(void)snprintf(name, sizeof(name), "%u/cgroup", pid);
	if (procfs_read(root, name, text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(PLACES) && quota->cnt == 0; i++) {
		(void)snprintf(base, sizeof(base), "%s%s", root, PLACES[i].base);
		if (cpuquota_find(text, PLACES[i].v2, path, sizeof(path)) == 0)
			open_levels(quota, base, path);
	}
}

void cpuquota_close(struct cpuquota *quota)
{
	for (size_t i = 0; i < quota->cnt; i++)
		(void)close(quota->fds[i]);
	quota->cnt = 0;
}

bool cpuquota_read(const struct cpuquota *quota, uint64_t *ret_cnt, uint64_t *ret_ns)
{
	char text[2048];

	*ret_cnt = *ret_ns = 0;
	for (size_t i = 0; i < quota->cnt; i++) {
		const ssize_t len = pread(quota->fds[i], text, sizeof(text) - 1, 0);

		if (len <= 0)
			continue;
		text[len] = '\0';
		cpuquota_parse(text, ret_cnt, ret_ns);
	}
	return quota->cnt > 0;
}
