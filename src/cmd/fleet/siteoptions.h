/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands hostd, hub and status share: options that name the site's configuration. */
#pragma once

#include "cmd/cmd.h"
#include "live/site/site.h"

#define SITEOPTIONS_SETS_MAX 16u

struct site_options {
	const char *config; /* NULL: the default file */
	struct site_sets {
		const char *pairs[SITEOPTIONS_SETS_MAX + 1]; /* end with NULL */
		size_t cnt;
		char ui[300]; /* --ui of the hub as such a pair */
	} sets;
	bool check_config;
	unsigned int log_format; /* enum runlog_format */
	unsigned int color;	 /* enum output_color */
	char program[4096];	 /* set by siteoptions_parse(): the path of this executable */
};

/* optiontable's setter of --set. */
int siteoptions_add(void *sets, const char *pair, struct err *err);

/* The same for --ui [ADDR:]PORT, which is --set hub.ui=[ADDR:]PORT. */
int siteoptions_set_ui(void *sets, const char *address, struct err *err);

#define SITE_CONFIG_ROW(owner, field)                                                            \
	{                                                                                        \
		.name = "config", .letter = 'c', .argument = "FILE", OPTION_FIELD(owner, field), \
		.help = "the site's configuration", .preset = SITE_DEFAULT_FILE                  \
	}

/* Rows of a command that is a service. */
#define SITE_SERVICE_ROWS                                                                      \
	SITE_CONFIG_ROW(struct site_options, config),                                          \
		{ .name = "set",                                                               \
		  .argument = "KEY=VALUE",                                                     \
		  OPTION_FIELD(struct site_options, sets),                                     \
		  .set = siteoptions_add,                                                      \
		  .expected = "KEY=VALUE, 16 times at most",                                   \
		  .help = "a key of the configuration, for instance hub.store=none",           \
		  .more = "May be given several times. It counts more than the environment "   \
			  "(PERFTRACKER_HUB_STORE for hub.store), and that more than FILE." }, \
		{ .name = "check-config",                                                      \
		  OPTION_FIELD(struct site_options, check_config),                             \
		  .help = "print each key, its value and where that comes from, or what is "   \
			  "wrong with it, and exit",                                           \
		  .more = "The exit status is 0, or 2 if something is wrong." },               \
		{ .name = "log-format",                                                        \
		  .words = "auto|people|logfmt|json",                                          \
		  OPTION_FIELD(struct site_options, log_format),                               \
		  .help = "format of log lines on stderr; auto: people on a terminal, else "   \
			  "logfmt",                                                            \
		  .preset = "auto" },                                                          \
		COLOR_ROW(struct site_options, color)

/*
 * Parses the command line of a service, reads the configuration into site, and opens the log. Returns
 * OPTIONS_PARSED, or an exit status: what is wrong was printed, or --help or --check-config is done.
 * The caller calls site_done() in any case.
 */
_must_check_ int siteoptions_parse(const struct command *command, int argc, char **argv,
				   struct site_options *ret, struct site *site);

/* The file of the configuration. */
const char *siteoptions_file(const struct site_options *options);
