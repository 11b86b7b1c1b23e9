/* SPDX-License-Identifier: Apache-2.0 */
#include "read/nsys/database.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Steps of SQLite's machine between two looks at the limit. */
#define STEPS_BETWEEN 10000
/* A row costs a few steps a column; none is smaller than its columns. */
#define STEPS_MIN (50u * 1000 * 1000)
#define STEPS_PER_BYTE 64u
#define MAX_VALUE_BYTES (64 << 20)
#define MAX_SCHEMA_BYTES (1 << 20)

static int count_steps(void *arg)
{
	struct nsys_db *db = arg;

	if (db->steps_left < STEPS_BETWEEN)
		return 1;
	db->steps_left -= STEPS_BETWEEN;
	return 0;
}

/* What SQLite complains of, as an errno. */
static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_INTERRUPT:
	case SQLITE_TOOBIG:
		return EFBIG;
	case SQLITE_IOERR:
		return EIO;
	default:
		return EBADMSG;
	}
}

static int fail(struct nsys_db *db, const char *table, int code)
{
	int number = errno_of(code);

	if (number == ENOMEM)
		return err_set(db->err, ENOMEM, "%s: out of memory", db->name);
	if ((code & 0xff) == SQLITE_INTERRUPT)
		return err_set(db->err, EFBIG,
			       "%s: table %s: expected at most %" PRIu64
			       " steps for a file of this size, found more",
			       db->name, table, db->steps_max);
	return err_set(db->err, number, "%s: table %s: expected an intact database, found: %s",
		       db->name, table, sqlite3_errmsg(db->sqlite));
}

/* What foreign schemas can do is switched off, and so is every way to write. */
static void restrict_access(struct nsys_db *db)
{
	(void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	(void)sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
	(void)sqlite3_limit(db->sqlite, SQLITE_LIMIT_SQL_LENGTH, MAX_SCHEMA_BYTES);
	(void)sqlite3_limit(db->sqlite, SQLITE_LIMIT_ATTACHED, 0);
	db->steps_max = STEPS_MIN + db->bytes * STEPS_PER_BYTE;
	db->steps_left = db->steps_max;
	sqlite3_progress_handler(db->sqlite, STEPS_BETWEEN, count_steps, db);
}

/* A first look: whether it is a database at all. */
static int check_schema(struct nsys_db *db)
{
	int code = sqlite3_exec(db->sqlite,
				"PRAGMA cell_size_check=1; PRAGMA mmap_size=0;"
				"SELECT count(*) FROM sqlite_schema",
				NULL, NULL, NULL);

	if (code == SQLITE_OK)
		return 0;
	if ((code & 0xff) == SQLITE_NOTADB)
		return err_set(db->err, EINVAL, "%s: expected an SQLite database, found none",
			       db->name);
	return fail(db, "sqlite_schema", code);
}

/* "file:PATH?...": characters that mean something in an address are escaped. */
static int make_address(const char *path, struct str *ret)
{
	str_append(ret, "file:");
	for (const char *c = path; *c != '\0'; c++) {
		if (strchr("?#%", *c) != NULL)
			str_printf(ret, "%%%02x", (unsigned int)(unsigned char)*c);
		else
			str_append_char(ret, *c);
	}
	str_append(ret, "?mode=ro&immutable=1");
	return str_error(ret);
}

/* SQLite would say "unable to open database file" to all of these. */
static int look_at_file(struct nsys_db *db, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), number = errno;

	if (fd < 0)
		return err_set(db->err, number, "%s: cannot open: %s", db->name, strerror(number));
	number = fstat(fd, &st) < 0 ? errno : 0;
	(void)close(fd);
	if (number != 0)
		return err_set(db->err, number, "%s: cannot read: %s", db->name, strerror(number));
	if (!S_ISREG(st.st_mode))
		return err_set(db->err, EINVAL, "%s: expected a regular file, found none",
			       db->name);
	db->bytes = (uint64_t)st.st_size;
	return 0;
}

static int open_file(struct nsys_db *db, const char *path)
{
	struct str address = { 0 };
	int ret = look_at_file(db, path), code;

	if (ret == 0)
		ret = make_address(path, &address);
	if (ret == 0) {
		code = sqlite3_open_v2(str_borrow(&address), &db->sqlite,
				       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
				       NULL);
		ret = code == SQLITE_OK ? 0 : fail(db, "sqlite_schema", code);
	}
	str_done(&address);
	return ret;
}

