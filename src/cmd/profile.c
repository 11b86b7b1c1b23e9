/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker profile: asks a running job for a profile now, and waits for its report. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "live/run/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct profile_options {
	const char *socket;
	double window_s, timeout_s;
};

#define FIELD(field) OPTION_FIELD(struct profile_options, field)

static const struct option_row rows[] = {
	{ .name = "socket",
	  .argument = "PATH",
	  FIELD(socket),
	  .help = "socket of the job",
	  .preset = "that of the user's newest job",
	  .more = "`perftracker run` links it as `socket` in the folder of its --out." },
	{ .name = "window",
	  .argument = "SECONDS",
	  FIELD(window_s),
	  .high = 600,
	  .expected = "0 to 600 seconds",
	  .help = "length of the profile",
	  .preset = "--window of the job" },
	{ .name = "timeout",
	  .argument = "SECONDS",
	  FIELD(timeout_s),
	  .low = 0.001,
	  .high = 86400,
	  .expected = "0.001 to 86400 seconds",
	  .help = "stop waiting for the report after this time",
	  .preset = "300" },
};

static int profile_main(const struct command *command, int argc, char **argv)
{
	struct profile_options options = { .timeout_s = 300 };
	struct message answer;
	struct err err = { "" };
	int first, fd, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	fd = ask_open(options.socket, MSG_REQUEST, (uint64_t)(options.window_s * NSEC_PER_SEC),
		      &err);
	ret = fd < 0 ? fd : ask_next(fd, (int)(options.timeout_s * 1000), &answer, &err);
	if (fd >= 0)
		(void)close(fd);
	if (ret == 0 && answer.status == 0) {
		(void)printf("%s\n", answer.text);
		return EXIT_DONE;
	}
	(void)fprintf(stderr, "perftracker profile: %s\n", ret < 0 ? err.text : answer.text);
	return EXIT_FAILED;
}

const struct command cmd_profile = {
	.name = "profile",
	.summary = "profile a running job now",
	.usage = "[OPTION]...\n",
	.about = "Requests a profile of all ranks of a job that `perftracker run` started, slow or "
		 "not. Waits for the report and prints the path of its HTML file.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker profile\n"
		    "perftracker profile --socket perftracker-out/socket --window 5\n",
	.run = profile_main,
};
