/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobchoice.h"

#include "live/run/jobs.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

int job_choice_open(const struct job_choice *choice, enum message_type type, uint64_t window_ns,
		    struct err *err)
{
	char socket[128];
	int ret = job_choice_socket(choice, socket, sizeof(socket), err);

	return ret < 0 ? ret : ask_open(socket, type, window_ns, err);
}
