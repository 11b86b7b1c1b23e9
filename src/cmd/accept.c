/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker accept: makes the slow pace of a running job its baseline. */
#include "base/base.h"
#include "cmd/jobchoice.h"

#include <stdio.h>

#define TIMEOUT_MS 5000

struct accept_options {
	struct job_choice choice;
};

static const struct option_row rows[] = {
	JOB_CHOICE_ROWS(struct accept_options),
};

static int accept_main(const struct command *command, int argc, char **argv)
{
	struct accept_options options = { 0 };
	struct message answer;
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	if (job_choice_ask(&options.choice, MSG_ACCEPT, 0, TIMEOUT_MS, &answer, &err) < 0) {
		(void)fprintf(stderr, "perftracker accept: %s\n", err.text);
		return EXIT_FAILED;
	}
	(void)printf("%s\n", answer.text);
	return EXIT_DONE;
}

const struct command cmd_accept = {
	.name = "accept",
	.summary = "accept a slow job's pace as normal",
	.usage = "[OPTION]...\n",
	.about =
		"A job that became slow is called slow until it is as fast as at its best, however "
		"long that takes. This makes its present pace the baseline, for a slowdown that is "
		"meant: longer sequences, a larger model, a host that is shared from now on. Later "
		"slowdowns are measured from there. Prints the old and the new baseline. A job that "
		"is not slow has nothing to accept: the exit status is 1.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker accept\n"
		    "perftracker accept --job train\n",
	.run = accept_main,
};
