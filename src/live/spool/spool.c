/* SPDX-License-Identifier: Apache-2.0 */
#include "live/spool/spool.h"

#include "base/file.h"
#include "base/vec.h"
#include "format/spoolfile/spoolfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SUFFIX ".spool"
#define FILE_PART 8u /* of the limit, when another file begins */

/* A torn file may have had numbers that are not known: the next one is above all of them. */
#define NUMBERS_APART (UINT64_C(1) << 20)
#define NUMBER_MAX (UINT64_MAX / 2)

struct file {
	uint64_t first; /* its name: the number that came next when it was made */
	uint64_t bytes;
	size_t waiting; /* of its records */
	int fd;		/* of the last one, if it is written to; else -1 */
};

struct record {
	uint64_t number, file, off;
	size_t len;
};

struct spool {
	struct spool_setup setup;
	char dir[512];
	int lock_fd;
	uint64_t id, next;
	VEC(struct file) files;	    /* the oldest first */
	VEC(struct record) records; /* that wait, by number */
	uint64_t bytes, dropped, torn, foreign;
};

/* --- files --- */

static void path_of(const struct spool *spool, uint64_t first, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/%016" PRIx64 SUFFIX, spool->dir, first);
}

static struct file *find_file(struct spool *spool, uint64_t first)
{
	vec_foreach(file, &spool->files) {
		if (file->first == first)
			return file;
	}
	return NULL;
}

static struct record *find_record(const struct spool *spool, uint64_t number)
{
	size_t low = 0, high = spool->records.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spool->records.data[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < spool->records.cnt && spool->records.data[low].number == number
		       ? &spool->records.data[low]
		       : NULL;
}

static void forget_record(struct spool *spool, struct record *record)
{
	size_t at = (size_t)(record - spool->records.data);
	struct file *file = find_file(spool, record->file);

	if (file != NULL)
		file->waiting--;
	memmove(record, record + 1, (spool->records.cnt - at - 1) * sizeof(*record));
	spool->records.cnt--;
}

static void remove_oldest(struct spool *spool)
{
	struct file *file = &spool->files.data[0];
	char path[600];

	path_of(spool, file->first, path, sizeof(path));
	if (file->fd >= 0)
		(void)close(file->fd);
	(void)unlink(path);
	spool->bytes -= file->bytes;
	memmove(file, file + 1, (spool->files.cnt - 1) * sizeof(*file));
	spool->files.cnt--;
}

static void drop_record(struct spool *spool, struct record *record)
{
	uint64_t number = record->number;
	_cleanup_free_ char *data = NULL;
	size_t len = 0;
	struct err err;

	spool->dropped++;
	if (spool->setup.drop == NULL || spool_read(spool, number, &data, &len, &err) < 0)
		data = NULL;
	forget_record(spool, record);
	if (spool->setup.drop != NULL)
		spool->setup.drop(spool->setup.arg, number, data, len);
}

static void drop_oldest(struct spool *spool)
{
	uint64_t first = spool->files.data[0].first;

	while (spool->records.cnt > 0 && spool->records.data[0].file == first)
		drop_record(spool, &spool->records.data[0]);
	remove_oldest(spool);
}

/* The oldest files, as far as none of their records waits; not the one that is written to. */
static void remove_done(struct spool *spool)
{
	while (spool->files.cnt > 0 && spool->files.data[0].waiting == 0 &&
	       spool->files.data[0].fd < 0)
		remove_oldest(spool);
}

static bool is_writable(const struct spool *spool)
{
	return spool->files.cnt > 0 && spool->files.data[spool->files.cnt - 1].fd >= 0;
}

static void retire_last(struct spool *spool)
{
	struct file *last;

	if (!is_writable(spool))
		return;
	last = &spool->files.data[spool->files.cnt - 1];
	(void)close(last->fd);
	last->fd = -1;
}

static int begin_file(struct spool *spool, struct err *err)
{
	struct file file = { .first = spool->next, .bytes = sizeof(struct spoolfile_head) };
	struct spoolfile_head head;
	char path[600];
	int ret;

	retire_last(spool);
	while (find_file(spool, file.first) != NULL) /* of one without a record */
		file.first = ++spool->next;
	path_of(spool, file.first, path, sizeof(path));
	file.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file.fd < 0)
		return err_set(err, errno, "%s: cannot make a file: %s", path, strerror(errno));
	spoolfile_head(spool->id, &head);
	ret = file_write_all(file.fd, &head, sizeof(head));
	if (ret == 0)
		ret = vec_push(&spool->files, file);
	if (ret < 0) {
		(void)close(file.fd);
		(void)unlink(path);
		return err_set(err, -ret, "%s: cannot write: %s", path, strerror(-ret));
	}
	spool->bytes += file.bytes;
	return 0;
}

