/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stalls/stallspython.h"

#include "stacks/native/modules.h"
#include "stacks/proc/taskfiles.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void stallspython_done(struct stallspython *python)
{
	vec_foreach(process, &python->list) {
		pytarget_done(&(*process)->target);
		free(*process);
	}
	vec_done(&python->list);
}

static void open_target(int proc, struct stallspython_process *process)
{
	struct taskfiles_status status = { 0 };
	struct modules modules = { 0 };
	char text[4096];

	if (taskfiles_read(proc, "status", text, sizeof(text)) < 0 ||
	    taskfiles_parse_status(text, &status) < 0)
		return;
	process->own_pid = (uint32_t)status.own_pid;
	if (modules_read(&modules, proc, (pid_t)process->pid) == 0 &&
	    pytarget_open(&process->target, &modules, process->own_pid) < 0)
		process->target.present = false;
	modules_done(&modules);
}

/* NULL: it can't be opened. */
static struct stallspython_process *add(struct stallspython *python, uint32_t pid)
{
	struct stallspython_process *process;
	char path[32];
	int proc;

	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (process != NULL) {
		process->pid = pid;
		open_target(proc, process);
	}
	(void)close(proc);
	if (process != NULL && vec_push(&python->list, process) < 0) {
		pytarget_done(&process->target);
		free(process);
		return NULL;
	}
	return process;
}

bool stallspython_gil(void *context, uint32_t pid, uint64_t *ret_begin, uint64_t *ret_end)
{
	struct stallspython_process *process = add(context, pid);
	struct pywalk_gil gil = { 0 };

	if (process == NULL || !process->target.present ||
	    pywalk_gil(&process->target.source, &gil) < 0)
		return false;
	*ret_begin = gil.begin;
	*ret_end = gil.end;
	return true;
}

bool stallspython_collects(void *context, uint32_t pid, uint32_t *ret_tid)
{
	const struct stallspython *python = context;
	struct pywalk_gil gil = { 0 };

	vec_foreach(process, &python->list) {
		const struct pytarget *target = &(*process)->target;

		if ((*process)->pid != pid)
			continue;
		if (!target->present || !pywalk_collects(&target->source))
			return false;
		/* Who collects has the GIL; ids of a namespace of its own are those of the main thread at most. */
		if (pywalk_gil(&target->source, &gil) == 0)
			*ret_tid = (*process)->own_pid == pid		   ? gil.holder_tid
				   : gil.holder_tid == (*process)->own_pid ? pid
									   : 0;
		return true;
	}
	return false;
}
