/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the API as JSON. docs/openapi.json is their contract. */
#include "base/clock.h"
#include "serve/historyjson.h"
#include "serve/hostsjson.h"
#include "serve/jobwords.h"
#include "serve/openapi.h"
#include "serve/routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_PRESET 100u
#define PACE_ROWS_MAX 720u

/* Prints root and frees it. */
static int print(struct call *call, struct json_writer *w, json_t *root, struct answer *ret)
{
	return jsonwriter_print(w, root, &ret->body) == 0
		       ? 0
		       : err_set(call->err, ENOMEM, "out of memory");
}

/* A query of the open store failed: it is opened anew next time. */
static int end_query(struct call *call, int error)
{
	if (error < 0 && error != -ENOENT)
		archive_drop_store(&call->routes->archive);
	return error;
}

struct list {
	struct json_writer w;
	json_t *items;
	const char *job;
};

static int push_job(void *arg, const struct store_job *job)
{
	struct list *list = arg;
	json_t *object = json_object();

	jobwords_put_job(&list->w, object, job);
	jsonwriter_push(&list->w, list->items, object);
	return 0;
}

int api_jobs(struct call *call, struct answer *ret)
{
	struct list list = { .items = json_array() };
	struct archive_filter filter;
	struct store_job_place last;
	json_t *root = json_object();
	char next[48];
	bool more = false;
	int error = routes_read_filter(call, LIMIT_PRESET, &filter);

	if (error == 0)
		error = archive_list_jobs(&call->routes->archive, &filter, push_job, &list, &more,
					  &last, call->err);
	jsonwriter_put_text(&list.w, root, "schema", "perftracker.jobs.v1");
	jsonwriter_put(&list.w, root, "jobs", list.items);
	if (more)
		archive_print_place(&last, next);
	jsonwriter_put_text(&list.w, root, "next", more ? next : NULL);
	if (error == 0)
		return print(call, &list.w, root, ret);
	json_decref(root);
	return error;
}

static int put_job(void *arg, const struct store_job *job)
{
	struct list *list = arg;

	jobwords_put_job(&list->w, list->items, job);
	return 0;
}

int api_job(struct call *call, struct answer *ret)
{
	struct list list = { .items = json_object() };
	char key[STORE_KEY_BYTES];
	int error = routes_find_job(call, key);

	if (error == 0)
		error = end_query(call, store_get_job(call->routes->archive.store, key, put_job,
						      &list, call->err));
	if (error == 0)
		return print(call, &list.w, list.items, ret);
	json_decref(list.items);
	return error;
}

int api_history(struct call *call, struct answer *ret)
{
	char key[STORE_KEY_BYTES];
	uint64_t tier_s = 0;
	int error = request_number(call->request, "tier", 3600, &tier_s, call->err);

	if (error == 0 && tier_s != 0 && tier_s != 1 && tier_s != 60 && tier_s != 3600)
		return err_set(call->err, EINVAL, "tier: expected 1, 60 or 3600, found %" PRIu64,
			       tier_s);
	if (error == 0)
		error = routes_find_job(call, key);
	if (error < 0)
		return error;
	return end_query(call, historyjson_print(call->routes->archive.store, key, (int)tier_s,
						 PACE_ROWS_MAX, &ret->body, call->err));
}

/* --- reports --- */

static void put_number(struct json_writer *w, json_t *object, const char *key, double value)
{
	jsonwriter_put(w, object, key, value > 0.0 ? jsonwriter_number(value) : json_null());
}

static json_t *of_folder(struct json_writer *w, const struct catalog_report *report)
{
	json_t *object = json_object();

	jsonwriter_put_text(w, object, "id", report->id);
	jsonwriter_put_text(w, object, "job", NULL);
	jsonwriter_put_text(w, object, "name", report->job);
	jsonwriter_put_text(w, object, "file", report->path);
	jsonwriter_put_text(w, object, "made", report->made);
	jsonwriter_put_text(w, object, "verdict", report->verdict);
	jsonwriter_put_text(w, object, "reason", report->reason);
	jsonwriter_put_text(w, object, "finding", report->title);
	jsonwriter_put(w, object, "findings", json_integer(report->finding_cnt));
	put_number(w, object, "gain_ms_per_iteration", report->gain_ms);
	put_number(w, object, "iteration_ms", report->iteration_ms);
	jsonwriter_put(w, object, "workers", json_integer(report->world_size));
	return object;
}

static void list_folders(const struct catalog *catalog, size_t from, size_t limit,
			 struct list *list, char next[static 24])
{
	const struct catalog_report *report;
	size_t i = from;

	for (; i < from + limit && (report = catalog_borrow(catalog, i)) != NULL; i++)
		jsonwriter_push(&list->w, list->items, of_folder(&list->w, report));
	if (i == from + limit && catalog_borrow(catalog, i) != NULL)
		(void)snprintf(next, 24, "%zu", i);
}

