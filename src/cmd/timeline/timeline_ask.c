/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_ask.h"

#include "live/run/ask.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 30000 /* recorders of other hosts come over the network */

/* Whether folder is out_dir or lies in it. */
static bool is_inside(const char *folder, const char *out_dir)
{
	char real_folder[PATH_MAX], real_out[PATH_MAX];
	size_t len;

	if (realpath(folder, real_folder) == NULL || realpath(out_dir, real_out) == NULL)
		return false;
	len = strlen(real_out);
	return strncmp(real_folder, real_out, len) == 0 &&
	       (real_folder[len] == '/' || real_folder[len] == '\0');
}

int ask_flight(const char *out_dir, struct err *err)
{
	struct message answer = { 0 };
	char socket[128];
	struct err none;
	int fd, ret;

	if (rundir_of_job(out_dir, socket, sizeof(socket)) < 0)
		return 0; /* no job runs: the usual case */
	fd = ask_open(socket, MSG_FLIGHT, 0, &none);
	if (fd < 0)
		return 0; /* it ended just now */
	ret = ask_next(fd, TIMEOUT_MS, &answer, err);
	(void)close(fd);
	if (ret < 0)
		return ret;
	if (answer.status != 0)
		return err_set(err, answer.status, "not all records could be saved in %s",
			       answer.text);
	return is_inside(answer.text, out_dir);
}
