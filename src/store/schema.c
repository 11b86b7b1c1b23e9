/* SPDX-License-Identifier: Apache-2.0 */
#include "store/schema.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One list a version. SQLite has no BIGINT and no DOUBLE PRECISION of its own and takes both. */
static const char *const version_1[] = {
	"CREATE TABLE job (job TEXT PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL,"
	" owner TEXT NOT NULL, folder TEXT NOT NULL, command TEXT, started_ns BIGINT NOT NULL,"
	" seen_ns BIGINT NOT NULL, ended_ns BIGINT, exit_status INTEGER, signal INTEGER,"
	" state TEXT NOT NULL, verdict TEXT, reason TEXT, workers INTEGER NOT NULL,"
	" step BIGINT NOT NULL, now_ns BIGINT NOT NULL, best_ns BIGINT NOT NULL,"
	" restarts INTEGER NOT NULL, lost INTEGER NOT NULL)",
	"CREATE INDEX job_started ON job (started_ns)",
	"CREATE TABLE report (job TEXT NOT NULL, number BIGINT NOT NULL, made_ns BIGINT NOT NULL,"
	" why TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, first_step BIGINT,"
	" steps BIGINT, iteration_ms DOUBLE PRECISION, workers INTEGER, missing INTEGER,"
	" PRIMARY KEY (job, number))",
	"CREATE TABLE finding (job TEXT NOT NULL, number BIGINT NOT NULL, place INTEGER NOT NULL,"
	" id TEXT NOT NULL, cause TEXT NOT NULL, title TEXT NOT NULL, function TEXT NOT NULL,"
	" function_key TEXT NOT NULL, ranks TEXT NOT NULL, gain_ms DOUBLE PRECISION,"
	" gain_pct DOUBLE PRECISION, confidence TEXT NOT NULL, PRIMARY KEY (job, number, place))",
	"CREATE TABLE document (job TEXT NOT NULL, number BIGINT NOT NULL, form TEXT NOT NULL,"
	" plain_bytes BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (job, number, form))",
	"CREATE TABLE fingerprint (job TEXT NOT NULL, number BIGINT NOT NULL, rank INTEGER NOT NULL,"
	" plain_bytes BIGINT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (job, number, rank))",
	"CREATE TABLE pace (job TEXT NOT NULL, tier_s INTEGER NOT NULL, at_s BIGINT NOT NULL,"
	" step BIGINT NOT NULL, cnt BIGINT NOT NULL, sum_ns BIGINT NOT NULL,"
	" min_ns BIGINT NOT NULL, max_ns BIGINT NOT NULL, PRIMARY KEY (job, tier_s, at_s))",
	"CREATE TABLE event (job TEXT NOT NULL, place BIGINT NOT NULL, at_ns BIGINT NOT NULL,"
	" kind TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (job, place))",
	NULL,
};

static const char *const version_2[] = {
	"ALTER TABLE finding ADD COLUMN hosts TEXT NOT NULL DEFAULT ''",
	"CREATE INDEX job_seen ON job (seen_ns)",
	NULL,
};

static const char *const *const versions[SCHEMA_VERSION] = { version_1, version_2 };

/* 0: no tables. */
static int read_version(struct database *database, int64_t *ret, struct err *err)
{
	*ret = 0;
	return database_integer(database, "SELECT schema_version FROM meta", ret, err);
}

static int refuse_newer(int64_t version, struct err *err)
{
	if (version <= SCHEMA_VERSION)
		return 0;
	return err_set(err, EPROTO,
		       "the store has version %lld, this perftracker knows up to %d: use the newer "
		       "perftracker, or another --store",
		       (long long)version, SCHEMA_VERSION);
}

static int migrate(struct database *database, int64_t from, struct err *err)
{
	struct cell version = cell_integer(SCHEMA_VERSION);
	int ret = 0;

	for (int64_t i = from; i < SCHEMA_VERSION; i++) {
		for (const char *const *sql = versions[i]; *sql != NULL && ret == 0; sql++)
			ret = database_do(database, *sql, err);
	}
	if (ret == 0)
		ret = database_do(database, "DELETE FROM meta", err);
	if (ret < 0)
		return ret;
	return database_run(database,
			    &(struct statement){ .sql = "INSERT INTO meta VALUES ($1)",
						 .params = &version,
						 .param_cnt = 1 },
			    err);
}

/* Two processes that make the tables at once: the second waits, and finds them made. */
static int begin_alone(struct database *database, struct err *err)
{
	int ret = database_begin(database, err);

	if (ret == 0 && database_is_server(database))
		ret = database_do(database, "SELECT pg_advisory_xact_lock(7326480)", err);
	return ret;
}

int schema_prepare(struct database *database, struct err *err)
{
	struct err ignored;
	int64_t version = 0;
	int ret = begin_alone(database, err);

	if (ret < 0)
		return ret;
	ret = database_do(database,
			  "CREATE TABLE IF NOT EXISTS meta (schema_version INTEGER NOT NULL)", err);
	if (ret == 0)
		ret = read_version(database, &version, err);
	if (ret == 0)
		ret = refuse_newer(version, err);
	if (ret == 0 && version < SCHEMA_VERSION)
		ret = migrate(database, version, err);
	if (ret == 0)
		return database_do(database, "COMMIT", err);
	(void)!database_do(database, "ROLLBACK", &ignored);
	return ret;
}

int schema_version(struct database *database, int64_t *ret, struct err *err)
{
	return read_version(database, ret, err);
}

int schema_check(struct database *database, struct err *err)
{
	struct err why = { "" };
	int64_t version = 0;
	int ret = read_version(database, &version, &why);

	if (ret < 0 && ret != -EUCLEAN && ret != -EBUSY && ret != -ECONNRESET)
		return err_set(err, ENODATA, "this is no store of PerfTracker: %.300s", why.text);
	if (ret < 0)
		return err_set(err, -ret, "%s", why.text);
	if (ret == 0 && version == 0)
		return err_set(err, ENODATA, "the store is empty");
	return refuse_newer(version, err);
}
