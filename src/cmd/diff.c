/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker diff`: two runs of a job in, what changed between them out. */
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "compare/compare.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: perftracker diff [OPTION]... BEFORE AFTER\n"
	"       perftracker diff [OPTION]... BEFORE... --vs AFTER...\n"
	"\n"
	"Compares two runs of a job: before and after an upgrade, two clusters, two versions\n"
	"of the code. Names the functions that take more or less time per iteration, that\n"
	"appeared or vanished (\"CompiledFunction is gone\"), have another name (kernels of\n"
	"another library) or another caller, and says whether that may be chance. The changes\n"
	"add up to the change of the iteration.\n"
	"\n"
	"BEFORE and AFTER are traces, flight logs or fingerprints, one a rank, or folders of\n"
	"them. Several files of one rank are repeats of the run, the best test of chance.\n"
	"\n"
	"      --vs              what follows is AFTER; needed when either has several paths\n"
	"  -f, --format FORMAT   text (default), json or html\n"
	"  -o, --output FILE     write to FILE instead of standard output\n"
	"      --min-change PCT  sum up changes below this share of the iteration (default 1)\n"
	"      --level SHARE     of wrong alarms among the significant changes (default 0.05)\n"
	"      --steps FIRST-LAST  use these profiler steps only, for example 4-6\n"
	"      --skip-first      leave out the first step of windows of four or more\n"
	"      --exit-code       exit with 3 when AFTER is significantly slower\n"
	"  -v, --verbose         all changes and whole stacks in the text\n"
	"  -j, --jobs N          files to read at once (default: processors)\n"
	"  -h, --help            show this help\n"
	"\n"
	"Exit status: 0 done, 1 an input could not be used, 2 usage.\n"
	"\n"
	"Examples:\n"
	"  perftracker diff old/ new/\n"
	"  perftracker diff old/rank*.json.gz --vs new/rank*.json.gz\n"
	"  perftracker diff --exit-code --min-change 5 baseline.ptfp today.ptfp\n";

struct diff_options {
	enum output_format format;
	const char *output;
	bool exit_code, verbose;
	struct compare_options compare;
	struct load_options load;
};

/* The files of one run. */
struct side {
	path_list given; /* borrowed words of the command line */
	path_list paths;
	struct load_result loaded;
	char label[256];
};

enum { OPT_VS = 256, OPT_MIN_CHANGE, OPT_LEVEL, OPT_STEPS, OPT_SKIP_FIRST, OPT_EXIT_CODE };

static const struct option long_options[] = {
	{ "vs", no_argument, NULL, OPT_VS },
	{ "format", required_argument, NULL, 'f' },
	{ "output", required_argument, NULL, 'o' },
	{ "min-change", required_argument, NULL, OPT_MIN_CHANGE },
	{ "level", required_argument, NULL, OPT_LEVEL },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "skip-first", no_argument, NULL, OPT_SKIP_FIRST },
	{ "exit-code", no_argument, NULL, OPT_EXIT_CODE },
	{ "verbose", no_argument, NULL, 'v' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Options with a number. Returns -1 when handled, else an exit status. */
static int parse_number(struct diff_options *o, int c)
{
	switch (c) {
	case OPT_MIN_CHANGE:
		if (cmd_parse_double(optarg, 0, 100, &o->compare.min_change_pct) < 0)
			return cmd_bad_value("diff", "min-change", "a percentage in 0..100");
		return -1;
	case OPT_LEVEL:
		if (cmd_parse_double(optarg, 0, 1, &o->compare.level) < 0)
			return cmd_bad_value("diff", "level", "a share in 0..1");
		return -1;
	case OPT_STEPS:
		return load_parse_steps(&o->load, "diff");
	case 'j':
		return load_parse_jobs(&o->load, "diff");
	default:
		return cmd_usage_error("diff", "unknown option");
	}
}

/* Returns -1 to go on, else an exit status. */
static int parse_option(struct diff_options *o, int c)
{
	switch (c) {
	case 'f':
		if (output_format_parse(optarg, &o->format) < 0)
			return cmd_bad_value("diff", "format", "text, json or html");
		return -1;
	case 'o':
		o->output = optarg;
		return -1;
	case 'v':
		o->verbose = true;
		return -1;
	case OPT_EXIT_CODE:
		o->exit_code = true;
		return -1;
	case OPT_SKIP_FIRST:
		o->load.window.skip_first = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return EXIT_DONE;
	case '?':
		/* getopt has said what is wrong. */
		return cmd_try_help("diff");
	default:
		return parse_number(o, c);
	}
}

/*
 * Options and paths in the order they stand in: --vs divides the paths. Without it
 * there are two. Returns -1 to go on, else an exit status.
 */
static int parse_words(struct diff_options *o, struct side sides[static 2], int argc, char **argv)
{
	int c, status = -1, side = 0;
	bool divided = false;

	while (status < 0 && (c = getopt_long(argc, argv, "-f:o:j:vh", long_options, NULL)) != -1) {
		if (c == OPT_VS && divided)
			return cmd_usage_error("diff", "--vs: expected once, found twice");
		if (c == OPT_VS)
			side = 1, divided = true;
		else if (c != 1)
			status = parse_option(o, c);
		else if (vec_push(&sides[side].given, optarg) < 0)
			return cmd_fail("out of memory");
	}
	for (; status < 0 && optind < argc; optind++) {
		if (vec_push(&sides[side].given, argv[optind]) < 0)
			return cmd_fail("out of memory");
	}
	if (status >= 0)
		return status;
	if (!divided && sides[0].given.cnt == 2) {
		sides[0].given.cnt = 1;
		if (vec_push(&sides[1].given, sides[0].given.data[1]) < 0)
			return cmd_fail("out of memory");
	} else if (!divided) {
		return cmd_usage_error("diff",
				       "expected two paths, or paths, --vs and paths, found %zu%s",
				       sides[0].given.cnt, sides[0].given.cnt == 1 ? " path" : "");
	}
	if (sides[0].given.cnt == 0 || sides[1].given.cnt == 0)
		return cmd_usage_error("diff", "expected paths %s --vs, found nothing",
				       sides[0].given.cnt == 0 ? "before" : "behind");
	return -1;
}

/* Ranks as the files tell; one rank more than once is a repeat, no mistake. */
static void assign_ranks(const struct load_result *loaded)
{
	for (size_t i = 0; i < loaded->cnt; i++) {
		if (loaded->fps[i]->rank < 0) {
			(void)inputs_assign_ranks(loaded->fps, loaded->cnt);
			return;
		}
	}
}

/* other: its paths, if they are known, must be of traces of the same kind. */
static int load_side(struct side *side, const struct side *other, const struct diff_options *o)
{
	struct err err = { "out of memory" };

	if (inputs_expand(side->given.data, side->given.cnt, &side->paths, &err) < 0 ||
	    inputs_check_families(&side->paths, &other->paths, &err) < 0 ||
	    load_paths(&side->paths, &o->load, &side->loaded) < 0)
		return cmd_fail("%s", err.text);
	vec_foreach(f, &side->loaded.failures)
		(void)cmd_fail("%s", f->why.text);
	if (side->loaded.cnt == 0)
		return cmd_fail("%s: none of the %zu inputs could be used, nothing to compare",
				side->given.data[0], side->paths.cnt);
	assign_ranks(&side->loaded);
	return side->loaded.failures.cnt > 0 ? EXIT_FAILED : EXIT_DONE;
}

static struct compare_run run_of(struct side *side)
{
	(void)snprintf(side->label, sizeof(side->label), "%s", side->given.data[0]);
	if (side->given.cnt > 1)
		(void)snprintf(side->label, sizeof(side->label), "%.200s and %zu more",
			       side->given.data[0], side->given.cnt - 1);
	return (struct compare_run){
		.fps = (const struct fingerprint *const *)side->loaded.fps,
		.cnt = side->loaded.cnt,
		.label = side->label,
	};
}

static int compare_sides(const struct diff_options *o, struct side sides[static 2])
{
	struct compare_run before = run_of(&sides[0]), after = run_of(&sides[1]);
	struct comparison comparison;
	struct err err = { "" };
	int status = EXIT_DONE;

	if (compare_runs(&before, &after, &o->compare, &comparison, &err) < 0)
		return cmd_fail("%s", err.text);
	if (output_comparison(&comparison, o->format, o->verbose, o->output, &err) < 0)
		status = cmd_fail("%s", err.text);
	else if (o->exit_code && comparison.verdict == COMPARISON_SLOWER)
		status = EXIT_ABNORMAL;
	comparison_done(&comparison);
	return status;
}

static int diff_sides(const struct diff_options *o, struct side sides[static 2])
{
	int before = load_side(&sides[0], &sides[1], o), after = EXIT_FAILED;
	int status;

	if (sides[0].loaded.cnt > 0)
		after = load_side(&sides[1], &sides[0], o);
	if (sides[0].loaded.cnt == 0 || sides[1].loaded.cnt == 0)
		return EXIT_FAILED;
	status = compare_sides(o, sides);
	return before != EXIT_DONE || after != EXIT_DONE ? EXIT_FAILED : status;
}

int cmd_diff(int argc, char **argv)
{
	struct side sides[2] = { 0 };
	struct diff_options o = {
		.compare = compare_defaults(),
		.load = load_defaults(),
	};
	int status = parse_words(&o, sides, argc, argv);

	if (status < 0)
		status = diff_sides(&o, sides);
	for (int i = 0; i < 2; i++) {
		load_done(&sides[i].loaded);
		path_list_done(&sides[i].paths);
		vec_done(&sides[i].given);
	}
	return status;
}
