/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker hostd: one per host, watches the jobs of all its users for the hub of a fleet. */
#include "cmd/fleet/siteoptions.h"
#include "live/fleet/hostservice.h"

static const struct option_row rows[] = { SITE_SERVICE_ROWS };

static int hostd_main(const struct command *command, int argc, char **argv)
{
	struct site_options options = { .config = NULL };
	struct site site = { .path = "" };
	struct hostservice_setup setup = { .site = &site, .program = options.program };
	int status = siteoptions_parse(command, argc, argv, &options, &site);

	if (status == OPTIONS_PARSED)
		status = hostservice_run(&setup);
	site_done(&site);
	return status;
}

const struct command cmd_hostd = {
	.name = "hostd",
	.summary = "watch the jobs of all users of this host, for a fleet",
	.usage = "[OPTION]...\n",
	.about =
		"Runs on each host of a fleet, until SIGTERM. A training process that finds its socket, "
		"and whose job is enabled, is watched as under `perftracker run`, without a change of "
		"its command: PERFTRACKER=1 in its environment, or `jobs: {enable: all}` in the "
		"configuration. The first worker of a job starts the job's daemon, a child that runs as "
		"the user of that worker, and ends after the last one. Jobs of all hosts are led, and "
		"reports are written, by `perftracker hub`.\n"
		"As root it serves all users; as another user, that user's jobs only. Training never "
		"waits for it, and goes on when it ends.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker hostd --config /etc/perftracker/site.yaml\n"
		    "perftracker hostd --check-config\n",
	.run = hostd_main,
};
