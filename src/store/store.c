/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/base.h"
#include "store/schema.h"
#include "store/store_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <zlib.h>

/* Of one document or fingerprint. */
#define PLAIN_BYTES_MAX (256LL << 20)

int store_draw_key(char ret[static STORE_KEY_BYTES])
{
	unsigned char bytes[(STORE_KEY_BYTES - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static const char *set_or_null(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

void store_place(const char *given, char *ret, size_t size)
{
	const char *state = set_or_null("XDG_STATE_HOME"), *home = set_or_null("HOME");

	if (given == NULL)
		given = set_or_null("PERFTRACKER_STORE");
	ret[0] = '\0';
	if (given != NULL)
		(void)snprintf(ret, size, "%s", strcmp(given, "none") != 0 ? given : "");
	else if (state != NULL)
		(void)snprintf(ret, size, "%s/perftracker/store.db", state);
	else if (home != NULL)
		(void)snprintf(ret, size, "%s/.local/state/perftracker/store.db", home);
}

/* Makes the folders above path that are missing; what fails shows when the file is opened. */
static void make_folders(const char *path)
{
	char folder[4096];

	if ((size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder))
		return;
	for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(folder, 0700);
		*slash = '/';
	}
}

static int open_database(const char *where, bool read_only, struct store **ret, struct err *err)
{
	struct store *store = calloc(1, sizeof(*store));
	int r;

	if (store == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = database_open(where, read_only, &store->database, err);
	if (r == 0)
		r = read_only ? schema_check(store->database, err)
			      : schema_prepare(store->database, err);
	if (r < 0) {
		(void)store_close(store);
		return r;
	}
	*ret = store;
	return 0;
}

int store_open(const char *where, struct store **ret, struct err *err)
{
	if (strstr(where, "://") == NULL)
		make_folders(where);
	return open_database(where, false, ret, err);
}

int store_open_to_read(const char *where, struct store **ret, struct err *err)
{
	return open_database(where, true, ret, err);
}

int store_relax(struct store *store, struct err *err)
{
	if (database_is_server(store->database))
		return 0;
	return database_do(store->database, "PRAGMA synchronous = OFF", err);
}

struct store *store_close(struct store *store)
{
	if (store != NULL)
		(void)database_close(store->database);
	free(store);
	return NULL;
}

int store_begin(struct store *store, struct err *err)
{
	return database_begin(store->database, err);
}

int store_commit(struct store *store, struct err *err)
{
	return database_do(store->database, "COMMIT", err);
}

void store_rollback(struct store *store)
{
	struct err ignored;

	(void)!database_do(store->database, "ROLLBACK", &ignored);
}

int store_pack(const void *data, size_t len, char **ret, size_t *ret_len)
{
	uLongf packed = compressBound((uLong)len);
	char *bytes = malloc(packed);

	if (bytes == NULL)
		return -ENOMEM;
	if (compress2((Bytef *)bytes, &packed, data, (uLong)len, 6) != Z_OK) {
		free(bytes);
		return -ENOMEM;
	}
	*ret = bytes;
	*ret_len = packed;
	return 0;
}

int store_unpack(const struct cell *packed, int64_t plain_bytes, char **ret)
{
	uLongf len = (uLongf)plain_bytes;
	char *bytes;

	if (packed->type != CELL_BYTES || plain_bytes < 0 || plain_bytes > PLAIN_BYTES_MAX)
		return -EBADMSG;
	bytes = malloc(len + 1);
	if (bytes == NULL)
		return -ENOMEM;
	if (uncompress((Bytef *)bytes, &len, packed->data, (uLong)packed->len) != Z_OK ||
	    len != (uLongf)plain_bytes) {
		free(bytes);
		return -EBADMSG;
	}
	bytes[len] = '\0';
	*ret = bytes;
	return 0;
}
