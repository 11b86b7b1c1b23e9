/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker status: what each worker of a running job does. */
#include "base/base.h"
#include "base/clock.h"
#include "base/vec.h"
#include "cmd/fleet/siteoptions.h"
#include "cmd/jobchoice.h"
#include "cmd/status_jobs.h"
#include "cmd/status_overhead.h"
#include "format/shared/message.h"
#include "live/link/wire.h"
#include "live/overhead/costtext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WATCH_S 2

/*
 * What follows key in the text of a datagram of MSG_STATUS, "" without it:
 * "S lost=0 slow_since=650 best_ns=9800000 learned=40 host=gpu-0 iteration=loader, optimizer 1".
 */
static const char *value_of(const struct message *line, const char *key)
{
	const char *at = strstr(line->text, key);

	return at != NULL ? at + strlen(key) : "";
}

static uint64_t slow_since(const struct message *line)
{
	return strtoull(value_of(line, " slow_since="), NULL, 10);
}

static const char *phase_name(int32_t phase)
{
	static const char *const names[] = {
		[PHASE_LEARNING] = "learning",	 [PHASE_STEADY] = "watching",
		[PHASE_SLOW] = "slow",		 [PHASE_BLOCKED] = "blocked",
		[PHASE_PROFILING] = "profiling", [PHASE_GONE] = "gone",
		[PHASE_SILENT] = "disabled",
	};

	return phase >= 0 && (size_t)phase < ARRAY_SIZE(names) ? names[phase] : "unknown";
}

