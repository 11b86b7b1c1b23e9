/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker roofline: what a job's data loading costs, by giving its first batches again. */
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/roofline/roofjob.h"
#include "cmd/roofline/rooftext.h"
#include "live/run/attach.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENV_FOLDER "PERFTRACKER_ROOFLINE"
#define ENV_PLAN "PERFTRACKER_ROOFLINE_PLAN"
#define FILES_MAX 4096

enum roofline_format { FORMAT_TEXT, FORMAT_JSON };

struct roofline_args {
	int64_t iterations, block, keep, memory_mb;
	unsigned int format, report_to;
	const char *output;
	bool stop;
};

typedef VEC(struct rooflog) rooflog_vec;

struct roofline {
	const struct roofline_args *args;
	char folder[PATH_MAX];
	bool reported;
};

#define FIELD(field) OPTION_FIELD(struct roofline_args, field)

static const struct option_row rows[] = {
	{ .help = "The experiment" },
	{ .name = "iterations",
	  .letter = 'n',
	  .argument = "N",
	  FIELD(iterations),
	  .low = 60,
	  .high = 100000,
	  .help = "iterations with the loader's batches, and as many with repeated ones",
	  .preset = "150" },
	{ .name = "block",
	  .argument = "N",
	  FIELD(block),
	  .low = 5,
	  .high = 10000,
	  .help = "iterations of a block; real and repeated blocks alternate",
	  .preset = "15",
	  .more = "At least 6 pairs of blocks are measured, so N above a sixth of --iterations "
		  "makes the run longer." },
	{ .name = "keep",
	  .argument = "N",
	  FIELD(keep),
	  .low = 1,
	  .high = 1000,
	  .help = "batches that are kept and given again; more where their lengths vary",
	  .preset = "8" },
	{ .name = "memory",
	  .argument = "MB",
	  FIELD(memory_mb),
	  .low = 1,
	  .high = 1000000,
	  .help = "memory for these batches, per rank",
	  .preset = "512" },
	{ .name = "stop",
	  FIELD(stop),
	  .help = "end the command, by SIGTERM, when all is measured; the exit status is then 0" },
	{ .help = "Output" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "format of the result",
	  .preset = "text" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write the result to FILE",
	  .preset = "the stream of --report-to" },
	{ .name = "report-to",
	  .words = "stderr|stdout",
	  FIELD(report_to),
	  .help = "stream of the result",
	  .preset = "stderr, because stdout belongs to the command" },
};

/* --- files of the training processes --- */

static void logs_done(rooflog_vec *logs)
{
	vec_foreach(log, logs)
		rooflog_done(log);
	vec_done(logs);
}

static bool is_log(const char *name)
{
	const size_t len = strlen(name), tail = strlen(ROOFLOG_SUFFIX);

	return len > tail && strcmp(name + len - tail, ROOFLOG_SUFFIX) == 0;
}