int nsys_db_open(struct nsys_db *db, const char *path, const char *name, struct err *err)
{
	int ret;

	*db = (struct nsys_db){ .name = name, .err = err };
	ret = open_file(db, path);
	if (ret < 0)
		return ret;
	restrict_access(db);
	return check_schema(db);
}

int nsys_db_open_memory(struct nsys_db *db, const void *data, size_t len, const char *name,
			struct err *err)
{
	unsigned char *copy = sqlite3_malloc64(len > 0 ? len : 1);
	int code;

	*db = (struct nsys_db){ .name = name, .err = err, .bytes = len };
	code = copy != NULL ? sqlite3_open_v2(":memory:", &db->sqlite,
					      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)
			    : SQLITE_NOMEM;
	if (code != SQLITE_OK) {
		sqlite3_free(copy);
		return err_set(err, ENOMEM, "%s: out of memory", name);
	}
	memcpy(copy, data, len);
	/* SQLite frees the copy, also when it fails. */
	code = sqlite3_deserialize(db->sqlite, "main", copy, (sqlite3_int64)len, (sqlite3_int64)len,
				   SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
	if (code != SQLITE_OK)
		return fail(db, "sqlite_schema", code);
	restrict_access(db);
	return check_schema(db);
}

void nsys_db_close(struct nsys_db *db)
{
	(void)sqlite3_close_v2(db->sqlite);
	db->sqlite = NULL;
}

static int prepare(struct nsys_query *query, const char *text)
{
	struct nsys_db *db = query->db;
	int code;

	db->steps_left = db->steps_max;
	code = sqlite3_prepare_v2(db->sqlite, text, -1, &query->statement, NULL);
	return code == SQLITE_OK ? 0 : fail(db, query->table, code);
}

int nsys_query_open_text(struct nsys_query *query, struct nsys_db *db, const char *table,
			 const char *text, int64_t parameter)
{
	int ret;

	*query = (struct nsys_query){ .db = db, .table = table };
	ret = prepare(query, text);
	if (ret == 0 && sqlite3_bind_parameter_count(query->statement) > 0)
		(void)sqlite3_bind_int64(query->statement, 1, parameter);
	return ret;
}

void nsys_query_close(struct nsys_query *query)
{
	(void)sqlite3_finalize(query->statement);
	query->statement = NULL;
}

int nsys_query_next(struct nsys_query *query)
{
	int code = sqlite3_step(query->statement);

	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : fail(query->db, query->table, code);
}

int nsys_db_has(struct nsys_db *db, const char *table)
{
	struct nsys_query query = { .db = db, .table = table };
	int ret = prepare(&query, "SELECT 1 FROM sqlite_schema WHERE name = ?1 AND type = 'table' "
				  "AND sql NOT LIKE 'create virtual%'");

	if (ret == 0) {
		(void)sqlite3_bind_text(query.statement, 1, table, -1, SQLITE_STATIC);
		ret = nsys_query_next(&query);
	}
	nsys_query_close(&query);
	return ret;
}

/* The columns that a table has, as a bit for each of columns[cnt <= 64]. */
static int find_columns(struct nsys_db *db, const char *table, const struct nsys_column *columns,
			size_t cnt, uint64_t *ret_present)
{
	struct nsys_query query = { .db = db, .table = table };
	uint64_t present = 0;
	int ret = prepare(&query, "SELECT name FROM pragma_table_info(?1)");

	if (ret == 0)
		(void)sqlite3_bind_text(query.statement, 1, table, -1, SQLITE_STATIC);
	while (ret == 0 && (ret = nsys_query_next(&query)) > 0) {
		const unsigned char *name = sqlite3_column_text(query.statement, 0);

		for (size_t i = 0; i < cnt && name != NULL; i++) {
			if (sqlite3_stricmp((const char *)name, columns[i].name) == 0)
				present |= UINT64_C(1) << i;
		}
		ret = 0;
	}
	nsys_query_close(&query);
	*ret_present = present;
	return ret;
}

static int check_columns(struct nsys_db *db, const char *table, const struct nsys_column *columns,
			 size_t cnt, uint64_t present)
{
	for (size_t i = 0; i < cnt; i++) {
		if (columns[i].optional || present & UINT64_C(1) << i)
			continue;
		return err_set(db->err, EINVAL, "%s: table %s: expected a column %s, found none",
			       db->name, table, columns[i].name);
	}
	return 0;
}

/* " WHERE ...", with the first id of the process as parameter 1. */
static int add_owner(struct nsys_db *db, const char *table, enum nsys_owner owner, struct str *text)
{
	static const struct nsys_column ids[] = { { "globalPid", true }, { "globalTid", true } };
	uint64_t present;
	int ret = find_columns(db, table, ids, ARRAY_SIZE(ids), &present);

	if (ret == 0 && owner == NSYS_ROWS_OF_PID && present & 1)
		str_append(text, " WHERE globalPid = ?1");
	if (ret == 0 && owner == NSYS_ROWS_OF_TID && present & 2)
		str_append(text, " WHERE globalTid BETWEEN ?1 AND ?1 + 16777215");
	return ret;
}

static int make_select(struct nsys_db *db, const char *table, const struct nsys_column *columns,
		       size_t cnt, struct str *text)
{
	uint64_t present;
	int ret = find_columns(db, table, columns, cnt, &present);

	if (ret == 0)
		ret = check_columns(db, table, columns, cnt, present);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < cnt; i++) {
		str_append(text, i == 0 ? "SELECT " : ", ");
		if (present & UINT64_C(1) << i)
			str_printf(text, "\"%s\"", columns[i].name);
		else
			str_append(text, "NULL");
	}
	str_printf(text, " FROM \"%s\"", table);
	return 0;
}

