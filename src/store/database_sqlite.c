/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "store/database_parts.h"

#include <errno.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* So long for a process that writes; writers hold the lock for milliseconds. */
#define BUSY_MS 5000
#define LUSTRE_MAGIC 0x0BD00BD0
#define GPFS_MAGIC 0x47504653

struct sqlite_database {
	struct database database;
	sqlite3 *handle;
};

static int error_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return EUCLEAN;
	case SQLITE_READONLY:
		return EROFS;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return EACCES;
	default:
		return EIO;
	}
}

static int fail(sqlite3 *handle, int code, struct err *err)
{
	const char *path = handle != NULL ? sqlite3_db_filename(handle, "main") : NULL;
	int error = handle != NULL ? sqlite3_system_errno(handle) : 0;

	return err_set(err, error_of(code), "%s: %s%s%s", path != NULL ? path : "SQLite",
		       handle != NULL ? sqlite3_errmsg(handle) : sqlite3_errstr(code),
		       error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
}

/* Processes of several hosts share the file there, and WAL needs memory that they share. */
static bool is_on_network(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	return fs.f_type == NFS_SUPER_MAGIC || fs.f_type == LUSTRE_MAGIC ||
	       fs.f_type == GPFS_MAGIC || fs.f_type == FUSE_SUPER_MAGIC ||
	       (uint32_t)fs.f_type == CIFS_SUPER_MAGIC || fs.f_type == CEPH_SUPER_MAGIC;
}

static int set_up(sqlite3 *handle, const char *path, bool read_only)
{
	int code = SQLITE_OK;

	(void)sqlite3_extended_result_codes(handle, 1);
	(void)sqlite3_busy_timeout(handle, BUSY_MS);
	if (read_only)
		return code;
	/* Takes effect in a new file only: space is given back piece by piece. */
	code = sqlite3_exec(handle, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(handle,
				    is_on_network(path) ? "PRAGMA journal_mode = DELETE"
							: "PRAGMA journal_mode = WAL",
				    NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_exec(handle, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
	return code;
}

static int sqlite_open(const char *where, bool read_only, struct database **ret, struct err *err)
{
	int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	struct sqlite_database *database;
	sqlite3 *handle = NULL;
	int code, r;

	if (read_only && access(where, F_OK) < 0)
		return err_set(err, errno, "%s: %s", where, strerror(errno));
	code = sqlite3_open_v2(where, &handle, flags | SQLITE_OPEN_FULLMUTEX, NULL);
	if (code == SQLITE_OK)
		code = set_up(handle, where, read_only);
	database = code == SQLITE_OK ? calloc(1, sizeof(*database)) : NULL;
	if (database == NULL) {
		r = fail(handle, code == SQLITE_OK ? SQLITE_NOMEM : code, err);
		(void)sqlite3_close(handle);
		return r;
	}
	database->handle = handle;
	*ret = &database->database;
	return 0;
}

static void sqlite_close(struct database *database)
{
	struct sqlite_database *sqlite = (struct sqlite_database *)database;

	(void)sqlite3_close(sqlite->handle);
	free(sqlite);
}

/* The statement is run before the caller's data can change: nothing is copied. */
static int bind(sqlite3_stmt *stmt, int at, const struct cell *cell)
{
	switch (cell->type) {
	case CELL_NULL:
		return sqlite3_bind_null(stmt, at);
	case CELL_INTEGER:
		return sqlite3_bind_int64(stmt, at, cell->integer);
	case CELL_REAL:
		return sqlite3_bind_double(stmt, at, cell->real);
	case CELL_TEXT:
		return sqlite3_bind_text64(stmt, at, cell->data, cell->len, SQLITE_STATIC,
					   SQLITE_UTF8);
	case CELL_BYTES:
		return sqlite3_bind_blob64(stmt, at, cell->data, cell->len, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static struct cell cell_of(sqlite3_stmt *stmt, int at)
{
	struct cell cell = { CELL_NULL };

	switch (sqlite3_column_type(stmt, at)) {
	case SQLITE_INTEGER:
		return cell_integer(sqlite3_column_int64(stmt, at));
	case SQLITE_FLOAT:
		return cell_real(sqlite3_column_double(stmt, at));
	case SQLITE_TEXT:
		cell.type = CELL_TEXT;
		cell.data = sqlite3_column_text(stmt, at);
		break;
	case SQLITE_BLOB:
		cell.type = CELL_BYTES;
		cell.data = sqlite3_column_blob(stmt, at);
		break;
	default:
		return cell;
	}
	cell.len = (size_t)sqlite3_column_bytes(stmt, at);
	return cell;
}

#define COLUMNS_MAX 32

/* Returns a code of SQLite; *ret_stop is what the handler of rows returned. */
static int step_all(sqlite3_stmt *stmt, const struct statement *statement, int *ret_stop)
{
	int cnt = MIN(sqlite3_column_count(stmt), COLUMNS_MAX), code;

	while ((code = sqlite3_step(stmt)) == SQLITE_ROW && *ret_stop == 0) {
		struct cell cells[COLUMNS_MAX];

		for (int i = 0; i < cnt; i++)
			cells[i] = cell_of(stmt, i);
		if (statement->on_row != NULL)
			*ret_stop = statement->on_row(statement->arg, cells, (size_t)cnt);
	}
	return code == SQLITE_ROW ? SQLITE_DONE : code;
}

static int sqlite_run(struct database *database, const struct statement *statement, struct err *err)
{
	sqlite3 *handle = ((struct sqlite_database *)database)->handle;
	sqlite3_stmt *stmt = NULL;
	int stop = 0, code = sqlite3_prepare_v2(handle, statement->sql, -1, &stmt, NULL);

	for (size_t i = 0; i < statement->param_cnt && code == SQLITE_OK; i++)
		code = bind(stmt, (int)i + 1, &statement->params[i]);
	if (code == SQLITE_OK)
		code = step_all(stmt, statement, &stop);
	if (code != SQLITE_DONE)
		stop = fail(handle, code, err);
	(void)sqlite3_finalize(stmt);
	return stop;
}

const struct database_kind database_sqlite = {
	.open = sqlite_open,
	.close = sqlite_close,
	.run = sqlite_run,
	.bytes_sql = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
		     "pragma_freelist_count, pragma_page_size",
};
