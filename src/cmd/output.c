/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int output_format_parse(const char *text, enum output_format *ret)
{
	static const char *const names[] = { "text", "json", "html" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], text) == 0) {
			*ret = (enum output_format)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A device or a pipe must be written to: renaming a file over it would replace it. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_file(const struct str *text, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int error = fd < 0 ? -errno : write_all(fd, str_borrow(text), text->len);

	if (fd >= 0 && close(fd) < 0 && error == 0)
		error = -errno;
	return error;
}

int output_text(const struct str *text, const char *path, struct err *err)
{
	struct str tmp = { 0 };
	int error;

	if (path == NULL || strcmp(path, "-") == 0) {
		error = write_all(STDOUT_FILENO, str_borrow(text), text->len);
		return error < 0 ? err_set(err, -error, "standard output: %s", strerror(-error))
				 : 0;
	}
	if (is_special(path)) {
		error = write_file(text, path);
	} else {
		str_printf(&tmp, "%s.tmp", path);
		error = write_file(text, str_borrow(&tmp));
		if (error == 0 && rename(str_borrow(&tmp), path) < 0)
			error = -errno;
		if (error < 0)
			(void)unlink(str_borrow(&tmp));
	}
	str_done(&tmp);
	return error < 0 ? err_set(err, -error, "%s: cannot write: %s", path, strerror(-error)) : 0;
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

int output_report(const struct report *report, enum output_format format, const char *path,
		  struct err *err)
{
	struct report_text_options options = terminal_options(path);
	struct str text = { 0 };
	int error;

	if (format == OUTPUT_JSON)
		error = report_json(report, &text);
	else if (format == OUTPUT_HTML)
		error = report_html(report, &text);
	else
		error = report_text(report, &options, &text);
	if (error == 0)
		error = output_text(&text, path, err);
	else
		(void)err_set(err, -error, "cannot print the report: %s", strerror(-error));
	str_done(&text);
	return error;
}
