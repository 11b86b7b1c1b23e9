/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker profile: asks a running job for a profile now, and waits for its report. */
#include "base/file.h"
#include "base/str.h"
#include "cmd/jobchoice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPORT_BYTES_MAX ((size_t)256 << 20)

struct profile_options {
	struct job_choice choice;
	double window_s, timeout_s;
	const char *output;
	enum output_format format;
};

#define FIELD(field) OPTION_FIELD(struct profile_options, field)

static const struct option_row rows[] = {
	JOB_CHOICE_ROWS(struct profile_options),
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json|html",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write the report to FILE; - is standard output",
	  .preset = "-" },
	{ .name = "window",
	  .argument = "SECONDS",
	  FIELD(window_s),
	  .high = 600,
	  .expected = "0 to 600 seconds",
	  .help = "length of the profile, at most --steps iterations of the job",
	  .preset = "--window of the job" },
	{ .name = "timeout",
	  .argument = "SECONDS",
	  FIELD(timeout_s),
	  .low = 0.001,
	  .high = 86400,
	  .expected = "0.001 to 86400 seconds",
	  .help = "stop waiting for the report after this time",
	  .preset = "300" },
};

/* The file beside the page "report-N.html" that has the report in this format. */
static int read_report(const char *page, enum output_format format, struct str *ret,
		       struct err *err)
{
	static const char *const suffixes[] = { ".txt", ".json", ".html" };
	const char *dot = strrchr(page, '.');
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t len;
	int fd, error;

	if (asprintf(&path, "%.*s%s", dot != NULL ? (int)(dot - page) : 0, page, suffixes[format]) <
	    0)
		return err_set(err, ENOMEM, "out of memory");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	error = file_read_whole(path, fd, REPORT_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	if (error == 0)
		str_append_len(ret, text, len);
	return error;
}

/* The report, and behind a text the path of its page. */
static int print_report(const struct profile_options *options, const char *page)
{
	_cleanup_(str_done) struct str text = { 0 };
	bool standard = options->output == NULL || strcmp(options->output, "-") == 0;
	struct err err = { "" };

	if (read_report(page, options->format, &text, &err) < 0 ||
	    output_text(&text, options->output, &err) < 0) {
		(void)fprintf(stderr, "perftracker profile: %s\n", err.text);
		(void)printf("%s\n", page);
		return EXIT_FAILED;
	}
	(void)fprintf(standard && options->format != OUTPUT_TEXT ? stderr : stdout, "%s\n", page);
	return EXIT_DONE;
}

static int profile_main(const struct command *command, int argc, char **argv)
{
	struct profile_options options = { .timeout_s = 300 };
	struct message answer;
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	if (job_choice_ask(&options.choice, MSG_REQUEST,
			   (uint64_t)(options.window_s * NSEC_PER_SEC),
			   (int)(options.timeout_s * 1000), &answer, &err) == 0)
		return print_report(&options, answer.text);
	(void)fprintf(stderr, "perftracker profile: %s\n", err.text);
	return EXIT_FAILED;
}

const struct command cmd_profile = {
	.name = "profile",
	.summary = "profile a running job now",
	.usage = "[OPTION]...\n",
	.about = "Requests a profile of all ranks of a job that `perftracker run` started, slow or "
		 "not. Waits for the report, prints it, and in the last line the path of its HTML "
		 "file.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker profile\n"
		    "perftracker profile --job train --window 5\n"
		    "perftracker profile --format json | jq .verdict\n",
	.run = profile_main,
};
