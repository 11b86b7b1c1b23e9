/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/historyjson.h"

#include "base/clock.h"
#include "serve/jobearlier.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* What is written of one job. */
struct history {
	struct store *store;
	struct err *err;
	const char *key;
	int error; /* of a query inside a query */
	struct json_writer w;
	json_t *root, *list;
};

/* --- the pace: the finest tier that fits --- */

struct tier {
	size_t cnt;
	int64_t slowest_ns;
};

static int count_pace(void *arg, const struct store_pace *pace)
{
	struct tier *tier = arg;

	tier->cnt++;
	if (pace->cnt > 0)
		tier->slowest_ns = MAX(tier->slowest_ns, pace->sum_ns / (int64_t)pace->cnt);
	return 0;
}

/* Old rows of the finer tiers are gone: the finest one with few rows may lack the job's begin. */
int historyjson_choose_tier(struct store *store, const char *key, size_t rows_max, int *ret_tier_s,
			    int64_t *ret_slowest_ns, size_t *ret_cnt, struct err *err)
{
	static const int tiers_s[] = { 1, 60, 3600 };
	struct tier tier = { 0 };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tiers_s) && ret == 0; i++) {
		tier = (struct tier){ 0 };
		*ret_tier_s = tiers_s[i];
		ret = store_list_pace(store, key, tiers_s[i], count_pace, &tier, err);
		if (tier.cnt > 0 && tier.cnt <= rows_max)
			break;
	}
	*ret_slowest_ns = tier.slowest_ns;
	*ret_cnt = tier.cnt;
	return ret;
}

void historyjson_report_name(const struct store_report *report, char ret[static 40])
{
	if (report->number == 0)
		(void)snprintf(ret, 40, "%s/end", report->job);
	else
		(void)snprintf(ret, 40, "%s/%" PRIu64, report->job, report->number);
}

/* --- objects --- */

static void put_ms(struct json_writer *w, json_t *to, const char *key, double ns)
{
	jsonwriter_put(w, to, key, jsonwriter_number(ns / NSEC_PER_MSEC));
}

static void put_count(struct json_writer *w, json_t *to, const char *key, uint64_t value)
{
	jsonwriter_put(w, to, key, json_integer((json_int_t)value));
}

json_t *historyjson_finding(struct json_writer *w, const struct store_finding *finding)
{
	json_t *object = json_object();

	jsonwriter_put_text(w, object, "id", finding->id);
	jsonwriter_put_text(w, object, "cause", finding->cause);
	jsonwriter_put_text(w, object, "title", finding->title);
	jsonwriter_put_text(w, object, "function", finding->function);
	jsonwriter_put_text(w, object, "ranks", finding->ranks);
	jsonwriter_put_text(w, object, "confidence", finding->confidence);
	jsonwriter_put(w, object, "gain_ms_per_iteration", jsonwriter_number(finding->gain_ms));
	jsonwriter_put(w, object, "gain_pct", jsonwriter_number(finding->gain_pct));
	return object;
}

json_t *historyjson_report(struct json_writer *w, const struct store_report *report)
{
	json_t *object = json_object();
	char text[40];

	historyjson_report_name(report, text);
	jsonwriter_put_text(w, object, "report", text);
	jobwords_iso(report->made_ns, text);
	jsonwriter_put_text(w, object, "made", text);
	jsonwriter_put_text(w, object, "why", report->why);
	jsonwriter_put_text(w, object, "verdict", report->verdict);
	jsonwriter_put_text(w, object, "reason", report->reason);
	put_count(w, object, "first_step", report->first_step);
	put_count(w, object, "steps", report->steps);
	jsonwriter_put(w, object, "iteration_ms", jsonwriter_number(report->iteration_ms));
	put_count(w, object, "workers", report->workers);
	put_count(w, object, "missing", report->missing);
	return object;
}

