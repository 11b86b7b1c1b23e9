/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobchoice.h"

#include "live/run/jobs.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
