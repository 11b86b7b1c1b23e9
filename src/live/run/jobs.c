/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/jobs.h"

#include "live/run/ask.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_MS 5000
#define PAIRS_MAX 32 /* of one answer: more are of a daemon gone wrong */

static void take_numbers(struct job_about *about, const char *pair)
{
	const struct {
		const char *key;
		uint64_t *number;
		int64_t *time_ns;
	} numbers[] = {
		{ "workers=", &about->workers, NULL },
		{ "hosts=", &about->hosts, NULL },
		{ "step=", &about->step, NULL },
		{ "slow_since=", &about->slow_since_step, NULL },
		{ "restarts=", &about->restarts, NULL },
		{ "kept=", &about->kept, NULL },
		{ "dropped=", &about->dropped, NULL },
		{ "started_ns=", NULL, &about->started_wall_ns },
		{ "now_ns=", NULL, &about->now_ns },
		{ "best_ns=", NULL, &about->best_ns },
	};

	if (strncmp(pair, "pid=", 4) == 0)
		about->pid = (uint32_t)strtoul(pair + 4, NULL, 10);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		size_t len = strlen(numbers[i].key);

		if (strncmp(pair, numbers[i].key, len) != 0)
			continue;
		if (numbers[i].number != NULL)
			*numbers[i].number = strtoull(pair + len, NULL, 10);
		else if (numbers[i].time_ns != NULL)
			*numbers[i].time_ns = strtoll(pair + len, NULL, 10);
	}
}

void job_about_take(struct job_about *about, const char *pair)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
	} texts[] = {
		{ "name=", about->name, sizeof(about->name) },
		{ "dir=", about->dir, sizeof(about->dir) },
		{ "state=", about->state, sizeof(about->state) },
		{ "verdict=", about->verdict, sizeof(about->verdict) },
		{ "reason=", about->reason, sizeof(about->reason) },
		{ "report=", about->report, sizeof(about->report) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t len = strlen(texts[i].key);

		if (strncmp(pair, texts[i].key, len) == 0)
			(void)snprintf(texts[i].text, texts[i].size, "%s", pair + len);
	}
	take_numbers(about, pair);
}

int jobs_ask(const char *socket, struct job_about *ret, struct err *err)
{
	struct job_about about = { .pid = 0 };
	struct message answer;
	int fd = ask_open(socket, MSG_JOB, 0, err), r = 0;

	if (fd < 0)
		return fd;
	(void)snprintf(about.socket, sizeof(about.socket), "%s", socket);
	for (int i = 0; i < PAIRS_MAX; i++) {
		r = ask_next(fd, TIMEOUT_MS, &answer, err);
		if (r < 0 || answer.text[0] == '\0')
			break;
		job_about_take(&about, answer.text);
	}
	(void)close(fd);
	if (r == 0)
		*ret = about;
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct job_about *x = a, *y = b;

	if (x->started_wall_ns != y->started_wall_ns)
		return x->started_wall_ns > y->started_wall_ns ? -1 : 1;
	return (x->pid < y->pid) - (x->pid > y->pid);
}

static int add_job(void *arg, const char *socket)
{
	job_about_vec *jobs = arg;
	struct job_about about;

	return jobs_ask(socket, &about, NULL) < 0 ? 0 : vec_push(jobs, about);
}

int jobs_list(const char *folder, job_about_vec *ret)
{
	int error = folder == NULL ? rundir_visit(add_job, ret)
				   : rundir_visit_folder(folder, add_job, ret);

	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), by_start);
	return error;
}

static bool is_meant(const struct job_about *about, const char *word)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%" PRIu32, about->pid);
	return strcmp(about->name, word) == 0 || strcmp(pid, word) == 0;
}

/* Of jobs with this name or process. */
static int find_named(const char *word, char *ret, size_t size, struct err *err)
{
	job_about_vec jobs = { 0 };
	const struct job_about *found = NULL;
	size_t cnt = 0;
	int error = jobs_list(NULL, &jobs);

	vec_foreach(about, &jobs) {
		if (!is_meant(about, word))
			continue;
		found = found != NULL ? found : about;
		cnt++;
	}
	if (error < 0)
		(void)err_set(err, -error, "out of memory");
	else if (cnt == 0)
		error = err_set(err, ENOENT, "no running job '%s': `perftracker status` lists them",
				word);
	else if (cnt > 1)
		error = err_set(err, ENOTUNIQ,
				"%zu running jobs are named '%s': give the process instead, for "
				"example %" PRIu32,
				cnt, word, found->pid);
	else
		(void)snprintf(ret, size, "%s", found->socket);
	vec_done(&jobs);
	return error;
}

int jobs_find(const char *word, char *ret, size_t size, struct err *err)
{
	struct stat st;

	if (stat(word, &st) == 0 && S_ISDIR(st.st_mode)) {
		int error = rundir_of_job(word, ret, size);

		return error < 0 ? err_set(err, -error, "%s: no running job writes there", word)
				 : 0;
	}
	if (strchr(word, '/') == NULL)
		return find_named(word, ret, size, err);
	if ((size_t)snprintf(ret, size, "%s", word) >= size)
		return err_set(err, ENAMETOOLONG, "%s: path too long for a socket", word);
	return 0;
}
