/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_parts.h"

#include <stdlib.h>

static struct cell number(uint64_t value)
{
	return cell_integer((int64_t)value);
}

static struct cell time_or_null(int64_t ns)
{
	return ns != 0 ? cell_integer(ns) : (struct cell){ CELL_NULL };
}

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

#define JOB_COLUMNS                                                                             \
	"job, name, host, owner, folder, command, started_ns, seen_ns, ended_ns, exit_status, " \
	"signal, state, verdict, reason, workers, step, now_ns, best_ns, restarts, lost"

int store_put_job(struct store *store, const struct store_job *job, struct err *err)
{
	bool ended = job->ended_ns != 0;

	return store_run(
		store,
		"INSERT INTO job (" JOB_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,"
		" $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ON CONFLICT (job) DO UPDATE SET"
		" seen_ns = excluded.seen_ns, ended_ns = excluded.ended_ns,"
		" exit_status = excluded.exit_status, signal = excluded.signal,"
		" state = excluded.state, verdict = excluded.verdict, reason = excluded.reason,"
		" workers = excluded.workers, step = excluded.step, now_ns = excluded.now_ns,"
		" best_ns = excluded.best_ns, restarts = excluded.restarts, lost = excluded.lost",
		err, cell_text(job->key), cell_text(or_empty(job->name)),
		cell_text(or_empty(job->host)), cell_text(or_empty(job->owner)),
		cell_text(or_empty(job->folder)), cell_text(job->command),
		cell_integer(job->started_ns), cell_integer(job->seen_ns),
		time_or_null(job->ended_ns),
		ended ? cell_integer(job->exit_status) : (struct cell){ CELL_NULL },
		ended ? cell_integer(job->signal) : (struct cell){ CELL_NULL },
		cell_text(or_empty(job->state)), cell_text(job->verdict), cell_text(job->reason),
		cell_integer(job->workers), number(job->step), cell_integer(job->now_ns),
		cell_integer(job->best_ns), cell_integer(job->restarts), number(job->lost));
}

static int put_finding(struct store *store, const struct store_report *report, size_t place,
		       const struct store_finding *finding, struct err *err)
{
	return store_run(
		store,
		"INSERT INTO finding (job, number, place, id, cause, title, function,"
		" function_key, ranks, gain_ms, gain_pct, confidence, hosts)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
		err, cell_text(report->job), number(report->number), number(place),
		cell_text(or_empty(finding->id)), cell_text(or_empty(finding->cause)),
		cell_text(or_empty(finding->title)), cell_text(or_empty(finding->function)),
		cell_text(or_empty(finding->function_key)), cell_text(or_empty(finding->ranks)),
		cell_real(finding->gain_ms), cell_real(finding->gain_pct),
		cell_text(or_empty(finding->confidence)), cell_text(or_empty(finding->hosts)));
}

int store_put_report(struct store *store, const struct store_report *report,
		     const struct store_finding *findings, size_t cnt, struct err *err)
{
	int ret = store_run(store, "DELETE FROM finding WHERE job = $1 AND number = $2", err,
			    cell_text(report->job), number(report->number));

	if (ret == 0)
		ret = store_run(store, "DELETE FROM report WHERE job = $1 AND number = $2", err,
				cell_text(report->job), number(report->number));
	if (ret == 0)
		ret = store_run(
			store,
			"INSERT INTO report (job, number, made_ns, why, verdict, reason, first_step,"
			" steps, iteration_ms, workers, missing)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
			err, cell_text(report->job), number(report->number),
			cell_integer(report->made_ns), cell_text(or_empty(report->why)),
			cell_text(or_empty(report->verdict)), cell_text(or_empty(report->reason)),
			number(report->first_step), number(report->steps),
			cell_real(report->iteration_ms), cell_integer(report->workers),
			cell_integer(report->missing));
	for (size_t i = 0; i < cnt && ret == 0; i++)
		ret = put_finding(store, report, i, &findings[i], err);
	return ret;
}

/* Data of a report, compressed. row[3]: job, number, and what tells it from others of that report. */
static int put_packed(struct store *store, const char *sql, const struct cell *row,
		      const void *data, size_t len, struct err *err)
{
	_cleanup_free_ char *packed = NULL;
	size_t packed_len;
	int ret = store_pack(data, len, &packed, &packed_len);

	if (ret < 0)
		return err_set(err, -ret, "out of memory");
	return store_run(store, sql, err, row[0], row[1], row[2], number(len),
			 cell_bytes(packed, packed_len));
}

#define PUT_PACKED(table, column)                                            \
	"INSERT INTO " table " (job, number, " column ", plain_bytes, data)" \
	" VALUES ($1, $2, $3, $4, $5) ON CONFLICT (job, number, " column     \
	") DO UPDATE SET plain_bytes = excluded.plain_bytes, data = excluded.data"

int store_put_document(struct store *store, const char *job, uint64_t report, const char *form,
		       const void *data, size_t len, struct err *err)
{
	const struct cell row[] = { cell_text(job), number(report), cell_text(form) };

	return put_packed(store, PUT_PACKED("document", "form"), row, data, len, err);
}

int store_put_fingerprint(struct store *store, const char *job, uint64_t report, int rank,
			  const void *data, size_t len, struct err *err)
{
	const struct cell row[] = { cell_text(job), number(report), cell_integer(rank) };

	return put_packed(store, PUT_PACKED("fingerprint", "rank"), row, data, len, err);
}

int store_add_pace(struct store *store, const char *job, const struct store_pace *pace,
		   struct err *err)
{
	static const int tiers_s[] = { 1, 60, 3600 };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tiers_s) && ret == 0; i++)
		ret = store_run(
			store,
			"INSERT INTO pace (job, tier_s, at_s, step, cnt, sum_ns, min_ns, max_ns)"
			" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
			" ON CONFLICT (job, tier_s, at_s) DO UPDATE SET step = excluded.step,"
			" cnt = pace.cnt + excluded.cnt, sum_ns = pace.sum_ns + excluded.sum_ns,"
			" min_ns = CASE WHEN excluded.min_ns < pace.min_ns THEN excluded.min_ns"
			" ELSE pace.min_ns END,"
			" max_ns = CASE WHEN excluded.max_ns > pace.max_ns THEN excluded.max_ns"
			" ELSE pace.max_ns END",
			err, cell_text(job), cell_integer(tiers_s[i]),
			cell_integer(pace->at_s - pace->at_s % tiers_s[i]), number(pace->step),
			number(pace->cnt), cell_integer(pace->sum_ns), cell_integer(pace->min_ns),
			cell_integer(pace->max_ns));
	return ret;
}

int store_put_event(struct store *store, const char *job, const struct store_event *event,
		    struct err *err)
{
	return store_run(store,
			 "INSERT INTO event (job, place, at_ns, kind, text)"
			 " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (job, place) DO NOTHING",
			 err, cell_text(job), number(event->place), cell_integer(event->at_ns),
			 cell_text(or_empty(event->kind)), cell_text(or_empty(event->text)));
}