static int by_rank(const void *a, const void *b)
{
	const struct message *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The slowest of the slow ranks, and the first slow step of any. */
static void print_slowdown(const message_vec *lines)
{
	const struct message *slowest = NULL;
	uint64_t since = UINT64_MAX;

	vec_foreach(line, lines) {
		if (slow_since(line) == 0)
			continue;
		since = MIN(since, slow_since(line));
		if (slowest == NULL || line->window_ns > slowest->window_ns)
			slowest = line;
	}
	if (slowest == NULL || slowest->stall_ns == 0)
		return;
	(void)printf("slow since step %" PRIu64 ": %.1f -> %.1f ms, %.1fx of its best\n", since,
		     (double)slowest->stall_ns / NSEC_PER_MSEC,
		     (double)slowest->window_ns / NSEC_PER_MSEC,
		     (double)slowest->window_ns / (double)slowest->stall_ns);
}

/* Of the first rank that knows; ranks whose iterations differ have lines of their own. */
static void print_iterations(const message_vec *lines)
{
	const char *last = "";

	vec_foreach(line, lines) {
		const char *iteration = value_of(line, " iteration=");

		if (iteration[0] == '\0' || strcmp(iteration, last) == 0)
			continue;
		(void)printf("iteration: %s (since step %" PRIu64 ")\n", iteration,
			     (uint64_t)strtoull(value_of(line, " learned="), NULL, 10));
		last = iteration;
	}
}

/* A name that another host gave itself: without what would end a string of JSON. */
static const char *host_of(const struct message *line, char ret[64])
{
	const char *host = value_of(line, " host=");

	(void)snprintf(ret, 64, "%.*s", (int)strcspn(host, " \"\\"), host);
	return ret;
}

static bool has_hosts(const message_vec *lines)
{
	char first[64], other[64];

	vec_foreach(line, lines) {
		if (strcmp(host_of(&lines->data[0], first), host_of(line, other)) != 0)
			return true;
	}
	return false;
}

/* The host where there are several. */
static void print_text(const message_vec *lines, const struct report_overhead *overhead)
{
	bool hosts = has_hosts(lines);
	char host[64];

	(void)printf("%5s %8s %-10s %10s %10s %10s %8s%s\n", "rank", "pid", "state", "step",
		     "now ms", "best ms", "ago s", hosts ? "  host" : "");
	vec_foreach(line, lines)
		(void)printf("%5d %8u %-10s %10" PRIu64 " %10.1f %10.1f %8.1f%s%s\n", line->rank,
			     line->pid, phase_name(line->status), line->step,
			     (double)line->window_ns / NSEC_PER_MSEC,
			     (double)line->stall_ns / NSEC_PER_MSEC,
			     (double)(clock_mono_ns() - line->mono_ns) / NSEC_PER_SEC,
			     hosts ? "  " : "", hosts ? host_of(line, host) : "");
	print_iterations(lines);
	print_slowdown(lines);
	status_overhead_lines(overhead);
}

static int print_json(const message_vec *lines, const struct report_overhead *overhead,
		      const job_about_vec *jobs)
{
	const char *comma = "";
	char host[64];
	int ret;

	(void)printf("{\"schema\":\"perftracker.status.v1\",\"jobs\":");
	ret = status_jobs_json(jobs, stdout);
	(void)printf(",\n\"workers\":[");
	vec_foreach(line, lines) {
		(void)printf(
			"%s\n {\"rank\":%d,\"host\":\"%s\",\"pid\":%u,\"state\":\"%s\",\"step\":%" PRIu64
			",\"iterations\":%" PRIu64 ",\"iteration_ms\":%.3f,\"baseline_ms\":%.3f"
			",\"slow_since_step\":%" PRIu64 ",\"iteration\":\"%s\""
			",\"silent_ms\":%.1f}",
			comma, line->rank, host_of(line, host), line->pid, phase_name(line->status),
			line->step, line->order_id, (double)line->window_ns / NSEC_PER_MSEC,
			(double)line->stall_ns / NSEC_PER_MSEC, slow_since(line),
			value_of(line, " iteration="),
			(double)(clock_mono_ns() - line->mono_ns) / NSEC_PER_MSEC);
		comma = ",";
	}
	(void)printf("\n],\n\"overhead\":");
	status_overhead_json(overhead);
	(void)printf("}\n");
	return ret;
}

/* The last answer has the overhead in its text. */
static int collect(const char *socket, message_vec *ret, struct report_overhead *ret_overhead,
		   struct err *err)
{
	struct message last;
	const int error = job_workers(socket, ret, &last, err);

	if (error == 0)
		costtext_read(last.text, ret_overhead);
	return error;
}

struct status_options {
	struct job_choice choice;
	struct site_options site; /* of the fleet, with hub */
	bool watch, hub;
	enum output_format format; /* text or JSON */
};

#define FIELD(field) OPTION_FIELD(struct status_options, field)

static const struct option_row rows[] = {
	JOB_CHOICE_ROWS(struct status_options),
	{ .name = "hub",
	  FIELD(hub),
	  .help = "list the jobs that the hub of a fleet leads on this host",
	  .more = "For the hub's own user, or root." },
	SITE_CONFIG_ROW(struct status_options, site.config),
	{ .name = "watch",
	  .letter = 'w',
	  FIELD(watch),
	  .help = "print it again every two seconds, until the job has ended" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
};

/* Prints one job, the lines of its workers among jobs, which lists all. */
static int show_job(const struct status_options *options, const char *socket,
		    const job_about_vec *jobs, struct err *err)
{
	struct report_overhead overhead = { .present = true };
	message_vec lines = { 0 };
	struct job_about about;
	int ret = jobs_ask(socket, &about, err);

	if (ret == 0)
		ret = collect(socket, &lines, &overhead, err);
	if (lines.cnt > 0)
		qsort(lines.data, lines.cnt, sizeof(*lines.data), by_rank);
	if (ret == 0 && options->format == OUTPUT_JSON) {
		ret = print_json(&lines, &overhead, jobs);
	} else if (ret == 0) {
		status_job_lines(&about, stdout);
		print_text(&lines, &overhead);
	}
	vec_done(&lines);
	return ret;
}

/* The run folder of the hub, of which a site may have no file on this host. */
static int find_hub(const struct status_options *options, char *ret, size_t size, struct err *err)
{
	const char *file = siteoptions_file(&options->site);
	struct site_problems problems = { .cnt = 0 };
	struct site site;
	int r = site_init(&site);

	if (r == 0 && (options->site.config != NULL || access(file, R_OK) == 0))
		site_take_file(&site, file, &problems);
	if (r < 0)
		(void)err_set(err, ENOMEM, "out of memory");
	else if (problems.cnt > 0)
		r = err_set(err, EINVAL, "%.*s", (int)strcspn(str_borrow(&problems.lines), "\n"),
			    str_borrow(&problems.lines));
	else
		(void)snprintf(ret, size, "%s", site.values.hub_run);
	site_problems_done(&problems);
	site_done(&site);
	return r;
}

/* Prints the jobs of the fleet's hub. Returns 0 or -errno with a line in err. */
static int show_hub(const struct status_options *options, struct err *err)
{
	job_about_vec jobs = { 0 };
	char folder[1024];
	int ret = find_hub(options, folder, sizeof(folder), err);

	if (ret == 0 && access(folder, R_OK | X_OK) != 0)
		ret = err_set(err, errno,
			      "%s: %s: expected the run folder of a hub; it is hub.run of --config",
			      folder, strerror(errno));
	if (ret == 0) {
		ret = jobs_list(folder, &jobs);
		if (ret < 0)
			(void)err_set(err, -ret, "out of memory");
	}
	if (ret == 0 && options->format == OUTPUT_JSON) {
		(void)printf("{\"schema\":\"perftracker.fleet.v1\",\"jobs\":");
		ret = status_jobs_json(&jobs, stdout);
		(void)printf("}\n");
	} else if (ret == 0) {
		status_fleet_table(&jobs, stdout);
	}
	vec_done(&jobs);
	return ret;
}

/* Prints all jobs, or the chosen one. Returns 0 or -errno with a line in err. */
static int show(const struct status_options *options, struct err *err)
{
	bool chosen = options->choice.job != NULL || options->choice.socket != NULL;
	job_about_vec jobs = { 0 };
	char socket[128];
	int ret = jobs_list(NULL, &jobs);

	if (options->hub) {
		vec_done(&jobs);
		return show_hub(options, err);
	}
	if (ret < 0)
		(void)err_set(err, -ret, "out of memory");
	else if (!chosen && options->format == OUTPUT_TEXT && jobs.cnt > 1)
		status_jobs_table(&jobs, stdout);
	else
		ret = job_choice_socket(&options->choice, socket, sizeof(socket), err);
	if (ret == 0 && (chosen || options->format == OUTPUT_JSON || jobs.cnt <= 1))
		ret = show_job(options, socket, &jobs, err);
	vec_done(&jobs);
	return ret;
}

/* Until no job answers any more. */
static int watch(const struct status_options *options)
{
	bool terminal = isatty(STDOUT_FILENO) == 1;
	const struct timespec pause = { .tv_sec = WATCH_S };
	struct err err;

	for (;;) {
		(void)nanosleep(&pause, NULL);
		(void)fputs(terminal ? "\033[H\033[J" : "\n", stdout);
		if (show(options, &err) < 0) {
			(void)printf("%s\n", err.text);
			return EXIT_DONE;
		}
		if (fflush(stdout) != 0)
			return EXIT_FAILED;
	}
}

static int status_main(const struct command *command, int argc, char **argv)
{
	struct status_options options = { 0 };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	if (show(&options, &err) < 0) {
		(void)fprintf(stderr, "perftracker status: %s\n", err.text);
		return EXIT_FAILED;
	}
	(void)fflush(stdout);
	return options.watch ? watch(&options) : EXIT_DONE;
}

const struct command cmd_status = {
	.name = "status",
	.summary = "show the state of running jobs",
	.usage = "[OPTION]...\n",
	.about =
		"Lists the user's jobs that `perftracker run` or `perftracker hostd` watches on this host; "
		"with --hub, where the hub of a fleet runs, the jobs of all hosts. Of one job, the only "
		"one or that of --job: its folder, its latest report, and a line for each training "
		"process: its rank, its state, its step, its iteration time now and at its best, and the time "
		"since its last sign of life. On the first host of a job over several hosts these are the "
		"ranks of all hosts. Of a slow job a line says since which step. The last "
		"lines show what PerfTracker itself costs: the CPU time of its threads, its effect "
		"on iterations with a 95 % interval, and what is not recorded because it cost too "
		"much.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker status\n"
		    "perftracker status --watch --job train\n"
		    "perftracker status --hub\n",
	.run = status_main,
};