/* Appends to the last file. A failure leaves it as long as it was, or retires it. */
static int append(struct spool *spool, const struct spoolfile_mark *mark, const void *data,
		  struct err *err)
{
	struct file *file = &spool->files.data[spool->files.cnt - 1];
	struct iovec parts[] = { { (void *)(uintptr_t)mark, sizeof(*mark) },
				 { (void *)(uintptr_t)data, (size_t)mark->len } };
	size_t whole = sizeof(*mark) + (size_t)mark->len;
	ssize_t len = pwritev(file->fd, parts, mark->len > 0 ? 2 : 1, (off_t)file->bytes);
	int error = len < 0 ? errno : ENOSPC; /* a part was written: the rest has no room */

	if (len != (ssize_t)whole) {
		if (ftruncate(file->fd, (off_t)file->bytes) != 0)
			retire_last(spool);
		return err_set(err, error, "%s: cannot write %zu bytes: %s", spool->dir, whole,
			       strerror(error));
	}
	(void)sync_file_range(file->fd, (off_t)file->bytes, (off_t)whole, SYNC_FILE_RANGE_WRITE);
	file->bytes += whole;
	spool->bytes += whole;
	return 0;
}

static int prepare_file(struct spool *spool, size_t need, struct err *err)
{
	uint64_t part = spool->setup.bytes_max / FILE_PART;

	if (!is_writable(spool) || spool->files.data[spool->files.cnt - 1].bytes + need > part) {
		int ret = begin_file(spool, err);

		if (ret < 0)
			return ret;
	}
	while (spool->files.cnt > 1 && spool->bytes + need > spool->setup.bytes_max)
		drop_oldest(spool);
	return 0;
}

/* --- records --- */

int spool_add(struct spool *spool, const void *data, size_t len, uint64_t *ret_number,
	      struct err *err)
{
	struct record record = { .len = len };
	struct spoolfile_mark mark;
	struct file *file;
	int ret;

	if (len > spool->setup.bytes_max / SPOOL_RECORD_PART)
		return err_set(err, E2BIG,
			       "%s: expected a record of at most %" PRIu64 " bytes, found %zu",
			       spool->dir, spool->setup.bytes_max / SPOOL_RECORD_PART, len);
	if (vec_reserve(&spool->records, spool->records.cnt + 1) < 0)
		return err_set(err, ENOMEM, "out of memory");
	ret = prepare_file(spool, sizeof(mark) + len, err);
	if (ret < 0)
		return ret;
	record.number = spool->next;
	spoolfile_mark(spool->id, SPOOLFILE_DATA, record.number, data, len, &mark);
	file = &spool->files.data[spool->files.cnt - 1];
	record.file = file->first;
	record.off = file->bytes + sizeof(mark);
	ret = append(spool, &mark, data, err);
	if (ret < 0)
		return ret;
	file->waiting++;
	spool->records.data[spool->records.cnt++] = record; /* the room was made above */
	spool->next++;
	*ret_number = record.number;
	return 0;
}

static int read_at(const struct spool *spool, const struct record *record, char **ret,
		   struct err *err)
{
	size_t whole = sizeof(struct spoolfile_mark) + record->len, at = 0;
	_cleanup_free_ char *data = malloc(whole);
	struct spoolfile_record found;
	char path[600];
	ssize_t len;
	int fd, r;

