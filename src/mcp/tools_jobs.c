/* SPDX-License-Identifier: Apache-2.0 */
/* Tools about jobs and hosts: what the store and the folders have. */
#include "base/clock.h"
#include "mcp/mcp_parts.h"
#include "serve/historyjson.h"
#include "serve/hostledger.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOBS_MAX 20u
#define REPORTS_MAX 12u
#define EVENTS_MAX 12u
#define HOSTS_MAX 20u
#define ACCUSATIONS_MAX 5u

static void put_text(struct json_writer *w, json_t *object, const char *key, const char *text)
{
	jsonwriter_put(w, object, key, toolanswer_text(text));
}

static json_t *positive(double value)
{
	return value > 0.0 ? jsonwriter_number(value) : json_null();
}

/* A page of the server, if there is one. */
static void put_url(struct tool_call *call, const char *path)
{
	const char *url = call->mcp->url;

	toolanswer_put(call->answer, "url",
		       url != NULL ? json_sprintf("%s/%s", url, path) : json_null());
}

/* --- list_jobs --- */

struct list {
	struct tool_call *call;
	size_t cnt;
	bool full; /* the budget is used up */
	struct store_job_place last;
};

static int push_job(void *arg, const struct store_job *job)
{
	struct list *list = arg;
	struct toolanswer *answer = list->call->answer;
	json_t *object = json_object();
	char state[32], started[32];

	if (list->full) {
		json_decref(object);
		return 0;
	}
	jobwords_state(job, state);
	jobwords_iso(job->started_ns, started);
	put_text(&answer->w, object, "job", job->key);
	put_text(&answer->w, object, "name", job->name);
	put_text(&answer->w, object, "state", state);
	put_text(&answer->w, object, "started", started);
	put_text(&answer->w, object, "host", job->host);
	jsonwriter_put(&answer->w, object, "workers", json_integer(job->workers));
	jsonwriter_put(&answer->w, object, "iteration_ms",
		       positive((double)job->now_ns / NSEC_PER_MSEC));
	jsonwriter_put(&answer->w, object, "best_ms",
		       positive((double)job->best_ns / NSEC_PER_MSEC));
	put_text(&answer->w, object, "verdict", job->verdict);
	put_text(&answer->w, object, "reason", job->reason);
	list->full = !toolanswer_push(answer, "jobs", object);
	if (list->full)
		return 0;
	list->cnt++;
	list->last.started_ns = job->started_ns;
	(void)snprintf(list->last.key, sizeof(list->last.key), "%s", job->key);
	return 0;
}

/* Jobs of the store after the cursor "j:PLACE". *ret_more: there are more. */
static int list_stored(struct tool_call *call, const char *cursor, struct list *list,
		       bool *ret_more)
{
	struct archive_filter filter = { .text = tool_text(call, "filter"),
					 .state = tool_text(call, "state"),
					 .after = { .started_ns = INT64_MAX },
					 .limit = JOBS_MAX };
	struct store_job_place last;
	int r;

	if (cursor != NULL && archive_parse_place(cursor + 2, &filter.after) < 0)
		return err_set(call->err, EINVAL, "cursor: expected cursor of the answer before");
	list->last = filter.after;
	r = archive_list_jobs(call->mcp->options.archive, &filter, push_job, list, ret_more, &last,
			      call->err);
	if (r == -ENOENT) { /* no store, or an empty one */
		toolanswer_put(call->answer, "jobs", json_array());
		toolanswer_put(call->answer, "store", toolanswer_text(call->err->text));
		call->err->text[0] = '\0';
		return 0;
	}
	*ret_more = *ret_more || list->full;
	return r;
}

static bool fits(const struct catalog_report *report, const char *filter)
{
	const char *const texts[] = { report->path,  report->job,    report->title,
				      report->hosts, report->reason, report->verdict };

	if (filter == NULL)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (archive_has_text(texts[i], filter))
			return true;
	}
	return false;
}

