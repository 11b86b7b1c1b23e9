/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker prompt: a report as a question to a language model. */
#include "base/file.h"
#include "cmd/storechoice.h"
#include "report/prompt/reportprompt.h"
#include "serve/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPORT_BYTES_MAX ((size_t)256 << 20)

struct prompt_options {
	const char *store, *output;
	int64_t budget;
};

#define FIELD(field) OPTION_FIELD(struct prompt_options, field)

static const struct option_row rows[] = {
	{ .name = "budget",
	  .letter = 'b',
	  .argument = "TOKENS",
	  FIELD(budget),
	  .low = REPORTPROMPT_TOKENS_MIN,
	  .high = REPORTPROMPT_TOKENS_MAX,
	  .help = "write at most so many tokens, counted as three bytes each",
	  .preset = "4000" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE",
	  .preset = "standard output" },
	STORE_CHOICE_ROW(struct prompt_options, store),
};

/* A file, else a report of the store: JOB/NUMBER or JOB/end. */
static int read_store(const struct prompt_options *options, const char *word, struct str *ret,
		      struct err *err)
{
	const char *slash = strrchr(word, '/');
	struct archive archive = { .store = NULL };
	char job[256], key[STORE_KEY_BYTES], id[ARCHIVE_ID_BYTES + 32];
	int r;

	if (slash == NULL || (size_t)(slash - word) >= sizeof(job))
		return err_set(
			err, ENOENT,
			"%s: no such file; a report of the store is JOB/NUMBER or JOB/end, as "
			"`perftracker history JOB` lists it",
			word);
	(void)snprintf(job, sizeof(job), "%.*s", (int)(slash - word), word);
	r = storechoice_open(options->store, &archive.store, err);
	if (r == 0)
		r = store_find_job(archive.store, job, key, err);
	if (r == 0) {
		archive.catalog = catalog_new(NULL, 0);
		(void)snprintf(id, sizeof(id), "%s-%.30s", key, slash + 1);
		r = archive.catalog != NULL ? archive_get_report(&archive, id, "json", ret, err)
					    : err_set(err, ENOMEM, "out of memory");
	}
	archive_done(&archive);
	return r;
}

static int read_report(const struct prompt_options *options, const char *word, struct str *ret,
		       struct err *err)
{
	int fd = open(word, O_RDONLY | O_CLOEXEC | O_NOCTTY), r;
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (fd < 0 && errno == ENOENT)
		return read_store(options, word, ret, err);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", word, strerror(errno));
	r = file_read_whole(word, fd, REPORT_BYTES_MAX, &text, &len, err);
	(void)close(fd);
	if (r == 0)
		str_append_len(ret, text, len);
	return r == 0 ? str_error(ret) : r;
}

static int prompt_main(const struct command *command, int argc, char **argv)
{
	struct prompt_options options = { .budget = 4000 };
	struct str report = { 0 }, text = { 0 };
	struct err err = { "" };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 1)
		return cmd_usage_error("prompt", "expected one report: a file report.json, or "
						 "JOB/NUMBER of the store");
	ret = read_report(&options, argv[first], &report, &err);
	if (ret == 0)
		ret = reportprompt_write(argv[first], str_borrow(&report), report.len,
					 (size_t)options.budget, &text, &err);
	if (ret == 0)
		ret = output_text(&text, options.output, &err);
	str_done(&report);
	str_done(&text);
	return ret == 0 ? EXIT_DONE
			: cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-ret));
}

const struct command cmd_prompt = {
	.name = "prompt",
	.summary = "write a report as a question to a language model",
	.usage = "[OPTION]... REPORT\n",
	.about =
		"Writes what a report says so that a language model can explain it: rules, findings "
		"with numbered evidence, who waited for whom, what is not known, and the form of the "
		"answer. Names of the job's functions are fenced as data. Nothing is sent anywhere. "
		"REPORT is a file report.json, or JOB/NUMBER of the store.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker prompt perftracker-out/report.json\n"
		    "perftracker prompt 3fa9/2 --budget 2000\n",
	.run = prompt_main,
};
