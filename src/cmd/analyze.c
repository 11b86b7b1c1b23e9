/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker analyze` and `perftracker localize`: files in, a report out. */
#include "base/clock.h"
#include "center/anysize.h"
#include "cmd/cmd.h"
#include "cmd/hangfiles/hangfiles.h"
#include "cmd/jobfiles/oneset.h"
#include "cmd/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct analyze_options {
	struct output_how how;
	rankset_vec ranks;
	bool exit_code;
	const char *past;
	struct expect_table expect;
	struct load_options load;
	struct localize_options localize;
};

static int set_expect(void *table, const char *path, struct err *err)
{
	return expect_load(path, (struct expect_table *)table, err);
}

#define FIELD(field) OPTION_FIELD(struct analyze_options, field)

static const struct option_row rows[] = {
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json|html",
	  FIELD(how.format),
	  .help = "format of the report",
	  .preset = "text",
	  .more = "docs/report-schema.json describes the JSON." },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(how.path),
	  .help = "write the report to FILE instead of standard output" },
	{ .name = "ranks",
	  .argument = "SET",
	  FIELD(ranks),
	  .set = cmd_set_ranks,
	  .help = "use only these ranks, for example 0-3,7" },
	{ .name = "steps",
	  .argument = "FIRST-LAST",
	  FIELD(load.window),
	  .set = cmd_set_steps,
	  .expected = STEPS_EXPECTED,
	  .help = "use only these profiler steps, for example 4-6" },
	{ .name = "min-gain",
	  .argument = "PERCENT",
	  FIELD(localize.min_gain_pct),
	  .high = 100,
	  .expected = "a percentage in 0..100",
	  .help = "omit findings whose repair saves less of an iteration",
	  .preset = "1" },
	{ .name = "expect",
	  .argument = "FILE",
	  FIELD(expect),
	  .set = set_expect,
	  .help = "expected ranges that replace the defaults (JSON)" },
	{ .name = "exact",
	  FIELD(localize.exact),
	  .help = "compare each worker with all peers, not with a sample of 100" },
	{ .name = "seed",
	  .argument = "N",
	  FIELD(localize.seed),
	  .help = "seed of the sample of peers",
	  .preset = "1" },
	{ .name = "world-size",
	  .argument = "N",
	  FIELD(localize.workers_expected),
	  .low = 1,
	  .high = 1 << 20,
	  .expected = "a number of ranks",
	  .help = "number of ranks of the job",
	  .preset = "as recorded in the traces" },
	{ .name = "past",
	  .argument = "PATH",
	  FIELD(past),
	  .help = "traces or fingerprints of the same job while it was healthy, to compare with",
	  .more = "What takes longer than it did then, on which ranks, is a finding of its own "
		  "(PT-303), also in a job of one rank." },
	{ .name = "exit-code",
	  FIELD(exit_code),
	  .help = "exit with 3 when the verdict is a fault, 4 when it is undecided" },
	COLOR_ROW(struct analyze_options, how.color),
	{ .name = "verbose",
	  .letter = 'v',
	  FIELD(how.verbose),
	  .help = "print all findings in full, whole stacks and lists in the text" },
	{ .name = "jobs",
	  .letter = 'j',
	  .argument = "N",
	  FIELD(load.job_cnt),
	  .low = 1,
	  .high = LOAD_JOBS_MAX,
	  .help = "number of files to read at once",
	  .preset = "number of processors" },
};

/* Keeps the fingerprints of the ranks of --ranks, in place. */
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

/* The reason alone: a report names the source beside it. */
static const char *without_path(const struct load_failure *failure)
{
	size_t len = strlen(failure->source);
	const char *why = failure->why.text;

	return strncmp(why, failure->source, len) == 0 && strncmp(why + len, ": ", 2) == 0
		       ? why + len + 2
		       : why;
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
						       without_path(&loaded->failures.data[i]) };
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

/* Keeps the files of one window of one job. Sets of several jobs are listed on stderr. */
static int take_one_job(struct load_result *loaded, struct oneset *oneset, struct err *err)
{
	struct str why = { 0 };
	int error = oneset_take(loaded->fps, &loaded->cnt, oneset, &why);

	if (error == -EINVAL)
		(void)cmd_fail("%s", str_borrow(&why));
	if (error < 0)
		error = err_set(err, -error, "%s",
				error == -EINVAL ? "the inputs cannot be compared"
						 : "out of memory");
	str_done(&why);
	return error;
}

/* Reads the traces or fingerprints of the job's past. */
static int load_past(const struct analyze_options *o, struct load_result *ret, struct err *err)
{
	struct oneset oneset = { 0 };
	path_list paths = { 0 };
	char *path = (char *)(uintptr_t)o->past;
	int error = o->past != NULL ? inputs_expand(&path, 1, &paths, err) : 0;

	if (error == 0 && paths.cnt > 0)
		error = load_paths(&paths, &o->load, ret);
	if (error == 0 && ret->failures.cnt > 0)
		error = err_set(err, EINVAL, "%s", ret->failures.data[0].why.text);
	if (error == 0)
		error = take_one_job(ret, &oneset, err);
	oneset_done(&oneset);
	path_list_done(&paths);
	return error;
}

/* Compares, beside the job's past if there is one. */
static int compare_with_past(struct analyze_options *o, struct load_result *loaded,
			     struct report *ret, struct err *err)
{
	struct load_result past = { 0 };
	struct oneset oneset = { 0 };
	int error = take_one_job(loaded, &oneset, err);

	if (error == 0)
		error = load_past(o, &past, err);
	o->localize.past = (const struct fingerprint *const *)past.fps;
	o->localize.past_cnt = past.cnt;
	o->localize.rank_source = oneset.rank_source;
	o->localize.notes = (const char *const *)oneset.notes.data;
	o->localize.note_cnt = oneset.notes.cnt;
	o->localize.perhaps_two_jobs = oneset.only_alike;
	if (error == 0)
		error = compare(o, loaded, ret, err);
	load_done(&past);
	oneset_done(&oneset);
	return error;
}

static int exit_of(enum verdict verdict)
{
	if (verdict_is_bad(verdict))
		return EXIT_ABNORMAL;
	return verdict_is_open(verdict) ? EXIT_UNDECIDED : EXIT_DONE;
}

static int report_loaded(struct analyze_options *o, struct load_result *loaded, int64_t start_ns)
{
	struct report report;
	struct err err = { "" };
	int status = loaded->failures.cnt > 0 ? EXIT_FAILED : EXIT_DONE;

	vec_foreach(f, &loaded->failures)
		(void)cmd_fail("%s", f->why.text);
	if (loaded->cnt == 0 && loaded->failures.cnt > 0)
		return cmd_fail("none of the inputs could be used");
	if (compare_with_past(o, loaded, &report, &err) < 0)
		return cmd_fail("%s", err.text);
	report.elapsed_ms = (double)(clock_mono_ns() - start_ns) / 1e6;
	if (output_report(&report, &o->how, &err) < 0)
		status = cmd_fail("%s", err.text);
	else if (status == EXIT_DONE && o->exit_code)
		status = exit_of(report.verdict);
	report_done(&report);
	return status;
}

static int print_hang(struct analyze_options *o, const path_list *paths)
{
	struct report report;
	struct dumps dumps;
	struct err err = { "" };
	int64_t start_ns = clock_mono_ns();
	int status = EXIT_DONE;

	dumps_init(&dumps);
	if (hangfiles_report(paths, o->localize.workers_expected, &dumps, &report, &err) < 0) {
		dumps_done(&dumps);
		return cmd_fail("%s", err.text);
	}
	report.elapsed_ms = (double)(clock_mono_ns() - start_ns) / 1e6;
	if (output_report(&report, &o->how, &err) < 0)
		status = cmd_fail("%s", err.text);
	else if (report.failure_cnt > 0)
		status = EXIT_FAILED;
	else if (o->exit_code)
		status = exit_of(report.verdict);
	report_done(&report);
	dumps_done(&dumps);
	return status;
}

/* Dumps of a job that hangs instead of traces. Returns false if there are none. */
static bool analyze_dumps(struct analyze_options *o, char **argv, size_t cnt, int *ret_status)
{
	path_list paths = { 0 };
	char *other = NULL;
	const int found = hangfiles_find(argv, cnt, &paths, &other);

	if (found < 0)
		*ret_status = cmd_fail("out of memory");
	else if (found > 0 && other != NULL)
		*ret_status =
			cmd_fail("expected either traces or dumps of a job that hangs, found both "
				 "(%s, %s): give one kind at a time",
				 other, paths.data[0]);
	else if (found > 0)
		*ret_status = print_hang(o, &paths);
	free(other);
	path_list_done(&paths);
	return found != 0;
}

static int analyze_paths(struct analyze_options *o, char **argv, size_t cnt)
{
	struct load_result loaded = { 0 };
	path_list paths = { 0 };
	struct err err = { "out of memory" };
	int64_t start_ns = clock_mono_ns();
	int status;

	if (analyze_dumps(o, argv, cnt, &status))
		return status;
	if (inputs_expand(argv, cnt, &paths, &err) < 0 || load_paths(&paths, &o->load, &loaded) < 0)
		status = cmd_fail("%s", err.text);
	else
		status = report_loaded(o, &loaded, start_ns);
	load_done(&loaded);
	path_list_done(&paths);
	return status;
}

static int analyze_main(const struct command *command, int argc, char **argv)
{
	struct analyze_options o = {
		.expect = expect_defaults(),
		.load = load_defaults(),
		.localize = localize_defaults(),
	};
	int first, status = optiontable_parse(command, argc, argv, &o, &first);

	if (status == OPTIONS_PARSED && first == argc)
		status = cmd_usage_error(command->name,
					 "expected traces or a folder of them, found nothing");
	if (status == OPTIONS_PARSED)
		status = analyze_paths(&o, argv + first, (size_t)(argc - first));
	vec_done(&o.ranks);
	return status;
}

static const char notes[] =
	"Ranks come from distributedInfo in the traces (in Nsight Systems exports: from NCCL or "
	"MPI), else from names of files (rank3, worker-12) or folders (rank3/), else from the order "
	"of the arguments; the report says which. A copy counts once. Of several windows of a run "
	"the latest that most ranks have is analyzed; files of several jobs are refused with a "
	"list.\n"
	"Exit status: 0 done; 1 an input could not be used (the others are reported); 2 usage "
	"error. With --exit-code: 3 abnormal, slow, stuck or failed; 4 inconclusive or "
	"incomplete.\n";

const struct command cmd_analyze = {
	.name = "analyze",
	.summary = "find the culprit in the traces of a job",
	.usage = "[OPTION]... PATH...\n",
	.about =
		"Reads the traces of a job, compares its ranks, and names the function and the "
		"rank that make the job slow, or reports that the job is healthy.\n"
		"PATH is a trace of torch.profiler (Kineto JSON, plain or .gz) or of jax.profiler on "
		"CPUs (.trace.json.gz) or a flight log, one file per rank; an SQLite export of Nsight Systems, in which each process with "
		"GPU work is a rank; a fingerprint that `perftracker summarize` wrote; or a folder "
		"of such files.\n"
		"Of a job that hangs, PATH is a dump, or a folder of dumps of one or several kinds: "
		"of PyTorch's NCCL flight recorder (pickle, which is not executed, or JSON), of "
		"py-spy (text or JSON), of gdb (`thread apply all bt`), of `perftracker stacks "
		"--format json`. The ranks are those in the dumps, else the numbers in their names.\n",
	OPTION_ROWS(rows),
	.notes = notes,
	.examples =
		"perftracker analyze traces/\n"
		"perftracker analyze --format html -o report.html rank*.json.gz\n"
		"perftracker analyze --format json --exit-code traces/ | jq .findings[0]\n"
		"nsys export --type sqlite host0.nsys-rep && perftracker analyze host0.sqlite\n",
	.run = analyze_main,
};

const struct command cmd_localize = {
	.name = "localize",
	.summary = "find the culprit in the fingerprints of a job",
	.usage = "[OPTION]... PATH...\n",
	.about = "Compares fingerprints, files that `perftracker summarize` wrote, one per rank, "
		 "or folders of them, and reports as `perftracker analyze` does. The folder of a "
		 "`perftracker run`, or the word latest, stands for the latest profile of that "
		 "run.\n",
	OPTION_ROWS(rows),
	.notes = notes,
	.examples = "perftracker localize fingerprints/\n"
		    "perftracker localize latest\n"
		    "perftracker localize --format html -o report.html rank*.ptfp\n",
	.run = analyze_main,
};
