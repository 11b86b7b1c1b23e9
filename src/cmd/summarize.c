/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/load.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: perftracker summarize [OPTION]... TRACE -o FILE\n"
	"\n"
	"Turns one rank's trace (Kineto JSON, plain or .gz) into its fingerprint: a few\n"
	"numbers per function instead of gigabytes of events. 'perftracker localize' compares\n"
	"fingerprints; 'perftracker dump' prints one.\n"
	"\n"
	"  -o, --output FILE     where the fingerprint goes (required)\n"
	"      --rank N          the rank, when the trace does not tell\n"
	"      --steps FIRST-LAST  use these profiler steps only\n"
	"      --skip-first      leave out the window's first iteration: it carries the cost of\n"
	"                        starting the profiler (ignored with fewer than 4)\n"
	"      --sidecar FILE    what the host recorded beside the trace\n"
	"      --job ID          name of the job\n"
	"  -h, --help            show this help\n"
	"\n"
	"Example:\n"
	"  perftracker summarize rank0.json.gz -o rank0.ptfp\n";

enum { OPT_RANK = 256, OPT_STEPS, OPT_SIDECAR, OPT_JOB, OPT_SKIP_FIRST };

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "skip-first", no_argument, NULL, OPT_SKIP_FIRST },
	{ "sidecar", required_argument, NULL, OPT_SIDECAR },
	{ "job", required_argument, NULL, OPT_JOB },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct summarize_args {
	const char *output, *sidecar, *job;
	int64_t rank;
	struct window_options window;
};

/* Returns -1 to go on, else an exit status. */
static int parse_option(struct summarize_args *a, int c)
{
	switch (c) {
	case 'o':
		a->output = optarg;
		return -1;
	case OPT_RANK:
		if (cmd_parse_int(optarg, 0, (1 << 20) - 1, &a->rank) < 0)
			return cmd_usage_error("summarize", "--rank '%s': expected a rank", optarg);
		return -1;
	case OPT_STEPS:
		if (sscanf(optarg, "%ld-%ld", &a->window.first_step, &a->window.last_step) != 2)
			return cmd_usage_error("summarize", "--steps '%s': expected FIRST-LAST",
					       optarg);
		return -1;
	case OPT_SKIP_FIRST:
		a->window.skip_first = true;
		return -1;
	case OPT_SIDECAR:
		a->sidecar = optarg;
		return -1;
	case OPT_JOB:
		a->job = optarg;
		return -1;
	case 'h':
		fputs(help, stdout);
		return EXIT_DONE;
	default:
		fputs("Try 'perftracker summarize --help'.\n", stderr);
		return EXIT_USAGE;
	}
}

int cmd_summarize(int argc, char **argv)
{
	struct summarize_args a = { .rank = -1, .window = { .last_step = -1 } };
	struct fingerprint fp;
	struct err err = { "" };
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1)
		status = parse_option(&a, c);
	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return cmd_usage_error("summarize", "expected one trace, found %d", argc - optind);
	if (a.output == NULL)
		return cmd_usage_error("summarize", "expected -o FILE: where the fingerprint goes");
	if (load_one(argv[optind], a.sidecar, &a.window, a.job, &fp, &err) < 0)
		return cmd_fail("%s", err.text);
	if (a.rank >= 0)
		fp.rank = (int)a.rank;
	else if (fp.rank < 0)
		fp.rank = inputs_rank_of_name(argv[optind]);
	status = fingerprint_write(&fp, a.output, &err) < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
	fingerprint_done(&fp);
	return status;
}
