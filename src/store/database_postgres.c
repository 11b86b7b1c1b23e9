/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpq is opened at run time: only who uses a server needs it. Parameters and results go as text;
 * bytes as bytea's "\x..." form.
 */
#include "base/base.h"
#include "base/symbols.h"
#include "base/text/clean.h"
#include "store/database_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of libpq-fe.h and catalog/pg_type_d.h; both are stable since PostgreSQL 7. */
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
enum { CONNECTION_OK = 0, PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2 };
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_FLOAT8 = 701, OID_NUMERIC = 1700 };
#define PG_DIAG_SQLSTATE 'C'

#define COLUMNS_MAX 32u
#define PARAMS_MAX 32u

struct libpq {
	PGconn *(*connect)(const char *conninfo);
	void (*finish)(PGconn *conn);
	int (*status)(const PGconn *conn);
	void (*reset)(PGconn *conn);
	char *(*error)(const PGconn *conn);
	PGresult *(*exec)(PGconn *conn, const char *sql, int cnt, const unsigned *types,
			  const char *const *values, const int *lengths, const int *formats,
			  int result_format);
	int (*result_status)(const PGresult *result);
	char *(*result_field)(const PGresult *result, int field);
	void (*clear)(PGresult *result);
	int (*rows)(const PGresult *result);
	int (*columns)(const PGresult *result);
	unsigned (*type)(const PGresult *result, int column);
	char *(*value)(const PGresult *result, int row, int column);
	int (*length)(const PGresult *result, int row, int column);
	int (*is_null)(const PGresult *result, int row, int column);
};

struct postgres_database {
	struct database database;
	struct libpq pq;
	PGconn *conn;
};

static int load(struct libpq *pq, struct err *err)
{
	const struct symbol table[] = {
		{ &pq->connect, "PQconnectdb" },
		{ &pq->finish, "PQfinish" },
		{ &pq->status, "PQstatus" },
		{ &pq->reset, "PQreset" },
		{ &pq->error, "PQerrorMessage" },
		{ &pq->exec, "PQexecParams" },
		{ &pq->result_status, "PQresultStatus" },
		{ &pq->result_field, "PQresultErrorField" },
		{ &pq->clear, "PQclear" },
		{ &pq->rows, "PQntuples" },
		{ &pq->columns, "PQnfields" },
		{ &pq->type, "PQftype" },
		{ &pq->value, "PQgetvalue" },
		{ &pq->length, "PQgetlength" },
		{ &pq->is_null, "PQgetisnull" },
	};
	void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (library == NULL)
		return err_set(err, ENOPKG,
			       "PostgreSQL needs libpq, which is not installed: on Debian and "
			       "Ubuntu `apt-get install libpq5`");
	missing = symbols_find(library, table, ARRAY_SIZE(table));
	return missing == NULL ? 0 : err_set(err, ENOPKG, "libpq has no %s", missing);
}

