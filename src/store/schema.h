/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the store and their versions: docs/store.md has one line for each column. */
#pragma once

#include "store/sqldatabase.h"

#define SCHEMA_VERSION 2

/*
 * Makes the tables, or brings those of an older version forward, in one transaction. A newer version
 * is -EPROTO. Returns 0 or -errno with a line in err.
 */
_must_check_ int schema_prepare(struct database *database, struct err *err);

/* For readers: that the tables are there and not of a newer version; -ENODATA: no tables. */
_must_check_ int schema_check(struct database *database, struct err *err);

/* The version of the tables that are there; 0: none. Returns 0 or -errno with a line in err. */
_must_check_ int schema_version(struct database *database, int64_t *ret, struct err *err);
