/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/publish.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "live/hub/jobstate.h"
#include "report/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void publish_origin(const struct run_options *options, const struct wire_state *states, size_t cnt,
		    struct report *report)
{
	const char *slash = strrchr(options->out_dir, '/');

	report->job_id = options->job_name;
	report->origin.command = options->command;
	report->origin.run_id = slash != NULL ? slash + 1 : options->out_dir;
	report->origin.run_dir = options->out_dir;
	report->origin.made_ns = clock_wall_ns();
	if (report->origin.host_cnt == 0)
		jobstate_hosts(states, cnt, report);
	jobstate_note_ranks(states, cnt, report);
}

static int write_file(const char *path, const struct str *text, struct err *err)
{
	int ret = file_replace(path, str_borrow(text), text->len, 0644);

	return ret < 0 ? err_set(err, -ret, "%s: cannot write: %s", path, strerror(-ret)) : 0;
}

/* latest: also as the report without a number; number 0: only so. */
static int write_form(const struct run_options *options, uint64_t number, bool latest,
		      const char *suffix, const struct str *text, struct err *err)
{
	char path[4096];
	int ret = 0;

	(void)snprintf(path, sizeof(path), "%s/report.%s", options->out_dir, suffix);
	if (latest)
		ret = write_file(path, text, err);
	if (ret < 0 || number == 0)
		return ret;
	(void)snprintf(path, sizeof(path), "%s/report-%" PRIu64 ".%s", options->out_dir, number,
		       suffix);
	return write_file(path, text, err);
}

static int write_forms(const struct report *report, const struct run_options *options,
		       uint64_t number, bool latest, struct err *err)
{
	static const struct {
		const char *suffix;
		int (*make)(const struct report *report, struct str *out);
	} forms[] = { { "json", report_json }, { "html", report_html } };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms) && ret == 0; i++) {
		struct str text = { 0 };

		ret = forms[i].make(report, &text);
		if (ret < 0)
			(void)err_set(err, -ret, "report.%s: out of memory", forms[i].suffix);
		else
			ret = write_form(options, number, latest, forms[i].suffix, &text, err);
		str_done(&text);
	}
	return ret;
}

int publish_files(const struct report *report, const struct run_options *options, uint64_t number,
		  struct err *err)
{
	return write_forms(report, options, number, true, err);
}

int publish_numbered(const struct report *report, const struct run_options *options,
		     uint64_t number, struct err *err)
{
	return write_forms(report, options, number, false, err);
}

void publish_text(const struct report *report, const struct run_options *options, uint64_t number,
		  bool latest)
{
	const struct report_text_options how = { .width = 100 };
	struct str text = { 0 };

	if (report_text(report, &how, &text) == 0)
		(void)!write_form(options, number, latest, "txt", &text, NULL);
	str_done(&text);
}

void publish_digest(const struct report *report, struct wire_report *ret)
{
	*ret = (struct wire_report){ .verdict = report->verdict,
				     .finding_cnt = (uint32_t)report->finding_cnt };
	for (size_t i = 0; i < MIN(report->finding_cnt, (size_t)WIRE_REPORT_FINDINGS); i++) {
		const struct finding *finding = &report->findings[i];
		struct wire_finding *to = &ret->findings[i];

		(void)snprintf(to->cause, sizeof(to->cause), "%s", finding->cause);
		to->gain_ns = (int64_t)(finding->gain_ms_per_iteration * NSEC_PER_MSEC);
		to->rank_cnt = (uint32_t)finding->rank_cnt;
		for (size_t r = 0; r < MIN(finding->rank_cnt, (size_t)WIRE_FINDING_RANKS); r++)
			to->ranks[r] = finding->ranks[r];
	}
}

static int terminal_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void publish_print(const struct report *report, const struct run_options *options)
{
	int fd = options->report_to_stdout ? STDOUT_FILENO : STDERR_FILENO;
	struct report_text_options how = {
		.color = options->color_always || (options->color && isatty(fd) == 1),
		.width = terminal_width(fd),
	};
	struct str text = { 0 };
	int ret = options->json ? report_json(report, &text) : report_text(report, &how, &text);

	if (ret == 0)
		ret = file_write_all(fd, str_borrow(&text), text.len);
	if (ret < 0)
		log_line(LOG_WARNING, "event=report-not-printed why=\"%s\"", strerror(-ret));
	str_done(&text);
}
