/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stalls/stallspython.h"

#include "stacks/native/modules.h"
#include "stacks/proc/taskfiles.h"
#include "stacks/pytarget.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool find_gil(int proc, uint32_t pid, struct pywalk_gil *ret)
{
	struct taskfiles_status status = { 0 };
	struct modules modules = { 0 };
	struct pytarget target = { 0 };
	char text[4096];
	bool found = false;

	if (taskfiles_read(proc, "status", text, sizeof(text)) < 0 ||
	    taskfiles_parse_status(text, &status) < 0)
		return false;
	if (modules_read(&modules, proc, (pid_t)pid) == 0) {
		found = pytarget_open(&target, &modules, status.own_pid) == 0 && target.present &&
			pywalk_gil(&target.source, ret) == 0;
		pytarget_done(&target);
	}
	modules_done(&modules);
	return found;
}

bool stallspython_gil(void *context, uint32_t pid, uint64_t *ret_begin, uint64_t *ret_end)
{
	struct pywalk_gil gil = { 0 };
	char path[32];
	bool found;
	int proc;

	(void)context;
	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return false;
	found = find_gil(proc, pid, &gil);
	(void)close(proc);
	if (found) {
		*ret_begin = gil.begin;
		*ret_end = gil.end;
	}
	return found;
}
