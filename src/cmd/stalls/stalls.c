/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker stalls: why threads of processes did not run. */
#include "cmd/cmd.h"
#include "cmd/stacks/stackslist.h"
#include "cmd/stalls/stallspython.h"
#include "format/stallfile/stallfile.h"
#include "host/stallwatch/stallwatch.h"
#include "report/stalls/stallforms.h"
#include "stalls/stalljudge.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum stalls_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_TIMELINE };

struct stalls_options {
	const char *job, *output, *record;
	bool proc_only, verbose, exit_code;
	int64_t window_ns;
	enum stalls_format format;
	struct stackslist list;
};

#define FIELD(field) OPTION_FIELD(struct stalls_options, field)

static int set_pid(void *field, const char *text, struct err *err)
{
	char one[16];
	int error = 0;

	while (error == 0) {
		const size_t len = strcspn(text, ",");

		(void)snprintf(one, sizeof(one), "%.*s", (int)MIN(len, sizeof(one) - 1), text);
		error = stackslist_add_text(field, one, err);
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	return error;
}

static const struct option_row rows[] = {
	{ .help = "Which processes" },
	{ .name = "pid",
	  .letter = 'p',
	  .argument = "PID",
	  FIELD(list),
	  .set = set_pid,
	  .expected = "a process id",
	  .help = "this process, or several with ',' between; may be given again; 64 at most" },
	{ .name = "job",
	  .argument = "JOB",
	  FIELD(job),
	  .help = "the ranks of a job on this host: its name, the process of its `perftracker run`, "
		  "or its folder",
	  .more = "`perftracker status` lists the jobs." },
	{ .help = "Window" },
	{ .name = "seconds",
	  .letter = 's',
	  .argument = "SECONDS",
	  FIELD(window_ns),
	  .unit = UNIT_SECONDS,
	  .low = 0.1,
	  .high = 600,
	  .expected = "0.1 to 600 seconds",
	  .help = "watch for this time; Ctrl-C ends it",
	  .preset = "10",
	  .more = "To see a period, take four times as long." },
	{ .name = "proc-only",
	  FIELD(proc_only),
	  .help = "read /proc alone, as where the kernel permits no events" },
	{ .help = "Output" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json|timeline",
	  FIELD(format),
	  .help = "output format; timeline: for Perfetto and chrome://tracing",
	  .preset = "text" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE; - is standard output",
	  .preset = "-" },
	{ .name = "record",
	  .letter = 'r',
	  .argument = "FILE",
	  FIELD(record),
	  .help = "also keep what was seen in FILE, which `perftracker stalls FILE` judges again" },
	{ .name = "exit-code",
	  FIELD(exit_code),
	  .help = "exit with 3 for a stall, 4 if not enough could be seen" },
	{ .name = "verbose",
	  .letter = 'v',
	  FIELD(verbose),
	  .help = "also what is too little to matter, all threads, and whole kernel stacks" },
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static void catch_interrupt(void)
{
	struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

/* Events need some descriptors for each thread and CPU. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int keep(const struct stall_recording *recording, const char *path, struct err *err)
{
	_cleanup_(str_done) struct str text = { 0 };
	int error = stallfile_write(recording, &text);

	if (error < 0)
		return err_set(err, ENOMEM, "out of memory");
	return output_text(&text, path, err);
}

static int watch(const struct stalls_options *options, struct stall_recording *ret, struct err *err)
{
	struct stallspython python = { 0 };
	uint32_t pids[STALL_THREADS_MAX];
	const struct stallwatch_options how = {
		.pids = pids,
		.pid_cnt = options->list.entries.cnt,
		.window_ns = options->window_ns,
		.root = "",
		.without_events = options->proc_only,
		.gil = stallspython_gil,
		.collects = stallspython_collects,
		.python_context = &python,
		.stop = &interrupted,
	};
	int error;

	if (how.pid_cnt > STALL_THREADS_MAX)
		return err_set(err, E2BIG, "%zu processes: expected at most %d", how.pid_cnt,
			       STALL_THREADS_MAX);
	for (size_t i = 0; i < how.pid_cnt; i++)
		pids[i] = options->list.entries.data[i].pid;
	raise_limit();
	catch_interrupt();
	error = stallwatch_run(&how, ret, err);
	stallspython_done(&python);
	if (error == 0 && options->record != NULL) {
		error = keep(ret, options->record, err);
		if (error < 0)
			stallrecording_done(ret);
	}
	return error;
}

static int print(const struct stalls_options *options, const struct stall_verdict *verdict,
		 struct err *err)
{
	_cleanup_(str_done) struct str out = { 0 };
	int error = 0;

	switch (options->format) {
	case FORMAT_JSON:
		error = stallforms_json(verdict, &out);
		break;
	case FORMAT_TIMELINE:
		error = stallforms_timeline(verdict, &out);
		break;
	case FORMAT_TEXT:
	default:
		error = stallforms_text(verdict, options->verbose, &out);
		break;
	}
	return error < 0 ? err_set(err, ENOMEM, "out of memory")
			 : output_text(&out, options->output, err);
}

/* file: NULL: watch. Returns an exit status. */
static int run(const struct stalls_options *options, const char *file, struct err *err)
{
	struct stall_recording recording;
	struct stall_verdict verdict;
	int error = file != NULL ? stallfile_read(file, &recording, err)
				 : watch(options, &recording, err);
	int status = EXIT_FAILED;

	if (error < 0)
		return EXIT_FAILED;
	error = stalljudge(&recording, &verdict);
	if (error < 0) {
		(void)err_set(err, ENOMEM, "out of memory");
	} else {
		if (print(options, &verdict, err) == 0)
			status = !options->exit_code	 ? EXIT_DONE
				 : verdict.stall_cnt > 0 ? EXIT_ABNORMAL
				 : verdict.incomplete	 ? EXIT_UNDECIDED
							 : EXIT_DONE;
		stallverdict_done(&verdict);
	}
	stallrecording_done(&recording);
	return status;
}

static int check(const struct command *command, const struct stalls_options *options,
		 const char *file)
{
	const bool watches = options->list.entries.cnt > 0 || options->job != NULL;

	if (file == NULL && !watches)
		return cmd_usage_error(command->name,
				       "which process? Give --pid, --job or a recording");
	if (file != NULL && (watches || options->record != NULL))
		return cmd_usage_error(command->name,
				       "a recording excludes --pid, --job and --record");
	return OPTIONS_PARSED;
}

static int stalls_main(const struct command *command, int argc, char **argv)
{
	struct stalls_options options = { .window_ns = 10 * NSEC_PER_SEC };
	struct err err = { "" };
	const char *file;
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED) {
		file = first < argc ? argv[first] : NULL;
		status = first + 1 < argc
				 ? cmd_usage_error(command->name, "one recording at a time")
				 : check(command, &options, file);
		if (status == OPTIONS_PARSED && options.job != NULL &&
		    stackslist_add_job(&options.list, options.job, &err) < 0)
			status = EXIT_FAILED;
		if (status == OPTIONS_PARSED)
			status = run(&options, file, &err);
	}
	if (err.text[0] != '\0')
		(void)fprintf(stderr, "perftracker stalls: %s\n", err.text);
	stackslist_done(&options.list);
	return status;
}

const struct command cmd_stalls = {
	.name = "stalls",
	.summary = "find what keeps threads of processes from running",
	.usage = "[OPTION]... --pid PID...\n[OPTION]... --job JOB\n[OPTION]... FILE\n",
	.about =
		"Watches processes for some seconds and names what kept their threads from running: the "
		"CPU limit of a cgroup, other processes on the CPU, a process that reads smaps and so "
		"holds the memory map, disks and files, Python's GIL, a signal or debugger that stopped "
		"them; with milliseconds, the period, and the kernel's function. Works on any program, "
		"with or without Python. Nothing is injected or stopped. Each time a thread leaves the "
		"CPU, the kernel's stack says where, and the process that wakes it is known with its own "
		"stack: this needs root or CAP_PERFMON. Without them, exact times of own processes, "
		"/proc and counters remain; what could not be seen is listed.\n",
	OPTION_ROWS(rows),
	.notes =
		"Waits that a program asks for (sleep, poll, pipes, its own threads) are listed, but "
		"are no stalls.\n",
	.examples = "perftracker stalls --pid 4711\n"
		    "perftracker stalls --job train --seconds 20\n"
		    "perftracker stalls --pid 4711 --record s.stalls; perftracker stalls s.stalls\n"
		    "perftracker stalls --pid 4711 --format timeline -o stalls.json\n",
	.run = stalls_main,
};