static int push_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct list *list = arg;
	json_t *object = json_object();
	char id[ARCHIVE_ID_BYTES], made[32];

	archive_print_id(report->job, report->number, id);
	jobwords_iso(report->made_ns, made);
	jsonwriter_put_text(&list->w, object, "id", id);
	jsonwriter_put_text(&list->w, object, "job", report->job);
	jsonwriter_put_text(&list->w, object, "name", list->job);
	jsonwriter_put_text(&list->w, object, "file", NULL);
	jsonwriter_put_text(&list->w, object, "made", made);
	jsonwriter_put_text(&list->w, object, "verdict", report->verdict);
	jsonwriter_put_text(&list->w, object, "reason", report->reason);
	jsonwriter_put_text(&list->w, object, "finding", NULL);
	jsonwriter_put(&list->w, object, "findings", json_integer((json_int_t)finding_cnt));
	jsonwriter_put(&list->w, object, "gain_ms_per_iteration", json_null());
	put_number(&list->w, object, "iteration_ms", report->iteration_ms);
	jsonwriter_put(&list->w, object, "workers", json_integer(report->workers));
	return json_array_insert_new(list->items, 0, object) == 0 ? 0 : -ENOMEM;
}

/* The newest first, as those of folders. They are few: no pages. */
static int list_of_job(struct call *call, const char *word, struct list *list)
{
	char key[STORE_KEY_BYTES];
	int error;

	(void)snprintf(call->part, sizeof(call->part), "%s", word);
	error = routes_find_job(call, key);
	if (error < 0)
		return error;
	list->job = key;
	error = store_list_reports(call->routes->archive.store, key, push_report, list, call->err);
	list->job = NULL;
	return end_query(call, error);
}

int api_reports(struct call *call, struct answer *ret)
{
	const char *job = request_query(call->request, "job");
	struct catalog *catalog = call->routes->archive.catalog;
	struct list list = { .items = json_array() };
	uint64_t limit = LIMIT_PRESET, from = 0;
	json_t *root = json_object();
	char next[24] = "";
	int error = request_number(call->request, "limit", ROUTES_LIMIT_MAX, &limit, call->err);

	if (error == 0)
		error = request_number(call->request, "cursor", 1000000, &from, call->err);
	if (error == 0 && job != NULL && job[0] != '\0')
		error = list_of_job(call, job, &list);
	else if (error == 0)
		error = catalog_refresh(catalog, clock_mono_ns());
	if (error == 0 && (job == NULL || job[0] == '\0'))
		list_folders(catalog, (size_t)from, limit > 0 ? (size_t)limit : LIMIT_PRESET, &list,
			     next);
	jsonwriter_put_text(&list.w, root, "schema", "perftracker.reports.v1");
	jsonwriter_put(&list.w, root, "reports", list.items);
	jsonwriter_put_text(&list.w, root, "next", next[0] != '\0' ? next : NULL);
	jsonwriter_put(&list.w, root, "left_out",
		       json_integer((json_int_t)catalog_left_out(catalog)));
	if (error == 0)
		return print(call, &list.w, root, ret);
	json_decref(root);
	return error;
}

int api_report(struct call *call, struct answer *ret)
{
	return archive_get_report(&call->routes->archive, call->part, "json", &ret->body,
				  call->err);
}

/* --- hosts --- */

int api_hosts(struct call *call, struct answer *ret)
{
	struct hostledger ledger = { 0 };
	int error = hostledger_read(&call->routes->archive, &ledger, call->err);

	if (error == 0 && hostsjson_print(&ledger, &ret->body) < 0)
		error = err_set(call->err, ENOMEM, "out of memory");
	hostledger_done(&ledger);
	return error;
}

int api_exclude(struct call *call, struct answer *ret)
{
	const char *form = request_query(call->request, "form");
	uint64_t jobs = HOSTSJSON_JOBS_PRESET;
	struct hostledger ledger = { 0 };
	int error = request_number(call->request, "jobs", 1000000, &jobs, call->err);

	if (form == NULL || form[0] == '\0')
		form = "slurm";
	if (error == 0 && strcmp(form, "slurm") != 0 && strcmp(form, "kubernetes") != 0)
		error = err_set(call->err, EINVAL,
				"form: expected slurm or kubernetes, found %.80s", form);
	if (error < 0)
		return error;
	error = hostledger_read(&call->routes->archive, &ledger, call->err);
	if (error == 0 && hostsjson_print_exclude(&ledger, form, jobs, &ret->body) < 0)
		error = err_set(call->err, ENOMEM, "out of memory");
	hostledger_done(&ledger);
	return error;
}

/* --- the rest --- */

int api_events(struct call *call, struct answer *ret)
{
	const char *last = call->request->headers[HEADER_LAST_EVENT_ID];
	bool gap = false;

	if (last == NULL)
		last = request_query(call->request, "last");
	ret->after = feed_begin(call->routes->feed, last, &gap);
	str_append(&ret->body, "retry: 3000\n\n");
	if (gap)
		str_append(&ret->body, "event: gap\ndata: {}\n\n");
	ret->follow = feed_follow;
	ret->follow_arg = call->routes->feed;
	return 0;
}

int api_openapi(struct call *call, struct answer *ret)
{
	return openapi_print(&ret->body) == 0 ? 0 : err_set(call->err, ENOMEM, "out of memory");
}
