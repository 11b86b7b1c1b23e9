/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/fleet/siteoptions.h"

#include "live/run/runlog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int siteoptions_add(void *field, const char *pair, struct err *err)
{
	struct site_sets *sets = field;

	(void)err;
	if (sets->cnt >= SITEOPTIONS_SETS_MAX || strchr(pair, '=') == NULL)
		return -EINVAL;
	sets->pairs[sets->cnt++] = pair;
	return 0;
}

int siteoptions_set_ui(void *field, const char *address, struct err *err)
{
	struct site_sets *sets = field;
	bool again = sets->ui[0] != '\0';

	if ((size_t)snprintf(sets->ui, sizeof(sets->ui), "hub.ui=%s", address) >= sizeof(sets->ui))
		return -EINVAL;
	return again ? 0 : siteoptions_add(sets, sets->ui, err);
}

const char *siteoptions_file(const struct site_options *options)
{
	return options->config != NULL ? options->config : SITE_DEFAULT_FILE;
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

static int describe(const struct site *site)
{
	struct str text = { 0 };
	struct err err = { "out of memory" };
	int ret;

	site_describe(site, &text);
	ret = str_error(&text) < 0 ? -ENOMEM : output_text(&text, NULL, &err);
	str_done(&text);
	return ret < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

static int read_site(const char *command, const struct site_options *options, struct site *site)
{
	struct site_problems problems = { .cnt = 0 };
	int ret = OPTIONS_PARSED;

	if (site_init(site) < 0)
		return cmd_fail("out of memory");
	site_take_file(site, siteoptions_file(options), &problems);
	site_take_environment(site, from_environment, &problems);
	for (size_t i = 0; i < options->sets.cnt; i++)
		site_take_option(site, options->sets.pairs[i], &problems);
	if (problems.cnt == 0)
		site_check(site, &problems);
	if (problems.cnt > 0) {
		(void)fputs(str_borrow(&problems.lines), stderr);
		(void)fprintf(stderr, "perftracker %s: %u problem%s in the configuration\n",
			      command, problems.cnt, plural(problems.cnt));
		ret = EXIT_USAGE;
	} else if (options->check_config) {
		ret = describe(site);
	}
	site_problems_done(&problems);
	return ret;
}

static void begin(struct site_options *options)
{
	ssize_t len = readlink("/proc/self/exe", options->program, sizeof(options->program) - 1);

	options->program[MAX(len, (ssize_t)0)] = '\0';
	runlog_open((enum runlog_format)options->log_format, isatty(STDERR_FILENO) == 1,
		    output_is_colored(options->color, STDERR_FILENO));
}

int siteoptions_parse(const struct command *command, int argc, char **argv,
		      struct site_options *ret, struct site *site)
{
	int first, status = optiontable_parse(command, argc, argv, ret, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status == OPTIONS_PARSED)
		status = read_site(command->name, ret, site);
	if (status == OPTIONS_PARSED)
		begin(ret);
	return status;
}