	path_of(spool, record->file, path, sizeof(path));
	fd = data != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return err_set(err, data == NULL ? ENOMEM : errno, "%s: %s", path,
			       strerror(data == NULL ? ENOMEM : errno));
	len = pread(fd, data, whole, (off_t)(record->off - sizeof(struct spoolfile_mark)));
	(void)close(fd);
	if (len != (ssize_t)whole)
		return err_set(err, EBADMSG, "%s: expected record %" PRIu64 ", found its end", path,
			       record->number);
	r = spoolfile_next(path, data, whole, spool->id, &at, &found, err);
	if (r != 1 || found.number != record->number || found.len != record->len)
		return r < 0 ? r : err_set(err, EBADMSG, "%s: another record", path);
	memmove(data, data + sizeof(struct spoolfile_mark), record->len);
	*ret = take_ptr(data);
	return 0;
}

int spool_read(struct spool *spool, uint64_t number, char **ret, size_t *ret_len, struct err *err)
{
	const struct record *record = find_record(spool, number);
	int r;

	if (record == NULL)
		return err_set(err, ENOENT, "%s: record %" PRIu64 " is not there", spool->dir,
			       number);
	r = read_at(spool, record, ret, err);
	if (r == 0)
		*ret_len = record->len;
	return r;
}

void spool_finish(struct spool *spool, uint64_t number)
{
	struct record *record = find_record(spool, number);
	struct spoolfile_mark mark;
	struct err err;

	if (record == NULL)
		return;
	forget_record(spool, record);
	/* Without room for the mark the record is sent again after a restart, which does no harm. */
	spoolfile_mark(spool->id, SPOOLFILE_DONE, number, "", 0, &mark);
	if (is_writable(spool) || (spool->records.cnt > 0 && begin_file(spool, &err) == 0))
		(void)!append(spool, &mark, NULL, &err);
	remove_done(spool);
}

uint64_t spool_after(const struct spool *spool, uint64_t number)
{
	vec_foreach(record, &spool->records) {
		if (record->number > number)
			return record->number;
	}
	return 0;
}

uint64_t spool_id(const struct spool *spool)
{
	return spool->id;
}

struct spool_stats spool_stats(const struct spool *spool)
{
	return (struct spool_stats){ .waiting = spool->records.cnt,
				     .bytes = spool->bytes,
				     .dropped = spool->dropped,
				     .torn = spool->torn,
				     .foreign = spool->foreign };
}

/* --- what an earlier process left --- */

static int take_record(struct spool *spool, struct file *file, const struct spoolfile_record *found)
{
	struct record record = {
		.number = found->number, .file = file->first, .off = found->off, .len = found->len
	};
	struct record *done;

	if (found->number >= NUMBER_MAX) {
		spool->torn++;
		return 0;
	}
	spool->next = MAX(spool->next, found->number + 1);
	if (found->kind == SPOOLFILE_DONE) {
		done = find_record(spool, found->number);
		if (done != NULL && done->file == file->first)
			file->waiting--; /* it is not in the list of files yet */
		if (done != NULL)
			forget_record(spool, done);
		return 0;
	}
	/* Numbers grow: a lesser one is not of this spool, whatever its checksums say. */
	if (spool->records.cnt > 0 &&
	    spool->records.data[spool->records.cnt - 1].number >= found->number) {
		spool->torn++;
		return 0;
	}
	file->waiting++;
	return vec_push(&spool->records, record);
}

static int take_records(struct spool *spool, struct file *file, const char *path, const char *data,
			size_t len)
{
	struct spoolfile_record found;
	size_t at = sizeof(struct spoolfile_head);
	struct err err;
	int ret, r = 0;

	while ((ret = spoolfile_next(path, data, len, spool->id, &at, &found, &err)) != 0 &&
	       r == 0) {
		if (ret < 0)
			spool->torn++;
		else
			r = take_record(spool, file, &found);
	}
	return r;
}

