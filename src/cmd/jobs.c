/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker jobs: the jobs in the store. */
#include "base/clock.h"
#include "cmd/storechoice.h"
#include "memory/earlier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct jobs_options {
	const char *store;
	int64_t limit;
	enum output_format format; /* text or JSON */
};

#define FIELD(field) OPTION_FIELD(struct jobs_options, field)

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct jobs_options, store),
	{ .name = "limit",
	  .letter = 'n',
	  .argument = "N",
	  FIELD(limit),
	  .low = 0,
	  .high = 1000000,
	  .help = "list the newest N jobs; 0: all",
	  .preset = "20" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
};

/* The rows of the table, and the jobs that were slower than their earlier runs. */
struct table {
	size_t cnt;
	VEC(char *) slower; /* keys */
};

static int take_slower(void *arg, const struct store_job *job)
{
	struct table *table = arg;
	char *key = strdup(job->key);

	if (key == NULL || vec_push(&table->slower, key) < 0) {
		free(key);
		return -ENOMEM;
	}
	return 0;
}

static bool is_slower(const struct table *table, const char *key)
{
	vec_foreach(slower, &table->slower) {
		if (strcmp(*slower, key) == 0)
			return true;
	}
	return false;
}

static int print_row(void *arg, const struct store_job *job)
{
	char started[32], state[32], span[16];
	struct table *table = arg;

	if (table->cnt++ == 0)
		(void)printf("%-12s  %-20s %-12s %-19s %8s %5s %9s %9s %9s  %-16s %s\n", "job",
			     "name", "host", "started (UTC)", "ran for", "ranks", "step", "now ms",
			     "best ms", "state", "last report");
	jobwords_time(job->started_ns, started);
	jobwords_state(job, state);
	jobwords_span(jobwords_until_ns(job) - job->started_ns, span);
	(void)printf("%-12s  %-20.20s %-12.12s %-19s %8s %5" PRIu32 " %9" PRIu64
		     " %9.1f %9.1f  %-16s %s%s\n",
		     job->key, job->name, job->host, started, span, job->workers, job->step,
		     (double)job->now_ns / NSEC_PER_MSEC, (double)job->best_ns / NSEC_PER_MSEC,
		     state, job->verdict != NULL ? job->verdict : "-",
		     is_slower(table, job->key) ? ", slower than earlier runs" : "");
	return 0;
}

struct json_list {
	struct json_writer w;
	json_t *jobs;
};

static int push_job(void *arg, const struct store_job *job)
{
	struct json_list *list = arg;
	json_t *object = json_object();

	jobwords_put_job(&list->w, object, job);
	jsonwriter_push(&list->w, list->jobs, object);
	return 0;
}

static int print_json(struct store *store, size_t limit, struct err *err)
{
	struct json_list list = { .jobs = json_array() };
	json_t *root = json_object();
	struct str out = { 0 };
	int ret = store_list_jobs(store, limit, push_job, &list, err);

	jsonwriter_put_text(&list.w, root, "schema", "perftracker.jobs.v1");
	jsonwriter_put(&list.w, root, "jobs", list.jobs);
	if (jsonwriter_print(&list.w, root, &out) < 0 && ret == 0)
		ret = err_set(err, ENOMEM, "out of memory");
	if (ret == 0)
		(void)fputs(str_borrow(&out), stdout);
	str_done(&out);
	return ret;
}

static int print_table(struct store *store, size_t limit, struct err *err)
{
	struct table table = { .cnt = 0 };
	int ret = store_list_jobs_with_event(store, EARLIER_SLOWER_EVENT, take_slower, &table, err);

	if (ret == 0)
		ret = store_list_jobs(store, limit, print_row, &table, err);
	if (ret == 0 && table.cnt == 0)
		(void)puts("no job is kept in this store yet");
	else if (ret == 0 && table.cnt == limit)
		(void)puts("older ones: --limit 0");
	vec_foreach(slower, &table.slower)
		free(*slower);
	vec_done(&table.slower);
	return ret;
}

static int jobs_main(const struct command *command, int argc, char **argv)
{
	struct jobs_options options = { .limit = 20 };
	struct store *store = NULL;
	struct err err = { "" };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	ret = storechoice_open(options.store, &store, &err);
	if (ret == 0)
		ret = options.format == OUTPUT_JSON
			      ? print_json(store, (size_t)options.limit, &err)
			      : print_table(store, (size_t)options.limit, &err);
	(void)store_close(store);
	return ret == 0 ? EXIT_DONE : cmd_fail("%s", err.text);
}

const struct command cmd_jobs = {
	.name = "jobs",
	.summary = "list the jobs that were watched, past and present",
	.usage = "[OPTION]...\n",
	.about = "Lists the jobs in the store, the newest first: those that run and those that are "
		 "over. `perftracker status` asks the running ones themselves. A job whose daemon "
		 "has said nothing for a minute and no end is \"lost\": its host went down, or its "
		 "daemon was killed.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker jobs\n"
		    "perftracker jobs --limit 0 --format json\n"
		    "perftracker jobs --store postgresql://tracker@db/perftracker\n",
	.run = jobs_main,
};
