/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- jobs --- */

static const char *text_or_null(const struct cell *cell)
{
	return cell->type == CELL_TEXT ? cell->data : NULL;
}

int store_on_job(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_job job;

	if (cnt != 20)
		return -EBADMSG;
	reader->seen++;
	job = (struct store_job){
		.key = cell_borrow(&cells[0]),
		.name = cell_borrow(&cells[1]),
		.host = cell_borrow(&cells[2]),
		.owner = cell_borrow(&cells[3]),
		.folder = cell_borrow(&cells[4]),
		.command = text_or_null(&cells[5]),
		.started_ns = cells[6].integer,
		.seen_ns = cells[7].integer,
		.ended_ns = cells[8].integer,
		.exit_status = (int)cells[9].integer,
		.signal = (int)cells[10].integer,
		.state = cell_borrow(&cells[11]),
		.verdict = text_or_null(&cells[12]),
		.reason = text_or_null(&cells[13]),
		.workers = (uint32_t)cells[14].integer,
		.step = (uint64_t)cells[15].integer,
		.now_ns = cells[16].integer,
		.best_ns = cells[17].integer,
		.restarts = (uint32_t)cells[18].integer,
		.lost = (uint64_t)cells[19].integer,
	};
	return reader->fn.job(reader->arg, &job);
}

int store_list_jobs(struct store *store, size_t cnt, store_job_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, store_on_job,
			   STORE_SELECT_JOBS "ORDER BY started_ns DESC, job LIMIT $1", err,
			   cell_integer(cnt > 0 ? (int64_t)cnt : INT64_MAX));
}

int store_get_job(struct store *store, const char *key, store_job_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };
	int ret = store_query(store, &reader, store_on_job, STORE_SELECT_JOBS "WHERE job = $1", err,
			      cell_text(key));

	return ret == 0 && reader.seen == 0 ? err_set(err, ENOENT, "no job %s in the store", key)
					    : ret;
}

struct found {
	char key[STORE_KEY_BYTES];
	size_t cnt;
};

static int on_key(void *arg, const struct cell *cells, size_t cnt)
{
	struct found *found = arg;

	if (cnt != 1)
		return -EBADMSG;
	if (found->cnt++ == 0)
		(void)snprintf(found->key, sizeof(found->key), "%s", cell_borrow(&cells[0]));
	return 0;
}

int store_find_job(struct store *store, const char *word, char ret[static STORE_KEY_BYTES],
		   struct err *err)
{
	struct found found = { .cnt = 0 };
	int r = store_query(
		store, &found, on_key,
		"SELECT job FROM job WHERE substr(job, 1, CAST($1 AS INTEGER)) = $2 ORDER BY started_ns DESC",
		err, cell_integer((int64_t)strlen(word)), cell_text(word));

	if (r == 0 && (found.cnt == 0 || word[0] == '\0')) {
		found.cnt = 0;
		r = store_query(
			store, &found, on_key,
			"SELECT job FROM job WHERE name = $1 ORDER BY started_ns DESC LIMIT 1", err,
			cell_text(word));
	}
	if (r < 0)
		return r;
	if (found.cnt == 0)
		return err_set(err, ENOENT,
			       "no job '%s' in the store: `perftracker jobs` lists them", word);
	if (found.cnt > 1)
		return err_set(err, ENOTUNIQ, "%zu jobs begin with '%s': write more of the key",
			       found.cnt, word);
	(void)snprintf(ret, STORE_KEY_BYTES, "%s", found.key);
	return 0;
}

/* --- of one job --- */

static int on_report(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_report report;

	if (cnt != 12)
		return -EBADMSG;
	report = (struct store_report){
		.job = cell_borrow(&cells[0]),
		.number = (uint64_t)cells[1].integer,
		.made_ns = cells[2].integer,
		.why = cell_borrow(&cells[3]),
		.verdict = cell_borrow(&cells[4]),
		.reason = cell_borrow(&cells[5]),
		.first_step = (uint64_t)cells[6].integer,
		.steps = (uint64_t)cells[7].integer,
		.iteration_ms = cells[8].real,
		.workers = (uint32_t)cells[9].integer,
		.missing = (uint32_t)cells[10].integer,
	};
	return reader->fn.report(reader->arg, &report, (size_t)cells[11].integer);
}

int store_list_reports(struct store *store, const char *key, store_report_fn fn, void *arg,
		       struct err *err)
{
	struct store_reader reader = { .fn.report = fn, .arg = arg };

	return store_query(store, &reader, on_report,
			   "SELECT job, number, made_ns, why, verdict, reason, first_step, steps,"
			   " iteration_ms, workers, missing, (SELECT count(*) FROM finding WHERE"
			   " finding.job = report.job AND finding.number = report.number)"
			   " FROM report WHERE job = $1 ORDER BY made_ns, number",
			   err, cell_text(key));
}

