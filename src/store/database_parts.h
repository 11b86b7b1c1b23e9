/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of database does; struct database is its first member. */
#pragma once

#include "store/sqldatabase.h"

struct database_kind {
	int (*open)(const char *where, bool read_only, struct database **ret, struct err *err);
	void (*close)(struct database *database);
	int (*run)(struct database *database, const struct statement *statement, struct err *err);
	const char *bytes_sql; /* one row, one integer */
};

struct database {
	const struct database_kind *kind;
};

extern const struct database_kind database_sqlite, database_postgres;
