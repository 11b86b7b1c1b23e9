/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker history: one job in the store: its reports, its pace, what happened. */
#include "base/clock.h"
#include "cmd/memory/historydiff.h"
#include "cmd/storechoice.h"
#include "serve/historyjson.h"
#include "serve/jobearlier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A table of the pace has so many rows at most, if the store's tiers allow. */
#define PACE_ROWS_MAX 60u
#define BAR_COLUMNS 40

struct history_options {
	const char *store;
	enum output_format format; /* text or JSON */
};

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct history_options, store),
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  OPTION_FIELD(struct history_options, format),
	  .help = "output format",
	  .preset = "text" },
};

/* What is shown of one job. */
struct history {
	struct store *store;
	struct err *err;
	const char *key;
	int error;	    /* of a query inside a query */
	int64_t slowest_ns; /* mean of a row of the pace, for the bars */
	size_t cnt;
};

static int print_pace(void *arg, const struct store_pace *pace)
{
	struct history *history = arg;
	int64_t mean_ns = pace->sum_ns / (int64_t)pace->cnt;
	int columns =
		history->slowest_ns > 0 ? (int)(BAR_COLUMNS * mean_ns / history->slowest_ns) : 0;
	char bar[BAR_COLUMNS + 1], at[32];

	memset(bar, '#', sizeof(bar));
	bar[MIN(MAX(columns, 0), BAR_COLUMNS)] = '\0';
	jobwords_time(pace->at_s * NSEC_PER_SEC, at);
	(void)printf("%-19s %9" PRIu64 " %9.1f %9.1f  %s\n", at, pace->step,
		     (double)mean_ns / NSEC_PER_MSEC, (double)pace->max_ns / NSEC_PER_MSEC, bar);
	return 0;
}

static int print_paces(struct history *history)
{
	int tier_s,
		ret = historyjson_choose_tier(history->store, history->key, PACE_ROWS_MAX, &tier_s,
					      &history->slowest_ns, &history->cnt, history->err);

	if (ret < 0 || history->cnt == 0)
		return ret;
	(void)printf("\nPace, by the %s\n%-19s %9s %9s %9s\n",
		     tier_s == 1    ? "second"
		     : tier_s == 60 ? "minute"
				    : "hour",
		     "time (UTC)", "step", "mean ms", "most ms");
	return store_list_pace(history->store, history->key, tier_s, print_pace, history,
			       history->err);
}

static int print_job(void *arg, const struct store_job *job)
{
	char started[32], state[32], span[16];

	(void)arg;
	jobwords_time(job->started_ns, started);
	jobwords_state(job, state);
	jobwords_span(jobwords_until_ns(job) - job->started_ns, span);
	(void)printf("Job       %s (%s), %" PRIu32 " worker%s on %s, of %s\n", job->name, job->key,
		     job->workers, plural(job->workers), job->host, job->owner);
	if (job->command != NULL)
		(void)printf("Command   %s\n", job->command);
	(void)printf("Started   %s UTC, ran for %s, %" PRIu64 " steps\n", started, span, job->step);
	(void)printf("State     %s; iteration %.1f ms, at best %.1f ms\n", state,
		     (double)job->now_ns / NSEC_PER_MSEC, (double)job->best_ns / NSEC_PER_MSEC);
	if (job->restarts > 0)
		(void)printf("Restarts  %" PRIu32 "\n", job->restarts);
	if (job->verdict != NULL)
		(void)printf("Verdict   %s: %s\n", job->verdict, job->reason);
	(void)printf("Folder    %s\n", job->folder);
	if (job->lost > 0)
		(void)printf("Gaps      %" PRIu64 " records could not be written to the store\n",
			     job->lost);
	return 0;
}

static int print_finding(void *arg, const struct store_finding *finding)
{
	(void)arg;
	(void)printf("    %s %s (ranks %s, %.1f ms, %.0f %%, confidence %s)\n", finding->id,
		     finding->title, finding->ranks, finding->gain_ms, finding->gain_pct,
		     finding->confidence);
	return 0;
}

