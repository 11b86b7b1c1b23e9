/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker flame: the call stacks that launched the time of traces, as a flame graph. */
#include "cmd/cmd.h"
#include "cmd/jobfiles/ranknames.h"
#include "cmd/runfolder.h"
#include "read/reader.h"
#include "report/flame/flameforms.h"
#include "summarize/flame/launchstacks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum flame_format { FORMAT_HTML, FORMAT_FOLDED, FORMAT_SPEEDSCOPE, FORMAT_SVG };
enum flame_weight { WEIGHT_AUTO, WEIGHT_DEVICE, WEIGHT_HOST, WEIGHT_WAIT };

struct flame_args {
	unsigned int format, weight;
	const char *output;
	rankset_vec ranks; /* empty: all */
};

struct flame {
	const struct flame_args *args;
	enum launch_weight weight;
	bool weight_known;
	struct flametree tree;
	VEC(int) ranks; /* by member */
	struct launchstacks sums;
	size_t failed, numbered;
};

#define FIELD(field) OPTION_FIELD(struct flame_args, field)

static const struct option_row rows[] = {
	{ .name = "weight",
	  .letter = 'w',
	  .words = "auto|device|host|wait",
	  FIELD(weight),
	  .help = "what widths are: time of kernels and copies, by the stack that launched them; time "
		  "of threads, by the innermost function; the part of it in calls that only wait",
	  .preset = "device if the first trace has kernels, else host" },
	{ .name = "ranks",
	  .argument = "SET",
	  FIELD(ranks),
	  .set = cmd_set_ranks,
	  .help = "only these ranks, for example 0-3,7" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "html|folded|speedscope|svg",
	  FIELD(format),
	  .help = "a page that can be searched and zoomed; lines for flamegraph.pl, in microseconds; "
		  "a file for speedscope; a picture",
	  .preset = "html" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE; - is standard output",
	  .preset = "flame.html, other formats to standard output" },
};

static const char *what_of(enum launch_weight weight)
{
	switch (weight) {
	case LAUNCH_DEVICE:
		return "time of kernels and copies, by the stack that launched them";
	case LAUNCH_HOST:
		return "time of threads, by function";
	case LAUNCH_WAIT:
	default:
		return "time of threads in calls that wait";
	}
}

static bool is_wanted(const rankset_vec *ranks, int rank)
{
	for (size_t i = 0; i < ranks->cnt; i++) {
		if (ranks->data[i] == rank)
			return true;
	}
	return ranks->cnt == 0;
}

/* Returns 0 with *ret, or -EEXIST with a line in err. */
static int rank_of(struct flame *f, const struct trace *trace, const char *path, int *ret,
		   struct err *err)
{
	int rank = trace->meta.rank >= 0 ? trace->meta.rank : ranknames_of_file(path);

	if (rank < 0) {
		rank = (int)f->ranks.cnt;
		f->numbered++;
	}
	vec_foreach(known, &f->ranks) {
		if (*known == rank)
			return err_set(err, EEXIST,
				       "%s: rank %d has a file before this one: give one window",
				       path, rank);
	}
	*ret = rank;
	return 0;
}

static int add_trace(struct flame *f, const struct trace *trace, const char *path, struct err *err)
{
	struct launchstacks found;
	int rank = -1, error = rank_of(f, trace, path, &rank, err);

	if (error < 0 || !is_wanted(&f->args->ranks, rank))
		return error;
	if (!f->weight_known) {
		f->weight_known = true;
		f->weight = f->args->weight == WEIGHT_AUTO
				    ? (trace->meta.has_device ? LAUNCH_DEVICE : LAUNCH_HOST)
				    : (enum launch_weight)(f->args->weight - WEIGHT_DEVICE);
	}
	if (vec_push(&f->ranks, rank) < 0 ||
	    launchstacks_add(trace, f->weight, (uint32_t)(f->ranks.cnt - 1), &f->tree, &found) < 0)
		return err_set(err, ENOMEM, "out of memory");
	f->sums.total_ns += found.total_ns;
	f->sums.cnt += found.cnt;
	f->sums.without_launch += found.without_launch;
	f->sums.without_python += found.without_python;
	return 0;
}

/* A file that cannot be used does not stop the others. */
static int add_all(struct flame *f, const path_list *paths, struct err *err)
{
	int error = 0;

	for (size_t i = 0; i < paths->cnt && error != -ENOMEM; i++) {
		struct err why = { "" };
		struct trace trace;

		error = reader_read(paths->data[i], NULL, &trace, &why);
		if (error == 0) {
			error = add_trace(f, &trace, paths->data[i], &why);
			trace_done(&trace);
		}
		if (error == -ENOMEM)
			return err_set(err, ENOMEM, "%s", why.text);
		if (error == 0)
			continue;
		(void)fprintf(stderr, "perftracker: left out: %s\n", why.text);
		f->failed++;
	}
	if (f->ranks.cnt == 0)
		return err_set(err, ENOENT, "none of %zu file%s could be used%s", paths->cnt,
			       plural((double)paths->cnt),
			       f->args->ranks.cnt > 0 ? " for these ranks" : "");
	return 0;
}