json_t *historyjson_event(struct json_writer *w, const struct store_event *event)
{
	json_t *object = json_object();
	char at[32];

	jobwords_iso(event->at_ns, at);
	jsonwriter_put_text(w, object, "at", at);
	jsonwriter_put_text(w, object, "kind", event->kind);
	jsonwriter_put_text(w, object, "text", event->text);
	return object;
}

/* --- the document --- */

static int put_job(void *arg, const struct store_job *job)
{
	struct history *history = arg;

	jobwords_put_job(&history->w, history->root, job);
	return 0;
}

static int push_finding(void *arg, const struct store_finding *finding)
{
	struct history *history = arg;

	jsonwriter_push(&history->w, history->list, historyjson_finding(&history->w, finding));
	return 0;
}

static int push_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct history *history = arg;
	json_t *object = historyjson_report(&history->w, report), *reports = history->list;

	(void)finding_cnt;
	history->list = json_array();
	history->error = store_list_findings(history->store, history->key, report->number,
					     push_finding, history, history->err);
	jsonwriter_put(&history->w, object, "findings", history->list);
	history->list = reports;
	jsonwriter_push(&history->w, history->list, object);
	return history->error;
}

static int push_event(void *arg, const struct store_event *event)
{
	struct history *history = arg;

	jsonwriter_push(&history->w, history->list, historyjson_event(&history->w, event));
	return 0;
}

static int push_pace(void *arg, const struct store_pace *pace)
{
	struct history *history = arg;
	json_t *object = json_object();
	char at[32];

	jobwords_iso(pace->at_s * NSEC_PER_SEC, at);
	jsonwriter_put_text(&history->w, object, "at", at);
	put_count(&history->w, object, "step", pace->step);
	put_ms(&history->w, object, "mean_ms", (double)pace->sum_ns / (double)pace->cnt);
	put_ms(&history->w, object, "least_ms", (double)pace->min_ns);
	put_ms(&history->w, object, "most_ms", (double)pace->max_ns);
	jsonwriter_push(&history->w, history->list, object);
	return 0;
}

/* Begins the list of that name in the root. */
static void begin_list(struct history *history, const char *key)
{
	history->list = json_array();
	jsonwriter_put(&history->w, history->root, key, history->list);
}

static int put_paces(struct history *history, int tier_s, size_t rows_max)
{
	int64_t slowest_ns;
	size_t cnt;
	int ret = 0;

	if (tier_s == 0)
		ret = historyjson_choose_tier(history->store, history->key, rows_max, &tier_s,
					      &slowest_ns, &cnt, history->err);
	if (ret < 0)
		return ret;
	put_count(&history->w, history->root, "pace_seconds", (uint64_t)tier_s);
	begin_list(history, "pace");
	return store_list_pace(history->store, history->key, tier_s, push_pace, history,
			       history->err);
}

static int put_earlier(struct history *history)
{
	struct earlier_answer answer;
	int ret = jobearlier_read(history->store, history->key, &answer, history->err);

	if (ret == 0)
		jsonwriter_put(&history->w, history->root, "earlier",
			       jobearlier_object(&history->w, &answer));
	return ret;
}

int historyjson_print(struct store *store, const char *key, int tier_s, size_t rows_max,
		      struct str *out, struct err *err)
{
	struct history history = { .store = store, .key = key, .err = err, .root = json_object() };
	int ret;

	jsonwriter_put_text(&history.w, history.root, "schema", "perftracker.history.v1");
	ret = store_get_job(store, key, put_job, &history, err);
	if (ret == 0)
		ret = put_earlier(&history);
	begin_list(&history, "reports");
	if (ret == 0)
		ret = store_list_reports(store, key, push_report, &history, err);
	begin_list(&history, "events");
	if (ret == 0)
		ret = store_list_events(store, key, push_event, &history, err);
	if (ret == 0)
		ret = put_paces(&history, tier_s, rows_max);
	if (ret < 0) {
		json_decref(history.root);
		return ret;
	}
	return jsonwriter_print(&history.w, history.root, out) == 0
		       ? 0
		       : err_set(err, ENOMEM, "out of memory");
}
