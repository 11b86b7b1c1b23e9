/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/openreport.h"

#include "base/clock.h"
#include "store/storelist.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void openreport_done(struct openreport *report)
{
	json_decref(report->root);
	*report = (struct openreport){ .root = NULL };
}

/* --- which one --- */

/* The newest report in the folders whose path or id has word in it; -ENOTUNIQ: of several folders. */
static int find_file(const struct catalog *catalog, const char *word,
		     const struct catalog_report **ret, struct err *err)
{
	const struct catalog_report *found = catalog_find(catalog, word), *report;

	for (size_t i = 0; found == NULL && (report = catalog_borrow(catalog, i)) != NULL; i++) {
		if (strcmp(report->path, word) == 0)
			found = report;
	}
	for (size_t i = 0; word[0] != '\0' && (report = catalog_borrow(catalog, i)) != NULL; i++) {
		if (found == report || strstr(report->path, word) == NULL)
			continue;
		if (found == NULL)
			found = report;
		else if (strcmp(found->id, word) != 0 && strcmp(found->path, word) != 0 &&
			 strcmp(found->folder, report->folder) != 0)
			return err_set(err, ENOTUNIQ,
				       "several reports have that in their path, for instance %s "
				       "and %s: call again with one of these ids",
				       found->id, report->id);
	}
	*ret = found;
	return found != NULL ? 0 : -ENOENT;
}

struct newest {
	char id[ARCHIVE_ID_BYTES];
	int64_t made_ns;
};

static int take_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct newest *newest = arg;

	(void)finding_cnt;
	if (newest->id[0] != '\0' && report->made_ns < newest->made_ns)
		return 0;
	newest->made_ns = report->made_ns;
	archive_print_id(report->job, report->number, newest->id);
	return 0;
}

/* "KEY-2" and "KEY/2", else the newest report of a job. */
static int find_stored(struct archive *archive, const char *word, char ret[static ARCHIVE_ID_BYTES],
		       struct err *err)
{
	char key[STORE_KEY_BYTES], part[128];
	struct newest newest = { .made_ns = 0 };
	const char *slash = strrchr(word, '/');
	int r = archive_open_store(archive, err);
	uint64_t number;

	if (r < 0)
		return r;
	if (archive_parse_id(word, key, &number) == 0) {
		archive_print_id(key, number, ret);
		return 0;
	}
	(void)snprintf(part, sizeof(part), "%.*s",
		       slash != NULL ? (int)MIN(slash - word, (ptrdiff_t)127) : 127, word);
	r = store_find_job(archive->store, part, key, err);
	if (r < 0)
		return r;
	if (slash != NULL) {
		(void)snprintf(part, sizeof(part), "%s-%.40s", key, slash + 1);
		if (archive_parse_id(part, key, &number) < 0)
			return err_set(err, ENOENT, "expected JOB/NUMBER or JOB/end");
		archive_print_id(key, number, ret);
		return 0;
	}
	r = store_list_reports(archive->store, key, take_report, &newest, err);
	if (r == 0 && newest.id[0] == '\0')
		return err_set(err, ENOENT,
			       "job %s has no report: none was needed, or none was kept; get_job "
			       "has its state",
			       key);
	memcpy(ret, newest.id, sizeof(newest.id));
	return r;
}

static int take_key(void *arg, const struct store_job *job)
{
	(void)snprintf(arg, STORE_KEY_BYTES, "%s", job->key);
	return 0;
}

/* The newest report in the folders, else that of the newest job of the store. */
static int find_latest(struct archive *archive, char ret[static ARCHIVE_ID_BYTES], struct err *err)
{
	const struct catalog_report *report = catalog_borrow(archive->catalog, 0);
	char key[STORE_KEY_BYTES] = "";
	int r;

	if (report != NULL) {
		(void)snprintf(ret, ARCHIVE_ID_BYTES, "%s", report->id);
		return 0;
	}
	r = archive_open_store(archive, err);
	if (r == 0)
		r = store_list_jobs(archive->store, 1, take_key, key, err);
	if (r == 0 && key[0] == '\0')
		return err_set(err, ENOENT, "there is no report, and no job in the store");
	return r == 0 ? find_stored(archive, key, ret, err) : r;
}

static int find(struct archive *archive, const char *word, char ret[static ARCHIVE_ID_BYTES],
		struct err *err)
{
	const struct catalog_report *report = NULL;
	int r;

	if (word == NULL)
		return find_latest(archive, ret, err);
	r = find_file(archive->catalog, word, &report, err);
	if (r == 0) {
		(void)snprintf(ret, ARCHIVE_ID_BYTES, "%s", report->id);
		return 0;
	}
	if (r == -ENOENT)
		r = find_stored(archive, word, ret, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "no report is called so: list_jobs has the ids");
	return r;
}

/* --- reading --- */

static int read_report(struct archive *archive, const char *id, json_t **ret, struct err *err)
{
	struct str text = { 0 };
	const char *schema;
	json_error_t wrong;
	json_t *root = NULL;
	int r = archive_get_report(archive, id, "json", &text, err);

	if (r == 0)
		root = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	if (r < 0)
		return r;
	schema = json_string_value(json_object_get(root, "schema"));
	if (schema == NULL || strncmp(schema, "perftracker.report.", 19) != 0) {
		json_decref(root);
		return err_set(err, EINVAL, "report %s cannot be read: it is damaged", id);
	}
	*ret = root;
	return 0;
}

int openreport_find(struct openreport *report, struct archive *archive, const char *word,
		    struct err *err)
{
	const struct catalog_report *file;
	struct openreport next = { .root = NULL };
	int r = catalog_refresh(archive->catalog, clock_mono_ns());

	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = find(archive, word, next.id, err);
	if (r < 0)
		return r;
	file = catalog_find(archive->catalog, next.id);
	if (file != NULL) {
		next.changed_ns = file->changed_ns;
		next.bytes = file->bytes;
	}
	if (file != NULL && report->root != NULL && strcmp(report->id, next.id) == 0 &&
	    report->changed_ns == next.changed_ns && report->bytes == next.bytes)
		return 0;
	r = read_report(archive, next.id, &next.root, err);
	if (r < 0)
		return r;
	openreport_done(report);
	*report = next;
	return 0;
}
