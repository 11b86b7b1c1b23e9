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

static struct report_text_options terminal_options(const char *path)
{
	struct report_text_options options = { .width = 100 };
	struct winsize size;
	bool terminal = (path == NULL || strcmp(path, "-") == 0) && isatty(STDOUT_FILENO);
	const char *no_color = getenv("NO_COLOR");

	if (!terminal)
		return options;
	options.color = no_color == NULL || no_color[0] == '\0';
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
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

int output_report(const struct report *report, enum output_format format, bool verbose,
		  const char *path, struct err *err)
{
	struct report_text_options options = terminal_options(path);
	struct str text = { 0 };
	int error;

	options.verbose = verbose;
	if (format == OUTPUT_JSON)
		error = report_json(report, &text);
	else if (format == OUTPUT_HTML)
		error = report_html(report, &text);
	else
		error = report_text(report, &options, &text);
	return output_printed(&text, error, path, err);
}

int output_comparison(const struct comparison *comparison, enum output_format format, bool verbose,
		      const char *path, struct err *err)
{
	struct report_text_options options = terminal_options(path);
	struct str text = { 0 };
	int error;

	options.verbose = verbose;
	if (format == OUTPUT_JSON)
		error = comparison_json(comparison, &text);
	else if (format == OUTPUT_HTML)
		error = comparison_html(comparison, &text);
	else
		error = comparison_text(comparison, &options, &text);
	return output_printed(&text, error, path, err);
}
