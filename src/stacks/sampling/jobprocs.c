/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/jobprocs.h"

#include "stacks/proc/denial.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { ENVIRON_BYTES = 256 << 10, MAPS_BYTES = 4 << 20, STATUS_BYTES = 4096, DEPTH_MAX = 64 };

/* --- environments --- */

static long number_of(const char *text, size_t len, const char *name)
{
	size_t value_len;
	const char *value = taskfiles_find_variable(text, len, name, &value_len);
	char digits[12];

	if (value == NULL || value_len == 0 || value_len >= sizeof(digits) ||
	    !isdigit((unsigned char)*value))
		return -1;
	memcpy(digits, value, value_len);
	digits[value_len] = '\0';
	return strtol(digits, NULL, 10);
}

/* What all ranks of a job have alike, and no other job has. */
static uint64_t job_of(const char *text, size_t len)
{
	static const char *const NAMES[] = {
		"TORCHELASTIC_RUN_ID", "MASTER_ADDR",	 "MASTER_PORT", "SLURM_JOB_ID",
		"SLURM_STEP_ID",       "PMIX_NAMESPACE", "PMI_JOBID",	"WORLD_SIZE",
	};
	uint64_t hash = 0;

	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		size_t value_len;
		const char *value = taskfiles_find_variable(text, len, NAMES[i], &value_len);

		if (value != NULL)
			hash = XXH3_64bits_withSeed(value, value_len, hash + i + 1);
	}
	return hash;
}

void jobprocs_parse_environ(const char *text, size_t len, struct jobproc *ret)
{
	static const struct {
		const char *rank, *size;
	} NAMES[] = { { "RANK", "WORLD_SIZE" },
		      { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		      { "PMI_RANK", "PMI_SIZE" },
		      { "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" } };

	ret->rank = -1;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES) && ret->rank < 0; i++) {
		const long rank = number_of(text, len, NAMES[i].rank);
		const long size = number_of(text, len, NAMES[i].size);

		if (rank < 0 || rank > INT_MAX)
			continue;
		ret->rank = (int)rank;
		ret->world_size = size > 0 && size <= INT_MAX ? (int)size : 0;
		ret->weak = i > 0;
		ret->job = job_of(text, len) | 1;
	}
}

/* --- /proc --- */

static void read_command(int proc, struct jobproc *ret)
{
	char text[512];
	int len = taskfiles_read(proc, "cmdline", text, sizeof(text));
	const char *slash;

	if (len <= 0)
		return;
	slash = strrchr(text, '/'); /* of argv[0] */
	ret->python = strstr(slash != NULL ? slash : text, "python") != NULL;
	while (len > 0 && text[len - 1] == '\0')
		len--;
	for (int i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]))
			text[i] = ' ';
	(void)snprintf(ret->command, sizeof(ret->command), "%.*s", len, text);
}

/* A console script's first argument is the script: the program says more. */
static void read_program(int proc, struct jobproc *ret)
{
	char path[PATH_MAX];
	const ssize_t len = readlinkat(proc, "exe", path, sizeof(path) - 1);
	const char *slash;

	if (len <= 0)
		return;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL && strncmp(slash + 1, "python", strlen("python")) == 0)
		ret->python = true;
}

static bool has_torch(int proc)
{
	_cleanup_free_ char *text = malloc(MAPS_BYTES);

	return text != NULL && taskfiles_read(proc, "maps", text, MAPS_BYTES) > 0 &&
	       strstr(text, "/libtorch_cpu.so") != NULL;
}

static int read_process(int root, const char *name, char *environ_text, struct jobproc *ret)
{
	char text[STATUS_BYTES];
	struct taskfiles_status status;
	const int proc = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int len, error = -ESRCH;

	if (proc < 0)
		return -ESRCH;
	*ret = (struct jobproc){ .rank = -1 };
	if (taskfiles_read(proc, "status", text, sizeof(text)) > 0 &&
	    taskfiles_parse_status(text, &status) == 0 && status.has_memory) {
		error = 0;
		ret->pid = status.pid;
		ret->tgid = status.tgid;
		ret->parent = status.ppid;
		ret->uid = status.uid;
		read_command(proc, ret);
		read_program(proc, ret);
		len = taskfiles_read(proc, "environ", environ_text, ENVIRON_BYTES);
		ret->error = len < 0 ? -len : 0;
		if (len > 0)
			jobprocs_parse_environ(environ_text, (size_t)len, ret);
		ret->torch = ret->python && ret->rank < 0 && has_torch(proc);
	}
	(void)close(proc);
	return error;
}