/* One line: libpq's messages end with a newline, and may have several. */
static int fail(const struct postgres_database *db, int error, struct err *err)
{
	const char *text = db->conn != NULL ? db->pq.error(db->conn) : "out of memory";

	return err_set(err, error, "PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
}

static int postgres_open(const char *where, bool read_only, struct database **ret, struct err *err)
{
	struct postgres_database *db = calloc(1, sizeof(*db));
	int r;

	(void)read_only; /* the role's rights decide */
	if (db == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = load(&db->pq, err);
	if (r == 0) {
		db->conn = db->pq.connect(where);
		if (db->pq.status(db->conn) != CONNECTION_OK)
			r = fail(db, ECONNREFUSED, err);
	}
	if (r < 0) {
		if (db->conn != NULL)
			db->pq.finish(db->conn);
		free(db);
		return r;
	}
	*ret = &db->database;
	return 0;
}

static void postgres_close(struct database *database)
{
	struct postgres_database *db = (struct postgres_database *)database;

	db->pq.finish(db->conn);
	free(db);
}

/* --- parameters --- */

/* Where a parameter's text begins, is_bytes: or that it is given as it is. */
struct params {
	const char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX], formats[PARAMS_MAX];
	unsigned types[PARAMS_MAX];
	char numbers[PARAMS_MAX][32];
	struct str texts[PARAMS_MAX];
};

static void fill_param(struct params *params, size_t i, const struct cell *cell)
{
	switch (cell->type) {
	case CELL_INTEGER:
		(void)snprintf(params->numbers[i], 32, "%lld", (long long)cell->integer);
		params->values[i] = params->numbers[i];
		params->types[i] = OID_INT8;
		break;
	case CELL_REAL:
		(void)snprintf(params->numbers[i], 32, "%.17g", cell->real);
		params->values[i] = params->numbers[i];
		params->types[i] = OID_FLOAT8;
		break;
	case CELL_TEXT:
		/* A server refuses what is not UTF-8: file names and commands may be anything. */
		clean_append_utf8(&params->texts[i], cell->data);
		params->values[i] = str_borrow(&params->texts[i]);
		break;
	case CELL_BYTES:
		params->values[i] = cell->data != NULL ? cell->data : "";
		params->lengths[i] = (int)cell->len;
		params->formats[i] = 1; /* binary */
		params->types[i] = OID_BYTEA;
		break;
	case CELL_NULL:
		break;
	}
}

/* --- results --- */

static int digit_of(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* "\x68690a" in place. Returns the number of bytes. */
static size_t decode_bytes(char *text, size_t len)
{
	size_t cnt = len < 2 ? 0 : (len - 2) / 2;

	for (size_t i = 0; i < cnt; i++)
		text[i] = (char)(digit_of(text[2 + 2 * i]) << 4 | digit_of(text[3 + 2 * i]));
	return cnt;
}

static struct cell cell_of(const struct libpq *pq, const PGresult *result, int row, int column)
{
	char *text = pq->value(result, row, column);
	size_t len = (size_t)pq->length(result, row, column);

	if (pq->is_null(result, row, column))
		return (struct cell){ CELL_NULL };
	switch (pq->type(result, column)) {
	case OID_INT4:
	case OID_INT8:
	case OID_NUMERIC: /* the sum of BIGINTs */
		return cell_integer(strtoll(text, NULL, 10));
	case OID_FLOAT8:
		return cell_real(strtod(text, NULL));
	case OID_BYTEA:
		return cell_bytes(text, decode_bytes(text, len));
	default:
		return (struct cell){ .type = CELL_TEXT, .data = text, .len = len };
	}
}

static int give_rows(const struct libpq *pq, const PGresult *result,
		     const struct statement *statement)
{
	size_t cnt = MIN((size_t)pq->columns(result), (size_t)COLUMNS_MAX);
	int stop = 0;

	for (int row = 0; row < pq->rows(result) && stop == 0; row++) {
		struct cell cells[COLUMNS_MAX];

		for (size_t i = 0; i < cnt; i++)
			cells[i] = cell_of(pq, result, row, (int)i);
		stop = statement->on_row(statement->arg, cells, cnt);
	}
	return stop;
}

/* "53100" disk full; "40..." and "55P03" a conflict with another writer. */
static int error_of(const struct libpq *pq, const PGresult *result)
{
	const char *state = pq->result_field(result, PG_DIAG_SQLSTATE);

	if (state == NULL)
		return ECONNRESET;
	if (strcmp(state, "53100") == 0)
		return ENOSPC;
	if (strncmp(state, "40", 2) == 0 || strcmp(state, "55P03") == 0)
		return EBUSY;
	return EIO;
}

static int postgres_run(struct database *database, const struct statement *statement,
			struct err *err)
{
	struct postgres_database *db = (struct postgres_database *)database;
	struct params params = { 0 };
	PGresult *result;
	int ret = 0, status;

	if (statement->param_cnt > PARAMS_MAX)
		return err_set(err, E2BIG, "PostgreSQL: too many parameters");
	for (size_t i = 0; i < statement->param_cnt; i++)
		fill_param(&params, i, &statement->params[i]);
	/* A server that was restarted: the statement fails, the next one finds it again. */
	if (db->pq.status(db->conn) != CONNECTION_OK)
		db->pq.reset(db->conn);
	result = db->pq.exec(db->conn, statement->sql, (int)statement->param_cnt, params.types,
			     params.values, params.lengths, params.formats, 0);
	status = db->pq.result_status(result);
	if (status == PGRES_TUPLES_OK && statement->on_row != NULL)
		ret = give_rows(&db->pq, result, statement);
	else if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		ret = fail(db, error_of(&db->pq, result), err);
	db->pq.clear(result);
	for (size_t i = 0; i < statement->param_cnt; i++)
		str_done(&params.texts[i]);
	return ret;
}

const struct database_kind database_postgres = {
	.open = postgres_open,
	.close = postgres_close,
	.run = postgres_run,
	.bytes_sql = "SELECT pg_database_size(current_database())",
};
