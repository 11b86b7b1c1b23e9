/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker attach: a job that runs already is sampled from outside and diagnosed. */
#include "base/clock.h"
#include "cmd/attach/attachhang.h"
#include "cmd/attach/attachsample.h"
#include "cmd/cmd.h"
#include "localize/localize.h"
#include "sampled/sampleddiagnosis.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct attach_options {
	struct output_how how;
	bool all, exit_code;
	int64_t window_ns;
	double rate_hz;
};

#define FIELD(field) OPTION_FIELD(struct attach_options, field)

static const struct option_row rows[] = {
	{ .help = "Which job, and for how long" },
	{ .name = "all",
	  .letter = 'a',
	  FIELD(all),
	  .help = "all training jobs of this user on this host (of root: of all users)",
	  .more = "Several are listed with a process of each; give one of these." },
	{ .name = "seconds",
	  .letter = 's',
	  .argument = "SECONDS",
	  FIELD(window_ns),
	  .unit = UNIT_SECONDS,
	  .low = 1,
	  .high = 3600,
	  .expected = "1 to 3600 seconds",
	  .help = "how long to sample; Ctrl-C ends it early, with a report",
	  .preset = "20" },
	{ .name = "rate",
	  .argument = "HZ",
	  FIELD(rate_hz),
	  .low = 1,
	  .high = 100,
	  .expected = "1 to 100",
	  .help = "samples a second of each rank",
	  .preset = "15" },
	{ .help = "Output" },
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
	{ .name = "exit-code",
	  FIELD(exit_code),
	  .help = "exit with 3 when the verdict is a fault, 4 when it is undecided" },
	COLOR_ROW(struct attach_options, how.color),
	{ .name = "verbose",
	  .letter = 'v',
	  FIELD(how.verbose),
	  .help = "print whole stacks and lists in the text" },
};

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* The first one ends the window; the second one, the program. */
static void catch_interrupt(void)
{
	struct sigaction action = { .sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND };

	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

/* --- which job --- */

/* -EEXIST: there are several, which were listed. */
static int choose_all(const jobproc_vec *procs, struct jobranks *ret, struct err *err)
{
	jobprocs_pids pids = { 0 };
	int error = jobprocs_jobs(procs, getuid(), getuid() == 0, &pids);

	if (error < 0)
		error = err_set(err, ENOMEM, "out of memory");
	else if (pids.cnt == 0)
		error = err_set(err, ENOENT,
				"no training job of this user runs here: give the process id of a "
				"rank or of its launcher");
	else if (pids.cnt == 1)
		error = jobprocs_ranks(procs, pids.data, 1, ret, err);
	for (size_t i = 0; pids.cnt > 1 && i < pids.cnt; i++) {
		struct jobranks job = { 0 };
		struct err unused = { "" };

		if (jobprocs_ranks(procs, &pids.data[i], 1, &job, &unused) == 0)
			(void)printf("%-8u %3zu rank%s  %s\n", pids.data[i], job.ranks.cnt,
				     job.ranks.cnt == 1 ? " " : "s", job.command);
		jobranks_done(&job);
	}
	if (pids.cnt > 1)
		error = err_set(err, EEXIST, "%zu jobs run here: give a process of one of them",
				pids.cnt);
	vec_done(&pids);
	return error;
}

static int parse_pids(char **words, size_t cnt, uint32_t *ret, struct err *err)
{
	for (size_t i = 0; i < cnt; i++) {
		int64_t pid;

		if (cmd_parse_int(words[i], 1, 1 << 22, &pid) < 0)
			return err_set(err, EDOM,
				       "'%s' is not a process id: expected a number from 1 on",
				       words[i]);
		ret[i] = (uint32_t)pid;
	}
	return 0;
}

static int choose(const struct attach_options *o, char **words, size_t cnt, struct jobranks *ret,
		  struct err *err)
{
	_cleanup_free_ uint32_t *pids = calloc(cnt + 1, sizeof(*pids));
	jobproc_vec procs = { 0 };
	int error = pids != NULL ? parse_pids(words, cnt, pids, err)
				 : err_set(err, ENOMEM, "out of memory");

	if (error == 0) {
		error = jobprocs_list("/proc", &procs);
		if (error < 0)
			(void)err_set(err, -error, "/proc: %s", strerror(-error));
	}
	if (error == 0)
		error = o->all ? choose_all(&procs, ret, err)
			       : jobprocs_ranks(&procs, pids, cnt, ret, err);
	if (error == 0 && ret->ranks.cnt > SAMPLED_RANKS_MAX)
		error = err_set(err, E2BIG, "%zu ranks on this host: at most %d are sampled",
				ret->ranks.cnt, SAMPLED_RANKS_MAX);
	vec_done(&procs);
	return error;
}

/* --- the report --- */

static int64_t still_ns_of(const struct sampled_job *job)
{
	int64_t ns = 0;

	for (size_t i = 0; i < job->cnt; i++)
		ns = MAX(ns, job->ranks[i].moments[job->ranks[i].moment_cnt - 1].time_ns -
				     job->ranks[i].moments[0].time_ns);
	return ns;
}

/* The script's name, "train.py"; else the command. */
static const char *job_name(struct arena *arena, const char *command)
{
	const char *end = command, *begin;

	do
		end = strstr(end, ".py") != NULL ? strstr(end, ".py") + strlen(".py") : NULL;
	while (end != NULL && *end != ' ' && *end != '\0');
	for (begin = end; begin != NULL && begin > command && begin[-1] != '/' && begin[-1] != ' ';)
		begin--;
	return begin != NULL ? arena_strndup(arena, begin, (size_t)(end - begin)) : command;
}

/* Who and when, and which ranks could not be read. */
static int fill_head(const struct jobranks *ranks, const struct attachsample *sample,
		     int64_t begin_wall_ns, struct report *report)
{
	struct report_failure *failures =
		arena_calloc(&report->arena, sample->failed.cnt + 1, sizeof(*failures));
	const char **hosts = arena_calloc(&report->arena, 1, sizeof(*hosts));
	char host[64] = "";

	(void)gethostname(host, sizeof(host) - 1);
	if (failures == NULL || hosts == NULL)
		return -ENOMEM;
	report->job_id = job_name(&report->arena, ranks->command);
	hosts[0] = arena_strdup(&report->arena, host);
	report->origin = (struct report_origin){
		.command = ranks->command,
		.hosts = hosts,
		.host_cnt = hosts[0] != NULL && host[0] != '\0',
		.begin_ns = begin_wall_ns,
		.end_ns = begin_wall_ns + still_ns_of(&sample->job),
		.made_ns = clock_wall_ns(),
	};
	vec_foreach(failed, &sample->failed) {
		struct report_failure *failure = &failures[report->failure_cnt++];

		failure->source = arena_printf(&report->arena, "rank %d", (*failed)->rank);
		failure->why = (*failed)->error;
		if (failure->source == NULL)
			return -ENOMEM;
	}
	report->failures = failures;
	return hosts[0] != NULL && report->job_id != NULL ? 0 : -ENOMEM;
}

static int print(const struct attach_options *o, const struct report *report, struct err *err)
{
	const int error = output_report(report, &o->how, err);

	if (error < 0)
		return EXIT_FAILED;
	if (!o->exit_code)
		return EXIT_DONE;
	if (verdict_is_bad(report->verdict))
		return EXIT_ABNORMAL;
	return verdict_is_open(report->verdict) ? EXIT_UNDECIDED : EXIT_DONE;
}

static int report_sample(const struct attach_options *o, const struct jobranks *ranks,
			 const struct attachsample *sample, int64_t begin_wall_ns, struct err *err)
{
	struct attachhang hang = { 0 };
	struct report report = { 0 };
	int status = EXIT_FAILED, error = sampleddiagnosis_stands(&sample->job);

	arena_init(&report.arena);
	if (error > 0)
		error = attachhang_make(&hang, ranks, still_ns_of(&sample->job), &report, err);
	else if (error == 0)
		error = sampleddiagnosis_make(&sample->job, &report);
	if (error == 0)
		error = fill_head(ranks, sample, begin_wall_ns, &report);
	if (error == 0)
		status = print(o, &report, err);
	else if (err->text[0] == '\0')
		(void)err_set(err, ENOMEM, "out of memory");
	report_done(&report);
	attachhang_done(&hang);
	return status;
}

static void say_begin(const struct attach_options *o, const struct jobranks *ranks)
{
	(void)fprintf(stderr,
		      "perftracker attach: samples %zu rank%s of `%s` from outside for %.0f s; "
		      "nothing is injected, Ctrl-C ends it early\n",
		      ranks->ranks.cnt, ranks->ranks.cnt == 1 ? "" : "s", ranks->command,
		      (double)o->window_ns / NSEC_PER_SEC);
	if (ranks->python_children > 1)
		(void)fprintf(stderr,
			      "perftracker attach: process %u has %u Python children; if these are "
			      "the ranks, give their process ids\n",
			      ranks->ranks.data[0].pid, ranks->python_children);
}

static int run(const struct attach_options *o, const struct jobranks *ranks, struct err *err)
{
	const int64_t period_ns = (int64_t)(NSEC_PER_SEC / o->rate_hz);
	const uint32_t round_cnt = (uint32_t)(o->window_ns / period_ns);
	const int64_t begin_wall_ns = clock_wall_ns();
	struct attachsample sample;
	int status = EXIT_FAILED;

	catch_interrupt();
	say_begin(o, ranks);
	if (attachsample_take(&sample, ranks, period_ns, round_cnt, &interrupted, err) == 0) {
		vec_foreach(failed, &sample.failed)
			(void)fprintf(stderr, "perftracker attach: rank %d: %s\n", (*failed)->rank,
				      (*failed)->error);
		status = report_sample(o, ranks, &sample, begin_wall_ns, err);
	}
	attachsample_done(&sample);
	return status;
}

static int attach_main(const struct command *command, int argc, char **argv)
{
	struct attach_options options = { .window_ns = 20 * NSEC_PER_SEC, .rate_hz = 15 };
	struct jobranks ranks = { 0 };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first), error;

	if (status != OPTIONS_PARSED)
		return status;
	if (options.all != (first == argc))
		return cmd_usage_error(command->name,
				       options.all ? "--all excludes process ids"
						   : "which job? Give a process id, or --all");
	error = choose(&options, argv + first, (size_t)(argc - first), &ranks, &err);
	if (error == -EDOM)
		status = cmd_usage_error(command->name, "%s", err.text);
	else if (error < 0)
		status = EXIT_FAILED;
	else
		status = run(&options, &ranks, &err);
	if (error != -EDOM && err.text[0] != '\0')
		(void)fprintf(stderr, "perftracker attach: %s\n", err.text);
	jobranks_done(&ranks);
	return status;
}

const struct command cmd_attach = {
	.name = "attach",
	.summary = "diagnose a job that runs already, from outside",
	.usage = "[OPTION]... PID...\n[OPTION]... --all\n",
	.about =
		"Samples the training threads of all ranks of a job on this host that was started "
		"without PerfTracker, and reports for which rank the others wait and in which function "
		"it is then, whether the ranks wait for input, and whether the job hangs. PID is the "
		"launcher or any rank. Nothing is injected into the job, no thread of it is stopped "
		"(but for stacks of a job that hangs), and nothing remains. It needs the same user, or "
		"root, and permission to ptrace.\n",
	OPTION_ROWS(rows),
	.notes =
		"It never says HEALTHY: samples of host threads do not show devices, single iterations "
		"or moments. `perftracker run` does.\n",
	.examples = "perftracker attach 4711\n"
		    "perftracker attach --all --seconds 60\n"
		    "perftracker attach 4711 --format html -o report.html\n",
	.run = attach_main,
};