static int on_finding(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_finding finding;

	if (cnt != 9)
		return -EBADMSG;
	finding = (struct store_finding){
		.id = cell_borrow(&cells[0]),
		.cause = cell_borrow(&cells[1]),
		.title = cell_borrow(&cells[2]),
		.function = cell_borrow(&cells[3]),
		.function_key = cell_borrow(&cells[4]),
		.ranks = cell_borrow(&cells[5]),
		.confidence = cell_borrow(&cells[6]),
		.gain_ms = cells[7].real,
		.gain_pct = cells[8].real,
	};
	return reader->fn.finding(reader->arg, &finding);
}

int store_list_findings(struct store *store, const char *key, uint64_t number, store_finding_fn fn,
			void *arg, struct err *err)
{
	struct store_reader reader = { .fn.finding = fn, .arg = arg };

	return store_query(
		store, &reader, on_finding,
		"SELECT id, cause, title, function, function_key, ranks, confidence, gain_ms,"
		" gain_pct FROM finding WHERE job = $1 AND number = $2 ORDER BY place",
		err, cell_text(key), cell_integer((int64_t)number));
}

static int on_pace(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_pace pace;

	if (cnt != 6)
		return -EBADMSG;
	pace = (struct store_pace){
		.at_s = cells[0].integer,
		.step = (uint64_t)cells[1].integer,
		.cnt = (uint64_t)cells[2].integer,
		.sum_ns = cells[3].integer,
		.min_ns = cells[4].integer,
		.max_ns = cells[5].integer,
	};
	return reader->fn.pace(reader->arg, &pace);
}

int store_list_pace(struct store *store, const char *key, int tier_s, store_pace_fn fn, void *arg,
		    struct err *err)
{
	struct store_reader reader = { .fn.pace = fn, .arg = arg };

	return store_query(store, &reader, on_pace,
			   "SELECT at_s, step, cnt, sum_ns, min_ns, max_ns FROM pace"
			   " WHERE job = $1 AND tier_s = $2 ORDER BY at_s",
			   err, cell_text(key), cell_integer(tier_s));
}

int store_on_event(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_event event;

	if (cnt != 4)
		return -EBADMSG;
	event = (struct store_event){ .place = (uint64_t)cells[0].integer,
				      .at_ns = cells[1].integer,
				      .kind = cell_borrow(&cells[2]),
				      .text = cell_borrow(&cells[3]) };
	return reader->fn.event(reader->arg, &event);
}

int store_list_events(struct store *store, const char *key, store_event_fn fn, void *arg,
		      struct err *err)
{
	struct store_reader reader = { .fn.event = fn, .arg = arg };

	return store_query(
		store, &reader, store_on_event,
		"SELECT place, at_ns, kind, text FROM event WHERE job = $1 ORDER BY place", err,
		cell_text(key));
}

int store_list_named_events(struct store *store, const char *name, const char *kind, size_t cnt,
			    store_event_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.event = fn, .arg = arg };

	return store_query(
		store, &reader, store_on_event,
		"SELECT event.place, event.at_ns, event.kind, event.text FROM event"
		" JOIN job ON job.job = event.job WHERE job.name = $1 AND event.kind = $2"
		" ORDER BY event.at_ns DESC, event.place DESC LIMIT $3",
		err, cell_text(name), cell_text(kind), cell_integer((int64_t)cnt));
}

static int on_bytes(void *arg, const struct cell *cells, size_t cnt)
{
	_cleanup_free_ char *plain = NULL;
	struct store_reader *reader = arg;
	int ret;

	if (cnt != 3)
		return -EBADMSG;
	reader->seen++;
	ret = store_unpack(&cells[2], cells[1].integer, &plain);
	if (ret < 0)
		return ret;
	return reader->fn.bytes(reader->arg, (int)cells[0].integer, plain,
				(size_t)cells[1].integer);
}

static int explain_bytes(int ret, const char *what, const char *key, uint64_t number,
			 struct err *err)
{
	if (ret == -EBADMSG)
		return err_set(err, EBADMSG, "%s of %s/%llu is damaged in the store", what, key,
			       (unsigned long long)number);
	return ret;
}

int store_get_document(struct store *store, const char *key, uint64_t number, const char *form,
		       store_bytes_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.bytes = fn, .arg = arg };
	int ret = store_query(store, &reader, on_bytes,
			      "SELECT -1, plain_bytes, data FROM document"
			      " WHERE job = $1 AND number = $2 AND form = $3",
			      err, cell_text(key), cell_integer((int64_t)number), cell_text(form));

	if (ret == 0 && reader.seen == 0)
		return err_set(err, ENOENT,
			       "no report %s/%llu in the store as %s: `perftracker history %s` "
			       "lists its reports",
			       key, (unsigned long long)number, form, key);
	return explain_bytes(ret, "the report", key, number, err);
}

int store_list_fingerprints(struct store *store, const char *key, uint64_t number,
			    store_bytes_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.bytes = fn, .arg = arg };
	int ret = store_query(store, &reader, on_bytes,
			      "SELECT rank, plain_bytes, data FROM fingerprint"
			      " WHERE job = $1 AND number = $2 ORDER BY rank",
			      err, cell_text(key), cell_integer((int64_t)number));

	return explain_bytes(ret, "a fingerprint", key, number, err);
}
