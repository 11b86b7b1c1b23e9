/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"
#include "cmd/cmd.h"
#include "cmd/options/optiondocs.h"
#include "live/fleet/fleetjob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* In the order of the help, whose parts are named in print_help(). */
static const struct command *const commands[] = {
	&cmd_run,	 &cmd_profile,	&cmd_status, &cmd_accept, &cmd_timeline, &cmd_jobs,
	&cmd_history,	 &cmd_report,	&cmd_hosts,  &cmd_prune,  &cmd_serve,	 &cmd_prompt,
	&cmd_mcp,	 &cmd_attach,	&cmd_stacks, &cmd_stalls, &cmd_roofline, &cmd_analyze,
	&cmd_verify_fix, &cmd_diff,	&cmd_flame,  &cmd_replay, &cmd_dump,	 &cmd_simulate,
	&cmd_summarize,	 &cmd_localize, &cmd_doctor, &cmd_hostd,  &cmd_hub,	 &cmd_gpu_sampler,
};

/* Which commands begin a part of the help. */
static const struct {
	const struct command *first;
	const char *title;
} parts[] = {
	{ &cmd_run, "Jobs, while they run and later" },
	{ &cmd_attach, "Processes" },
	{ &cmd_analyze, "Traces and other files" },
	{ &cmd_doctor, "Machines" },
};

static void print_title(FILE *out, const struct command *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (parts[i].first == command)
			fprintf(out, "%s%s:\n", i > 0 ? "\n" : "", parts[i].title);
	}
}

static void print_help(FILE *out)
{
	fputs("Usage: perftracker COMMAND [OPTION]... [ARGUMENT]...\n"
	      "\n"
	      "Finds why a training job is slow or stuck: which function on which rank, what it\n"
	      "costs, and what to do. Reports \"healthy\" when nothing is wrong.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		print_title(out, commands[i]);
		fprintf(out, "  %-11s  %s\n", commands[i]->name, commands[i]->summary);
	}
	fputs("\n"
	      "Examples:\n"
	      "  perftracker run -- torchrun --nproc-per-node 8 train.py\n"
	      "  perftracker analyze traces/\n"
	      "\n"
	      "'perftracker help COMMAND' lists the options of a command.\n"
	      "Exit status: 0 done, 1 failed, 2 usage error; 'run' exits with the job's status.\n",
	      out);
}

/* Output that cannot be written is a failure, whatever the status of the command. */
static int flushed(int status)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	return cmd_fail("cannot write to standard output: %s", strerror(errno));
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static int no_command(const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name, strlen(name));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		nearest_offer(&nearest, commands[i]->name);
	nearest_offer(&nearest, "help");
	fprintf(stderr, "perftracker: no command '%s'", name);
	if (nearest.best != NULL)
		fprintf(stderr, ": did you mean '%s'?", nearest.best);
	fputs("\n'perftracker --help' lists the commands.\n", stderr);
	return EXIT_USAGE;
}

/* "perftracker help [COMMAND]". word: COMMAND, or NULL. */
static int help(const char *word)
{
	const struct command *command = word != NULL ? find_command(word) : NULL;

	if (word == NULL)
		print_help(stdout);
	else if (command != NULL)
		optiondocs_help(command);
	else
		return no_command(word);
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct command *command = find_command(name);
	char title[64];

	if (strcmp(name, "help") == 0)
		return flushed(help(argv[2]));
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_help(stdout);
		return flushed(argc > 1 ? EXIT_DONE : EXIT_USAGE);
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("perftracker " PT_VERSION);
		return flushed(EXIT_DONE);
	}
	if (strcmp(name, "__docs") == 0) /* for tools/generate */
		return flushed(optiondocs_main(commands, ARRAY_SIZE(commands), argc - 2, argv + 2));
	if (strcmp(name, "__fleet-job") == 0) /* for hostd and hub */
		return fleetjob_main(argc - 2, argv + 2);
	if (command == NULL)
		return no_command(name);
	(void)snprintf(title, sizeof(title), "perftracker %s", command->name);
	argv[1] = title;
	return flushed(command->run(command, argc - 1, argv + 1));
}
