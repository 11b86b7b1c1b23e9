/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/load_follow.h"
#include "cmd/load_hosts.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"Usage: perftracker summarize [OPTION]... TRACE -o FILE\n"
	"       perftracker summarize [OPTION]... --flight-fd FD --sidecar-fd FD -o FILE\n"
	"\n"
	"Turns one rank's trace (Kineto JSON, plain or .gz, an SQLite export of Nsight Systems,\n"
	"or a flight log) into its fingerprint: a few numbers per function instead of gigabytes\n"
	"of events. FILE.sqlite#PID is one process of an export that holds several. 'perftracker\n"
	"localize' compares fingerprints; 'perftracker dump' prints one.\n"
	"\n"
	"The second form takes what a worker records in shared memory until standard input\n"
	"ends: 'perftracker run' starts it for each worker of a window.\n"
	"\n"
	"  -o, --output FILE     where the fingerprint goes (required)\n"
	"      --rank N          the rank, when the trace does not tell\n"
	"      --host-ranks SET  all ranks on its host, for example 0-7: groups of these alone\n"
	"                        talk over NVLink\n"
	"      --steps FIRST-LAST  use these profiler steps only\n"
	"      --skip-first      leave out the window's first iteration: it carries the cost of\n"
	"                        starting the profiler (ignored with fewer than 4)\n"
	"      --sidecar FILE    what the host recorded beside the trace (of a flight log:\n"
	"                        TRACE.sidecar when it is there)\n"
	"      --flight-fd FD    an open file descriptor: the worker's flight recorder\n"
	"      --sidecar-fd FD   the same of the sidecar, complete when standard input ends\n"
	"      --keep FILE       with --flight-fd: save what was recorded as a flight log,\n"
	"                        the sidecar beside it as FILE.sidecar\n"
	"      --job ID          name of the job\n"
	"  -h, --help            show this help\n"
	"\n"
	"Example:\n"
	"  perftracker summarize rank0.json.gz -o rank0.ptfp\n";

enum {
	OPT_RANK = 256,
	OPT_HOST_RANKS,
	OPT_STEPS,
	OPT_SIDECAR,
	OPT_JOB,
	OPT_SKIP_FIRST,
	OPT_FLIGHT_FD,
	OPT_SIDECAR_FD,
	OPT_KEEP
};

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "rank", required_argument, NULL, OPT_RANK },
	{ "host-ranks", required_argument, NULL, OPT_HOST_RANKS },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "skip-first", no_argument, NULL, OPT_SKIP_FIRST },
	{ "sidecar", required_argument, NULL, OPT_SIDECAR },
	{ "job", required_argument, NULL, OPT_JOB },
	{ "flight-fd", required_argument, NULL, OPT_FLIGHT_FD },
	{ "sidecar-fd", required_argument, NULL, OPT_SIDECAR_FD },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct summarize_args {
	const char *output, *sidecar, *job, *keep;
	int64_t rank, flight_fd, sidecar_fd; /* -1: not given */
	struct window_options window;
	struct load_hosts hosts;
};

/* Returns -1 to go on, else an exit status. */
static int parse_host_ranks(struct summarize_args *a)
{
	struct err err = { "" };

	load_hosts_done(&a->hosts);
	if (load_hosts_of_set(optarg, &a->hosts, &err) < 0)
		return cmd_usage_error("summarize", "%s", err.text);
	return -1;
}

/* Returns -1 to go on, else an exit status. */
static int parse_option(struct summarize_args *a, int c)
{
	switch (c) {
	case 'o':
		a->output = optarg;
		return -1;
	case OPT_RANK:
		if (cmd_parse_int(optarg, 0, (1 << 20) - 1, &a->rank) < 0)
			return cmd_bad_value("summarize", "rank", "a rank");
		return -1;
	case OPT_HOST_RANKS:
		return parse_host_ranks(a);
	case OPT_STEPS:
		if (cmd_parse_steps(optarg, &a->window.first_step, &a->window.last_step) < 0)
			return cmd_bad_value("summarize", "steps", "a step or a range such as 4-6");
		return -1;
	case OPT_SKIP_FIRST:
		a->window.skip_first = true;
		return -1;
	case OPT_SIDECAR:
		a->sidecar = optarg;
		return -1;
	case OPT_JOB:
		a->job = optarg;
		return -1;
	case OPT_FLIGHT_FD:
	case OPT_SIDECAR_FD:
		if (cmd_parse_int(optarg, 0, INT32_MAX,
				  c == OPT_FLIGHT_FD ? &a->flight_fd : &a->sidecar_fd) < 0)
			return cmd_usage_error("summarize", "'%s': expected a file descriptor",
					       optarg);
		return -1;
	case OPT_KEEP:
		a->keep = optarg;
		return -1;
	case 'h':
		fputs(help, stdout);
		return EXIT_DONE;
	default:
		return cmd_try_help("summarize");
	}
}

/* Returns -1 to go on, else an exit status. */
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
	return -1;
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
	else if (error == 0 && ret->rank < 0 && path != NULL)
		ret->rank = inputs_rank_of_name(path);
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

int cmd_summarize(int argc, char **argv)
{
	struct summarize_args a = {
		.rank = -1, .flight_fd = -1, .sidecar_fd = -1, .window = { .last_step = -1 }
	};
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1)
		status = parse_option(&a, c);
	if (status < 0)
		status = check_args(&a, argc - optind);
	if (status < 0)
		status = summarize_to_file(&a, a.flight_fd < 0 ? argv[optind] : NULL);
	load_hosts_done(&a.hosts);
	return status;
}
