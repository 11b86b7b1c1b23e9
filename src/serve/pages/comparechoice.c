/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/comparechoice.h"

#include "base/clock.h"
#include "base/vec.h"
#include "report/html/markup.h"
#include "serve/jobwords.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 20u
#define REPORTS_MAX 200u    /* of folders */
#define ENTRIES_MAX 100000u /* of a folder are looked at */

/* --- folders --- */

static bool has_fingerprint(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool found = false;

	for (unsigned i = 0; dir != NULL && !found && i < ENTRIES_MAX; i++) {
		size_t len;

		entry = readdir(dir);
		if (entry == NULL)
			break;
		len = strlen(entry->d_name);
		found = len > 5 && strcmp(entry->d_name + len - 5, ".ptfp") == 0;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* "x/report-3.json": "x/fingerprints/3" of a run; else those beside the report. */
static bool find_folder(const struct catalog_report *report, struct str *ret)
{
	const char *name = strrchr(report->path, '/');
	unsigned number;
	int end = 0;

	name = name != NULL ? name + 1 : report->path;
	str_append(ret, report->folder);
	if (sscanf(name, "report-%9u.json%n", &number, &end) == 1 && end > 0 && name[end] == '\0')
		str_printf(ret, "/fingerprints/%u", number);
	return str_error(ret) == 0 && has_fingerprint(ret->data);
}

static int input_of_folder(const struct catalog_report *report, struct str *ret, struct err *err)
{
	if (find_folder(report, ret))
		return 0;
	str_done(ret);
	*ret = (struct str){ 0 };
	return err_set(err, ENOENT,
		       "%s keeps no fingerprints, so it can't be compared: choose a report of "
		       "`perftracker run` that has a folder fingerprints/N beside it, or compare "
		       "the traces by `perftracker diff`",
		       report->path);
}

/* --- the store --- */

struct windows {
	VEC(uint64_t) numbers;
};

static int take_window(void *arg, uint64_t number, size_t fingerprint_cnt)
{
	struct windows *windows = arg;

	return fingerprint_cnt > 0 ? vec_push(&windows->numbers, number) : 0;
}

static bool has_window(const struct windows *windows, uint64_t number)
{
	vec_foreach(one, &windows->numbers) {
		if (*one == number)
			return true;
	}
	return false;
}

static void print_word(const char *key, uint64_t number, struct str *ret)
{
	if (number == 0)
		str_printf(ret, "%s/end", key);
	else
		str_printf(ret, "%s/%" PRIu64, key, number);
}

struct job_folder {
	char path[4096]; /* "": not known */
};

static int take_folder(void *arg, const struct store_job *job)
{
	struct job_folder *folder = arg;

	if (job->folder != NULL && (size_t)snprintf(folder->path, sizeof(folder->path), "%s",
						    job->folder) >= sizeof(folder->path))
		folder->path[0] = '\0';
	return 0;
}

/*
 * Where a job that this daemon runs has its files: the store of `run --ui` keeps no fingerprints. The folder
 * of a job that has ended may be a later job's by now.
 */
static void find_running(struct routes *routes, const char *key, struct job_folder *ret)
{
	const struct routes_live *live = routes->live;
	struct str ignored = { 0 };
	struct err err = { "" };

	ret->path[0] = '\0';
	if (live == NULL)
		return;
	if (store_get_job(routes->archive.store, key, take_folder, ret, &err) < 0 ||
	    live->read(live->arg, key, ret->path, &ignored) < 0)
		ret->path[0] = '\0';
	str_done(&ignored);
}

static bool find_in_running(const struct job_folder *folder, uint64_t number, struct str *ret)
{
	if (folder->path[0] == '\0' || number == 0)
		return false;
	str_printf(ret, "%s/fingerprints/%" PRIu64, folder->path, number);
	return str_error(ret) == 0 && has_fingerprint(ret->data);
}

static int input_of_store(struct routes *routes, const char *id, struct str *ret, struct err *err)
{
	struct archive *archive = &routes->archive;
	struct job_folder folder;
	struct windows windows = { { 0 } };
	char key[STORE_KEY_BYTES];
	uint64_t number;
	bool found;
	int r;

	if (archive_parse_id(id, key, &number) < 0)
		return err_set(err, ENOENT,
			       "no report %.60s: /compare lists those that can be compared", id);
	r = archive_open_store(archive, err);
	if (r < 0)
		return r;
	r = store_list_windows(archive->store, key, take_window, &windows, err);
	found = has_window(&windows, number);
	vec_done(&windows.numbers);
	if (r < 0) {
		archive_drop_store(archive);
		return r;
	}
	if (!found) {
		find_running(routes, key, &folder);
		if (find_in_running(&folder, number, ret))
			return 0;
		str_done(ret);
		*ret = (struct str){ 0 };
		return err_set(err, ENOENT,
			       "the store keeps no fingerprints of report %.60s, so it can't be "
			       "compared: it keeps those of profiles, for 90 days; /compare lists "
			       "the reports that have some",
			       id);
	}
	print_word(key, number, ret);
	return str_error(ret);
}

int comparechoice_input(struct routes *routes, const char *id, struct str *ret, struct err *err)
{
	const struct catalog_report *report;
	int r = catalog_refresh(routes->archive.catalog, clock_mono_ns());

	if (r < 0)
		return err_set(err, -r, "out of memory");
	report = catalog_find(routes->archive.catalog, id);
	return report != NULL ? input_of_folder(report, ret, err)
			      : input_of_store(routes, id, ret, err);
}

/* --- the list --- */

struct list {
	struct str *out;
	struct comparechoice_pick *pick;
	struct comparechoice_cnt cnt;
	/* of the job whose reports are taken */
	const char *name;
	struct windows windows;
	struct job_folder folder;
};

static bool is_picked(const struct comparechoice_pick *pick, const char *id)
{
	if (pick->chosen != NULL)
		return strcmp(pick->chosen, id) == 0;
	return pick->picked[0] == '\0' && (pick->avoid == NULL || strcmp(pick->avoid, id) != 0);
}

static void open_option(struct list *list, const char *id)
{
	bool picked = is_picked(list->pick, id);

	if (picked)
		(void)snprintf(list->pick->picked, sizeof(list->pick->picked), "%s", id);
	str_append(list->out, "<option value=\"");
	markup_text(list->out, id);
	str_append(list->out, picked ? "\" selected>" : "\">");
	list->cnt.listed++;
}

static void put_folders(struct list *list, const struct catalog *catalog)
{
	const struct catalog_report *report;

	for (size_t i = 0; i < REPORTS_MAX && (report = catalog_borrow(catalog, i)) != NULL; i++) {
		struct str folder = { 0 };

		if (find_folder(report, &folder)) {
			open_option(list, report->id);
			markup_text_short(list->out, report->path, 100);
			str_append(list->out, ", ");
			markup_text_short(list->out, report->verdict, 40);
			str_append(list->out, "</option>\n");
		} else {
			list->cnt.left_out++;
		}
		str_done(&folder);
	}
}

static int put_report(void *arg, const struct store_report *report, size_t finding_cnt _unused_)
{
	char id[ARCHIVE_ID_BYTES], made[32];
	struct list *list = arg;
	struct str word = { 0 };

	bool kept = has_window(&list->windows, report->number) ||
		    find_in_running(&list->folder, report->number, &word);

	str_done(&word);
	word = (struct str){ 0 };
	if (!kept) {
		list->cnt.left_out++;
		return 0;
	}
	archive_print_id(report->job, report->number, id);
	jobwords_time(report->made_ns, made);
	print_word(report->job, report->number, &word);
	open_option(list, id);
	markup_text_short(list->out, list->name, 60);
	str_printf(list->out, ", %s UTC, ", made);
	markup_text_short(list->out, report->verdict, 40);
	str_append(list->out, " (");
	markup_take(list->out, &word);
	str_append(list->out, ")</option>\n");
	return 0;
}

struct job_name {
	char key[STORE_KEY_BYTES];
	char *name;
};

struct jobs {
	VEC(struct job_name) list;
};

static int take_job(void *arg, const struct store_job *job)
{
	struct job_name one = { .name = strdup(job->name) };
	struct jobs *jobs = arg;

	(void)snprintf(one.key, sizeof(one.key), "%s", job->key);
	if (one.name != NULL && vec_push(&jobs->list, one) == 0)
		return 0;
	free(one.name);
	return -ENOMEM;
}

static int put_jobs(struct routes *routes, struct list *list, struct err *err)
{
	struct archive *archive = &routes->archive;
	const struct archive_filter filter = { .after = { .started_ns = INT64_MAX },
					       .limit = JOBS_MAX };
	struct jobs jobs = { { 0 } };
	struct store_job_place last;
	bool more;
	int r = archive_list_jobs(archive, &filter, take_job, &jobs, &more, &last, err);
	bool no_store = r == -ENOENT;

	vec_foreach(job, &jobs.list) {
		list->name = job->name;
		list->windows.numbers.cnt = 0;
		if (r == 0)
			find_running(routes, job->key, &list->folder);
		if (r == 0)
			r = store_list_windows(archive->store, job->key, take_window,
					       &list->windows, err);
		if (r == 0)
			r = store_list_reports(archive->store, job->key, put_report, list, err);
		free(job->name);
	}
	vec_done(&jobs.list);
	vec_done(&list->windows.numbers);
	if (r < 0 && !no_store)
		archive_drop_store(archive);
	return no_store ? 0 : r;
}

int comparechoice_put(struct routes *routes, struct comparechoice_pick *pick, struct str *out,
		      struct comparechoice_cnt *ret, struct err *err)
{
	struct list list = { .out = out, .pick = pick };
	int r = catalog_refresh(routes->archive.catalog, clock_mono_ns());

	if (r < 0)
		return err_set(err, -r, "out of memory");
	put_folders(&list, routes->archive.catalog);
	r = put_jobs(routes, &list, err);
	*ret = list.cnt;
	return r;
}