/* Reads all files of folder; *left_out counts the unreadable ones. Returns 0 or -errno. */
static int read_logs(const char *folder, rooflog_vec *logs, size_t *left_out, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	*left_out = 0;
	if (dir == NULL)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	while ((entry = readdir(dir)) != NULL && logs->cnt < FILES_MAX) {
		char path[PATH_MAX + 300];
		struct rooflog log;

		if (!is_log(entry->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (rooflog_read(path, &log, err) < 0) {
			(*left_out)++;
		} else if (vec_push(logs, log) < 0) {
			rooflog_done(&log);
			(void)closedir(dir);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	(void)closedir(dir);
	return 0;
}

/* Whether every rank has said all. A rank of another host never appears here. */
static bool are_complete(const rooflog_vec *logs)
{
	vec_foreach(log, logs) {
		if (!log->done && log->refused[0] == '\0')
			return false;
	}
	return logs->cnt > 0 && (int)logs->cnt >= MAX(logs->data[0].world, 1);
}

/* --- the result --- */

static int format_result(const struct roofline *r, const rooflog_vec *logs, size_t left_out,
			 struct str *out)
{
	struct ceiling ceiling;
	int error;

	if (logs->cnt == 0 && r->args->format == FORMAT_TEXT) {
		str_printf(
			out,
			"The cost of data loading is not known: no process of the command ran a "
			"backward pass or an optimizer of PyTorch%s.\n"
			"With torch before 2.5, write `import perftracker` after `import torch`.\n",
			left_out > 0 ? ", or its file could not be read" : "");
		return str_error(out);
	}
	if (logs->cnt == 0) {
		str_append(out,
			   "{\n  \"version\": 1,\n  \"verdict\": \"refused\",\n  \"why\": \"no "
			   "training process\",\n  \"ranks\": []\n}\n");
		return str_error(out);
	}
	error = ceiling_find(logs->data, logs->cnt, &ceiling);
	if (error < 0)
		return error;
	if (r->args->format == FORMAT_JSON)
		error = rooftext_json(out, &ceiling, left_out);
	else
		rooftext_append(out, &ceiling, left_out);
	ceiling_done(&ceiling);
	return error < 0 ? error : str_error(out);
}

static int write_result(const struct roofline *r, const struct str *text, struct err *err)
{
	if (r->args->output != NULL || r->args->report_to == 1)
		return output_text(text, r->args->output, err);
	return fputs(str_borrow(text), stderr) < 0
		       ? err_set(err, EIO, "standard error: %s", strerror(errno))
		       : 0;
}

/* Prints the result, once, if it is complete or the job is over. Returns whether it did. */
static bool report(struct roofline *r, bool over)
{
	rooflog_vec logs = { 0 };
	struct str text = { 0 };
	struct err err = { "" };
	size_t left_out;
	int error = read_logs(r->folder, &logs, &left_out, &err);

	if (error == 0 && !over && !are_complete(&logs)) {
		logs_done(&logs);
		return false;
	}
	if (error == 0 && left_out > 0)
		(void)fprintf(stderr, "perftracker: left out: %s\n", err.text);
	if (error == 0) {
		error = format_result(r, &logs, left_out, &text);
		if (error < 0)
			(void)err_set(&err, ENOMEM, "out of memory");
	}
	if (error == 0)
		error = write_result(r, &text, &err);
	if (error < 0)
		(void)cmd_fail("%s", err.text);
	(void)fflush(stdout);
	logs_done(&logs);
	str_done(&text);
	r->reported = true;
	return true;
}

static bool look(void *arg)
{
	return report(arg, false);
}

/* --- the run --- */

static int make_folder(char ret[static PATH_MAX], struct err *err)
{
	const char *parent = getenv("TMPDIR");

	(void)snprintf(ret, PATH_MAX, "%.4000s/perftracker-roofline-XXXXXX",
		       parent != NULL && parent[0] == '/' ? parent : "/tmp");
	if (mkdtemp(ret) == NULL)
		return err_set(err, errno, "%s: %s", ret, strerror(errno));
	return 0;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (is_log(entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir != NULL)
		(void)closedir(dir);
	(void)rmdir(folder);
}

static int set_environment(const struct roofline_args *a, const char *folder, struct err *err)
{
	const int64_t pairs = MAX((a->iterations + a->block - 1) / a->block, CEILING_PAIRS_MIN);
	char program[PATH_MAX], plan[128];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int error;

	program[len > 0 ? len : 0] = '\0';
	error = attach_python(program, err);
	if (error < 0)
		return error;
	(void)snprintf(plan, sizeof(plan), "%lld %lld %lld %lld", (long long)a->block,
		       (long long)pairs, (long long)a->keep, (long long)a->memory_mb << 20);
	if (setenv(ENV_FOLDER, folder, 1) != 0 || setenv(ENV_PLAN, plan, 1) != 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int run(const struct roofline_args *args, char **words)
{
	struct roofline r = { .args = args };
	const struct roofjob job = { .look = look, .arg = &r, .stop = args->stop };
	struct err err = { "" };
	int status;

	if (make_folder(r.folder, &err) < 0)
		return cmd_fail("%s", err.text);
	if (set_environment(args, r.folder, &err) < 0) {
		remove_folder(r.folder);
		return cmd_fail("%s", err.text);
	}
	status = roofjob_run(&job, words);
	if (!r.reported && status != 126 && status != 127)
		(void)report(&r, true);
	remove_folder(r.folder);
	return status;
}

static int roofline_main(const struct command *command, int argc, char **argv)
{
	struct roofline_args args = { .iterations = 150, .block = 15, .keep = 8, .memory_mb = 512 };
	int first, status = optiontable_parse(command, argc, argv, &args, &first);

	if (status == OPTIONS_PARSED && first >= argc)
		status = cmd_usage_error(command->name, "expected the command to run");
	return status == OPTIONS_PARSED ? run(&args, argv + first) : status;
}

const struct command cmd_roofline = {
	.name = "roofline",
	.summary = "measure what a job's data loading costs",
	.usage = "[OPTION]... [--] COMMAND [ARGUMENT]...\n",
	.about =
		"Runs COMMAND, a PyTorch training, as an experiment: the first batches of its "
		"DataLoader are kept, and in every second block of iterations given again instead of "
		"new ones. The difference is what data loading costs: \"data loading costs 31 %; "
		"without it 120 ms\".\n"
		"The training learns from repeated batches and skips others: do not keep what such a "
		"run writes, its checkpoints above all. Output, signals and exit status are those of "
		"COMMAND, and after the measurement it goes on with its own batches to its end, or "
		"is asked to end with --stop.\n"
		"Each rank of a job, for example under torchrun, repeats its own batches, all ranks at "
		"the same iterations. Start the same command on every host of the job; each prints a "
		"result.\n",
	.notes =
		"The result is not known where batches cannot be repeated, and says why: no "
		"DataLoader, two of them by turns, a batch that has an iterator, a training that ends too "
		"early, ranks whose loaders differ, batches of other lengths than the repeated ones. "
		"What a batch contains, beside its size, is not compared.\n",
	OPTION_ROWS(rows),
	.order = ORDER_BEFORE,
	.examples = "perftracker roofline --stop -- torchrun --nproc-per-node 8 train.py\n"
		    "perftracker roofline --keep 64 -f json -o loading.json -- python train.py\n",
	.run = roofline_main,
};
