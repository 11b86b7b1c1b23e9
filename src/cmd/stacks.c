/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker stacks: what all threads of processes do now, native and Python frames. */
#include "cmd/cmd.h"
#include "report/stacks/stacktext.h"
#include "stacks/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct stacks_options {
	const char *output;
	bool verbose, native, python;
};

#define FIELD(field) OPTION_FIELD(struct stacks_options, field)

static const struct option_row rows[] = {
	{ .name = "native", FIELD(native), .help = "native frames only" },
	{ .name = "python", FIELD(python), .help = "Python frames only" },
	{ .name = "verbose", .letter = 'v', FIELD(verbose), .help = "show all frames" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE; - is standard output",
	  .preset = "-" },
};

static int stacks_main(const struct command *command, int argc, char **argv)
{
	struct stacks_options options = { 0 };
	_cleanup_(str_done) struct str out = { 0 };
	struct stacknames names = { 0 };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	status = EXIT_DONE;
	for (int i = first; i < argc; i++) {
		struct stacks_reading reading = { 0 };
		const struct stackview view = { .all = options.verbose };
		const struct stacks_process *process;

		if (stacks_begin(&reading, (uint32_t)atoi(argv[i])) < 0)
			return EXIT_FAILED;
		process = stacks_finish(&reading);
		stacktext_process(&out, process, &view, &names);
		fprintf(stderr, "%s read %.3f ms stopped %.3f ms max %.3f\n", process->error, process->read_ns/1e6, process->stopped_ns/1e6, process->stopped_max_ns/1e6);
		stacks_done(&reading);
	}
	stacknames_done(&names);
	if (output_text(&out, options.output, &err) < 0)
		return EXIT_FAILED;
	return status;
}

const struct command cmd_stacks = {
	.name = "stacks",
	.summary = "show what all threads of processes do now",
	.usage = "[OPTION]... PID...\n",
	.about = "x\n",
	OPTION_ROWS(rows),
	.examples = "perftracker stacks 4711\n",
	.run = stacks_main,
};
