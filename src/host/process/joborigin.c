/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/joborigin.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANCESTORS_MAX 64

/* Of a process of another user, or a kernel thread, it is not known. */
static bool read_program(const char *root, uint32_t pid, char ret[static PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "%s/proc/%u/exe", root, pid);
	len = readlink(path, ret, PATH_MAX - 1);
	ret[MAX(len, (ssize_t)0)] = '\0';
	return len > 0;
}

int joborigin_find(const char *root, uint32_t pid, struct joborigin *ret)
{
	char own[PATH_MAX], program[PATH_MAX];
	struct procfs_stat stat, parent;
	int error = pid > 0 ? procfs_read_stat(root, pid, 0, &stat) : -ESRCH;

	if (error < 0)
		return error;
	if (read_program(root, pid, own)) {
		for (int i = 0; i < ANCESTORS_MAX && stat.ppid > 1; i++) {
			if (!read_program(root, stat.ppid, program) || strcmp(program, own) != 0 ||
			    procfs_read_stat(root, stat.ppid, 0, &parent) < 0)
				break;
			stat = parent;
		}
	}
	*ret = (struct joborigin){ .pid = stat.pid, .start = stat.start };
	if (procfs_read_command(root, stat.pid, ret->command, sizeof(ret->command)) < 0)
		ret->command[0] = '\0';
	return 0;
}
