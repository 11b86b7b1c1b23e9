/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker replay: a script that runs a rank's multiplications and collectives again. */
#include "base/text/clean.h"
#include "cmd/cmd.h"
#include "cmd/jobfiles/ranknames.h"
#include "cmd/replay/opshapes.h"
#include "cmd/replay/replayscript.h"
#include "cmd/runfolder.h"
#include "read/common/input.h"
#include "read/reader.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct replay_args {
	const char *output;
	int64_t rank;
};

#define FIELD(field) OPTION_FIELD(struct replay_args, field)

static const struct option_row rows[] = {
	{ .name = "rank",
	  .letter = 'r',
	  .argument = "R",
	  FIELD(rank),
	  .low = 0,
	  .high = 10000000,
	  .help = "which rank, if there are several traces",
	  .preset = "with a report, the rank that it accuses first" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write the script to FILE; - is standard output",
	  .preset = "replay.py" },
};

#define HOW_TO_RECORD                                                                             \
	"shapes are in traces of torch.profiler.profile(record_shapes=True), which `perftracker " \
	"run --source torch --keep-traces` keeps in OUT_DIR/traces"

/* Returns 0, or -EINVAL for a kind of file that has no shapes, with a line in err. */
static int refuse_others(const char *path, struct err *err)
{
	const struct reader *reader = reader_of(path);

	if (reader->content == CONTENT_FINGERPRINT)
		return err_set(err, EINVAL,
			       "%s: a fingerprint has no shapes of operators: " HOW_TO_RECORD,
			       path);
	if (reader->content == CONTENT_FLIGHT_LOG)
		return err_set(err, EINVAL,
			       "%s: a flight recorder has the number of elements, but no shapes of "
			       "operators: " HOW_TO_RECORD,
			       path);
	if (reader->family != NULL)
		return err_set(err, EINVAL, "%s: a %s has no shapes of operators: " HOW_TO_RECORD,
			       path, reader->name);
	return 0;
}

/* "DIR/3-1.json": the hook names traces by rank and window. -1: another name. */
static int rank_of_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int rank, window, len = 0;

	if (sscanf(slash != NULL ? slash + 1 : path, "%9d-%9d.json%n", &rank, &window, &len) == 2 &&
	    len > 0 && rank >= 0)
		return rank;
	return ranknames_of_file(path);
}

static int read_shapes(const char *path, struct opshapes *ret, struct err *err)
{
	struct input *input;
	int error = refuse_others(path, err);

	*ret = (struct opshapes){ .rank = -1 };
	if (error == 0)
		error = input_open(path, &input, err);
	if (error < 0)
		return error;
	error = opshapes_read(path, input, ret, err);
	(void)input_free(input);
	if (error == 0 && ret->rank < 0)
		ret->rank = rank_of_name(path);
	return error;
}

/* The rank by the head of a trace, which is cheap, else by the name; -1: unknown. */
static int rank_of(const char *path)
{
	struct trace head = { 0 };
	int rank = -1;

	if (reader_read_head(path, &head) == 0)
		rank = head.meta.rank;
	trace_done(&head);
	return rank >= 0 ? rank : rank_of_name(path);
}

/* The trace to use; NULL with a line in err. */
static const char *choose(const struct replay_args *args, const path_list *paths, struct err *err)
{
	if (paths->cnt == 1 && args->rank < 0)
		return paths->data[0];
	if (args->rank < 0) {
		(void)err_set(err, EINVAL, "%zu files: choose one by --rank, or give one file",
			      paths->cnt);
		return NULL;
	}
	for (size_t i = paths->cnt; i-- > 0;) { /* the latest window of a rank is its last file */
		if (rank_of(paths->data[i]) == args->rank)
			return paths->data[i];
	}
	(void)err_set(err, ENOENT, "none of %zu file%s is a trace of rank %lld", paths->cnt,
		      plural((double)paths->cnt), (long long)args->rank);
	return NULL;
}

static int check_content(const char *path, const struct opshapes *shapes, struct err *err)
{
	if (shapes->shapes.cnt > 0)
		return 0;
	if (shapes->shapeless > 0)
		return err_set(
			err, ENOENT,
			"%s: %zu matrix multiplications and collectives without shapes: " HOW_TO_RECORD,
			path, shapes->shapeless);
	return err_set(err, ENOENT,
		       "%s: no matrix multiplications and no collectives among %zu events", path,
		       shapes->event_cnt);
}

static int write_script(const struct replay_args *args, const char *path,
			const struct opshapes *shapes, struct err *err)
{
	const char *output = args->output != NULL ? args->output : "replay.py";
	_cleanup_(str_done) struct str script = { 0 }, source = { 0 };
	int error;

	clean_append(&source, path);
	error = str_error(&source) < 0 ? -ENOMEM
				       : replayscript_append(&script, shapes, str_borrow(&source));
	if (error < 0)
		return err_set(err, ENOMEM, "out of memory");
	error = output_text(&script, output, err);
	if (error == 0 && strcmp(output, "-") != 0)
		(void)printf("%s\n", output);
	return error;
}

