/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker diff`: two runs of a job in, what changed between them out. */
#include "cmd/cmd.h"
#include "cmd/jobfiles/oneset.h"
#include "cmd/load.h"
#include "cmd/memory/storedwindow.h"
#include "cmd/storechoice.h"
#include "compare/compare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The files of one run. */
struct side {
	path_list given; /* borrowed words of the command line */
	path_list paths;
	struct load_result loaded;
	char label[256];
};

struct diff_options {
	struct output_how how;
	bool exit_code;
	const char *store;
	struct compare_options compare;
	struct load_options load;
	struct side sides[2]; /* before, after */
	bool divided;	      /* --vs was given: paths belong to after from then on */
};

static int take_path(void *options, char *path)
{
	struct diff_options *o = options;

	return vec_push(&o->sides[o->divided].given, path);
}

static int set_vs(void *divided, const char *text, struct err *err)
{
	(void)text;
	if (*(bool *)divided)
		return err_set(err, EINVAL, "--vs: expected once, found twice");
	*(bool *)divided = true;
	return 0;
}

#define FIELD(field) OPTION_FIELD(struct diff_options, field)

static const struct option_row rows[] = {
	{ .name = "vs",
	  FIELD(divided),
	  .set = set_vs,
	  .help = "separates BEFORE from AFTER; needed when either has several paths" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json|html",
	  FIELD(how.format),
	  .help = "format of the report",
	  .preset = "text",
	  .more = "docs/compare-schema.json describes the JSON." },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(how.path),
	  .help = "write the report to FILE instead of standard output" },
	{ .name = "min-change",
	  .argument = "PERCENT",
	  FIELD(compare.min_change_pct),
	  .high = 100,
	  .expected = "a percentage in 0..100",
	  .help = "sum up changes below this share of the iteration of BEFORE",
	  .preset = "1" },
	{ .name = "level",
	  .argument = "SHARE",
	  FIELD(compare.level),
	  .high = 1,
	  .expected = "a share in 0..1",
	  .help = "accepted share of false alarms among the significant changes",
	  .preset = "0.05" },
	{ .name = "steps",
	  .argument = "FIRST-LAST",
	  FIELD(load.window),
	  .set = cmd_set_steps,
	  .expected = STEPS_EXPECTED,
	  .help = "use only these profiler steps, for example 4-6" },
	{ .name = "skip-first",
	  FIELD(load.window.skip_first),
	  .help = "omit the first step of windows of four or more" },
	{ .name = "exit-code",
	  FIELD(exit_code),
	  .help = "exit with 3 when AFTER is significantly slower" },
	COLOR_ROW(struct diff_options, how.color),
	STORE_CHOICE_ROW(struct diff_options, store),
	{ .name = "verbose",
	  .letter = 'v',
	  FIELD(how.verbose),
	  .help = "print all changes and whole stacks in the text" },
	{ .name = "jobs",
	  .letter = 'j',
	  .argument = "N",
	  FIELD(load.job_cnt),
	  .low = 1,
	  .high = LOAD_JOBS_MAX,
	  .help = "number of files to read at once",
	  .preset = "number of processors" },
};

/* Arguments behind "--", and two paths without --vs. Returns OPTIONS_PARSED or a status. */
static int divide_paths(struct diff_options *o, int cnt, char **paths)
{
	struct side *sides = o->sides;

	for (int i = 0; i < cnt; i++) {
		if (take_path(o, paths[i]) < 0)
			return cmd_fail("out of memory");
	}
	if (!o->divided && sides[0].given.cnt == 2) {
		sides[0].given.cnt = 1;
		if (vec_push(&sides[1].given, sides[0].given.data[1]) < 0)
			return cmd_fail("out of memory");
	} else if (!o->divided) {
		return cmd_usage_error("diff",
				       "expected two paths, or paths, --vs and paths, found %zu%s",
				       sides[0].given.cnt, sides[0].given.cnt == 1 ? " path" : "");
	}
	if (sides[0].given.cnt == 0 || sides[1].given.cnt == 0)
		return cmd_usage_error("diff", "expected paths %s --vs, found nothing",
				       sides[0].given.cnt == 0 ? "before" : "after");
	return OPTIONS_PARSED;
}

/* The traces must be of the same kind as those of other, as far as its paths are known. */
static int load_side(struct side *side, const struct side *other, const struct diff_options *o)
{
	struct err err = { "out of memory" };

	if (side->given.cnt == 1 && storedwindow_is(side->given.data[0])) {
		if (storedwindow_load(o->store, side->given.data[0], &side->loaded, &err) < 0) {
			load_done(&side->loaded);
			return cmd_fail("%s", err.text);
		}
		(void)oneset_assign_ranks(side->loaded.fps, side->loaded.cnt);
		return EXIT_DONE;
	}
	if (inputs_expand(side->given.data, side->given.cnt, &side->paths, &err) < 0 ||
	    inputs_check_families(&side->paths, &other->paths, &err) < 0 ||
	    load_paths(&side->paths, &o->load, &side->loaded) < 0)
		return cmd_fail("%s", err.text);
	vec_foreach(f, &side->loaded.failures)
		(void)cmd_fail("%s", f->why.text);
	if (side->loaded.cnt == 0)
		return cmd_fail("%s: none of the inputs could be used, nothing to compare",
				side->given.data[0]);
	/* A rank that occurs twice is a repeat, not an error. */
	(void)oneset_assign_ranks(side->loaded.fps, side->loaded.cnt);
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
	if (output_comparison(&comparison, &o->how, &err) < 0)
		status = cmd_fail("%s", err.text);
	else if (o->exit_code && comparison.verdict == COMPARISON_SLOWER)
		status = EXIT_ABNORMAL;
	comparison_done(&comparison);
	return status;
}

static int diff_sides(struct diff_options *o)
{
	struct side *sides = o->sides;
	int before = load_side(&sides[0], &sides[1], o), after = EXIT_FAILED;
	int status;

	if (sides[0].loaded.cnt > 0)
		after = load_side(&sides[1], &sides[0], o);
	if (sides[0].loaded.cnt == 0 || sides[1].loaded.cnt == 0)
		return EXIT_FAILED;
	status = compare_sides(o, sides);
	return before != EXIT_DONE || after != EXIT_DONE ? EXIT_FAILED : status;
}

static int diff_main(const struct command *command, int argc, char **argv)
{
	struct diff_options o = {
		.compare = compare_defaults(),
		.load = load_defaults(),
	};
	int first, status = optiontable_parse(command, argc, argv, &o, &first);

	if (status == OPTIONS_PARSED)
		status = divide_paths(&o, argc - first, argv + first);
	if (status == OPTIONS_PARSED)
		status = diff_sides(&o);
	for (int i = 0; i < 2; i++) {
		load_done(&o.sides[i].loaded);
		path_list_done(&o.sides[i].paths);
		vec_done(&o.sides[i].given);
	}
	return status;
}

const struct command cmd_diff = {
	.name = "diff",
	.summary = "compare two runs of a job: what became slower",
	.usage = "[OPTION]... BEFORE AFTER\n"
		 "[OPTION]... BEFORE... --vs AFTER...\n",
	.about =
		"Compares two runs of a job: before and after an upgrade, two clusters, two versions "
		"of the code. Names the functions that take more or less time per iteration, that "
		"appeared or vanished (\"CompiledFunction is gone\"), that were renamed (kernels of "
		"another library) or have another caller, and says whether a change may be chance. "
		"The changes add up to the change of the iteration.\n"
		"BEFORE and AFTER are traces, flight logs or fingerprints, one per rank, or folders "
		"of them, or a report of the store as JOB/NUMBER, whose fingerprints it keeps. "
		"Several files of one rank are repeats of the run, the best test of "
		"chance.\n",
	OPTION_ROWS(rows),
	.order = ORDER_AS_GIVEN,
	.take_argument = take_path,
	.notes = "Exit status: 0 done; 1 an input could not be used; 2 usage error; 3 slower, with "
		 "--exit-code.\n",
	.examples = "perftracker diff old/ new/\n"
		    "perftracker diff old/rank*.json.gz --vs new/rank*.json.gz\n"
		    "perftracker diff train/2 train/5\n"
		    "perftracker diff --exit-code --min-change 5 baseline.ptfp today.ptfp\n",
	.run = diff_main,
};
