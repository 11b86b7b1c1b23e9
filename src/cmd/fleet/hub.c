/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker hub: leads the jobs of a fleet and writes their reports. */
#include "cmd/fleet/siteoptions.h"
#include "live/fleet/hubservice.h"

static const struct option_row rows[] = {
	SITE_SERVICE_ROWS,
	{ .name = "ui",
	  .argument = "[ADDR:]PORT",
	  OPTION_FIELD(struct site_options, sets),
	  .set = siteoptions_set_ui,
	  .expected = "[ADDR:]PORT or unix:PATH",
	  .help = "serve a page and an API of the hub's jobs; as --set hub.ui=[ADDR:]PORT",
	  .preset = "hub.ui of the configuration",
	  .more = "On 127.0.0.1, which ADDR defaults to, and on a Unix socket only processes of the "
		  "hub's user are answered; any other address needs hub.ui_token_file. The page shows "
		  "the jobs of hub.store, and how those that run are at this moment. A port that is "
		  "in use is a warning." },
};

static int hub_main(const struct command *command, int argc, char **argv)
{
	struct site_options options = { .config = NULL };
	struct site site = { .path = "" };
	struct hubservice_setup setup = { .site = &site, .program = options.program };
	int status = siteoptions_parse(command, argc, argv, &options, &site);

	if (status == OPTIONS_PARSED) {
		setup.config = siteoptions_file(&options);
		setup.sets = options.sets.pairs;
		status = hubservice_run(&setup);
	}
	site_done(&site);
	return status;
}

const struct command cmd_hub = {
	.name = "hub",
	.summary = "lead the jobs of a fleet and write their reports",
	.usage = "[OPTION]...\n",
	.about =
		"Runs once for a site, until SIGTERM. For each job that `perftracker hostd` has on one or "
		"more hosts it starts a child, the leader of the job, which decides when to profile, names "
		"functions and ranks of all hosts in one report, and writes that to `hub.folder` of the "
		"configuration and to the store. A leader, or a hub, that ends while jobs run is replaced "
		"by the next one, which learns from the hosts how the jobs are. A second hub of the same "
		"cluster refuses to start, with exit status 2.\n"
		"`perftracker status --hub` lists the jobs.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker hub --config /etc/perftracker/site.yaml\n"
		    "perftracker hub --check-config\n",
	.run = hub_main,
};
