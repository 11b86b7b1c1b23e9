/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker stacks: what all threads of processes do now, native and Python frames. */
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/stacks/stackssample.h"
#include "report/stacks/stackformats.h"
#include "report/stacks/stacktext.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum stacks_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_FOLDED, FORMAT_SPEEDSCOPE, FORMAT_HTML };

struct stacks_options {
	const char *job, *output;
	bool all, children, each, native, python, verbose;
	int64_t twice_ns;
	enum stacks_format format;
};

#define FIELD(field) OPTION_FIELD(struct stacks_options, field)

static const struct option_row rows[] = {
	{ .help = "Which processes" },
	{ .name = "job",
	  .argument = "JOB",
	  FIELD(job),
	  .help = "the ranks of a job on this host: its name, the process of its `perftracker run`, "
		  "or its folder",
	  .more = "`perftracker status` lists the jobs." },
	{ .name = "all", .letter = 'a', FIELD(all), .help = "the ranks of all jobs of this user" },
	{ .name = "children",
	  .letter = 'c',
	  FIELD(children),
	  .help = "also their children, such as the workers of a DataLoader" },
	{ .help = "Output" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json|folded|speedscope|html",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE; - is standard output",
	  .preset = "-" },
	{ .name = "each",
	  .letter = 'e',
	  FIELD(each),
	  .help = "several processes one after the other instead of one tree" },
	{ .name = "twice",
	  .argument = "SECONDS",
	  FIELD(twice_ns),
	  .unit = UNIT_SECONDS,
	  .low = 0.001,
	  .high = 3600,
	  .expected = "0.001 to 3600 seconds",
	  .help = "read again after this time, and tell which stacks moved" },
	{ .name = "native", FIELD(native), .help = "native frames only" },
	{ .name = "python", FIELD(python), .help = "Python frames only" },
	{ .name = "verbose",
	  .letter = 'v',
	  FIELD(verbose),
	  .help = "also frames of the Python interpreter, and the kernel's stacks" },
};

static struct stackview view_of(const struct stacks_options *options)
{
	return (struct stackview){
		.frames = options->native   ? STACKVIEW_NATIVE
			  : options->python ? STACKVIEW_PYTHON
					    : STACKVIEW_BOTH,
		.all = options->verbose,
	};
}

/* Returns OPTIONS_PARSED or an exit status. */
static int parse(const struct command *command, int argc, char **argv,
		 struct stacks_options *options, int *ret_first)
{
	const int status = optiontable_parse(command, argc, argv, options, ret_first);

	if (status != OPTIONS_PARSED)
		return status;
	if (options->native && options->python)
		return cmd_usage_error(command->name, "--native and --python exclude each other");
	if (*ret_first == argc && options->job == NULL && !options->all)
		return cmd_usage_error(command->name,
				       "which processes? Give process ids, --job or --all");
	return OPTIONS_PARSED;
}

/* Returns 0, -EINVAL for a wrong argument, or another -errno, with a line in err. */
static int list_processes(const struct stacks_options *options, int argc, char **argv, int first,
			  struct stackslist *list, struct err *err)
{
	int error = 0;

	for (int i = first; i < argc && error == 0; i++)
		error = stackslist_add_text(list, argv[i], err);
	if (error == 0 && options->job != NULL)
		error = stackslist_add_job(list, options->job, err);
	if (error == 0 && options->all)
		error = stackslist_add_all(list, err);
	return error;
}

