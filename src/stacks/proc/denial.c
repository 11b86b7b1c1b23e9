/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/denial.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool has_capability(const char *status)
{
	const char *at = strstr(status, "CapEff:");

	return at != NULL &&
	       (strtoull(at + strlen("CapEff:"), NULL, 16) >> CAP_SYS_PTRACE & 1) != 0;
}

void denial_look(struct denial *denial)
{
	char text[4096];
	struct taskfiles_status status;

	denial->own_uid = geteuid();
	denial->yama = -1;
	if (taskfiles_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) > 0)
		denial->yama = (int)strtol(text, NULL, 10);
	if (taskfiles_read(AT_FDCWD, "/proc/self/status", text, sizeof(text)) <= 0)
		return;
	denial->capable = has_capability(text);
	if (taskfiles_parse_status(text, &status) == 0)
		denial->seccomp = status.seccomp;
}

void denial_explain(const struct denial *denial, char *ret, size_t size)
{
	const uint32_t pid = denial->pid;

	if (denial->error != EPERM && denial->error != EACCES && denial->error != ENOSYS)
		(void)snprintf(ret, size, "process %u cannot be read: %s", pid,
			       strerror(denial->error));
	else if (denial->uid != denial->own_uid && !denial->capable)
		(void)snprintf(ret, size,
			       "process %u belongs to another user (uid %u): run perftracker as "
			       "that user or as root",
			       pid, denial->uid);
	else if (denial->yama == 3)
		(void)snprintf(ret, size,
			       "process %u cannot be read: kernel.yama.ptrace_scope is 3, which "
			       "forbids it to all until the next boot",
			       pid);
	else if (denial->yama > 0 && !denial->capable)
		(void)snprintf(ret, size,
			       "process %u cannot be read: kernel.yama.ptrace_scope is %d; run as "
			       "root, or allow it: sudo sysctl kernel.yama.ptrace_scope=0",
			       pid, denial->yama);
	else if (denial->seccomp == 2 && (denial->capable || denial->error == ENOSYS))
		(void)snprintf(ret, size,
			       "process %u cannot be read: a seccomp filter forbids ptrace or "
			       "process_vm_readv; in a container, run it with a profile that "
			       "allows both",
			       pid);
	else
		(void)snprintf(ret, size,
			       "process %u cannot be read: it is protected (setuid, capabilities, "
			       "another container) and CAP_SYS_PTRACE is missing; run as root, in "
			       "a container with --cap-add SYS_PTRACE",
			       pid);
}
