/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/perfdenial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILTER_MODE = 2, SYS_ADMIN_BIT = 21, PERFMON_BIT = 38, STATUS_BYTES = 8192 };

/* The number behind "NAME:"; 0: there is no such line. */
static uint64_t number_of(const char *status, const char *name, int base)
{
	const size_t len = strlen(name);

	for (const char *line = status; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return strtoull(line + len + 1, NULL, base);
	}
	return 0;
}

bool perfdenial_is_filter(const char *status, int error)
{
	const uint64_t capable = UINT64_C(1) << SYS_ADMIN_BIT | UINT64_C(1) << PERFMON_BIT;

	if (number_of(status, "Seccomp", 10) != FILTER_MODE)
		return false;
	return error == ENOSYS || ((error == EPERM || error == EACCES) &&
				   (number_of(status, "CapEff", 16) & capable) != 0);
}

bool perfdenial_find(int error)
{
	char status[STATUS_BYTES];
	const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, status, sizeof(status) - 1);
	(void)close(fd);
	status[MAX(len, 0)] = '\0';
	return perfdenial_is_filter(status, error);
}
