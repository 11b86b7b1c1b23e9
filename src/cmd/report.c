/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker report: prints a report of the store again. */
#include "cmd/storechoice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct report_options {
	const char *store, *output, *fingerprints;
	enum output_format format;
};

#define FIELD(field) OPTION_FIELD(struct report_options, field)

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct report_options, store),
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
	  .help = "write to FILE",
	  .preset = "standard output" },
	{ .name = "fingerprints",
	  .argument = "DIR",
	  FIELD(fingerprints),
	  .help = "also write the fingerprints of its window to DIR, for `perftracker localize` "
		  "and `diff`" },
};

/* A report of a job. */
struct report_id {
	char key[STORE_KEY_BYTES];
	uint64_t number;
};

struct latest {
	uint64_t number;
	size_t cnt;
};

static int note_latest(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct latest *latest = arg;

	(void)finding_cnt;
	latest->number = report->number; /* by time */
	latest->cnt++;
	return 0;
}

static int find_latest(struct store *store, struct report_id *id, struct err *err)
{
	struct latest latest = { 0 };
	int ret = store_list_reports(store, id->key, note_latest, &latest, err);

	if (ret == 0 && latest.cnt == 0)
		return err_set(err, ENOENT, "job %s has no report", id->key);
	id->number = latest.number;
	return ret;
}

/* "JOB", "JOB/3", "JOB/end" */
static int find_report(struct store *store, const char *word, struct report_id *ret,
		       struct err *err)
{
	const char *slash = strrchr(word, '/');
	char job[256];
	int64_t number = 0;
	int r;

	(void)snprintf(job, sizeof(job), "%.*s",
		       slash != NULL ? (int)(slash - word) : (int)strlen(word), word);
	if (slash != NULL && strcmp(slash + 1, "end") != 0 &&
	    cmd_parse_int(slash + 1, 1, INT64_MAX, &number) < 0)
		return err_set(err, EINVAL, "'%s': expected JOB/NUMBER or JOB/end", word);
	r = store_find_job(store, job, ret->key, err);
	if (r < 0)
		return r;
	ret->number = (uint64_t)number;
	return slash == NULL ? find_latest(store, ret, err) : 0;
}

struct output {
	const char *path; /* of a file or a folder; NULL: standard output */
	struct err *err;
	size_t cnt;
};

static int write_document(void *arg, int rank, const void *data, size_t len)
{
	const struct output *output = arg;
	struct str text = { .data = (char *)(uintptr_t)data, .len = len };

	(void)rank;
	return output_text(&text, output->path, output->err);
}

static int write_fingerprint(void *arg, int rank, const void *data, size_t len)
{
	struct str text = { .data = (char *)(uintptr_t)data, .len = len };
	struct output *output = arg;
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/rank%d.ptfp", output->path, rank);
	output->cnt++;
	return output_text(&text, path, output->err);
}

static int write_fingerprints(struct store *store, const struct report_id *id, const char *folder,
			      struct err *err)
{
	struct output output = { .path = folder, .err = err };
	int ret;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	ret = store_list_fingerprints(store, id->key, id->number, write_fingerprint, &output, err);
	if (ret == 0 && output.cnt == 0)
		return err_set(err, ENOENT, "%s/%" PRIu64 " has no fingerprints in the store",
			       id->key, id->number);
	return ret;
}

static int print(struct store *store, const struct report_options *options, const char *word,
		 struct err *err)
{
	static const char *const forms[] = { "text", "json", "html" };
	struct output output = { .path = options->output, .err = err };
	struct report_id id;
	int ret = find_report(store, word, &id, err);

	if (ret == 0)
		ret = store_get_document(store, id.key, id.number, forms[options->format],
					 write_document, &output, err);
	if (ret == 0 && options->fingerprints != NULL)
		ret = write_fingerprints(store, &id, options->fingerprints, err);
	return ret;
}

static int report_main(const struct command *command, int argc, char **argv)
{
	struct report_options options = { 0 };
	struct store *store = NULL;
	struct err err = { "" };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 1)
		return cmd_usage_error("report", "expected one report, as `perftracker history "
						 "JOB` lists it, or a job for its latest one");
	ret = storechoice_open(options.store, &store, &err);
	if (ret == 0)
		ret = print(store, &options, argv[first], &err);
	(void)store_close(store);
	return ret == 0 ? EXIT_DONE : cmd_fail("%s", err.text);
}

const struct command cmd_report = {
	.name = "report",
	.summary = "print an earlier report again",
	.usage = "[OPTION]... JOB[/NUMBER]\n",
	.about =
		"Prints a report of the store as it was made: JOB/NUMBER, JOB/end for what was said "
		"at the end of the job, or JOB for its latest one. JOB is a name, for the newest "
		"job of that name, or a key or its beginning, from `perftracker jobs`; `perftracker "
		"history JOB` lists its reports.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker report train\n"
		    "perftracker report 3fa9/2 --format html --output report.html\n",
	.run = report_main,
};
