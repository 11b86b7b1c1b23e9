/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker analyze` and `perftracker localize`: files in, a report out. */
#include "base/clock.h"
#include "center/anysize.h"
#include "cmd/cmd.h"
#include "cmd/load.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char analyze_help[] =
	"Usage: perftracker analyze [OPTION]... PATH...\n"
	"\n"
	"Reads the traces of a job's ranks (torch.profiler / Kineto JSON, plain or .gz; one\n"
	"file a rank, or a folder of them; or SQLite exports of Nsight Systems, in which each\n"
	"process with GPU work is a rank), and names the function and the rank that make the\n"
	"job slow, or says that it is healthy.\n";

static const char localize_help[] =
	"Usage: perftracker localize [OPTION]... PATH...\n"
	"\n"
	"Compares fingerprints (files of 'perftracker summarize', one a rank, or a folder of\n"
	"them) and reports as 'perftracker analyze' does.\n";

static const char options_help[] =
	"\n"
	"  -f, --format FORMAT   text (default), json or html\n"
	"  -o, --output FILE     write the report to FILE instead of standard output\n"
	"      --ranks SET       use these ranks only, for example 0-3,7\n"
	"      --steps FIRST-LAST  use these profiler steps only, for example 4-6\n"
	"      --min-gain PCT    leave out findings whose repair gives back less of an\n"
	"                        iteration (default 1)\n"
	"      --expect FILE     expected ranges that replace the defaults (JSON)\n"
	"      --exact           compare each worker with all peers, not with 100 of them\n"
	"      --seed N          of the choice of peers (default 1)\n"
	"      --world-size N    ranks the job has; default: what the traces say\n"
	"      --exit-code       exit with 3 when the verdict is abnormal\n"
	"  -j, --jobs N          files to read at once (default: processors)\n"
	"  -h, --help            show this help\n"
	"\n"
	"Ranks come from the traces' distributedInfo (exports: NCCL's or MPI's ranks), else from\n"
	"the file names (rank3, worker-12), else from the order; the report says which.\n"
	"\n"
	"Exit status: 0 done, 1 an input could not be used (the others are reported), 2 usage.\n"
	"\n"
	"Examples:\n"
	"  perftracker analyze traces/\n"
	"  perftracker analyze --format html -o report.html rank*.json.gz\n"
	"  perftracker analyze --format json --exit-code traces/ | jq .findings[0]\n"
	"  nsys export --type sqlite host0.nsys-rep && perftracker analyze host0.sqlite\n";

struct analyze_options {
	const char *command;
	enum output_format format;
	const char *output;
	rankset_vec ranks;
	bool exit_code;
	struct expect_table expect;
	struct load_options load;
	struct localize_options localize;
};

enum {
	OPT_RANKS = 256,
	OPT_STEPS,
	OPT_MIN_GAIN,
	OPT_EXPECT,
	OPT_EXACT,
	OPT_SEED,
	OPT_WORLD,
	OPT_EXIT_CODE
};

static const struct option long_options[] = {
	{ "format", required_argument, NULL, 'f' },
	{ "output", required_argument, NULL, 'o' },
	{ "ranks", required_argument, NULL, OPT_RANKS },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "min-gain", required_argument, NULL, OPT_MIN_GAIN },
	{ "expect", required_argument, NULL, OPT_EXPECT },
	{ "exact", no_argument, NULL, OPT_EXACT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "world-size", required_argument, NULL, OPT_WORLD },
	{ "exit-code", no_argument, NULL, OPT_EXIT_CODE },
	{ "jobs", required_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Options about the comparison. Returns -1 when handled, else an exit status. */
static int parse_compare_option(struct analyze_options *o, int c)
{
	struct err err = { "" };
	int64_t number;

	switch (c) {
	case OPT_RANKS:
		vec_done(&o->ranks);
		if (rankset_parse(optarg, &o->ranks, &err) < 0)
			return cmd_usage_error(o->command, "%s", err.text);
		return -1;
	case OPT_STEPS:
		return load_parse_steps(&o->load, o->command);
	case OPT_MIN_GAIN:
		if (cmd_parse_double(optarg, 0, 100, &o->localize.min_gain_pct) < 0)
			return cmd_bad_value(o->command, "min-gain", "a percentage in 0..100");
		return -1;
	case OPT_EXPECT:
		if (expect_load(optarg, &o->expect, &err) < 0)
			return cmd_usage_error(o->command, "%s", err.text);
		return -1;
	case OPT_EXACT:
		o->localize.exact = true;
		return -1;
	case OPT_SEED:
		if (cmd_parse_int(optarg, 0, INT64_MAX, &number) < 0)
			return cmd_bad_value(o->command, "seed", "a number");
		o->localize.seed = (uint64_t)number;
		return -1;
	case OPT_WORLD:
		if (cmd_parse_int(optarg, 1, 1 << 20, &number) < 0)
			return cmd_bad_value(o->command, "world-size", "a number of ranks");
		o->localize.workers_expected = (int)number;
		return -1;
	default:
		return cmd_usage_error(o->command, "unknown option");
	}
}

/* Returns -1 to go on, else an exit status. */
static int parse_option(struct analyze_options *o, const char *help, int c)
{
	switch (c) {
	case 'f':
		if (output_format_parse(optarg, &o->format) < 0)
			return cmd_bad_value(o->command, "format", "text, json or html");
		return -1;
	case 'o':
		o->output = optarg;
		return -1;
	case 'j':
		return load_parse_jobs(&o->load, o->command);
	case OPT_EXIT_CODE:
		o->exit_code = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		fputs(options_help, stdout);
		return EXIT_DONE;
	case '?':
		/* getopt has said what is wrong. */
		return cmd_try_help(o->command);
	default:
		return parse_compare_option(o, c);
	}
}

/* Keeps the fingerprints whose rank is wished, in place. */
static int keep_ranks(const struct analyze_options *o, struct load_result *loaded, struct err *err)
{
	size_t kept = 0;

	if (o->ranks.cnt == 0)
		return 0;
	for (size_t i = 0; i < loaded->cnt; i++) {
		bool wished = false;

		for (size_t k = 0; k < o->ranks.cnt; k++)
			wished |= o->ranks.data[k] == loaded->fps[i]->rank;
		if (wished) {
			loaded->fps[kept++] = loaded->fps[i];
			continue;
		}
		fingerprint_done(loaded->fps[i]);
		free(loaded->fps[i]);
	}
	loaded->cnt = kept;
	return kept > 0 ? 0
			: err_set(err, ENOENT, "--ranks: none of these ranks is among the inputs");
}

static int compare(struct analyze_options *o, struct load_result *loaded, struct report *ret,
		   struct err *err)
{
	_cleanup_free_ struct report_failure *failures =
		calloc(loaded->failures.cnt + 1, sizeof(*failures));
	int error;

	if (failures == NULL)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < loaded->failures.cnt; i++)
		failures[i] = (struct report_failure){ loaded->failures.data[i].source,
						       loaded->failures.data[i].why.text };
	o->localize.rank_source = inputs_assign_ranks(loaded->fps, loaded->cnt);
	o->localize.failures = failures;
	o->localize.failure_cnt = loaded->failures.cnt;
	o->localize.expect = &o->expect;
	error = keep_ranks(o, loaded, err);
	if (error < 0)
		return error;
	if (o->ranks.cnt > 0 && o->localize.workers_expected == 0) {
		o->localize.ranks_expected = o->ranks.data;
		o->localize.rank_expected_cnt = o->ranks.cnt;
	}
	return anysize_localize((const struct fingerprint *const *)loaded->fps, loaded->cnt,
				&o->localize, ANYSIZE_BLAME_MAX, ret, err);
}

static int report_loaded(struct analyze_options *o, struct load_result *loaded, int64_t start_ns)
{
	struct report report;
	struct err err = { "" };
	int status = loaded->failures.cnt > 0 ? EXIT_FAILED : EXIT_DONE;

	vec_foreach(f, &loaded->failures)
		(void)cmd_fail("%s", f->why.text);
	if (loaded->cnt == 0 && loaded->failures.cnt > 0)
		return cmd_fail("none of the %zu inputs could be used", loaded->failures.cnt);
	if (compare(o, loaded, &report, &err) < 0)
		return cmd_fail("%s", err.text);
	report.elapsed_ms = (double)(clock_mono_ns() - start_ns) / 1e6;
	if (output_report(&report, o->format, o->output, &err) < 0)
		status = cmd_fail("%s", err.text);
	else if (status == EXIT_DONE && o->exit_code && report.verdict == VERDICT_ABNORMAL)
		status = EXIT_ABNORMAL;
	report_done(&report);
	return status;
}

static int analyze_paths(struct analyze_options *o, char **argv, size_t cnt)
{
	struct load_result loaded = { 0 };
	path_list paths = { 0 };
	struct err err = { "out of memory" };
	int64_t start_ns = clock_mono_ns();
	int status;

	if (inputs_expand(argv, cnt, &paths, &err) < 0 || load_paths(&paths, &o->load, &loaded) < 0)
		status = cmd_fail("%s", err.text);
	else
		status = report_loaded(o, &loaded, start_ns);
	load_done(&loaded);
	path_list_done(&paths);
	return status;
}

static int analyze_main(const char *command, const char *help, int argc, char **argv)
{
	struct analyze_options o = {
		.command = command,
		.expect = expect_defaults(),
		.load = load_defaults(),
		.localize = localize_defaults(),
	};
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "f:o:j:h", long_options, NULL)) != -1)
		status = parse_option(&o, help, c);
	if (status < 0 && optind == argc)
		status = cmd_usage_error(command,
					 "expected traces or a folder of them, found nothing");
	if (status < 0)
		status = analyze_paths(&o, argv + optind, (size_t)(argc - optind));
	vec_done(&o.ranks);
	return status;
}

int cmd_analyze(int argc, char **argv)
{
	return analyze_main("analyze", analyze_help, argc, argv);
}

int cmd_localize(int argc, char **argv)
{
	return analyze_main("localize", localize_help, argc, argv);
}
