/* SPDX-License-Identifier: Apache-2.0 */
#include "store/database_parts.h"

#include <string.h>

struct cell cell_integer(int64_t value)
{
	return (struct cell){ .type = CELL_INTEGER, .integer = value };
}

struct cell cell_real(double value)
{
	return (struct cell){ .type = CELL_REAL, .real = value };
}

struct cell cell_text(const char *text)
{
	if (text == NULL)
		return (struct cell){ .type = CELL_NULL };
	return (struct cell){ .type = CELL_TEXT, .data = text, .len = strlen(text) };
}

struct cell cell_bytes(const void *data, size_t len)
{
	return (struct cell){ .type = CELL_BYTES, .data = data, .len = len };
}

const char *cell_borrow(const struct cell *cell)
{
	return cell->type == CELL_TEXT ? cell->data : "";
}

static bool is_server_address(const char *where)
{
	return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

int database_open(const char *where, bool read_only, struct database **ret, struct err *err)
{
	const struct database_kind *kind =
		is_server_address(where) ? &database_postgres : &database_sqlite;
	int r = kind->open(where, read_only, ret, err);

	if (r == 0)
		(*ret)->kind = kind;
	return r;
}

struct database *database_close(struct database *database)
{
	if (database != NULL)
		database->kind->close(database);
	return NULL;
}

int database_run(struct database *database, const struct statement *statement, struct err *err)
{
	return database->kind->run(database, statement, err);
}

int database_do(struct database *database, const char *sql, struct err *err)
{
	return database_run(database, &(struct statement){ .sql = sql }, err);
}

static int take_integer(void *arg, const struct cell *cells, size_t cnt)
{
	if (cnt == 1 && cells[0].type == CELL_INTEGER)
		*(int64_t *)arg = cells[0].integer;
	return 0;
}

int database_integer(struct database *database, const char *sql, int64_t *ret, struct err *err)
{
	return database_run(database,
			    &(struct statement){ .sql = sql, .on_row = take_integer, .arg = ret },
			    err);
}

int database_begin(struct database *database, struct err *err)
{
	return database_do(database, database_is_server(database) ? "BEGIN" : "BEGIN IMMEDIATE",
			   err);
}

int database_bytes(struct database *database, int64_t *ret, struct err *err)
{
	return database_integer(database, database->kind->bytes_sql, ret, err);
}

bool database_is_server(const struct database *database)
{
	return database->kind == &database_postgres;
}
