/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command from other places than its command line. Of several the first one counts:
 * the command line, the environment (PERFTRACKER_MIN_GAP for --min-gap), a file, the default.
 *
 *	# ~/.config/perftracker/run.conf
 *	min-gap = 30
 *	keep-traces = yes
 */
#pragma once

#include "base/str.h"
#include "cmd/options/optiontable.h"

enum setting_source { SETTING_DEFAULT, SETTING_FILE, SETTING_ENVIRONMENT, SETTING_OPTION };

struct setting {
	enum setting_source source;
	const char *text; /* as given; "" for an option without a value */
	int line;	  /* SETTING_FILE */
};

struct settings {
	struct setting of_row[OPTION_ROWS_MAX];
	char path[4096]; /* of the file; "": none was read */
	char *contents;	 /* texts point into it */
};

/*
 * As optiontable_parse(), and takes the other places, too. The file is that of the row "config", on
 * the command line or in the environment, else run.conf of the user, which may be missing. options
 * borrow texts of settings, which the caller frees.
 */
_must_check_ int settings_parse(const struct command *command, int argc, char **argv,
				struct settings *settings, void *options, int *ret_first);
void settings_done(struct settings *settings);

/* Appends a table: each option, its value, and where that comes from. */
void settings_describe(const struct command *command, const struct settings *settings,
		       struct str *out);

/*
 * Takes a file's text of len bytes, which it cuts into pieces. Returns 0, or -EINVAL with
 * "FILE:LINE:COLUMN: ..." in err.
 */
_must_check_ int settings_take_file(const struct command *command, struct settings *settings,
				    char *text, void *options, struct err *err);