static json_t *of_file(struct json_writer *w, const struct catalog_report *report)
{
	json_t *object = json_object();

	put_text(w, object, "report", report->id);
	put_text(w, object, "file", report->path);
	put_text(w, object, "name", report->job);
	put_text(w, object, "made", report->made);
	put_text(w, object, "verdict", report->verdict);
	put_text(w, object, "finding", report->title);
	jsonwriter_put(w, object, "ranks", toolanswer_ranks(report->ranks));
	jsonwriter_put(w, object, "findings", json_integer(report->finding_cnt));
	jsonwriter_put(w, object, "gain_ms_per_iteration", positive(report->gain_ms));
	jsonwriter_put(w, object, "iteration_ms", positive(report->iteration_ms));
	jsonwriter_put(w, object, "workers", json_integer(report->world_size));
	return object;
}

/* Reports in folders from the i-th on. Returns the index of the next one; SIZE_MAX: none is left. */
static size_t list_files(struct tool_call *call, size_t from, size_t *ret_cnt)
{
	const struct catalog *catalog = call->mcp->options.archive->catalog;
	const char *filter = tool_text(call, "filter");
	const struct catalog_report *report;

	for (size_t i = from; (report = catalog_borrow(catalog, i)) != NULL; i++) {
		if (!fits(report, filter))
			continue;
		if (*ret_cnt >= JOBS_MAX ||
		    !toolanswer_push(call->answer, "reports", of_file(&call->answer->w, report)))
			return i;
		(*ret_cnt)++;
	}
	return SIZE_MAX;
}

static int parse_from(const char *cursor, size_t *ret, struct err *err)
{
	char *end;
	unsigned long long value;

	*ret = 0;
	if (cursor == NULL || strncmp(cursor, "j:", 2) == 0)
		return 0;
	errno = 0;
	value = strncmp(cursor, "f:", 2) == 0 ? strtoull(cursor + 2, &end, 10) : ULLONG_MAX;
	if (value > INT32_MAX || cursor[2] < '0' || cursor[2] > '9' || *end != '\0')
		return err_set(err, EINVAL, "cursor: expected cursor of the answer before");
	*ret = (size_t)value;
	return 0;
}

static void put_cursor(struct tool_call *call, bool more, const struct store_job_place *last,
		       size_t next_file)
{
	char place[48], cursor[64] = "";

	if (more) {
		archive_print_place(last, place);
		(void)snprintf(cursor, sizeof(cursor), "j:%s", place);
	} else if (next_file != SIZE_MAX) {
		(void)snprintf(cursor, sizeof(cursor), "f:%zu", next_file);
	}
	toolanswer_put(call->answer, "cursor",
		       cursor[0] != '\0' ? jsonwriter_text(cursor) : json_null());
}

static void put_next(struct tool_call *call)
{
	const json_t *jobs = json_object_get(call->answer->data, "jobs");
	const json_t *reports = json_object_get(call->answer->data, "reports");
	const json_t *first = json_array_get(jobs, 0);
	bool reported = false;

	for (size_t i = 0; i < json_array_size(jobs) && !reported; i++) {
		const json_t *job = json_array_get(jobs, i);

		reported = json_is_string(json_object_get(job, "verdict"));
		first = reported ? job : first;
	}
	if (first != NULL)
		toolanswer_next(call->answer, reported ? "get_report" : "get_job",
				reported ? "report" : "job",
				json_string_value(json_object_get(first, "job")), NULL, NULL);
	else if ((first = json_array_get(reports, 0)) != NULL)
		toolanswer_next(call->answer, "get_report", "report",
				json_string_value(json_object_get(first, "report")), NULL, NULL);
}

