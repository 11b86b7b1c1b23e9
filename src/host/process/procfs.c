/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int procfs_parse_stat(const char *text, struct procfs_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct procfs_stat stat = { 0 };
	uint64_t user, system;

	/* The name is between the first '(' and the last ')': it may hold either itself. */
	if (open == NULL || close == NULL || close < open ||
	    sscanf(text, "%" SCNu32, &stat.pid) != 1)
		return -EINVAL;
	(void)snprintf(stat.comm, sizeof(stat.comm), "%.*s", (int)(close - open - 1), open + 1);
	/* Fields 3, 4, 14, 15, 22 and 39 of proc(5), and 52: Linux before 3.5 lacks that. */
	if (sscanf(close + 1,
		   " %c %" SCNu32 " %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
		   " %*s %*s %*s %*s %*s %*s %" SCNu64
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNd32
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNd32,
		   &stat.state, &stat.ppid, &user, &system, &stat.start, &stat.processor,
		   &stat.exit_status) < 6)
		return -EINVAL;
	stat.ticks = user + system;
	*ret = stat;
	return 0;
}

int procfs_parse_schedstat(const char *text, uint64_t *ret_cpu_ns, uint64_t *ret_run_delay_ns)
{
	uint64_t cpu_ns, run_delay_ns;

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &cpu_ns, &run_delay_ns) != 2)
		return -EINVAL;
	*ret_cpu_ns = cpu_ns;
	*ret_run_delay_ns = run_delay_ns;
	return 0;
}

/* Takes a decimal number off *text. Returns -1 when there is none. */
static long take_number(const char **text)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**text))
		return -1;
	errno = 0;
	value = strtol(*text, &end, 10);
	*text = end;
	return errno == 0 ? value : -1;
}

int procfs_parse_cpus(const char *text, cpu_set_t *ret)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (;;) {
		long first = take_number(&text), last = first;

		if (first >= 0 && *text == '-') {
			text++;
			last = take_number(&text);
		}
		if (first < 0 || last < first)
			return -EINVAL;
		for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET((size_t)cpu, &cpus);
		if (*text != ',')
			break;
		text++;
	}
	if (*text != '\0' && *text != '\n')
		return -EINVAL;
	*ret = cpus;
	return 0;
}

static int read_fd(int fd, char *text, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		ssize_t got = read(fd, text + len, size - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	text[len] = '\0';
	return (int)len;
}

int procfs_read(const char *root, const char *path, char *text, size_t size)
{
	char full[4096];
	int fd, ret;

	if ((size_t)snprintf(full, sizeof(full), "%s/proc/%s", root, path) >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = read_fd(fd, text, size);
	(void)close(fd);
	return ret;
}

int procfs_read_stat(const char *root, uint32_t pid, uint32_t tid, struct procfs_stat *ret)
{
	char path[64], text[1024];
	int len;

	if (tid != 0)
		(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/stat", pid, tid);
	else
		(void)snprintf(path, sizeof(path), "%" PRIu32 "/stat", pid);
	len = procfs_read(root, path, text, sizeof(text));
	return len < 0 ? len : procfs_parse_stat(text, ret);
}

int procfs_read_command(const char *root, uint32_t pid, char *text, size_t size)
{
	char path[64];
	int len;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/cmdline", pid);
	len = procfs_read(root, path, text, size);
	if (len < 0)
		return len;
	while (len > 0 && text[len - 1] == '\0')
		len--;
	for (int i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\0' || c == '\n' || c == '\t')
			text[i] = ' ';
		else if (c < 0x20 || c == 0x7f)
			text[i] = '?';
	}
	text[len] = '\0';
	return 0;
}

int procfs_read_cpus(const char *root, uint32_t pid, char *text, size_t size)
{
	static const char key[] = "\nCpus_allowed_list:\t";
	char path[64], status[8192];
	const char *at;
	int len;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
	len = procfs_read(root, path, status, sizeof(status));
	if (len < 0)
		return len;
	at = strstr(status, key);
	if (at == NULL)
		return -ENOENT;
	at += sizeof(key) - 1;
	(void)snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
	return 0;
}

static uint32_t parse_id(const char *name)
{
	uint64_t id = 0;

	for (const char *c = name; *c != '\0'; c++) {
		if (!isdigit((unsigned char)*c) || id > UINT32_MAX)
			return 0;
		id = id * 10 + (uint64_t)(*c - '0');
	}
	return id <= UINT32_MAX ? (uint32_t)id : 0;
}

int procfs_list(const char *root, uint32_t pid, uint32_t *ret_ids, size_t cap)
{
	char path[4096];
	size_t cnt = 0;
	DIR *dir;

	if (pid != 0)
		(void)snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/task", root, pid);
	else
		(void)snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	if (dir == NULL)
		return -errno;
	for (struct dirent *entry; cnt < cap && (entry = readdir(dir)) != NULL;) {
		uint32_t id = parse_id(entry->d_name);

		if (id != 0)
			ret_ids[cnt++] = id;
	}
	(void)closedir(dir);
	return (int)cnt;
}
