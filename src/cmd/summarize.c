/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/jobfiles/jobfiles.h"
#include "cmd/load.h"
#include "cmd/load_follow.h"
#include "cmd/load_hosts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct summarize_args {
	const char *output, *sidecar, *job, *keep;
	int64_t rank, flight_fd, sidecar_fd; /* -1: not given */
	struct window_options window;
	struct load_hosts hosts;
};

static int set_hosts(void *hosts, const char *text, struct err *err)
{
	load_hosts_done((struct load_hosts *)hosts);
	return load_hosts_of_set(text, (struct load_hosts *)hosts, err);
}

#define FIELD(field) OPTION_FIELD(struct summarize_args, field)

static const struct option_row rows[] = {
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write the fingerprint to FILE (required)" },
	{ .name = "rank",
	  .argument = "N",
	  FIELD(rank),
	  .high = (1 << 20) - 1,
	  .expected = "a rank",
	  .help = "rank, when the trace does not have it" },
	{ .name = "host-ranks",
	  .argument = "SET",
	  FIELD(hosts),
	  .set = set_hosts,
	  .help = "all ranks on the host of the trace, for example 0-7",
	  .more = "A collective of these ranks alone is measured by NVLink, another one by the "
		  "network. Without this option the ranks are taken from the sidecar; `perftracker "
		  "analyze` compares the hosts of all traces." },
	{ .name = "steps",
	  .argument = "FIRST-LAST",
	  FIELD(window),
	  .set = cmd_set_steps,
	  .expected = STEPS_EXPECTED,
	  .help = "use only these profiler steps, for example 4-6" },
	{ .name = "skip-first",
	  FIELD(window.skip_first),
	  .help = "omit the first iteration of the window: it carries the cost of starting the "
		  "profiler (ignored with fewer than 4)" },
	{ .name = "sidecar",
	  .argument = "FILE",
	  FIELD(sidecar),
	  .help = "the host's records of the trace's window",
	  .preset = "of a flight log: TRACE.sidecar, if it exists",
	  .more = "The sidecar of a flight log names its window; without one, the window is "
		  "everything that was recorded in windows." },
	{ .name = "flight-fd",
	  .argument = "FD",
	  FIELD(flight_fd),
	  .high = INT32_MAX,
	  .expected = "a file descriptor",
	  .help = "open file descriptor of the worker's flight recorder, a sealed memory file" },
	{ .name = "sidecar-fd",
	  .argument = "FD",
	  FIELD(sidecar_fd),
	  .high = INT32_MAX,
	  .expected = "a file descriptor",
	  .help = "open file descriptor of the sidecar, complete when standard input ends" },
	{ .name = "keep",
	  .argument = "FILE",
	  FIELD(keep),
	  .help = "with --flight-fd: save the records as a flight log, and the sidecar as "
		  "FILE.sidecar" },
	{ .name = "job", .argument = "ID", FIELD(job), .help = "name of the job" },
};

/* Returns OPTIONS_PARSED or EXIT_USAGE. */
static int check_args(const struct summarize_args *a, int trace_cnt)
{
	int expected = a->flight_fd >= 0 ? 0 : 1;

	if (trace_cnt != expected)
		return cmd_usage_error("summarize", "expected %s, found %d",
				       expected == 1 ? "one trace" : "no trace with --flight-fd",
				       trace_cnt);
	if (a->flight_fd < 0 && (a->sidecar_fd >= 0 || a->keep != NULL))
		return cmd_usage_error("summarize", "%s needs --flight-fd",
				       a->keep != NULL ? "--keep" : "--sidecar-fd");
	if (a->flight_fd >= 0 && a->sidecar != NULL)
		return cmd_usage_error("summarize", "--flight-fd takes --sidecar-fd");
	if (a->output == NULL)
		return cmd_usage_error("summarize", "expected -o FILE: where the fingerprint goes");
	return OPTIONS_PARSED;
}

/* path: NULL with --flight-fd. */
static int make_fingerprint(const struct summarize_args *a, const char *path,
			    struct fingerprint *ret, struct err *err)
{
	struct load_follow follow = { .flight_fd = (int)a->flight_fd,
				      .sidecar_fd = (int)a->sidecar_fd,
				      .control_fd = STDIN_FILENO,
				      .keep = a->keep };
	const struct summarize_options options = { .window = a->window,
						   .job_id = a->job,
						   .hosts = load_hosts_view(&a->hosts, "") };
	int error = path == NULL ? load_follow(&follow, &options, ret, err)
				 : load_one(path, a->sidecar, &options, ret, err);

	if (error == 0 && a->rank >= 0)
		ret->rank = (int)a->rank;
	else if (error == 0 && path != NULL)
		ret->rank = jobfiles_rank(ret);
	return error;
}

/* path: NULL with --flight-fd. Returns an exit status. */
static int summarize_to_file(const struct summarize_args *a, const char *path)
{
	struct fingerprint fp;
	struct err err = { "" };
	int status;

	if (make_fingerprint(a, path, &fp, &err) < 0)
		return cmd_fail("%s", err.text);
	status = fingerprint_write(&fp, a->output, &err) < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
	fingerprint_done(&fp);
	return status;
}

static int summarize_main(const struct command *command, int argc, char **argv)
{
	struct summarize_args a = { .rank = -1,
				    .flight_fd = -1,
				    .sidecar_fd = -1,
				    .window = { .last_step = -1, .skip_warmup = true } };
	int first, status = optiontable_parse(command, argc, argv, &a, &first);

	if (status == OPTIONS_PARSED)
		status = check_args(&a, argc - first);
	if (status == OPTIONS_PARSED)
		status = summarize_to_file(&a, a.flight_fd < 0 ? argv[first] : NULL);
	load_hosts_done(&a.hosts);
	return status;
}

const struct command cmd_summarize = {
	.name = "summarize",
	.summary = "turn one trace into a fingerprint",
	.usage = "[OPTION]... TRACE -o FILE\n"
		 "[OPTION]... --flight-fd FD --sidecar-fd FD -o FILE\n",
	.about =
		"Turns one rank's trace (Kineto JSON, plain or .gz, an SQLite export of Nsight "
		"Systems, or a flight log) into its fingerprint: a few numbers per function instead "
		"of gigabytes of events. FILE.sqlite#PID is one process of an export that holds "
		"several. `perftracker localize` compares fingerprints; `perftracker dump` prints "
		"one.\n"
		"The second form reads the records of a running worker from shared memory until "
		"standard input ends; `perftracker run` starts it for each worker of a window.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker summarize rank0.json.gz -o rank0.ptfp\n",
	.run = summarize_main,
};
