/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker status: what each worker of a running job does. */
#include "base/base.h"
#include "base/clock.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "serve/ask.h"
#include "serve/wire.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 5000

static const char help[] =
	"usage: perftracker status [--socket PATH] [--format text|json]\n"
	"\n"
	"Prints one line for each training process of a job started by perftracker\n"
	"run: its rank, what it does, its step, its iteration time now and at its\n"
	"best, and the time since its last sign of life.\n"
	"\n"
	"  --socket PATH   which job [the newest of yours]\n"
	"  -h, --help      this text\n";

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "format", required_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

typedef VEC(struct message) message_vec;

static const char *phase_name(int32_t phase)
{
	static const char *const names[] = {
		[PHASE_LEARNING] = "learning",	 [PHASE_STEADY] = "watching",
		[PHASE_SLOW] = "slow",		 [PHASE_BLOCKED] = "blocked",
		[PHASE_PROFILING] = "profiling", [PHASE_GONE] = "gone",
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

static void print_text(const message_vec *lines)
{
	(void)printf("%5s %8s %-10s %10s %10s %10s %8s\n", "rank", "pid", "state", "step", "now ms",
		     "best ms", "ago s");
	vec_foreach(line, lines)
		(void)printf("%5d %8u %-10s %10" PRIu64 " %10.1f %10.1f %8.1f\n", line->rank,
			     line->pid, phase_name(line->status), line->step,
			     (double)line->window_ns / NSEC_PER_MSEC,
			     (double)line->stall_ns / NSEC_PER_MSEC,
			     (double)(clock_mono_ns() - line->mono_ns) / NSEC_PER_SEC);
}

static void print_json(const message_vec *lines)
{
	const char *comma = "";

	(void)printf("{\"schema\":\"perftracker.status.v1\",\"workers\":[");
	vec_foreach(line, lines) {
		(void)printf("%s\n {\"rank\":%d,\"pid\":%u,\"state\":\"%s\",\"step\":%" PRIu64
			     ",\"iterations\":%" PRIu64
			     ",\"iteration_ms\":%.3f,\"baseline_ms\":%.3f"
			     ",\"silent_ms\":%.1f}",
			     comma, line->rank, line->pid, phase_name(line->status), line->step,
			     line->order_id, (double)line->window_ns / NSEC_PER_MSEC,
			     (double)line->stall_ns / NSEC_PER_MSEC,
			     (double)(clock_mono_ns() - line->mono_ns) / NSEC_PER_MSEC);
		comma = ",";
	}
	(void)printf("\n]}\n");
}

/* Answers end with one of pid 0. */
static int collect(const char *socket, message_vec *ret, struct err *err)
{
	struct message line;
	int fd = ask_open(socket, MSG_STATUS, 0, err), r;

	if (fd < 0)
		return fd;
	while ((r = ask_next(fd, TIMEOUT_MS, &line, err)) == 0 && line.pid != 0) {
		r = vec_push(ret, line);
		if (r < 0) {
			(void)err_set(err, ENOMEM, "out of memory");
			break;
		}
	}
	(void)close(fd);
	return r;
}

/* Returns 0, 1 when help was printed, -EINVAL. */
static int parse_options(int argc, char **argv, const char **ret_socket, bool *ret_json)
{
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			return 1;
		}
		if (option == 's')
			*ret_socket = optarg;
		else if (option == 'f' &&
			 (strcmp(optarg, "text") == 0 || strcmp(optarg, "json") == 0))
			*ret_json = strcmp(optarg, "json") == 0;
		else
			return -EINVAL;
	}
	return optind == argc ? 0 : -EINVAL;
}

int cmd_status(int argc, char **argv)
{
	const char *socket = NULL;
	message_vec lines = { 0 };
	struct err err = { "" };
	bool json = false;
	int ret = parse_options(argc, argv, &socket, &json);

	if (ret != 0) {
		if (ret < 0)
			(void)fprintf(stderr,
				      "perftracker status: see perftracker status --help\n");
		return ret < 0 ? EXIT_USAGE : 0;
	}
	ret = collect(socket, &lines, &err);
	if (ret < 0) {
		(void)fprintf(stderr, "perftracker status: %s\n", err.text);
		vec_done(&lines);
		return 1;
	}
	if (lines.cnt > 0)
		qsort(lines.data, lines.cnt, sizeof(*lines.data), by_rank);
	if (json)
		print_json(&lines);
	else
		print_text(&lines);
	vec_done(&lines);
	return 0;
}