/* A file that is not readable, or of another version or spool, stays where it is and is counted. */
static int take_file(struct spool *spool, uint64_t first)
{
	struct file file = { .first = first, .fd = -1 };
	_cleanup_free_ char *data = NULL;
	struct err ignored;
	uint64_t id = 0;
	char path[600];
	size_t len = 0;
	int fd, ret;

	path_of(spool, first, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ret = fd < 0 ? -errno : file_read_whole(path, fd, SIZE_MAX / 4, &data, &len, &ignored);
	if (fd >= 0)
		(void)close(fd);
	spool->next = MAX(spool->next, first + 1); /* its name is not used again */
	if (ret == -ENOMEM)
		return ret;
	if (ret == 0)
		ret = spoolfile_parse_head(path, data, len, &id, &ignored);
	if (ret == 0 && spool->id != 0 && id != spool->id)
		ret = -EBADMSG;
	if (ret < 0) {
		spool->foreign++;
		return 0;
	}
	spool->id = id;
	file.bytes = len;
	ret = take_records(spool, &file, path, data, len);
	if (ret == 0)
		ret = vec_push(&spool->files, file);
	spool->bytes += len;
	return ret;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool parse_name(const char *name, uint64_t *ret)
{
	char *end;

	if (strlen(name) != 16 + sizeof(SUFFIX) - 1 || strcmp(name + 16, SUFFIX) != 0 ||
	    strspn(name, "0123456789abcdef") != 16)
		return false;
	*ret = strtoull(name, &end, 16);
	return *ret < NUMBER_MAX;
}

static int take_files(struct spool *spool)
{
	VEC(uint64_t) names = { 0 };
	DIR *dir = opendir(spool->dir);
	uint64_t first;
	int ret = dir == NULL ? -errno : 0;

	for (struct dirent *entry; ret == 0 && (entry = readdir(dir)) != NULL;) {
		if (parse_name(entry->d_name, &first))
			ret = vec_push(&names, first);
	}
	if (dir != NULL)
		(void)closedir(dir);
	if (names.cnt > 0)
		qsort(names.data, names.cnt, sizeof(*names.data), compare);
	for (size_t i = 0; i < names.cnt && ret == 0; i++)
		ret = take_file(spool, names.data[i]);
	vec_done(&names);
	return ret;
}

/* The files that it finds are never written to: their ends may be torn. */
static int recover(struct spool *spool)
{
	int ret = take_files(spool);

	if (ret < 0)
		return ret;
	spool->next = (spool->next | (NUMBERS_APART - 1)) + 1;
	while (spool->files.cnt > 0 && spool->files.data[0].waiting == 0)
		remove_oldest(spool);
	if (spool->files.cnt > 0)
		return 0;
	return getrandom(&spool->id, sizeof(spool->id), 0) == (ssize_t)sizeof(spool->id) ? 0 : -EIO;
}

static int lock(struct spool *spool, struct err *err)
{
	char path[600];

	(void)snprintf(path, sizeof(path), "%s/lock", spool->dir);
	spool->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (spool->lock_fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(err, EBUSY, "%s: another process uses this folder", spool->dir);
	(void)futimens(spool->lock_fd, NULL); /* jobfolders_prune() keeps the newest */
	return 0;
}

int spool_open(const struct spool_setup *setup, struct spool **ret, struct err *err)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	int r;

	if (spool == NULL)
		return err_set(err, ENOMEM, "out of memory");
	spool->setup = *setup;
	spool->setup.bytes_max = MAX(setup->bytes_max, (uint64_t)SPOOL_BYTES_MIN);
	spool->lock_fd = -1;
	spool->next = 1;
	if ((size_t)snprintf(spool->dir, sizeof(spool->dir), "%s", setup->dir) >=
	    sizeof(spool->dir))
		r = err_set(err, ENAMETOOLONG, "%s: path too long", setup->dir);
	else if (mkdir(spool->dir, 0700) != 0 && errno != EEXIST)
		r = err_set(err, errno, "%s: cannot make this folder: %s", spool->dir,
			    strerror(errno));
	else
		r = lock(spool, err);
	if (r == 0) {
		r = recover(spool);
		if (r < 0)
			(void)err_set(err, -r, "%s: %s", spool->dir, strerror(-r));
	}
	if (r < 0) {
		(void)spool_close(spool);
		return r;
	}
	*ret = spool;
	return 0;
}

struct spool *spool_close(struct spool *spool)
{
	if (spool == NULL)
		return NULL;
	retire_last(spool);
	/* Nothing waits: the folder is as it was before. */
	while (spool->records.cnt == 0 && spool->files.cnt > 0)
		remove_oldest(spool);
	if (spool->lock_fd >= 0)
		(void)close(spool->lock_fd);
	vec_done(&spool->files);
	vec_done(&spool->records);
	free(spool);
	return NULL;
}

void spool_remove(const char *dir)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	(void)unlink(path);
	(void)rmdir(dir); /* fails where a file is left */
}
