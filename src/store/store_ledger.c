/* SPDX-License-Identifier: Apache-2.0 */
/* Lists over many jobs: pages of jobs, jobs with news, hosts that findings accused. */
#include "store/schema.h"
#include "store/store_parts.h"

#include <errno.h>

int store_list_jobs_after(struct store *store, const struct store_job_place *after, size_t cnt,
			  store_job_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, store_on_job,
			   STORE_SELECT_JOBS
			   "WHERE started_ns < $1 OR (started_ns = $2 AND job > $3)"
			   " ORDER BY started_ns DESC, job LIMIT $4",
			   err, cell_integer(after->started_ns), cell_integer(after->started_ns),
			   cell_text(after->key), cell_integer((int64_t)cnt));
}

int store_list_jobs_seen(struct store *store, int64_t since_ns, store_job_fn fn, void *arg,
			 struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, store_on_job, STORE_SELECT_JOBS "WHERE seen_ns >= $1",
			   err, cell_integer(since_ns));
}

int store_list_jobs_named(struct store *store, const char *name, int64_t before_ns, size_t cnt,
			  store_job_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, store_on_job,
			   STORE_SELECT_JOBS "WHERE name = $1 AND started_ns < $2"
					     " ORDER BY started_ns DESC, job LIMIT $3",
			   err, cell_text(name), cell_integer(before_ns),
			   cell_integer((int64_t)cnt));
}

int store_list_jobs_beside(struct store *store, const char *host, const char *key, int64_t from_ns,
			   int64_t until_ns, store_job_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, store_on_job,
			   STORE_SELECT_JOBS "WHERE host = $1 AND job <> $2 AND started_ns < $3"
					     " AND seen_ns > $4",
			   err, cell_text(host), cell_text(key), cell_integer(until_ns),
			   cell_integer(from_ns));
}

int store_list_events_from(struct store *store, const char *key, uint64_t place, store_event_fn fn,
			   void *arg, struct err *err)
{
	struct store_reader reader = { .fn.event = fn, .arg = arg };

	return store_query(store, &reader, store_on_event,
			   "SELECT place, at_ns, kind, text FROM event"
			   " WHERE job = $1 AND place >= $2 ORDER BY place",
			   err, cell_text(key), cell_integer((int64_t)place));
}

static int on_accusation(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_accusation accusation;

	if (cnt != 9)
		return -EBADMSG;
	accusation = (struct store_accusation){
		.hosts = cell_borrow(&cells[0]),
		.job = cell_borrow(&cells[1]),
		.name = cell_borrow(&cells[2]),
		.cause = cell_borrow(&cells[3]),
		.title = cell_borrow(&cells[4]),
		.confidence = cell_borrow(&cells[5]),
		.number = (uint64_t)cells[6].integer,
		.made_ns = cells[7].integer,
		.gain_ms = cells[8].real,
	};
	return reader->fn.accusation(reader->arg, &accusation);
}

int store_list_accusations(struct store *store, store_accusation_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.accusation = fn, .arg = arg };
	int64_t version = 0;
	int ret = schema_version(store->database, &version, err);

	if (ret < 0 || version < 2)
		return ret;
	return database_run(store->database,
			    &(struct statement){
				    .sql = "SELECT finding.hosts, job.job, job.name, finding.cause,"
					   " finding.title, finding.confidence, report.number,"
					   " report.made_ns, finding.gain_ms FROM finding"
					   " JOIN report ON report.job = finding.job"
					   " AND report.number = finding.number"
					   " JOIN job ON job.job = finding.job"
					   " WHERE finding.hosts <> ''"
					   " ORDER BY report.made_ns, job.job, report.number,"
					   " finding.place",
				    .on_row = on_accusation,
				    .arg = &reader },
			    err);
}

static int on_named_finding(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_named_finding finding;

	if (cnt != 8)
		return -EBADMSG;
	finding = (struct store_named_finding){
		.job = cell_borrow(&cells[0]),
		.cause = cell_borrow(&cells[1]),
		.title = cell_borrow(&cells[2]),
		.function_key = cell_borrow(&cells[3]),
		.number = (uint64_t)cells[4].integer,
		.made_ns = cells[5].integer,
		.gain_ms = cells[6].real,
		.iteration_ms = cells[7].real,
	};
	return reader->fn.named_finding(reader->arg, &finding);
}

int store_list_named_findings(struct store *store, const char *name, int64_t before_ns, size_t cnt,
			      store_named_finding_fn fn, void *arg, struct err *err)
{
	struct store_reader reader = { .fn.named_finding = fn, .arg = arg };

	return store_query(store, &reader, on_named_finding,
			   "SELECT finding.job, finding.cause, finding.title, finding.function_key,"
			   " report.number, report.made_ns, finding.gain_ms, report.iteration_ms"
			   " FROM finding JOIN report ON report.job = finding.job"
			   " AND report.number = finding.number JOIN job ON job.job = finding.job"
			   " WHERE job.name = $1 AND job.started_ns < $2"
			   " ORDER BY report.made_ns DESC, finding.job, finding.place LIMIT $3",
			   err, cell_text(name), cell_integer(before_ns),
			   cell_integer((int64_t)cnt));
}

static int on_job_key(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;
	struct store_job job = { .key = cnt == 1 ? cell_borrow(&cells[0]) : "" };

	return cnt == 1 ? reader->fn.job(reader->arg, &job) : -EBADMSG;
}

int store_list_jobs_with_event(struct store *store, const char *kind, store_job_fn fn, void *arg,
			       struct err *err)
{
	struct store_reader reader = { .fn.job = fn, .arg = arg };

	return store_query(store, &reader, on_job_key,
			   "SELECT DISTINCT job FROM event WHERE kind = $1", err, cell_text(kind));
}

static int on_window(void *arg, const struct cell *cells, size_t cnt)
{
	struct store_reader *reader = arg;

	return cnt == 2 ? reader->fn.window(reader->arg, (uint64_t)cells[0].integer,
					    (size_t)cells[1].integer)
			: -EBADMSG;
}

int store_list_windows(struct store *store, const char *key, store_window_fn fn, void *arg,
		       struct err *err)
{
	struct store_reader reader = { .fn.window = fn, .arg = arg };

	return store_query(store, &reader, on_window,
			   "SELECT number, count(*) FROM fingerprint WHERE job = $1"
			   " GROUP BY number ORDER BY number",
			   err, cell_text(key));
}