static void print_notes(const struct opshapes *shapes)
{
	size_t collectives = 0;

	vec_foreach(shape, &shapes->shapes)
		collectives += shape->collective;
	(void)fprintf(
		stderr,
		"perftracker: %zu shapes of matrix multiplications, %zu of collectives, by the "
		"time of %s\n",
		shapes->shapes.cnt - collectives, collectives,
		shapes->has_device ? "kernels" : "operators");
	if (shapes->shapeless > 0)
		(void)fprintf(stderr, "perftracker: %zu executions without shapes are left out\n",
			      shapes->shapeless);
	if (shapes->dropped > 0)
		(void)fprintf(stderr,
			      "perftracker: %zu events are left out: too large or damaged\n",
			      shapes->dropped);
}

/* The rank that a report accuses first; -1: none. */
static int accused_rank(const char *report)
{
	json_t *root = json_load_file(report, 0, NULL);
	const json_t *first = json_array_get(json_object_get(root, "findings"), 0);
	const char *text = json_string_value(json_object_get(first, "ranks"));
	rankset_vec ranks = { 0 };
	struct err err = { "" };
	int rank = -1;

	if (text != NULL && rankset_parse(text, &ranks, &err) == 0 && ranks.cnt > 0)
		rank = ranks.data[0];
	vec_done(&ranks);
	json_decref(root);
	return rank;
}

/* What a word names, where that is a run's folder or its report: the folder of its traces. */
struct place {
	char traces[PATH_MAX], report[PATH_MAX];
	const char *word; /* what to read */
};

static void find_place(const char *word, struct place *ret)
{
	const char *slash = strrchr(word, '/');
	const char *name = slash != NULL ? slash + 1 : word;
	const bool is_report = strcmp(name, "report.json") == 0;
	const int folder_len = !is_report ? (int)strlen(word) : (int)(name - word);
	struct stat about;

	ret->word = word;
	(void)snprintf(ret->traces, PATH_MAX, "%.*s%straces", MIN(folder_len, 4000), word,
		       is_report || folder_len == 0 ? "" : "/");
	(void)snprintf(ret->report, PATH_MAX, "%.*s%sreport.json", MIN(folder_len, 4000), word,
		       is_report || folder_len == 0 ? "" : "/");
	if (!is_report && !runfolder_is(word))
		ret->report[0] = '\0';
	else if (stat(ret->traces, &about) == 0 && S_ISDIR(about.st_mode))
		ret->word = ret->traces;
}

/* Returns 0, or -errno with a line in err; path_list_done() in either case. */
static int find_traces(struct replay_args *args, char **words, int cnt, path_list *ret,
		       struct err *err)
{
	char resolved[PATH_MAX], *word;
	struct place place = { .word = NULL };

	if (cnt != 1)
		return inputs_expand(words, (size_t)cnt, ret, err);
	find_place(runfolder_resolve(words[0], resolved), &place);
	if (place.report[0] != '\0' && place.word != place.traces)
		return err_set(err, ENOENT,
			       "%s: expected traces in %s: reports and fingerprints have no shapes "
			       "of operators; " HOW_TO_RECORD,
			       words[0], place.traces);
	word = (char *)(uintptr_t)place.word;
	if (args->rank < 0 && place.report[0] != '\0')
		args->rank = accused_rank(place.report);
	return inputs_expand(&word, 1, ret, err);
}

static int run(struct replay_args *args, char **words, int cnt)
{
	path_list paths = { 0 };
	struct opshapes shapes = { .rank = -1 };
	struct err err = { "" };
	const char *path = NULL;
	int error = find_traces(args, words, cnt, &paths, &err);

	if (error == 0) {
		path = choose(args, &paths, &err);
		error = path != NULL ? read_shapes(path, &shapes, &err) : -EINVAL;
	}
	if (error == 0)
		error = check_content(path, &shapes, &err);
	if (error == 0)
		error = write_script(args, path, &shapes, &err);
	if (error == 0)
		print_notes(&shapes);
	opshapes_done(&shapes);
	path_list_done(&paths);
	return error < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

static int replay_main(const struct command *command, int argc, char **argv)
{
	struct replay_args args = { .rank = -1 };
	int first, status = optiontable_parse(command, argc, argv, &args, &first);

	if (status == OPTIONS_PARSED && first == argc)
		status = cmd_usage_error(command->name, "expected a trace, or a folder of them");
	return status == OPTIONS_PARSED ? run(&args, argv + first, argc - first) : status;
}

const struct command cmd_replay = {
	.name = "replay",
	.summary = "write a script that runs a rank's matrix multiplications again",
	.usage = "[OPTION]... TRACE|FOLDER|OUT_DIR|OUT_DIR/report.json\n",
	.about =
		"Writes a small PyTorch script that runs the matrix multiplications and collectives of "
		"a rank with their shapes, strides and types, and compares time and FLOP/s with what "
		"was recorded: the way to prove a slow card. Run it on the suspected device and on a "
		"healthy one.\n"
		"TRACE is a trace of torch.profiler with record_shapes=True. `perftracker run --source "
		"torch --keep-traces` keeps such traces in OUT_DIR/traces, where they are found; flight "
		"recorders, fingerprints and reports themselves have no shapes.\n"
		"The script takes --device cpu or cuda, --repeat and --json. Multiplications are "
		"compared by their median. Collectives need as many ranks as their group had, by "
		"torchrun, and are compared by their shortest recorded execution, because a recorded "
		"time includes the wait for other ranks.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker replay --rank 5 -o replay.py traces/ && python3 replay.py\n"
		    "torchrun --nproc-per-node 8 replay.py --repeat 50 --json\n",
	.run = replay_main,
};
