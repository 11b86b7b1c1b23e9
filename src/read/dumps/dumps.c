/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumps.h"

#include "base/file.h"
#include "read/dumps/dumps_parts.h"
#include "read/dumps/unpickle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096 };

void dumps_init(struct dumps *dumps)
{
	*dumps = (struct dumps){ .notes = { 0 } };
	arena_init(&dumps->arena);
}

void dumps_done(struct dumps *dumps)
{
	vec_done(&dumps->records);
	vec_done(&dumps->notes);
	arena_done(&dumps->arena);
}

static enum dump_kind kind_of_file(const char *path)
{
	char head[HEAD_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return DUMP_NONE;
	len = read(fd, head, sizeof(head));
	(void)close(fd);
	return len > 0 ? dumps_kind(head, (size_t)len) : DUMP_NONE;
}

bool dumps_is(const char *path)
{
	return kind_of_file(path) != DUMP_NONE;
}

/* --- reading --- */

static int read_pickle(const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	json_t *root;
	int error = unpickle(text->path, text->data, text->len, &root, err);

	if (error < 0)
		return error;
	error = nccldump_take(root, text, dumps, err);
	json_decref(root);
	return error;
}

static int read_json(const struct dumptext *text, enum dump_kind kind, struct dumps *dumps,
		     struct err *err)
{
	json_t *root = dumpjson_load(text, err);
	int error;

	if (root == NULL)
		return -EINVAL;
	error = kind == DUMP_NCCL_JSON ? nccldump_take(root, text, dumps, err)
				       : pyspydump_take(root, text, dumps, err);
	json_decref(root);
	return error;
}

static int read_text(const struct dumptext *text, enum dump_kind kind, struct dumps *dumps,
		     struct err *err)
{
	switch (kind) {
	case DUMP_STACKS:
		return stacksdump_read(text, dumps, err);
	case DUMP_RECORD:
		return recorddump_read(text, dumps, err);
	case DUMP_NCCL_PICKLE:
		return read_pickle(text, dumps, err);
	case DUMP_NCCL_JSON:
	case DUMP_PYSPY_JSON:
		return read_json(text, kind, dumps, err);
	case DUMP_PYSPY:
		return pyspydump_read(text, dumps, err);
	case DUMP_GDB:
		return gdbdump_read(text, dumps, err);
	case DUMP_NONE:
	default:
		return err_set(
			err, EINVAL,
			"%s: offset 0: expected a dump of a flight recorder, of stacks, py-spy or "
			"gdb, found something else",
			text->path);
	}
}

/* Drops what a file that could not be read has added. */
static void undo(struct dumps *dumps, size_t record_cnt)
{
	dumps->records.cnt = record_cnt;
}

/* A rank that the file does not say is in its name. */
static void name_ranks(struct dumps *dumps, size_t first, const char *path)
{
	if (dumps->records.cnt == first + 1 && dumps->records.data[first].rank < 0)
		dumps->records.data[first].rank = dumpname_rank(path);
}

int dumps_parse(const char *path, const char *data, size_t len, struct dumps *dumps,
		struct err *err)
{
	const size_t before = dumps->records.cnt;
	const struct dumptext text = { .path = arena_strdup(&dumps->arena, path),
				       .data = data,
				       .len = len };
	int error;

	if (text.path == NULL)
		return err_set(err, ENOMEM, "%s: out of memory", path);
	error = read_text(&text, dumps_kind(data, MIN(len, (size_t)HEAD_BYTES)), dumps, err);
	if (error < 0)
		undo(dumps, before);
	else
		name_ranks(dumps, before, path);
	return error;
}

/* How long before the file was written, at most, its rank launched its latest collective. */
static void find_quiet(struct hang_record *record, const struct stat *st)
{
	const int64_t written_ns = (int64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
	int64_t latest_ns = 0;

	for (size_t i = 0; i < record->entered_cnt; i++)
		latest_ns = MAX(latest_ns, record->entered[i].time_ns);
	if (latest_ns > 0 && latest_ns < written_ns)
		record->quiet_ns = written_ns - latest_ns;
}

int dumps_read(const char *path, struct dumps *dumps, struct err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const size_t before = dumps->records.cnt;
	struct stat st = { .st_mtim = { 0 } };
	char *data = NULL;
	size_t len = 0;
	int error;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	(void)fstat(fd, &st); /* without it the time is unknown */
	error = file_read_whole(path, fd, DUMPS_BYTES_MAX, &data, &len, err);
	(void)close(fd);
	if (error == 0)
		error = dumps_parse(path, data, len, dumps, err);
	for (size_t i = before; i < dumps->records.cnt; i++)
		find_quiet(&dumps->records.data[i], &st);
	free(data);
	return error;
}
