/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SQL database, SQLite or PostgreSQL, by one call for all statements. Statements are written
 * in the language that both share, with parameters $1, $2, ... used in this order.
 * Source: sqlite.org/lang.html, PostgreSQL 15 documentation, chapter 34 (libpq).
 */
#pragma once

#include "base/err.h"

enum cell_type { CELL_NULL, CELL_INTEGER, CELL_REAL, CELL_TEXT, CELL_BYTES };

/* A parameter or a result. data of CELL_TEXT ends with NUL, which len does not count. */
struct cell {
	enum cell_type type;
	int64_t integer;
	double real;
	const void *data; /* borrowed; of a result until the handler returns */
	size_t len;
};

struct cell cell_integer(int64_t value);
struct cell cell_real(double value);
struct cell cell_text(const char *text); /* NULL: CELL_NULL */
struct cell cell_bytes(const void *data, size_t len);

/* The value as text, "" for others than CELL_TEXT; borrowed. */
const char *cell_borrow(const struct cell *cell);

/* Takes one row of a result. Returns 0, or -errno to end the query. */
typedef int (*database_row_fn)(void *arg, const struct cell *cells, size_t cnt);

struct statement {
	const char *sql;
	const struct cell *params;
	size_t param_cnt;
	database_row_fn on_row; /* NULL: rows are left out */
	void *arg;
};

struct database;

/*
 * where: "postgresql://..." (what libpq takes), else the path of an SQLite file.
 * read_only: nothing is made; a missing file is -ENOENT. Returns 0 or -errno with a line in err.
 */
_must_check_ int database_open(const char *where, bool read_only, struct database **ret,
			       struct err *err);
struct database *database_close(struct database *database);

/*
 * Runs one statement. Returns 0, what on_row returned, or -errno with a line in err: -EBUSY when
 * another process held the database for too long, -ENOSPC, -EUCLEAN when the file is damaged, -EIO.
 */
_must_check_ int database_run(struct database *database, const struct statement *statement,
			      struct err *err);

/* The same for a statement without parameters and rows. */
_must_check_ int database_do(struct database *database, const char *sql, struct err *err);

/* Runs a statement without parameters; *ret is the integer of its last row, as it was without one. */
_must_check_ int database_integer(struct database *database, const char *sql, int64_t *ret,
				  struct err *err);

/* Begins a transaction that writes: on SQLite it waits for other writers now, not in its middle. */
_must_check_ int database_begin(struct database *database, struct err *err);

/* Bytes that the database takes on disk, without what is free in it. Returns 0 or -errno. */
_must_check_ int database_bytes(struct database *database, int64_t *ret, struct err *err);

bool database_is_server(const struct database *database); /* PostgreSQL */
