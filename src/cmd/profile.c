/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker profile: asks a running job for a profile now, and waits for its report. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "live/run/ask.h"

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

/* Returns 0, or -EINVAL when it was said what is wrong. */
static int take_option(int option, struct profile_options *ret)
{
	if (option == 's') {
		ret->socket = optarg;
		return 0;
	}
	if (option != 'w' && option != 't')
		(void)cmd_try_help("profile");
	else if (option == 'w' && cmd_parse_double(optarg, 0, 600, &ret->window_s) < 0)
		(void)cmd_bad_value("profile", "window", "0 to 600 seconds");
	else if (option == 't' && cmd_parse_double(optarg, 0.001, 86400, &ret->timeout_s) < 0)
		(void)cmd_bad_value("profile", "timeout", "0.001 to 86400 seconds");
	else
		return 0;
	return -EINVAL;
}

/* Returns 0, 1 when help was printed, -EINVAL when it was said what is wrong. */
static int parse_options(int argc, char **argv, struct profile_options *ret)
{
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			return 1;
		}
		if (take_option(option, ret) < 0)
			return -EINVAL;
	}
	if (optind == argc)
		return 0;
	(void)cmd_usage_error("profile", "unexpected '%s'", argv[optind]);
	return -EINVAL;
}

int cmd_profile(int argc, char **argv)
{
	struct profile_options options = { .timeout_s = 300 };
	struct message answer;
	struct err err = { "" };
	int ret = parse_options(argc, argv, &options), fd;

	if (ret != 0)
		return ret < 0 ? EXIT_USAGE : EXIT_DONE;
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
