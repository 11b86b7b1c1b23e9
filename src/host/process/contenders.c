/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/contenders.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <string.h>

/* A look may take this share of the time between two looks. */
#define LOOK_COST_DIVISOR 50
#define ANCESTORS_MAX 64 /* a longer chain is a loop of reused pids */

void neighbors_open(struct neighbors *neighbors, const char *root)
{
	*neighbors = (struct neighbors){ .root = root };
}

void neighbors_close(struct neighbors *neighbors)
{
	vec_done(&neighbors->processes);
	vec_done(&neighbors->pids);
}

/* Index of pid, or where it would be. */
static size_t find(const struct neighbors *neighbors, uint32_t pid)
{
	size_t low = 0, high = neighbors->processes.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (neighbors->processes.data[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct neighbor *borrow(const struct neighbors *neighbors, uint32_t pid)
{
	size_t at = find(neighbors, pid);

	return at < neighbors->processes.cnt && neighbors->processes.data[at].pid == pid
		       ? &neighbors->processes.data[at]
		       : NULL;
}

/* What a process used before it was first seen isn't the window's. */
static int add(struct neighbors *neighbors, const struct procfs_stat *stat)
{
	struct neighbor fresh = {
		.pid = stat->pid,
		.start = stat->start,
		.first_ticks = stat->ticks,
		.ticks = stat->ticks,
	};
	size_t at = find(neighbors, stat->pid);
	int ret;

	if (neighbors->processes.cnt >= NEIGHBORS_PROCESS_MAX) {
		neighbors->dropped++;
		return -ENOSPC;
	}
	ret = vec_reserve(&neighbors->processes, neighbors->processes.cnt + 1);
	if (ret < 0)
		return ret;
	memmove(&neighbors->processes.data[at + 1], &neighbors->processes.data[at],
		(neighbors->processes.cnt - at) * sizeof(fresh));
	neighbors->processes.data[at] = fresh;
	neighbors->processes.cnt++;
	return 0;
}

/* The place of a worker in workers[] and overlaps[]; worker_cnt: it has none. */
static size_t place_of(const struct neighbors *neighbors, uint32_t pid)
{
	size_t at = 0;

	while (at < neighbors->worker_cnt && neighbors->workers[at] != pid)
		at++;
	return at;
}

/* Which CPU each is on; -1: unknown. */
static void look_at_workers(struct neighbors *neighbors, const struct neighbor_worker *workers,
			    size_t cnt, int32_t cpus[static NEIGHBORS_WORKER_MAX])
{
	for (size_t i = 0; i < NEIGHBORS_WORKER_MAX; i++)
		cpus[i] = -1;
	for (size_t i = 0; i < cnt; i++) {
		size_t at = place_of(neighbors, workers[i].pid);
		struct procfs_stat stat;

		if (at == NEIGHBORS_WORKER_MAX)
			continue;
		neighbors->workers[at] = workers[i].pid;
		neighbors->worker_cnt = MAX(neighbors->worker_cnt, at + 1);
		if (procfs_read_stat(neighbors->root, workers[i].pid, workers[i].tid, &stat) == 0)
			cpus[at] = stat.processor;
	}
}

static int look_at(struct neighbors *neighbors, uint32_t pid, const int32_t *worker_cpus)
{
	struct procfs_stat stat;
	struct neighbor *process;
	int ret = procfs_read_stat(neighbors->root, pid, 0, &stat);

	if (ret < 0)
		return 0; /* it has ended */
	process = borrow(neighbors, pid);
	if (process != NULL && process->start != stat.start) {
		*process = (struct neighbor){ .pid = pid,
					      .start = stat.start,
					      .first_ticks = stat.ticks,
					      .ticks = stat.ticks };
	} else if (process == NULL) {
		ret = add(neighbors, &stat);
		if (ret < 0)
			return ret == -ENOSPC ? 0 : ret;
		process = borrow(neighbors, pid);
	}
	process->ppid = stat.ppid;
	memcpy(process->comm, stat.comm, sizeof(process->comm));
	if (stat.ticks > process->ticks) {
		process->busy_looks++;
		for (size_t i = 0; i < neighbors->worker_cnt; i++)
			process->overlaps[i] += worker_cpus[i] == stat.processor;
	}
	process->ticks = stat.ticks;
	return 0;
}

int neighbors_look(struct neighbors *neighbors, const struct neighbor_worker *workers, size_t cnt,
		   int64_t (*clock)(void))
{
	int32_t cpus[NEIGHBORS_WORKER_MAX];
	int64_t now_ns = clock();
	int pid_cnt, ret;

	if (now_ns < neighbors->due_ns)
		return 0;
	if (neighbors->start_ns == 0)
		neighbors->start_ns = now_ns;
	neighbors->look_ns = now_ns;
	look_at_workers(neighbors, workers, cnt, cpus);
	ret = vec_reserve(&neighbors->pids, NEIGHBORS_PROCESS_MAX);
	if (ret < 0)
		return ret;
	pid_cnt = procfs_list(neighbors->root, 0, neighbors->pids.data, NEIGHBORS_PROCESS_MAX);
	if (pid_cnt < 0)
		return pid_cnt;
	for (int i = 0; i < pid_cnt && ret == 0; i++)
		ret = look_at(neighbors, neighbors->pids.data[i], cpus);
	neighbors->due_ns = now_ns + MAX(NEIGHBORS_LOOK_NS, (clock() - now_ns) * LOOK_COST_DIVISOR);
	return ret;
}

/* Whether pid is top or below it. */
static bool descends(const struct neighbors *neighbors, uint32_t pid, uint32_t top)
{
	for (int depth = 0; depth < ANCESTORS_MAX && pid > 1; depth++) {
		const struct neighbor *process = borrow(neighbors, pid);

		if (pid == top)
			return true;
		if (process == NULL)
			return false;
		pid = process->ppid;
	}
	return false;
}

static bool is_helper(const struct neighbors *neighbors, const struct neighbors_query *query,
		      uint32_t pid, const char *command)
{
	char own[sizeof(((struct sidecar_thief *)NULL)->command)];

	for (size_t i = 0; i < query->worker_cnt; i++) {
		if (query->workers[i].pid == pid)
			return true;
		if (!descends(neighbors, pid, query->workers[i].pid))
			continue;
		if (strstr(command, "multiprocessing") != NULL ||
		    strstr(command, "compile_worker") != NULL)
			return true;
		return procfs_read_command(neighbors->root, query->workers[i].pid, own,
					   sizeof(own)) == 0 &&
		       strcmp(own, command) == 0;
	}
	return false;
}

/* Unknown CPUs count as shared: a thief that has ended can't be asked any more. */
static bool may_share(const struct neighbors *neighbors, uint32_t worker_pid, const char *cpus)
{
	char text[1024];
	cpu_set_t own, other, both;

	if (procfs_read_cpus(neighbors->root, worker_pid, text, sizeof(text)) < 0 ||
	    procfs_parse_cpus(text, &own) < 0 || procfs_parse_cpus(cpus, &other) < 0)
		return true;
	CPU_AND(&both, &own, &other);
	return CPU_COUNT(&both) > 0;
}

static bool describe(const struct neighbors *neighbors, const struct neighbors_query *query,
		     const struct neighbor *process, struct sidecar_thief *ret)
{
	double window_ns = (double)(neighbors->look_ns - neighbors->start_ns);
	double used_ns = (double)(process->ticks - process->first_ticks) * PROCFS_TICK_NS;
	bool in_job = descends(neighbors, process->pid, query->job_pid);
	size_t place = place_of(neighbors, query->workers[query->idx].pid);
	struct sidecar_thief thief = { .pid = process->pid,
				       .process_cnt = 1,
				       .cpu_frac = used_ns / window_ns };

	if (thief.cpu_frac < NEIGHBORS_PROCESS_FRAC)
		return false;
	if (!in_job && descends(neighbors, process->pid, query->self_pid))
		return false;
	memcpy(thief.comm, process->comm, sizeof(thief.comm));
	if (procfs_read_command(neighbors->root, process->pid, thief.command,
				sizeof(thief.command)) < 0)
		thief.command[0] = '\0';
	if (is_helper(neighbors, query, process->pid, thief.command))
		return false;
	if (procfs_read_cpus(neighbors->root, process->pid, thief.cpus, sizeof(thief.cpus)) < 0)
		thief.cpus[0] = '\0';
	if (!may_share(neighbors, query->workers[query->idx].pid, thief.cpus))
		return false;
	thief.flags = in_job ? SIDECAR_THIEF_IN_JOB : 0;
	if (process->busy_looks > 0 && place < neighbors->worker_cnt)
		thief.overlap_frac = (double)process->overlaps[place] / (double)process->busy_looks;
	*ret = thief;
	return true;
}

/* Joins those of one command: four small hogs take as much as a large one. */
static bool join_thief(struct sidecar *side, const struct sidecar_thief *thief)
{
	vec_foreach(known, &side->thieves) {
		double sum = known->cpu_frac + thief->cpu_frac;

		if (strcmp(known->comm, thief->comm) != 0 ||
		    strcmp(known->command, thief->command) != 0 || known->flags != thief->flags ||
		    strcmp(known->cpus, thief->cpus) != 0)
			continue;
		known->overlap_frac = (known->overlap_frac * known->cpu_frac +
				       thief->overlap_frac * thief->cpu_frac) /
				      sum;
		if (thief->cpu_frac > known->cpu_frac / known->process_cnt)
			known->pid = thief->pid;
		known->cpu_frac = sum;
		known->process_cnt++;
		return true;
	}
	return false;
}

static void drop_small(struct sidecar *side, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < side->thieves.cnt; i++) {
		if (side->thieves.data[i].cpu_frac >= NEIGHBORS_THIEF_FRAC)
			side->thieves.data[kept++] = side->thieves.data[i];
	}
	side->thieves.cnt = kept;
}

int neighbors_name(const struct neighbors *neighbors, const struct neighbors_query *query,
		   struct sidecar *ret)
{
	size_t first = ret->thieves.cnt;

	if (neighbors->look_ns <= neighbors->start_ns || query->idx >= query->worker_cnt)
		return 0;
	vec_foreach(process, &neighbors->processes) {
		struct sidecar_thief thief;
		int r;

		if (!describe(neighbors, query, process, &thief) || join_thief(ret, &thief))
			continue;
		r = vec_push(&ret->thieves, thief);
		if (r < 0)
			return r;
	}
	drop_small(ret, first);
	return 0;
}
