/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/loaderprocs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES = 4096, STATUS_BYTES = 4096 };

/* Where the code of the loader is, in the process and in its workers. */
#define LOADER_FILE "torch/utils/data/dataloader.py"
#define FETCH_FILE "torch/utils/data/_utils/fetch.py"

static void child_done(struct loaderproc *child)
{
	pytarget_done(&child->target);
	modules_done(&child->modules);
	if (child->proc >= 0)
		(void)close(child->proc);
	*child = (struct loaderproc){ .proc = -1 };
}

void loaderprocs_done(struct loaderprocs *children)
{
	for (size_t i = 0; i < children->cnt; i++)
		child_done(&children->list[i]);
	children->cnt = 0;
}

static bool has_file(struct pytarget *target, struct region *region, const struct task *task,
		     const char *file)
{
	for (size_t i = 0; i < task->codes.cnt; i++) {
		const struct pytarget_code *code =
			pytarget_code(target, region, task->codes.data[i]);

		if (code != NULL && strstr(code->file, file) != NULL)
			return true;
	}
	return false;
}

bool loaderprocs_waits(struct pytarget *target, struct region *region, const struct task *task)
{
	return has_file(target, region, task, LOADER_FILE);
}

/* The list. */

static void child_add(struct loaderprocs *children, uint32_t pid)
{
	struct loaderproc *child;
	char path[32];

	for (size_t i = 0; i < children->cnt; i++)
		if (children->list[i].pid == pid) {
			children->list[i].alive = true;
			return;
		}
	if (children->cnt == LOADERPROCS_MAX)
		return;
	child = &children->list[children->cnt];
	*child = (struct loaderproc){ .pid = pid, .alive = true };
	(void)snprintf(path, sizeof(path), "/proc/%u", pid);
	child->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (child->proc >= 0)
		children->cnt++;
}

/* Those that have ended leave the list: their number may come again. */
static void refresh(struct loaderprocs *children, int parent_proc, uint32_t parent_pid)
{
	char text[LIST_BYTES], *at = text, *end;
	size_t kept = 0;

	for (size_t i = 0; i < children->cnt; i++)
		children->list[i].alive = false;
	if (taskfiles_read_of(parent_proc, parent_pid, "children", text, sizeof(text)) > 0)
		for (unsigned long pid; (pid = strtoul(at, &end, 10)) > 0 && end != at; at = end)
			child_add(children, (uint32_t)pid);
	for (size_t i = 0; i < children->cnt; i++) {
		struct loaderproc *child = &children->list[kept];

		if (!children->list[i].alive) {
			child_done(&children->list[i]);
			continue;
		}
		*child = children->list[i];
		child->target.source.layout = &child->target.layout; /* it may have moved */
		kept++;
	}
	children->cnt = kept;
}

/* One child. */

static bool read_stack(struct loaderproc *child, struct task *task)
{
	task->tstate = child->tstate;
	task_walk_python_twice(task, &child->target);
	return task->python_done && task->codes.cnt > 0;
}

/* As the parent's: true of a forked child, whose main thread is the one that forked. */
static void try_forked(struct loaderproc *child, const struct pytarget *parent, uintptr_t tstate)
{
	child->target = (struct pytarget){
		.present = true,
		.module = MODULE_NONE,
		.minor = parent->minor,
		.layout = parent->layout,
		.source = parent->source,
	};
	child->target.source.layout = &child->target.layout;
	child->target.source.mem = (struct selfmem){ .pid = (pid_t)child->pid, .fd = -1 };
	child->tstate = tstate;
}

static void try_opened(struct loaderproc *child)
{
	struct taskfiles_status status;
	char text[STATUS_BYTES];

	pytarget_done(&child->target);
	child->tstate = 0;
	if (taskfiles_read(child->proc, "status", text, sizeof(text)) <= 0 ||
	    taskfiles_parse_status(text, &status) < 0 ||
	    modules_read(&child->modules, child->proc, (pid_t)child->pid) < 0 ||
	    pytarget_open(&child->target, &child->modules, status.own_pid) < 0 ||
	    !child->target.present)
		return;
	child->tstate = pytarget_find(&child->target, status.own_pid);
}

static bool child_open(struct loaderproc *child, const struct pytarget *parent, uintptr_t tstate,
		       struct region *region, struct task *task)
{
	if (child->tried)
		return child->usable && read_stack(child, task);
	child->tried = true;
	try_forked(child, parent, tstate);
	child->usable = read_stack(child, task) &&
			pytarget_code(&child->target, region, task->codes.data[0]) != NULL;
	if (child->usable)
		return true;
	try_opened(child);
	child->usable = child->tstate != 0 && read_stack(child, task);
	return child->usable;
}

static uint32_t keep(struct loaderproc *child, struct task *task, struct uniquestacks *unique,
		     struct region *region)
{
	const uint32_t index = uniquestacks_add(unique, task, (uint64_t)child->pid << 32);

	if (index == SAMPLED_NONE || uniquestacks_is_named(unique, index))
		return index;
	return uniquestacks_name(unique, index, &child->target, region) == 0 ? index : SAMPLED_NONE;
}

uint32_t loaderprocs_sample(struct loaderprocs *children, int parent_proc, uint32_t parent_pid,
			    const struct pytarget *parent, uintptr_t parent_tstate,
			    struct uniquestacks *unique, struct region *region)
{
	uint32_t ret = SAMPLED_NONE;

	refresh(children, parent_proc, parent_pid);
	for (size_t i = 0; i < children->cnt && ret == SAMPLED_NONE; i++) {
		struct loaderproc *child = &children->list[(children->turn + i) % children->cnt];
		struct task task = { .proc = child->proc };

		if (child_open(child, parent, parent_tstate, region, &task) &&
		    has_file(&child->target, region, &task, FETCH_FILE))
			ret = keep(child, &task, unique, region);
		task_done(&task);
	}
	children->turn++;
	return ret;
}
