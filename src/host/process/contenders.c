/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/contenders.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <string.h>

/* A look may take this share of the time between two looks. */
#define LOOK_COST_DIVISOR 50
#define ANCESTORS_MAX 64 /* a longer chain is a loop of reused pids */

void contenders_open(struct contenders *contenders, const char *root)
{
	*contenders = (struct contenders){ .root = root };
}

void contenders_close(struct contenders *contenders)
{
	vec_done(&contenders->processes);
	vec_done(&contenders->pids);
}

/* Index of pid, or where it would be. */
static size_t find(const struct contenders *contenders, uint32_t pid)
{
	size_t low = 0, high = contenders->processes.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (contenders->processes.data[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct contender *borrow(const struct contenders *contenders, uint32_t pid)
{
	size_t at = find(contenders, pid);

	return at < contenders->processes.cnt && contenders->processes.data[at].pid == pid
		       ? &contenders->processes.data[at]
		       : NULL;
}

/* What a process used before it was first seen isn't the window's. */
static int add(struct contenders *contenders, const struct procfs_stat *stat)
{
	struct contender fresh = {
		.pid = stat->pid,
		.start = stat->start,
		.first_ticks = stat->ticks,
		.ticks = stat->ticks,
	};
	size_t at = find(contenders, stat->pid);
	int ret;

	if (contenders->processes.cnt >= CONTENDERS_PROCESS_MAX) {
		contenders->dropped++;
		return -ENOSPC;
	}
	ret = vec_reserve(&contenders->processes, contenders->processes.cnt + 1);
	if (ret < 0)
		return ret;
	memmove(&contenders->processes.data[at + 1], &contenders->processes.data[at],
		(contenders->processes.cnt - at) * sizeof(fresh));
	contenders->processes.data[at] = fresh;
	contenders->processes.cnt++;
	return 0;
}

/* The place of a worker in workers[] and overlaps[]; worker_cnt: it has none. */
static size_t place_of(const struct contenders *contenders, uint32_t pid)
{
	size_t at = 0;

	while (at < contenders->worker_cnt && contenders->workers[at] != pid)
		at++;
	return at;
}

/* Which CPU each is on; -1: unknown. */
static void look_at_workers(struct contenders *contenders, const struct contenders_worker *workers,
			    size_t cnt, int32_t cpus[static CONTENDERS_WORKER_MAX])
{
	for (size_t i = 0; i < CONTENDERS_WORKER_MAX; i++)
		cpus[i] = -1;
	for (size_t i = 0; i < cnt; i++) {
		size_t at = place_of(contenders, workers[i].pid);
		struct procfs_stat stat;

		if (at == CONTENDERS_WORKER_MAX)
			continue;
		contenders->workers[at] = workers[i].pid;
		contenders->worker_cnt = MAX(contenders->worker_cnt, at + 1);
		if (procfs_read_stat(contenders->root, workers[i].pid, workers[i].tid, &stat) == 0)
			cpus[at] = stat.processor;
	}
}

static int look_at(struct contenders *contenders, uint32_t pid, const int32_t *worker_cpus)
{
	struct procfs_stat stat;
	struct contender *process;
	int ret = procfs_read_stat(contenders->root, pid, 0, &stat);

	if (ret < 0)
		return 0; /* it has ended */
	process = borrow(contenders, pid);
	if (process != NULL && process->start != stat.start) {
		*process = (struct contender){ .pid = pid,
					       .start = stat.start,
					       .first_ticks = stat.ticks,
					       .ticks = stat.ticks };
	} else if (process == NULL) {
		ret = add(contenders, &stat);
		if (ret < 0)
			return ret == -ENOSPC ? 0 : ret;
		process = borrow(contenders, pid);
	}
	process->ppid = stat.ppid;
	memcpy(process->comm, stat.comm, sizeof(process->comm));
	for (size_t i = 0; stat.ticks > process->ticks && i < contenders->worker_cnt; i++) {
		process->busy[i] += worker_cpus[i] >= 0;
		process->overlaps[i] += worker_cpus[i] == stat.processor;
	}
	process->ticks = stat.ticks;
	return 0;
}

int contenders_look(struct contenders *contenders, const struct contenders_worker *workers,
		    size_t cnt, int64_t (*clock)(void))
{
	int32_t cpus[CONTENDERS_WORKER_MAX];
	int64_t now_ns = clock();
	int pid_cnt, ret;

	if (now_ns < contenders->due_ns)
		return 0;
	if (contenders->start_ns == 0)
		contenders->start_ns = now_ns;
	contenders->look_ns = now_ns;
	look_at_workers(contenders, workers, cnt, cpus);
	ret = vec_reserve(&contenders->pids, CONTENDERS_PROCESS_MAX);
	if (ret < 0)
		return ret;
	pid_cnt = procfs_list(contenders->root, 0, contenders->pids.data, CONTENDERS_PROCESS_MAX);
	if (pid_cnt < 0)
		return pid_cnt;
	for (int i = 0; i < pid_cnt && ret == 0; i++)
		ret = look_at(contenders, contenders->pids.data[i], cpus);
	contenders->due_ns =
		now_ns + MAX(CONTENDERS_LOOK_NS, (clock() - now_ns) * LOOK_COST_DIVISOR);
	return ret;
}

/* Whether pid is top or below it. */
static bool descends(const struct contenders *contenders, uint32_t pid, uint32_t top)
{
	for (int depth = 0; depth < ANCESTORS_MAX && pid > 1; depth++) {
		const struct contender *process = borrow(contenders, pid);

		if (pid == top)
			return true;
		if (process == NULL)
			return false;
		pid = process->ppid;
	}
	return false;
}

static bool is_helper(const struct contenders *contenders, const struct contenders_query *query,
		      uint32_t pid, const char *command)
{
	char own[sizeof(((struct sidecar_thief *)NULL)->command)];

	for (size_t i = 0; i < query->worker_cnt; i++) {
		if (query->workers[i].pid == pid)
			return true;
		if (!descends(contenders, pid, query->workers[i].pid))
			continue;
		if (strstr(command, "multiprocessing") != NULL ||
		    strstr(command, "compile_worker") != NULL)
			return true;
		return procfs_read_command(contenders->root, query->workers[i].pid, own,
					   sizeof(own)) == 0 &&
		       strcmp(own, command) == 0;
	}
	return false;
}

/* Unknown CPUs count as shared: a contender that has ended can't be asked any more. */
static bool may_share(const struct contenders *contenders, uint32_t worker_pid, const char *cpus)
{
	char text[1024];
	cpu_set_t own, other, both;

	if (procfs_read_cpus(contenders->root, worker_pid, text, sizeof(text)) < 0 ||
	    procfs_parse_cpus(text, &own) < 0 || procfs_parse_cpus(cpus, &other) < 0)
		return true;
	CPU_AND(&both, &own, &other);
	return CPU_COUNT(&both) > 0;
}

static bool describe(const struct contenders *contenders, const struct contenders_query *query,
		     const struct contender *process, struct sidecar_thief *ret)
{
	double window_ns = (double)(contenders->look_ns - contenders->start_ns);
	double used_ns = (double)(process->ticks - process->first_ticks) * PROCFS_TICK_NS;
	bool in_job = descends(contenders, process->pid, query->job_pid);
	size_t place = place_of(contenders, query->workers[query->idx].pid);
	struct sidecar_thief found = { .pid = process->pid,
				       .process_cnt = 1,
				       .cpu_frac = used_ns / window_ns };

	if (found.cpu_frac < CONTENDERS_PROCESS_FRAC)
		return false;
	if (!in_job && descends(contenders, process->pid, query->self_pid))
		return false;
	memcpy(found.comm, process->comm, sizeof(found.comm));
	if (procfs_read_command(contenders->root, process->pid, found.command,
				sizeof(found.command)) < 0)
		found.command[0] = '\0';
	if (is_helper(contenders, query, process->pid, found.command))
		return false;
	if (procfs_read_cpus(contenders->root, process->pid, found.cpus, sizeof(found.cpus)) < 0)
		found.cpus[0] = '\0';
	if (!may_share(contenders, query->workers[query->idx].pid, found.cpus))
		return false;
	found.flags = in_job ? SIDECAR_THIEF_IN_JOB : 0;
	if (place < contenders->worker_cnt && process->busy[place] > 0)
		found.overlap_frac =
			(double)process->overlaps[place] / (double)process->busy[place];
	*ret = found;
	return true;
}

/* Joins those of one command: four small hogs take as much as a large one. */
static bool join_contender(struct sidecar *side, const struct sidecar_thief *found)
{
	vec_foreach(known, &side->thieves) {
		double sum = known->cpu_frac + found->cpu_frac;

		if (strcmp(known->comm, found->comm) != 0 ||
		    strcmp(known->command, found->command) != 0 || known->flags != found->flags ||
		    strcmp(known->cpus, found->cpus) != 0)
			continue;
		known->overlap_frac = (known->overlap_frac * known->cpu_frac +
				       found->overlap_frac * found->cpu_frac) /
				      sum;
		if (found->cpu_frac > known->cpu_frac / known->process_cnt)
			known->pid = found->pid;
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
		if (side->thieves.data[i].cpu_frac >= CONTENDERS_CPU_FRAC)
			side->thieves.data[kept++] = side->thieves.data[i];
	}
	side->thieves.cnt = kept;
}

int contenders_name(const struct contenders *contenders, const struct contenders_query *query,
		    struct sidecar *ret)
{
	size_t first = ret->thieves.cnt;

	if (contenders->look_ns <= contenders->start_ns || query->idx >= query->worker_cnt)
		return 0;
	vec_foreach(process, &contenders->processes) {
		struct sidecar_thief found;
		int r;

		if (!describe(contenders, query, process, &found) || join_contender(ret, &found))
			continue;
		r = vec_push(&ret->thieves, found);
		if (r < 0)
			return r;
	}
	drop_small(ret, first);
	return 0;
}
