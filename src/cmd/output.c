/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "cmd/cmd.h"
#include "report/comparison/formats.h"
#include "report/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int output_text(const struct str *text, const char *path, struct err *err)
{
	bool standard = path == NULL || strcmp(path, "-") == 0;
	int error = standard ? file_write_all(STDOUT_FILENO, str_borrow(text), text->len)
			     : file_replace(path, str_borrow(text), text->len, 0644);

	if (error == 0)
		return 0;
	return err_set(err, -error, "%s: cannot write: %s", standard ? "standard output" : path,
		       strerror(-error));
}

bool output_is_colored(unsigned int color, int fd)
{
	const char *no_color = getenv("NO_COLOR");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	return isatty(fd) == 1 && (no_color == NULL || no_color[0] == '\0');
}

static struct report_text_options text_options(const struct output_how *how)
{
	struct report_text_options options = { .width = 100, .verbose = how->verbose };
	struct winsize size;

	if (how->path != NULL && strcmp(how->path, "-") != 0) {
		options.color = how->color == COLOR_ALWAYS;
		return options;
	}
	options.color = output_is_colored(how->color, STDOUT_FILENO);
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 0)
		options.width = size.ws_col;
	return options;
}

/* Writes the text of a printer that returned error; frees text. */
static int output_printed(struct str *text, int error, const char *path, struct err *err)
{
	if (error == 0)
		error = output_text(text, path, err);
	else
		(void)err_set(err, -error, "cannot print the report: %s", strerror(-error));
	str_done(text);
	return error;
}

int output_report(const struct report *report, const struct output_how *how, struct err *err)
{
	struct report_text_options options = text_options(how);
	struct str text = { 0 };
	int error;

	if (how->format == OUTPUT_JSON)
		error = report_json(report, &text);
	else if (how->format == OUTPUT_HTML)
		error = report_html(report, &text);
	else
		error = report_text(report, &options, &text);
	return output_printed(&text, error, how->path, err);
}

int output_comparison(const struct comparison *comparison, const struct output_how *how,
		      struct err *err)
{
	struct report_text_options options = text_options(how);
	struct str text = { 0 };
	int error;

	if (how->format == OUTPUT_JSON)
		error = comparison_json(comparison, &text);
	else if (how->format == OUTPUT_HTML)
		error = comparison_html(comparison, &text);
	else
		error = comparison_text(comparison, &options, &text);
	return output_printed(&text, error, how->path, err);
}
