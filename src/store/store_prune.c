/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_parts.h"
#include "store/storeprune.h"

#include <stddef.h>

#define DAY_S 86400LL

const struct store_limits store_default_limits = {
	.second_s = 2 * DAY_S,
	.minute_s = 30 * DAY_S,
	.hour_s = 730 * DAY_S,
	.data_s = 90 * DAY_S,
	.bytes_max = 2LL << 30,
};

static int prune_pace(struct store *store, const struct store_limits *limits, int64_t now_s,
		      struct err *err)
{
	const struct {
		int tier_s;
		int64_t age_s;
	} tiers[] = { { 1, limits->second_s }, { 60, limits->minute_s }, { 3600, limits->hour_s } };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tiers) && ret == 0; i++)
		ret = store_run(store, "DELETE FROM pace WHERE tier_s = $1 AND at_s < $2", err,
				cell_integer(tiers[i].tier_s),
				cell_integer(now_s - tiers[i].age_s));
	return ret;
}

/* The rows of windows that made no report have the time of none: they go with their job. */
#define OLD_ROWS(table)                                                                          \
	"DELETE FROM " table " WHERE EXISTS (SELECT 1 FROM report WHERE report.job = " table     \
	".job AND report.number = " table ".number AND report.made_ns < $1) OR EXISTS (SELECT 1" \
	" FROM job WHERE job.job = " table ".job AND job.seen_ns < $1)"

static int prune_data(struct store *store, int64_t before_ns, struct err *err)
{
	int ret = store_run(store, OLD_ROWS("fingerprint"), err, cell_integer(before_ns));

	if (ret == 0)
		ret = store_run(store, OLD_ROWS("document"), err, cell_integer(before_ns));
	return ret;
}

static int64_t excess(struct store *store, const struct store_limits *limits, int *ret,
		      struct err *err)
{
	int64_t bytes = 0;

	*ret = database_bytes(store->database, &bytes, err);
	return *ret < 0 ? 0 : bytes - limits->bytes_max;
}

/* Removes the rows of the job that ended first among those that have any. Returns 1: none has. */
static int prune_oldest_job(struct store *store, const char *count_sql, const char *delete_sql,
			    struct err *err)
{
	int64_t cnt = 0;
	int ret = database_integer(store->database, count_sql, &cnt, err);

	if (ret == 0 && cnt == 0)
		return 1;
	return ret < 0 ? ret : database_do(store->database, delete_sql, err);
}

#define COUNT_ROWS(table) "SELECT count(*) FROM " table
#define DELETE_OLDEST(table)                                                  \
	"DELETE FROM " table " WHERE job = (SELECT " table ".job FROM " table \
	" LEFT JOIN job ON job.job = " table ".job ORDER BY job.seen_ns LIMIT 1)"

static int prune_bytes(struct store *store, const struct store_limits *limits, struct err *err)
{
	static const char *const sqls[][2] = {
		{ COUNT_ROWS("fingerprint"), DELETE_OLDEST("fingerprint") },
		{ COUNT_ROWS("document"), DELETE_OLDEST("document") },
	};
	int ret = 0;

	/* A server gives space back by its own vacuum: its size says nothing at once. */
	if (database_is_server(store->database))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(sqls) && ret >= 0; i++) {
		ret = 0;
		while (ret == 0 && excess(store, limits, &ret, err) > 0 && ret == 0)
			ret = prune_oldest_job(store, sqls[i][0], sqls[i][1], err);
	}
	return MIN(ret, 0);
}

static int prune_jobs(struct store *store, int64_t before_ns, struct err *err)
{
	static const char *const sqls[] = {
#define OF_OLD_JOBS(table) \
	"DELETE FROM " table " WHERE job IN (SELECT job FROM job WHERE seen_ns < $1)"
		OF_OLD_JOBS("finding"),
		OF_OLD_JOBS("report"),
		OF_OLD_JOBS("document"),
		OF_OLD_JOBS("fingerprint"),
		OF_OLD_JOBS("pace"),
		OF_OLD_JOBS("event"),
		"DELETE FROM job WHERE seen_ns < $1",
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sqls) && ret == 0; i++)
		ret = store_run(store, sqls[i], err, cell_integer(before_ns));
	return ret;
}

static int prune_rows(struct store *store, const struct store_limits *limits, int64_t now_ns,
		      struct err *err)
{
	int ret = prune_pace(store, limits, now_ns / NSEC_PER_SEC, err);

	if (ret == 0)
		ret = prune_data(store, now_ns - limits->data_s * NSEC_PER_SEC, err);
	if (ret == 0 && limits->job_s > 0)
		ret = prune_jobs(store, now_ns - limits->job_s * NSEC_PER_SEC, err);
	if (ret == 0)
		ret = prune_bytes(store, limits, err);
	return ret;
}

int store_prune(struct store *store, const struct store_limits *limits, int64_t now_ns,
		struct err *err)
{
	int ret = prune_rows(store, limits, now_ns, err);

	if (ret == 0 && !database_is_server(store->database))
		ret = database_do(store->database, "PRAGMA incremental_vacuum", err);
	return ret;
}

static int read_size(struct store *store, struct store_size *ret, struct err *err)
{
	const struct {
		const char *sql;
		int64_t *to;
	} counts[] = {
		{ COUNT_ROWS("job"), &ret->job_cnt },
		{ COUNT_ROWS("report"), &ret->report_cnt },
		{ COUNT_ROWS("finding"), &ret->finding_cnt },
		{ COUNT_ROWS("document"), &ret->document_cnt },
		{ COUNT_ROWS("fingerprint"), &ret->fingerprint_cnt },
		{ COUNT_ROWS("pace"), &ret->pace_cnt },
		{ COUNT_ROWS("event"), &ret->event_cnt },
	};
	int r = database_bytes(store->database, &ret->bytes, err);

	for (size_t i = 0; i < ARRAY_SIZE(counts) && r == 0; i++)
		r = database_integer(store->database, counts[i].sql, counts[i].to, err);
	return r;
}

int store_prune_counted(struct store *store, const struct store_limits *limits, int64_t now_ns,
			bool dry, struct store_size ret[static 2], struct err *err)
{
	int r = store_begin(store, err);

	if (r < 0)
		return r;
	r = read_size(store, &ret[0], err);
	if (r == 0)
		r = prune_rows(store, limits, now_ns, err);
	if (r == 0)
		r = read_size(store, &ret[1], err);
	if (r == 0 && !dry)
		r = store_commit(store, err);
	else
		store_rollback(store);
	if (r == 0 && !dry && !database_is_server(store->database))
		r = database_do(store->database, "PRAGMA incremental_vacuum", err);
	return r;
}