int tool_list_jobs(struct tool_call *call)
{
	const char *cursor = tool_text(call, "cursor");
	struct catalog *catalog = call->mcp->options.archive->catalog;
	struct list list = { .call = call };
	size_t from, next_file = SIZE_MAX, file_cnt = 0;
	bool more = false;
	json_t *coverage = json_object();
	int r = parse_from(cursor, &from, call->err);

	if (r == 0)
		r = catalog_refresh(catalog, clock_mono_ns());
	jsonwriter_put(&call->answer->w, coverage, "files_left_out",
		       json_integer((json_int_t)catalog_left_out(catalog)));
	toolanswer_put(call->answer, "coverage", coverage);
	if (r == 0 && (cursor == NULL || cursor[0] == 'j'))
		r = list_stored(call, cursor, &list, &more);
	if (r < 0)
		return r;
	if (!more && tool_text(call, "state") == NULL)
		next_file = list_files(call, from, &file_cnt);
	put_cursor(call, more, &list.last, next_file);
	put_next(call);
	put_url(call, "");
	str_printf(&call->answer->says, "%zu job%s of the store, %zu report%s in folders%s.",
		   list.cnt, plural((double)list.cnt), file_cnt, plural((double)file_cnt),
		   more || next_file != SIZE_MAX ? "; call again with cursor for more" : "");
	return 0;
}

/* --- get_job --- */

static int put_job(void *arg, const struct store_job *job)
{
	static const char *const keys[] = {
		"job",		"name",	   "host",	  "owner",   "command",	 "started",
		"ended",	"state",   "exit_status", "workers", "restarts", "step",
		"iteration_ms", "best_ms", "verdict",	  "reason",  NULL
	};
	struct toolanswer *answer = ((struct tool_call *)arg)->answer;
	json_t *all = json_object(), *object = json_object();
	char state[32];

	jobwords_put_job(&answer->w, all, job);
	toolanswer_copy(&answer->w, object, all, keys);
	json_decref(all);
	toolanswer_put(answer, "job", object);
	jobwords_state(job, state);
	str_printf(&answer->says, "The job is %s, at step %" PRIu64 ", with %u workers.", state,
		   job->step, job->workers);
	return 0;
}

static int push_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct toolanswer *answer = ((struct tool_call *)arg)->answer;
	json_t *list = json_object_get(answer->data, "reports"), *object = json_object();
	char id[ARCHIVE_ID_BYTES], made[32];

	archive_print_id(report->job, report->number, id);
	jobwords_iso(report->made_ns, made);
	put_text(&answer->w, object, "report", id);
	put_text(&answer->w, object, "made", made);
	put_text(&answer->w, object, "why", report->why);
	put_text(&answer->w, object, "verdict", report->verdict);
	put_text(&answer->w, object, "reason", report->reason);
	jsonwriter_put(&answer->w, object, "findings", json_integer((json_int_t)finding_cnt));
	jsonwriter_put(&answer->w, object, "iteration_ms", positive(report->iteration_ms));
	if (json_array_size(list) >= REPORTS_MAX)
		(void)json_array_remove(list, 0); /* the oldest */
	(void)toolanswer_push(answer, "reports", object);
	return 0;
}

static int push_event(void *arg, const struct store_event *event)
{
	struct toolanswer *answer = ((struct tool_call *)arg)->answer;
	json_t *list = json_object_get(answer->data, "events"), *object = json_object();
	char at[32];

	jobwords_iso(event->at_ns, at);
	put_text(&answer->w, object, "at", at);
	put_text(&answer->w, object, "kind", event->kind);
	put_text(&answer->w, object, "text", event->text);
	if (json_array_size(list) >= EVENTS_MAX)
		(void)json_array_remove(list, 0);
	(void)toolanswer_push(answer, "events", object);
	return 0;
}

