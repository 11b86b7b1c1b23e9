/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
	{ "run", cmd_run, "start a job, watch it, and report when it becomes slow" },
	{ "profile", cmd_profile, "ask a running job for a profile now" },
	{ "status", cmd_status, "show what is known of a running job" },
	{ "timeline", cmd_timeline, "show the last seconds of all ranks in one picture" },
	{ "analyze", cmd_analyze, "find the culprit in the traces of a job" },
	{ "diff", cmd_diff, "compare two runs of a job: what became slower" },
	{ "summarize", cmd_summarize, "turn one trace into a fingerprint" },
	{ "localize", cmd_localize, "compare fingerprints and report" },
	{ "simulate", cmd_simulate, "make a job whose truth is known" },
	{ "dump", cmd_dump, "print any file that PerfTracker writes" },
	{ "doctor", cmd_doctor, "tell what works on this machine, and what to do" },
	{ "gpu-sampler", cmd_gpu_sampler, "read GPU counters for containers that may not" },
};

static void print_help(FILE *out)
{
	fputs("Usage: perftracker COMMAND [OPTION]... [ARGUMENT]...\n"
	      "\n"
	      "Finds why a training job is slow or stuck: which function on which worker,\n"
	      "what it costs, what to do. Says \"healthy\" when it is.\n"
	      "\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-11s  %s\n", commands[i].name, commands[i].help);
	fputs("\n"
	      "Examples:\n"
	      "  perftracker run -- torchrun --nproc-per-node 8 train.py\n"
	      "  perftracker analyze traces/\n"
	      "\n"
	      "'perftracker COMMAND --help' tells more. Exit status: 0 done, 1 failed, 2 usage;\n"
	      "'run' exits as the job does.\n",
	      out);
}

/* What was printed and never arrived is a failure, whatever the command says. */
static int flushed(int status)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return status;
	return cmd_fail("cannot write to standard output: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	char title[64];

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_help(stdout);
		return flushed(argc > 1 ? EXIT_DONE : EXIT_USAGE);
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("perftracker " PT_VERSION);
		return flushed(EXIT_DONE);
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		(void)snprintf(title, sizeof(title), "perftracker %s", commands[i].name);
		argv[1] = title; /* getopt_long() complains in its name */
		return flushed(commands[i].run(argc - 1, argv + 1));
	}
	fprintf(stderr, "perftracker: no command '%s'. 'perftracker --help' lists the commands.\n",
		name);
	return EXIT_USAGE;
}
