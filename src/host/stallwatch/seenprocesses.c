/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/seenprocesses.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { COMMAND_BYTES = 512, LIST_MAX = 32768 };

void seenprocesses_done(struct seenprocesses *seen)
{
	idmap_done(&seen->by_pid);
	vec_done(&seen->used_ticks);
}

static bool is_own(const char *command)
{
	const char *end = command + strcspn(command, " "), *base = command;

	for (const char *c = command; c < end; c++)
		if (*c == '/')
			base = c + 1;
	return (size_t)(end - base) == strlen("perftracker") &&
	       strncmp(base, "perftracker", strlen("perftracker")) == 0;
}

/* What /proc says; a process that has ended keeps what is known. */
static int describe(struct seenprocesses *seen, struct stall_process *process,
		    struct stall_recording *recording)
{
	char command[COMMAND_BYTES] = "";
	struct procfs_stat stat;

	if (procfs_read_stat(seen->root, process->pid, 0, &stat) == 0) {
		process->parent = stat.ppid;
		process->name = strtab_intern(&recording->texts, stat.comm, strlen(stat.comm));
	}
	if (procfs_read_command(seen->root, process->pid, command, sizeof(command)) == 0 &&
	    command[0] != '\0') {
		process->command = strtab_intern(&recording->texts, command, strlen(command));
		process->own = is_own(command);
	}
	if (process->name == STRTAB_NONE || process->command == STRTAB_NONE)
		return -ENOMEM;
	return 0;
}

int seenprocesses_see(struct seenprocesses *seen, uint32_t pid, struct stall_recording *recording)
{
	struct stall_process process = { .pid = pid };
	const uint32_t index = (uint32_t)recording->processes.cnt;
	int error;

	if (pid == 0 || idmap_get(&seen->by_pid, pid) != IDMAP_NONE)
		return 0;
	if (recording->processes.cnt == STALL_PROCESSES_MAX) {
		seen->dropped++;
		return 0;
	}
	error = describe(seen, &process, recording);
	if (error == 0)
		error = vec_push(&recording->processes, process);
	if (error == 0)
		error = vec_push(&seen->used_ticks, 0);
	return error < 0 ? error : idmap_set(&seen->by_pid, pid, index);
}

int seenprocesses_rename(struct seenprocesses *seen, uint32_t pid, const char *name,
			 struct stall_recording *recording)
{
	const uint32_t index = idmap_get(&seen->by_pid, pid);
	struct stall_process *process;

	if (index == IDMAP_NONE)
		return 0;
	process = &recording->processes.data[index];
	if (process->watched)
		return 0;
	process->name = strtab_intern(&recording->texts, name, strlen(name));
	return process->name != STRTAB_NONE ? describe(seen, process, recording) : -ENOMEM;
}

static int use(struct seenprocesses *seen, const struct procfs_stat *stat, int64_t now_ns,
	       struct stall_recording *recording)
{
	struct stall_event event = {
		.time_ns = now_ns, .kind = STALL_USED, .pid = stat->pid, .state = '-'
	};
	int error = seenprocesses_see(seen, stat->pid, recording);
	const uint32_t index = idmap_get(&seen->by_pid, stat->pid);
	uint64_t *ticks;

	if (error < 0 || index == IDMAP_NONE)
		return error;
	ticks = &seen->used_ticks.data[index];
	event.value = stat->ticks > *ticks ? (stat->ticks - *ticks) * PROCFS_TICK_NS : 0;
	/* Of the first look only the sum is known. */
	if (*ticks > 0 && event.value > 0)
		error = stallrecording_add(recording, &event);
	*ticks = MAX(stat->ticks, (uint64_t)1);
	return error;
}

int seenprocesses_used(struct seenprocesses *seen, int64_t now_ns,
		       struct stall_recording *recording)
{
	_cleanup_free_ uint32_t *pids = malloc(LIST_MAX * sizeof(*pids));
	const int cnt = pids != NULL ? procfs_list(seen->root, 0, pids, LIST_MAX) : 0;
	int error = pids != NULL ? 0 : -ENOMEM;

	for (int i = 0; i < cnt && error == 0; i++) {
		struct procfs_stat stat;

		if (procfs_read_stat(seen->root, pids[i], 0, &stat) == 0)
			error = use(seen, &stat, now_ns, recording);
	}
	return error;
}