static int print_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct history *history = arg;
	char made[32], name[40];

	if (history->cnt++ == 0)
		(void)printf("\nReports\n");
	historyjson_report_name(report, name);
	jobwords_time(report->made_ns, made);
	(void)printf("%-19s  %-18s %-9s %s: %s\n", made, name, report->why, report->verdict,
		     report->reason);
	if (finding_cnt > 0)
		history->error = store_list_findings(history->store, history->key, report->number,
						     print_finding, history, history->err);
	return history->error;
}

static int print_event(void *arg, const struct store_event *event)
{
	struct history *history = arg;
	char at[32];

	if (history->cnt++ == 0)
		(void)printf("\nEvents\n");
	jobwords_time(event->at_ns, at);
	(void)printf("%-19s  %-9s %s\n", at, event->kind, event->text);
	return 0;
}

static int print_earlier(struct history *history)
{
	struct earlier_answer answer;
	struct str text = { 0 };
	int ret = jobearlier_read(history->store, history->key, &answer, history->err);

	if (ret < 0 || answer.verdict == EARLIER_NONE)
		return ret;
	if (answer.verdict == EARLIER_UNKNOWN)
		str_printf(&text,
			   "not compared with %zu earlier run%s of this name: ", answer.run_cnt,
			   plural((double)answer.run_cnt));
	if (answer.verdict == EARLIER_UNKNOWN)
		earlier_append_whys(&answer, &text);
	else
		earlier_append_clause(&answer, &text);
	(void)printf("Earlier   %s\n", str_borrow(&text));
	str_done(&text);
	if (answer.verdict == EARLIER_SLOWER || answer.verdict == EARLIER_FASTER)
		ret = historydiff_print(history->store, answer.like, history->key, history->err);
	return ret;
}

static int print_text(struct history *history)
{
	int ret = store_get_job(history->store, history->key, print_job, history, history->err);

	if (ret == 0)
		ret = print_earlier(history);
	if (ret == 0)
		ret = store_list_reports(history->store, history->key, print_report, history,
					 history->err);
	history->cnt = 0;
	if (ret == 0)
		ret = store_list_events(history->store, history->key, print_event, history,
					history->err);
	return ret == 0 ? print_paces(history) : ret;
}

static int print_json(struct history *history)
{
	struct str out = { 0 };
	int ret = historyjson_print(history->store, history->key, 0, PACE_ROWS_MAX, &out,
				    history->err);

	if (ret == 0)
		(void)fputs(str_borrow(&out), stdout);
	str_done(&out);
	return ret;
}

static int history_main(const struct command *command, int argc, char **argv)
{
	struct history_options options = { 0 };
	char key[STORE_KEY_BYTES] = "";
	struct err err = { "" };
	struct history history = { .err = &err, .key = key };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 1)
		return cmd_usage_error("history", "expected one job: its name, or its key as "
						  "`perftracker jobs` lists it");
	ret = storechoice_open(options.store, &history.store, &err);
	if (ret == 0)
		ret = store_find_job(history.store, argv[first], key, &err);
	if (ret == 0)
		ret = options.format == OUTPUT_JSON ? print_json(&history) : print_text(&history);
	(void)store_close(history.store);
	return ret == 0 ? EXIT_DONE : cmd_fail("%s", err.text);
}

const struct command cmd_history = {
	.name = "history",
	.summary = "show what a job did: its reports, pace and events",
	.usage = "[OPTION]... JOB\n",
	.about =
		"Shows one job of the store: each report with its findings, what happened (when it "
		"became slow, windows, restarts), and its pace over time, by the second, the "
		"minute or the hour, as it fits. JOB is a name, for the newest job of that name, or "
		"a key or its beginning, from `perftracker jobs`.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker history train\n"
		    "perftracker history 3fa9 --format json\n",
	.run = history_main,
};
