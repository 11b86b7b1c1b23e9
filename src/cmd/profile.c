/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker profile: asks a running job for a profile now, and waits for its report. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "serve/ask.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: perftracker profile [--socket PATH] [--window SEC] [--timeout SEC]\n"
	"\n"
	"Asks a job started by perftracker run for a profile of all its ranks now, slow or\n"
	"not, waits for the report and prints the path of its HTML file.\n"
	"\n"
	"  --socket PATH   which job [the newest of yours]\n"
	"  --window SEC    wished length [as the job was started with]\n"
	"  --timeout SEC   give up waiting after so long [300]\n"
	"  -h, --help      this text\n";

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "timeout", required_argument, NULL, 't' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct profile_options {
	const char *socket;
	double window_s, timeout_s;
};

/* Returns 0, 1 when help was printed, -EINVAL. */
static int parse_options(int argc, char **argv, struct profile_options *ret)
{
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		char *end = NULL;

		if (option == 'h') {
			(void)fputs(help, stdout);
			return 1;
		}
		if (option == 's')
			ret->socket = optarg;
		else if (option == 'w')
			ret->window_s = strtod(optarg, &end);
		else if (option == 't')
			ret->timeout_s = strtod(optarg, &end);
		else
			return -EINVAL;
		if (end != NULL && (end == optarg || *end != '\0'))
			return -EINVAL;
	}
	return optind == argc && ret->window_s >= 0 && ret->window_s <= 600 && ret->timeout_s > 0 &&
			       ret->timeout_s <= 86400
		       ? 0
		       : -EINVAL;
}

int cmd_profile(int argc, char **argv)
{
	struct profile_options options = { .timeout_s = 300 };
	struct message answer;
	struct err err = { "" };
	int ret = parse_options(argc, argv, &options), fd;

	if (ret != 0) {
		if (ret < 0)
			(void)fprintf(stderr,
				      "perftracker profile: see perftracker profile --help\n");
		return ret < 0 ? EXIT_USAGE : 0;
	}
	fd = ask_open(options.socket, MSG_REQUEST, (uint64_t)(options.window_s * NSEC_PER_SEC),
		      &err);
	ret = fd < 0 ? fd : ask_next(fd, (int)(options.timeout_s * 1000), &answer, &err);
	if (fd >= 0)
		(void)close(fd);
	if (ret == 0 && answer.status == 0) {
		(void)printf("%s\n", answer.text);
		return 0;
	}
	(void)fprintf(stderr, "perftracker profile: %s\n", ret < 0 ? err.text : answer.text);
	return 1;
}