static int by_pid(const void *a, const void *b)
{
	const struct jobproc *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int jobprocs_list(const char *root, jobproc_vec *ret)
{
	_cleanup_free_ char *text = malloc(ENVIRON_BYTES);
	DIR *dir = opendir(root);
	const struct dirent *entry;
	int error = dir != NULL ? 0 : -errno;

	if (text == NULL)
		error = -ENOMEM;
	while (error == 0 && ret->cnt < JOBPROCS_MAX && (entry = readdir(dir)) != NULL) {
		struct jobproc proc;

		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process(dirfd(dir), entry->d_name, text, &proc) == 0)
			error = vec_push(ret, proc);
	}
	if (dir != NULL)
		(void)closedir(dir);
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_pid);
	return error;
}

/* --- who belongs to whom --- */

static const struct jobproc *find(const jobproc_vec *procs, uint32_t pid)
{
	const struct jobproc key = { .pid = pid };

	return procs->cnt > 0 ? bsearch(&key, procs->data, procs->cnt, sizeof(key), by_pid) : NULL;
}

/* Whether an ancestor has that pid. Numbers that were used again could make a circle. */
static bool is_below(const jobproc_vec *procs, const struct jobproc *proc, uint32_t ancestor)
{
	for (int depth = 0; depth < DEPTH_MAX && proc != NULL; depth++) {
		if (proc->parent == ancestor)
			return true;
		proc = find(procs, proc->parent);
	}
	return false;
}

/* Whether a launcher of its own runs below a process that a scheduler has numbered. */
static bool is_launcher(const jobproc_vec *procs, const struct jobproc *proc)
{
	vec_foreach(other, procs) {
		if (other->rank >= 0 && (other->job != proc->job || proc->rank < 0) &&
		    is_below(procs, other, proc->pid))
			return true;
	}
	return false;
}

/* Whether it is the outermost Python process with its number. */
static bool is_rank(const jobproc_vec *procs, const struct jobproc *proc)
{
	const struct jobproc *outer = proc;

	if (proc->rank < 0 || !proc->python || (proc->weak && is_launcher(procs, proc)))
		return false;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		outer = find(procs, outer->parent);
		if (outer == NULL || outer->job != proc->job || outer->rank != proc->rank)
			return true;
		if (outer->python)
			return false;
	}
	return false;
}

static int by_rank(const void *a, const void *b)
{
	const struct jobrank *x = a, *y = b;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
				  : (x->pid > y->pid) - (x->pid < y->pid);
}

static int take_job(const jobproc_vec *procs, uint64_t job, struct jobranks *ret)
{
	size_t kept = 0;

	vec_foreach(proc, procs) {
		if (proc->job != job || !is_rank(procs, proc))
			continue;
		if (vec_push(&ret->ranks, (struct jobrank){ proc->pid, proc->rank }) < 0)
			return -ENOMEM;
		ret->world_size = MAX(ret->world_size, proc->world_size);
		if (ret->command[0] == '\0')
			memcpy(ret->command, proc->command, sizeof(ret->command));
	}
	if (ret->ranks.cnt > 0)
		qsort(ret->ranks.data, ret->ranks.cnt, sizeof(*ret->ranks.data), by_rank);
	/* Of two with one number the older one: the other is a script that a wrapper started. */
	for (size_t i = 0; i < ret->ranks.cnt; i++)
		if (kept == 0 || ret->ranks.data[kept - 1].rank != ret->ranks.data[i].rank)
			ret->ranks.data[kept++] = ret->ranks.data[i];
	ret->ranks.cnt = kept;
	return 0;
}

/* The job of the ranks below a process; 0: none. *ret_several: there are more. */
static uint64_t job_below(const jobproc_vec *procs, uint32_t pid, bool *ret_several)
{
	uint64_t job = 0;

	*ret_several = false;
	vec_foreach(proc, procs) {
		if (!is_rank(procs, proc) || !is_below(procs, proc, pid))
			continue;
		*ret_several = *ret_several || (job != 0 && job != proc->job);
		job = proc->job;
	}
	return job;
}