/* What the picture lacks, on standard error. */
static void print_notes(const struct flame *f)
{
	if (f->numbered > 0)
		(void)fprintf(stderr,
			      "perftracker: %zu file%s without a rank: numbered in their order\n",
			      f->numbered, plural((double)f->numbered));
	if (f->weight == LAUNCH_DEVICE && f->sums.without_launch > 0)
		(void)fprintf(stderr,
			      "perftracker: the launch of %zu of %zu kernels and copies is not in "
			      "the traces\n",
			      f->sums.without_launch, f->sums.cnt);
	if (f->weight == LAUNCH_DEVICE &&
	    f->sums.without_python + f->sums.without_launch == f->sums.cnt)
		(void)fprintf(stderr, "perftracker: no Python functions above the kernels: "
				      "torch.profiler.profile(with_stack=True) records them\n");
	if (f->tree.dropped > 0)
		(void)fprintf(stderr, "perftracker: %zu frames beyond the limit of %u\n",
			      f->tree.dropped, FLAMETREE_NODES_MAX);
}

static int format_all(const struct flame *f, struct str *out)
{
	char subject[64];
	const struct flameforms forms = { .tree = &f->tree,
					  .what = what_of(f->weight),
					  .subject = subject,
					  .ranks = f->ranks.data,
					  .rank_cnt = f->ranks.cnt };

	if (f->ranks.cnt == 1)
		(void)snprintf(subject, sizeof(subject), "rank %d", f->ranks.data[0]);
	else
		(void)snprintf(subject, sizeof(subject), "all of %zu ranks", f->ranks.cnt);
	switch ((enum flame_format)f->args->format) {
	case FORMAT_FOLDED:
		return flameforms_folded(&forms, out);
	case FORMAT_SPEEDSCOPE:
		return flameforms_speedscope(&forms, out);
	case FORMAT_SVG:
		return flameforms_svg(&forms, out);
	case FORMAT_HTML:
	default:
		return flameforms_html(&forms, out);
	}
}

static int write_all(struct flame *f, struct err *err)
{
	const bool page = f->args->format == FORMAT_HTML;
	const char *path = f->args->output != NULL ? f->args->output : page ? "flame.html" : NULL;
	_cleanup_(str_done) struct str out = { 0 };

	if (flametree_finish(&f->tree) < 0 || format_all(f, &out) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (output_text(&out, path, err) < 0)
		return -EIO;
	if (path != NULL && strcmp(path, "-") != 0)
		(void)printf("%s\n", path);
	return 0;
}

/* Returns 0, or -ENOENT if there is nothing to show, with what would help in err. */
static int check_content(const struct flame *f, struct err *err)
{
	if (f->tree.nodes.cnt > 1 && f->sums.total_ns > 0)
		return 0;
	switch (f->weight) {
	case LAUNCH_DEVICE:
		return err_set(err, ENOENT,
			       "the traces have no kernels and copies: --weight host shows what "
			       "threads did");
	case LAUNCH_WAIT:
		return err_set(err, ENOENT,
			       "no thread is in a call that only waits: such calls are "
			       "recorded with with_stack=True, and on a GPU");
	case LAUNCH_HOST:
	default:
		return err_set(err, ENOENT, "the traces have no functions of threads");
	}
}

static int run(const struct flame_args *args, char **words, int cnt)
{
	struct flame f = { .args = args };
	char resolved[PATH_MAX], *folder = resolved;
	path_list paths = { 0 };
	struct err err = { "" };
	int error;

	if (cnt == 1 && runfolder_resolve(words[0], resolved) == resolved)
		words = &folder;
	error = inputs_expand(words, (size_t)cnt, &paths, &err);
	if (error == 0 && flametree_init(&f.tree) < 0)
		error = err_set(&err, ENOMEM, "out of memory");
	if (error == 0)
		error = add_all(&f, &paths, &err);
	if (error == 0)
		error = check_content(&f, &err);
	if (error == 0)
		error = write_all(&f, &err);
	if (error == 0)
		print_notes(&f);
	flametree_done(&f.tree);
	vec_done(&f.ranks);
	path_list_done(&paths);
	return error < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

static int flame_main(const struct command *command, int argc, char **argv)
{
	struct flame_args args = { .output = NULL };
	int first, status = optiontable_parse(command, argc, argv, &args, &first);

	if (status == OPTIONS_PARSED && first == argc)
		status = cmd_usage_error(command->name, "expected traces, or a folder of them");
	if (status == OPTIONS_PARSED)
		status = run(&args, argv + first, argc - first);
	vec_done(&args.ranks);
	return status;
}

const struct command cmd_flame = {
	.name = "flame",
	.summary = "show the call stacks that launched the time of traces",
	.usage = "[OPTION]... TRACE|FOLDER...\n",
	.about =
		"Shows where kernels come from: the Python functions and operators that were open when "
		"a kernel was launched, as a flame graph whose widths are device time, of one rank "
		"or of all ranks merged. Frames that only some ranks have, or one rank much more "
		"than the others, are red, and their tip names the ranks.\n"
		"TRACE is a trace of torch.profiler, one file per rank; Python functions are in it "
		"with with_stack=True. An SQLite export of Nsight Systems and the recorders that "
		"`perftracker run --keep-traces` keeps in OUT_DIR/traces are read, too.\n",
	.notes =
		"The page is one file that loads nothing. Its keys: arrows move, Enter zooms, Escape "
		"leaves the zoom, / searches. Device times of kernels that run beside each other "
		"are added. Work that the autograd thread launches is below that thread, because a "
		"trace does not say which function asked for it.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker flame rank*.pt.trace.json.gz\n"
		    "perftracker flame --weight host --ranks 3 -o rank3.html traces/\n"
		    "perftracker flame -f folded trace.json | flamegraph.pl > trace.svg\n",
	.run = flame_main,
};