static void pause_ns(int64_t ns)
{
	struct timespec left = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* Once or twice. */
static int sample(const struct stacks_options *options, struct stackslist *list,
		  struct stackssample *ret, struct err *err)
{
	struct stackssample before = { 0 };
	int error = 0;

	if (options->twice_ns > 0) {
		error = stackssample_take(&before, list, options->children, err);
		if (error == 0)
			pause_ns(options->twice_ns);
	}
	if (error == 0)
		error = stackssample_take(ret, list, options->children, err);
	if (error == 0 && options->twice_ns > 0)
		stackssample_compare(&before, ret);
	stackssample_done(&before);
	return error;
}

static void append_each(struct str *out, const struct stacktree *tree, const struct stackview *view,
			struct stacknames *names)
{
	for (size_t i = 0; i < tree->cnt; i++) {
		if (i > 0)
			str_append(out, "\n");
		stacktext_process(out, tree->processes[i], view, names);
	}
}

/* The headlines of all processes, and the tree of their stacks. */
static void append_tree(struct str *out, const struct stacktree *tree)
{
	for (size_t i = 0; i < tree->cnt; i++) {
		if (tree->processes[i]->state == '\0')
			continue;
		stacktext_headline(out, tree->processes[i]);
		str_append(out, "\n");
	}
	str_printf(out, "\nStacks, callers first; @%s that are there | that are not\n",
		   stacktree_member_word(tree));
	stacktree_text(out, tree);
}

/* Whether the form has the stacks of several processes, or of several threads, in one tree. */
static bool needs_tree(const struct stacks_options *options, size_t cnt)
{
	switch (options->format) {
	case FORMAT_TEXT:
		return cnt > 1 && !options->each;
	case FORMAT_JSON:
		return cnt > 1;
	case FORMAT_SPEEDSCOPE:
		return false;
	case FORMAT_FOLDED:
	case FORMAT_HTML:
	default:
		return true;
	}
}

static int print(const struct stacks_options *options, const struct stackssample *sample,
		 struct str *out)
{
	const struct stackview view = view_of(options);
	struct stacknames names = { 0 };
	struct stacktree tree = stacktree_list(sample->processes.data, sample->processes.cnt);
	int error = 0;

	if (needs_tree(options, tree.cnt))
		error = stacktree_make(&tree, tree.processes, tree.cnt, &view, &names);
	if (error == 0 && options->format == FORMAT_JSON)
		error = stackformat_json(&tree, &names, out);
	else if (error == 0 && options->format == FORMAT_FOLDED)
		error = stackformat_folded(&tree, out);
	else if (error == 0 && options->format == FORMAT_SPEEDSCOPE)
		error = stackformat_speedscope(&tree, &view, &names, out);
	else if (error == 0 && options->format == FORMAT_HTML)
		error = stackformat_html(&tree, out);
	else if (error == 0 && (tree.cnt == 1 || options->each))
		append_each(out, &tree, &view, &names);
	else if (error == 0)
		append_tree(out, &tree);
	stacktree_done(&tree);
	stacknames_done(&names);
	return error < 0 ? error : str_error(out);
}

/* One line for each process that could not be read. */
static int tell_errors(const struct stackssample *sample, const struct stackslist *list)
{
	int status = EXIT_DONE;

	vec_foreach(process, &sample->processes) {
		if ((*process)->error[0] == '\0')
			continue;
		(void)fprintf(stderr, "perftracker stacks: %s\n", (*process)->error);
		status = EXIT_FAILED;
	}
	if (list->dropped > 0) {
		(void)fprintf(stderr,
			      "perftracker stacks: %zu processes more than the limit of %d\n",
			      list->dropped, STACKSLIST_MAX);
		status = EXIT_FAILED;
	}
	return status;
}

static int run(const struct stacks_options *options, struct stackslist *list, struct err *err)
{
	_cleanup_(str_done) struct str out = { 0 };
	struct stackssample now = { 0 };
	int error = sample(options, list, &now, err), status = EXIT_FAILED;

	if (error == 0) {
		error = print(options, &now, &out);
		if (error < 0)
			(void)err_set(err, -error, "out of memory");
	}
	if (error == 0)
		error = output_text(&out, options->output, err);
	if (error == 0)
		status = tell_errors(&now, list);
	stackssample_done(&now);
	return status;
}

static int stacks_main(const struct command *command, int argc, char **argv)
{
	struct stacks_options options = { 0 };
	struct stackslist list = { 0 };
	struct err err = { "" };
	int first, status = parse(command, argc, argv, &options, &first), error;

	if (status != OPTIONS_PARSED)
		return status;
	error = list_processes(&options, argc, argv, first, &list, &err);
	if (error == -EINVAL)
		status = cmd_usage_error(command->name, "%s", err.text);
	else if (error < 0)
		status = EXIT_FAILED;
	else
		status = run(&options, &list, &err);
	if (error != -EINVAL && err.text[0] != '\0')
		(void)fprintf(stderr, "perftracker stacks: %s\n", err.text);
	stackslist_done(&list);
	return status;
}

const struct command cmd_stacks = {
	.name = "stacks",
	.summary = "show what all threads of processes do now",
	.usage = "[OPTION]... PID...\n[OPTION]... --job JOB\n[OPTION]... --all\n",
	.about =
		"Prints the stacks of all threads: C, C++ and Python frames mixed, the state of each "
		"thread, which one holds the GIL and which ones wait for it, the system call, file, "
		"socket or mutex that a thread waits for. Works on any process of the same user, with or "
		"without `perftracker run`, also while it is stopped, hangs in the kernel, or runs in a "
		"container. Nothing is injected. Threads that are blocked are not stopped; others are for "
		"the time of a copy, well below 5 ms. Of several processes it prints one tree, and at each "
		"frame which processes or ranks are there and which are not.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker stacks 4711\n"
		    "perftracker stacks --job train --twice 3\n"
		    "perftracker stacks --all --format html -o stacks.html\n"
		    "perftracker stacks --python --each $(pgrep -f train.py)\n",
	.run = stacks_main,
};
