/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A foreign SQLite database, read with distrust: read-only and immutable (nothing is
 * written beside the file, no log of it is replayed), tables only (a view could hold
 * any program), values by their stored type, and a limit on the work of a statement
 * that grows with the file, so that no database can hang its reader.
 */
#pragma once

#include "base/err.h"

#include <sqlite3.h>

struct nsys_db {
	sqlite3 *sqlite;
	const char *name; /* in messages; borrowed */
	struct err *err;  /* borrowed, may be NULL */
	uint64_t bytes;	  /* of the file */
	uint64_t steps_left, steps_max;
};

/*
 * Opens the regular file in path as a database called name in messages. Returns 0 or
 * -errno with a line in err: that of open(), -EINVAL (no regular file, no database),
 * -ENOMEM. name and err are borrowed until nsys_db_close(), which is fine after either.
 */
_must_check_ int nsys_db_open(struct nsys_db *db, const char *path, const char *name,
			      struct err *err);

/* The same of data[len], which is copied. */
_must_check_ int nsys_db_open_memory(struct nsys_db *db, const void *data, size_t len,
				     const char *name, struct err *err);
void nsys_db_close(struct nsys_db *db);

/* Returns 1 (a table of that name is there), 0 or -errno. Views and virtual tables are none. */
_must_check_ int nsys_db_has(struct nsys_db *db, const char *table);

/* A column to be read. Tables grow with the schema's version: what may lack is optional. */
struct nsys_column {
	const char *name;
	bool optional; /* absent: as NULL in every row */
};

/* Which rows: all, or those of one process by a column of packed ids. */
enum nsys_owner { NSYS_ROWS_ALL, NSYS_ROWS_OF_PID, NSYS_ROWS_OF_TID };

#define NSYS_ANY_PROCESS 0

struct nsys_query {
	struct nsys_db *db;
	sqlite3_stmt *statement;
	const char *table;
	const struct nsys_column *columns;
	uint64_t *bad_cnt; /* values of a wrong type; may be NULL */
};

/*
 * Selects columns[cnt] of a table, in the order of its rows. owner, process: rows of that
 * globalPid; all where the table lacks the column or process is NSYS_ANY_PROCESS. Returns
 * 1; 0 when there is no such table; -EINVAL when a column that must be there is not;
 * -errno. nsys_query_close() is fine after any.
 */
_must_check_ int nsys_query_open(struct nsys_query *query, struct nsys_db *db, const char *table,
				 const struct nsys_column *columns, size_t cnt,
				 enum nsys_owner owner, int64_t process);

/* A fixed statement with one parameter. table: for messages. Returns 0 or -errno. */
_must_check_ int nsys_query_open_text(struct nsys_query *query, struct nsys_db *db,
				      const char *table, const char *text, int64_t parameter);
void nsys_query_close(struct nsys_query *query);

/* The next row: 1, 0 behind the last one, or -errno with a line in the database's err. */
_must_check_ int nsys_query_next(struct nsys_query *query);

/* Whether the row has an integer (a number) there; NULL is absent, other types are counted. */
bool nsys_query_int(struct nsys_query *query, int column, int64_t *ret);
bool nsys_query_number(struct nsys_query *query, int column, double *ret);

/* The text or blob there, NULL when there is none. Borrowed until the next row. */
const char *nsys_query_text(struct nsys_query *query, int column, size_t *ret_len);
const uint8_t *nsys_query_blob(struct nsys_query *query, int column, size_t *ret_len);