int tool_get_job(struct tool_call *call)
{
	struct archive *archive = call->mcp->options.archive;
	char key[STORE_KEY_BYTES], path[STORE_KEY_BYTES + 8];
	int r = archive_open_store(archive, call->err);

	if (r == 0)
		r = store_find_job(archive->store, tool_text(call, "job"), key, call->err);
	if (r == -ENOENT)
		return err_set(call->err, ENOENT,
			       "no job of the store is called so: list_jobs has the jobs; reports "
			       "in folders are for get_report");
	if (r == 0)
		r = store_get_job(archive->store, key, put_job, call, call->err);
	if (r == 0)
		r = store_list_reports(archive->store, key, push_report, call, call->err);
	if (r == 0)
		r = store_list_events(archive->store, key, push_event, call, call->err);
	if (r < 0) {
		archive_drop_store(archive);
		return r;
	}
	if (json_object_get(call->answer->data, "reports") != NULL)
		toolanswer_next(call->answer, "get_report", "report", key, NULL, NULL);
	(void)snprintf(path, sizeof(path), "jobs/%s", key);
	put_url(call, path);
	return 0;
}

/* --- host_history --- */

static json_t *of_host(struct json_writer *w, const struct hostledger_host *host)
{
	json_t *object = json_object(), *list = json_array();

	put_text(w, object, "host", host->name);
	jsonwriter_put(w, object, "jobs", json_integer((json_int_t)host->job_cnt));
	jsonwriter_put(w, object, "findings", json_integer((json_int_t)host->finding_cnt));
	for (size_t i = 0; i < MIN(host->accusations.cnt, (size_t)ACCUSATIONS_MAX); i++) {
		const struct hostledger_accusation *of = &host->accusations.data[i];
		json_t *one = json_object();

		put_text(w, one, "report", of->report);
		put_text(w, one, "job", of->job);
		put_text(w, one, "made", of->made[0] != '\0' ? of->made : NULL);
		put_text(w, one, "cause", of->cause);
		jsonwriter_put(w, one, "gain_ms_per_iteration", positive(of->gain_ms));
		jsonwriter_push(w, list, one);
	}
	jsonwriter_put(w, object, "latest", list);
	return object;
}

static void list_hosts(struct tool_call *call, const struct hostledger *ledger)
{
	const char *part = tool_text(call, "host");
	size_t i = (size_t)tool_number(call, "cursor", 0), cnt = 0, repeated = 0;

	for (; i < ledger->hosts.cnt; i++) {
		const struct hostledger_host *host = &ledger->hosts.data[i];

		if (part != NULL && !archive_has_text(host->name, part))
			continue;
		if (cnt == HOSTS_MAX ||
		    !toolanswer_push(call->answer, "hosts", of_host(&call->answer->w, host)))
			break;
		cnt++;
		repeated += host->job_cnt > 1;
	}
	toolanswer_put(call->answer, "cursor",
		       i < ledger->hosts.cnt ? json_integer((json_int_t)i) : json_null());
	str_printf(
		&call->answer->says,
		"%zu host%s, %zu of them accused in more than one job. A host that is accused in "
		"one job may have had bad luck.",
		cnt, plural((double)cnt), repeated);
}

int tool_host_history(struct tool_call *call)
{
	struct hostledger ledger = { .left_out = 0 };
	json_t *coverage = json_object();
	int r = hostledger_read(call->mcp->options.archive, &ledger, call->err);

	if (r == 0) {
		toolanswer_put(call->answer, "hosts", json_array());
		list_hosts(call, &ledger);
		jsonwriter_put(&call->answer->w, coverage, "hosts_left_out",
			       json_integer((json_int_t)ledger.left_out));
		toolanswer_put(call->answer, "coverage", json_incref(coverage));
		put_url(call, "hosts");
	}
	json_decref(coverage);
	hostledger_done(&ledger);
	return r;
}

/* --- request_profile --- */

int tool_request_profile(struct tool_call *call)
{
	const struct mcp_options *options = &call->mcp->options;
	struct str says = { 0 };
	int r = options->profile(options->arg, tool_text(call, "job"), &says, call->err);

	if (r == 0) {
		str_append(&call->answer->says, "The job was asked for a profile.");
		toolanswer_put(call->answer, "answer", toolanswer_text(str_borrow(&says)));
		toolanswer_next(call->answer, "list_jobs", NULL, NULL, NULL, NULL);
	}
	str_done(&says);
	return r;
}
