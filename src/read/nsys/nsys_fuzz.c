/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any database gives traces that keep the promises of event.h, or an error. With
 * FUZZ_REPLAY a program that reads a good export in which some bytes were changed, or all
 * values of a column, always the same ones: any compiler, also under sanitizers.
 */
#include "read/nsys/nsys.h"

#include "model/event_promises.h"
#include "read/nsys/test_nsys.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "nsys_fuzz: %s\n", what);
	abort();
}

static void check_trace(void *to, const struct trace *trace)
{
	const char *broken = event_promise_broken(trace);

	++*(size_t *)to;
	check(broken == NULL, broken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct nsys_options options = { .max_memory_bytes = 64 << 20 };
	struct err err = { "" };
	size_t cnt = 0;
	int ret = nsys_read_memory(data, len, "fuzz", &options, check_trace, &cnt, &err);

	check(ret <= 0, "positive result");
	check((ret == 0) == (err.text[0] == '\0'),
	      "an error without a line, or a line without one");
	check(ret < 0 || cnt > 0, "no worker and no error");
	return 0;
}

#ifdef FUZZ_REPLAY

static uint64_t random_state = 1;

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void change(uint8_t *data, size_t *len)
{
	size_t changes = 1 + rnd() % 6;

	for (size_t i = 0; i < changes; i++) {
		size_t at = rnd() % *len;

		if (rnd() % 2 == 0)
			data[at] = (uint8_t)rnd();
		else
			data[at] ^= (uint8_t)(1u << rnd() % 8);
	}
	if (rnd() % 16 == 0)
		*len = rnd() % (*len + 1);
}

static void read_changed_bytes(size_t cnt)
{
	size_t len;
	uint8_t *bytes = testdb_make(DB_ALL, &len), *copy = malloc(len + 1);

	check(copy != NULL, "out of memory");
	(void)LLVMFuzzerTestOneInput(bytes, len);
	for (size_t i = 0; i < cnt; i++) {
		size_t copy_len = len;

		memcpy(copy, bytes, len);
		change(copy, &copy_len);
		(void)LLVMFuzzerTestOneInput(copy, copy_len);
	}
	free(copy);
	sqlite3_free(bytes);
}

/* What no exporter writes into a column, and what it may leave out. */
static const char *const changes[] = {
	"UPDATE \"%s\" SET \"%s\" = NULL",
	"UPDATE \"%s\" SET \"%s\" = 'x'",
	"UPDATE \"%s\" SET \"%s\" = CAST(X'ff00fe' AS TEXT)",
	"UPDATE \"%s\" SET \"%s\" = X'00'",
	"UPDATE \"%s\" SET \"%s\" = 9223372036854775807",
	"UPDATE \"%s\" SET \"%s\" = -9223372036854775807 - 1",
	"UPDATE \"%s\" SET \"%s\" = 9223372036854775807 - random() %% 3",
	"UPDATE \"%s\" SET \"%s\" = 1e308",
	"UPDATE \"%s\" SET \"%s\" = -1",
	"UPDATE \"%s\" SET \"%s\" = rowid",
	"ALTER TABLE \"%s\" RENAME COLUMN \"%s\" TO other",
};

/* A value of rowid or id that there already is fails, and nothing changes. */
static void read_changed(sqlite3 *db, const char *table, const char *column, const char *how)
{
	sqlite3_int64 len = 0;
	unsigned char *bytes;
	char *sql = sqlite3_mprintf(how, table, column);

	check(sqlite3_exec(db, "SAVEPOINT s", NULL, NULL, NULL) == SQLITE_OK, "savepoint");
	(void)sqlite3_exec(db, sql, NULL, NULL, NULL);
	bytes = sqlite3_serialize(db, "main", &len, 0);
	check(bytes != NULL, "no bytes");
	(void)LLVMFuzzerTestOneInput(bytes, (size_t)len);
	sqlite3_free(bytes);
	check(sqlite3_exec(db, "ROLLBACK TO s; RELEASE s", NULL, NULL, NULL) == SQLITE_OK,
	      "rollback");
	sqlite3_free(sql);
}

static sqlite3 *make_all(void)
{
	sqlite3 *db;

	check(sqlite3_open(":memory:", &db) == SQLITE_OK &&
		      sqlite3_exec(db, "PRAGMA page_size = 512;" DB_ALL, NULL, NULL, NULL) ==
			      SQLITE_OK,
	      "no database");
	return db;
}

static size_t read_changed_columns(void)
{
	sqlite3 *db = make_all(), *good = make_all();
	sqlite3_stmt *columns;
	size_t cnt = 0;

	check(sqlite3_prepare_v2(good,
				 "SELECT s.name, c.name FROM sqlite_schema s "
				 "JOIN pragma_table_info(s.name) c WHERE s.type = 'table'",
				 -1, &columns, NULL) == SQLITE_OK,
	      "no columns");
	while (sqlite3_step(columns) == SQLITE_ROW) {
		char *table = sqlite3_mprintf("%s", sqlite3_column_text(columns, 0));
		char *column = sqlite3_mprintf("%s", sqlite3_column_text(columns, 1));

		for (size_t i = 0; i < ARRAY_SIZE(changes); i++, cnt++)
			read_changed(db, table, column, changes[i]);
		sqlite3_free(table);
		sqlite3_free(column);
	}
	(void)sqlite3_finalize(columns);
	(void)sqlite3_close(db);
	(void)sqlite3_close(good);
	return cnt;
}

int main(int argc, char **argv)
{
	size_t cnt = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

	random_state = argc > 2 ? strtoul(argv[2], NULL, 10) | 1 : 1;
	read_changed_bytes(cnt);
	cnt += read_changed_columns();
	printf("%zu databases\n", cnt + 1);
	return 0;
}

#endif