int nsys_query_open(struct nsys_query *query, struct nsys_db *db, const char *table,
		    const struct nsys_column *columns, size_t cnt, enum nsys_owner owner,
		    int64_t process)
{
	struct str text = { 0 };
	int ret;

	*query = (struct nsys_query){ .db = db, .table = table, .columns = columns };
	ret = nsys_db_has(db, table);
	if (ret <= 0)
		return ret;
	ret = make_select(db, table, columns, cnt, &text);
	if (ret == 0 && owner != NSYS_ROWS_ALL && process != NSYS_ANY_PROCESS)
		ret = add_owner(db, table, owner, &text);
	if (ret == 0)
		ret = str_error(&text) < 0 ? err_set(db->err, ENOMEM, "%s: out of memory", db->name)
					   : prepare(query, str_borrow(&text));
	str_done(&text);
	if (ret == 0 && sqlite3_bind_parameter_count(query->statement) > 0)
		(void)sqlite3_bind_int64(query->statement, 1, process);
	return ret < 0 ? ret : 1;
}

static bool wrong_type(struct nsys_query *query, int type)
{
	if (query->bad_cnt != NULL && type != SQLITE_NULL)
		(*query->bad_cnt)++;
	return false;
}

bool nsys_query_int(struct nsys_query *query, int column, int64_t *ret)
{
	int type = sqlite3_column_type(query->statement, column);

	if (type != SQLITE_INTEGER)
		return wrong_type(query, type);
	*ret = sqlite3_column_int64(query->statement, column);
	return true;
}

bool nsys_query_number(struct nsys_query *query, int column, double *ret)
{
	int type = sqlite3_column_type(query->statement, column);

	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		return wrong_type(query, type);
	*ret = sqlite3_column_double(query->statement, column);
	return true;
}

const char *nsys_query_text(struct nsys_query *query, int column, size_t *ret_len)
{
	int type = sqlite3_column_type(query->statement, column);
	const unsigned char *text;

	if (type != SQLITE_TEXT) {
		(void)wrong_type(query, type);
		return NULL;
	}
	text = sqlite3_column_text(query->statement, column);
	*ret_len = (size_t)sqlite3_column_bytes(query->statement, column);
	return (const char *)text;
}

const uint8_t *nsys_query_blob(struct nsys_query *query, int column, size_t *ret_len)
{
	int type = sqlite3_column_type(query->statement, column);
	const void *blob;

	if (type != SQLITE_BLOB && type != SQLITE_TEXT) {
		(void)wrong_type(query, type);
		return NULL;
	}
	blob = sqlite3_column_blob(query->statement, column);
	*ret_len = (size_t)sqlite3_column_bytes(query->statement, column);
	return blob;
}
