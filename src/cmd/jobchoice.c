/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobchoice.h"

#include "live/run/jobs.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOB_WORKERS_TIMEOUT_MS 5000

int job_choice_socket(const struct job_choice *choice, char *ret, size_t size, struct err *err)
{
	const char *socket = choice->socket;

	if (socket == NULL)
		return choice->job != NULL ? jobs_find(choice->job, ret, size, err)
					   : rundir_newest(ret, size, err);
	if ((size_t)snprintf(ret, size, "%s", socket) >= size)
		return err_set(err, ENAMETOOLONG, "%s: path too long for a socket", socket);
	return 0;
}

int job_choice_ask(const struct job_choice *choice, enum message_type type, uint64_t window_ns,
		   int timeout_ms, struct message *ret, struct err *err)
{
	char socket[128];
	int fd, r = job_choice_socket(choice, socket, sizeof(socket), err);

	if (r < 0)
		return r;
	fd = ask_open(socket, type, window_ns, err);
	if (fd < 0)
		return fd;
	r = ask_next(fd, timeout_ms, ret, err);
	(void)close(fd);
	if (r == 0 && ret->status != 0)
		return err_set(err, ECANCELED, "%s", ret->text);
	return r;
}

/* One part of the list, which ends with *ret_last. */
static int workers_from(const char *socket, uint64_t from, message_vec *ret,
			struct message *ret_last, struct err *err)
{
	int fd = ask_open(socket, MSG_STATUS, from, err), r;

	if (fd < 0)
		return fd;
	while ((r = ask_next(fd, JOB_WORKERS_TIMEOUT_MS, ret_last, err)) == 0 &&
	       ret_last->pid != 0) {
		r = vec_push(ret, *ret_last);
		if (r < 0) {
			(void)err_set(err, ENOMEM, "out of memory");
			break;
		}
	}
	(void)close(fd);
	return r;
}

int job_workers(const char *socket, message_vec *ret, struct message *ret_last, struct err *err)
{
	struct message last = { .step = 0 };
	int r;

	do
		r = workers_from(socket, last.step, ret, &last, err);
	while (r == 0 && last.step != 0);
	if (r == 0)
		*ret_last = last;
	return r;
}