/* The Python process meant by one without a rank: itself, or the outermost one below it. */
static const struct jobproc *python_of(const jobproc_vec *procs, const struct jobproc *proc)
{
	if (proc->python)
		return proc;
	vec_foreach(other, procs) {
		if (other->python && is_below(procs, other, proc->pid))
			return other;
	}
	return NULL;
}

static int add_plain(const jobproc_vec *procs, const struct jobproc *proc, struct jobranks *ret,
		     struct err *err)
{
	const struct jobproc *python = python_of(procs, proc);
	const int rank = (int)ret->ranks.cnt;

	if (python == NULL)
		return err_set(err, EINVAL,
			       "process %u (%.60s) runs no Python, and no process below it does: "
			       "give a rank of the job or its launcher",
			       proc->pid, proc->command);
	if (ret->command[0] == '\0')
		memcpy(ret->command, python->command, sizeof(ret->command));
	vec_foreach(other, procs)
		ret->python_children += other->python && other->parent == python->pid;
	return vec_push(&ret->ranks, (struct jobrank){ python->pid, rank });
}

static int refuse(const struct jobproc *proc, struct err *err)
{
	struct denial denial = { .pid = proc->pid, .error = proc->error, .uid = proc->uid };
	char why[400];

	denial_look(&denial);
	denial_explain(&denial, why, sizeof(why));
	return err_set(err, EPERM, "%s", why);
}

static int check(const jobproc_vec *procs, uint32_t pid, const struct jobproc **ret,
		 struct err *err)
{
	*ret = find(procs, pid);
	if (*ret == NULL)
		return err_set(err, ESRCH, "there is no process %u: `ps -e` lists them", pid);
	return (*ret)->error != 0 && (*ret)->error != ENOENT ? refuse(*ret, err) : 0;
}

int jobprocs_ranks(const jobproc_vec *procs, const uint32_t *pids, size_t cnt, struct jobranks *ret,
		   struct err *err)
{
	uint64_t job = 0;
	int error = 0;

	for (size_t i = 0; i < cnt && error == 0; i++) {
		const struct jobproc *proc;
		bool several = false;
		uint64_t own;

		error = check(procs, pids[i], &proc, err);
		if (error < 0)
			return error;
		own = proc->rank >= 0 && !(proc->weak && is_launcher(procs, proc)) ? proc->job : 0;
		if (own == 0)
			own = job_below(procs, proc->pid, &several);
		if (several || (i > 0 && own != job))
			return err_set(err, EINVAL,
				       "process %u has ranks of another job, too: give a rank of "
				       "one job",
				       pids[i]);
		job = own;
		if (own == 0)
			error = add_plain(procs, proc, ret, err);
	}
	if (error == 0 && job != 0)
		error = take_job(procs, job, ret);
	if (error == 0 && job != 0 && ret->ranks.cnt == 0)
		return err_set(err, EINVAL, "process %u has a rank, but runs no Python", pids[0]);
	return error;
}

/* --- all jobs --- */

/* A training process without a rank: no launcher, and no child of a training process. */
static bool is_single(const jobproc_vec *procs, const struct jobproc *proc)
{
	const struct jobproc *parent = find(procs, proc->parent);

	return proc->torch && proc->rank < 0 && !is_launcher(procs, proc) &&
	       (parent == NULL || !(parent->torch || parent->rank >= 0));
}

static bool has_job(const jobproc_vec *procs, const jobprocs_pids *pids, uint64_t job)
{
	vec_foreach(pid, pids) {
		const struct jobproc *proc = find(procs, *pid);

		if (proc != NULL && proc->job == job)
			return true;
	}
	return false;
}

int jobprocs_jobs(const jobproc_vec *procs, uint32_t uid, bool all_users, jobprocs_pids *ret)
{
	int error = 0;

	vec_foreach(proc, procs) {
		if (error < 0 || (proc->uid != uid && !all_users))
			continue;
		if (is_single(procs, proc) ||
		    (is_rank(procs, proc) && !has_job(procs, ret, proc->job)))
			error = vec_push(ret, proc->pid);
	}
	return error;
}

void jobranks_done(struct jobranks *ranks)
{
	vec_done(&ranks->ranks);
}
