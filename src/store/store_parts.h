/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store, shared by store.c, store_put.c, store_list.c and store_prune.c. */
#pragma once

#include "base/base.h"
#include "store/sqldatabase.h"
#include "store/store.h"

struct store {
	struct database *database;
};

/* Runs sql with the parameters of the array literal params. */
#define store_run(store, text, err, ...)                                                         \
	database_run(                                                                            \
		(store)->database,                                                               \
		&(struct statement){ .sql = (text),                                              \
				     .params = (const struct cell[]){ __VA_ARGS__ },             \
				     .param_cnt = sizeof((const struct cell[]){ __VA_ARGS__ }) / \
						  sizeof(struct cell) },                         \
		err)

/* Unpacks what store_pack() made. Returns 0, -EBADMSG, or -ENOMEM; the caller frees *ret. */
_must_check_ int store_unpack(const struct cell *packed, int64_t plain_bytes, char **ret);
_must_check_ int store_pack(const void *data, size_t len, char **ret, size_t *ret_len);
