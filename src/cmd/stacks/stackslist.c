/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stacks/stackslist.h"

#include "cmd/jobchoice.h"
#include "live/run/jobs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void stackslist_done(struct stackslist *list)
{
	vec_done(&list->entries);
}

int stackslist_add(struct stackslist *list, uint32_t pid, int32_t rank)
{
	vec_foreach(entry, &list->entries) {
		if (entry->pid == pid)
			return 0;
	}
	if (list->entries.cnt == STACKSLIST_MAX) {
		list->dropped++;
		return 0;
	}
	return vec_push(&list->entries, (struct stackslist_entry){ pid, rank });
}

int stackslist_add_text(struct stackslist *list, const char *text, struct err *err)
{
	int64_t pid;

	if (cmd_parse_int(text, 1, 1 << 22, &pid) < 0)
		return err_set(err, EINVAL, "'%s' is not a process id: expected a number from 1 on",
			       text);
	return stackslist_add(list, (uint32_t)pid, -1);
}

/* Other hosts of the job have process ids of their own. */
static bool is_here(const struct message *worker)
{
	char own[64] = ""; /* as long as the job sends it */
	const char *host = strstr(worker->text, " host=");
	size_t len;

	(void)gethostname(own, sizeof(own) - 1);
	if (host == NULL)
		return true;
	host += strlen(" host=");
	len = strcspn(host, " ");
	return len == 0 || (len == strlen(own) && strncmp(host, own, len) == 0);
}

static int add_workers(struct stackslist *list, const char *socket, struct err *err)
{
	message_vec workers = { 0 };
	struct message last;
	int error = job_workers(socket, &workers, &last, err);

	for (size_t i = 0; i < workers.cnt && error == 0; i++)
		if (is_here(&workers.data[i]))
			error = stackslist_add(list, workers.data[i].pid, workers.data[i].rank);
	vec_done(&workers);
	return error;
}

int stackslist_add_job(struct stackslist *list, const char *job, struct err *err)
{
	const size_t before = list->entries.cnt;
	char socket[128];
	int error = jobs_find(job, socket, sizeof(socket), err);

	if (error == 0)
		error = add_workers(list, socket, err);
	if (error == 0 && list->entries.cnt == before)
		return err_set(err, ENOENT,
			       "job %s has no workers on this host yet: give their process ids",
			       job);
	return error;
}

int stackslist_add_all(struct stackslist *list, struct err *err)
{
	job_about_vec jobs = { 0 };
	int error = jobs_list(NULL, &jobs);

	if (error == 0 && jobs.cnt == 0)
		error = err_set(err, ENOENT,
				"no job of this user runs under `perftracker run`: give process "
				"ids");
	for (size_t i = 0; i < jobs.cnt && error == 0; i++)
		error = add_workers(list, jobs.data[i].socket, err);
	vec_done(&jobs);
	return error;
}
