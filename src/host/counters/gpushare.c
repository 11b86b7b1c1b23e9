/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/gpushare.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_DIGITS 16
#define NAME_BYTES 40
#define SWEEP_NS NSEC_PER_SEC
#define REQUESTS_MAX 8192		  /* entries of a folder that are examined */
#define OTHER_CLOCK_NS (1 * NSEC_PER_SEC) /* clocks that differ by more are not the same */
#define OTHERS_MAY_WRITE (S_IWGRP | S_IWOTH)

static void name_of(int64_t wall_ns, char ret[static NAME_BYTES])
{
	(void)snprintf(ret, NAME_BYTES, "%0*" PRIx64 SIDECAR_SUFFIX, NAME_DIGITS,
		       (uint64_t)wall_ns);
}

/* The time in a file's name; -1: not a piece's name. */
static int64_t time_of(const char *name)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t time = 0;

	if (strspn(name, digits) != NAME_DIGITS || strcmp(name + NAME_DIGITS, SIDECAR_SUFFIX) != 0)
		return -1;
	for (size_t i = 0; i < NAME_DIGITS; i++)
		time = time << 4 | (uint64_t)(strchr(digits, name[i]) - digits);
	return time <= INT64_MAX ? (int64_t)time : -1;
}

/* A stream of its own for the folder, from its beginning. NULL: it can't be had. */
static DIR *list(int folder_fd)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL && fd >= 0)
		(void)close(fd);
	return dir;
}

/* --- the writer --- */

/* Removes pieces, and what was to become one, of before wall_ns. */
static void sweep(const struct gpushare_writer *writer, int64_t wall_ns)
{
	DIR *dir = list(writer->samples_fd);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;
		bool unfinished = name[0] == '.' && time_of(name + 1) >= 0;
		int64_t time = unfinished ? time_of(name + 1) : time_of(name);

		if (time >= 0 && time < wall_ns)
			(void)unlinkat(writer->samples_fd, name, 0);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

/* Opens a folder that only this user can have made. Returns a descriptor or -errno. */
static int make_folder(int dir_fd, const char *name, mode_t mode, struct err *err)
{
	struct stat st;
	int fd;

	if (mkdirat(dir_fd, name, 0700) != 0 && errno != EEXIST)
		return err_set(err, errno, "%s: cannot make this folder: %s", name,
			       strerror(errno));
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "%s: cannot open this folder: %s", name,
			       strerror(errno));
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && fchmod(fd, mode) == 0)
		return fd;
	(void)close(fd);
	return err_set(err, EPERM, "%s: expected a folder that this user made; remove it", name);
}

int gpushare_create(const char *dir, bool open_to_all, struct gpushare_writer *ret, struct err *err)
{
	struct gpushare_writer writer = { .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
					  .wanted_fd = -1 };

	if (writer.dir_fd < 0)
		return err_set(err, errno, "%s: %s", dir, strerror(errno));
	writer.samples_fd = make_folder(writer.dir_fd, GPUSHARE_SAMPLES, 0755, err);
	if (writer.samples_fd >= 0)
		writer.wanted_fd = make_folder(writer.dir_fd, GPUSHARE_WANTED,
					       open_to_all ? 01777 : 0700, err);
	if (writer.wanted_fd < 0) {
		int error = writer.samples_fd < 0 ? writer.samples_fd : writer.wanted_fd;

		if (writer.samples_fd >= 0)
			(void)close(writer.samples_fd);
		(void)close(writer.dir_fd);
		return error;
	}
	sweep(&writer, INT64_MAX);
	*ret = writer;
	return 0;
}

static int write_piece(int folder_fd, const char *unfinished, const struct sidecar *piece)
{
	int fd = openat(folder_fd, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0644);
	int error;

	if (fd < 0)
		return -errno;
	error = fchmod(fd, 0644) == 0 ? sidecar_write_fd(piece, fd) : -errno;
	return close(fd) != 0 && error == 0 ? -errno : error;
}

int gpushare_write(struct gpushare_writer *writer, const struct sidecar *piece)
{
	int64_t wall_ns = MAX(piece->header.wall_ns, writer->last_wall_ns + 1);
	char unfinished[NAME_BYTES + 1] = ".";
	int error;

	name_of(wall_ns, unfinished + 1);
	error = write_piece(writer->samples_fd, unfinished, piece);
	if (error == 0 &&
	    renameat(writer->samples_fd, unfinished, writer->samples_fd, unfinished + 1) != 0)
		error = -errno;
	if (error < 0)
		(void)unlinkat(writer->samples_fd, unfinished, 0);
	else
		writer->last_wall_ns = wall_ns;
	if (wall_ns - writer->swept_wall_ns >= SWEEP_NS) {
		sweep(writer, wall_ns - GPUSHARE_KEEP_NS);
		writer->swept_wall_ns = wall_ns;
	}
	return error;
}

/* A request dated in the future is ignored: it would never expire. */
static bool is_request(const struct stat *st, int64_t wall_ns)
{
	int64_t age_ns =
		wall_ns - ((int64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec);

	return S_ISREG(st->st_mode) && age_ns < GPUSHARE_WANTED_NS && age_ns > -GPUSHARE_WANTED_NS;
}

/*
 * Entries that are not requests, or expired, are removed at once, so that the folder can't be
 * filled with them: a reader that still wants samples creates its file again. A folder that isn't
 * empty stays.
 */
static bool take_request(int folder_fd, const char *name, int64_t wall_ns)
{
	struct stat st;

	if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	if (is_request(&st, wall_ns))
		return true;
	(void)unlinkat(folder_fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	return false;
}

bool gpushare_is_wanted(const struct gpushare_writer *writer, int64_t wall_ns)
{
	DIR *dir = list(writer->wanted_fd);
	struct dirent *entry;
	bool wanted = false;

	for (int i = 0; i < REQUESTS_MAX && dir != NULL && (entry = readdir(dir)) != NULL; i++) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			wanted |= take_request(writer->wanted_fd, entry->d_name, wall_ns);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return wanted;
}

void gpushare_close_writer(struct gpushare_writer *writer)
{
	sweep(writer, INT64_MAX);
	(void)unlinkat(writer->dir_fd, GPUSHARE_SAMPLES, AT_REMOVEDIR);
	(void)unlinkat(writer->dir_fd, GPUSHARE_WANTED, AT_REMOVEDIR);
	(void)close(writer->samples_fd);
	(void)close(writer->wanted_fd);
	(void)close(writer->dir_fd);
}

/* --- the reader --- */

void gpushare_open(const char *dir, int64_t wall_ns, struct gpushare_reader *ret)
{
	*ret = (struct gpushare_reader){ .dir = dir, .last_wall_ns = wall_ns };
}

/*
 * Accepts folders of DIR's owner, who could change its contents anyway, of root, and of this user.
 */
static bool is_trusted(int folder_fd)
{
	struct stat folder, dir;

	return fstat(folder_fd, &folder) == 0 && fstatat(folder_fd, "..", &dir, 0) == 0 &&
	       (folder.st_mode & OTHERS_MAY_WRITE) == 0 &&
	       (folder.st_uid == 0 || folder.st_uid == geteuid() || folder.st_uid == dir.st_uid);
}

/* A folder in reader's. Returns a descriptor or -errno. */
static int open_folder(const struct gpushare_reader *reader, const char *name)
{
	int dir_fd = open(reader->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir_fd < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	(void)close(dir_fd);
	return fd;
}

int gpushare_request(struct gpushare_reader *reader)
{
	int folder_fd = open_folder(reader, GPUSHARE_WANTED), fd, error;

	if (folder_fd < 0)
		return folder_fd;
	if (reader->request[0] == '\0')
		(void)snprintf(reader->request, sizeof(reader->request), "%d-%016" PRIx64,
			       (int)getpid(), (uint64_t)clock_wall_ns());
	fd = openat(folder_fd, reader->request,
		    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	error = fd >= 0 && futimens(fd, NULL) == 0 ? 0 : -errno;
	if (fd >= 0)
		(void)close(fd);
	(void)close(folder_fd);
	return error;
}

void gpushare_close(struct gpushare_reader *reader)
{
	int folder_fd = reader->request[0] != '\0' ? open_folder(reader, GPUSHARE_WANTED) : -1;

	if (folder_fd >= 0) {
		(void)unlinkat(folder_fd, reader->request, 0);
		(void)close(folder_fd);
	}
	reader->request[0] = '\0';
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Times of the pieces after the latest, in order. */
static size_t find_pieces(const struct gpushare_reader *reader, int folder_fd,
			  int64_t ret[static GPUSHARE_PIECES_MAX])
{
	DIR *dir = list(folder_fd);
	struct dirent *entry;
	size_t cnt = 0;

	while (dir != NULL && cnt < GPUSHARE_PIECES_MAX && (entry = readdir(dir)) != NULL) {
		int64_t time = time_of(entry->d_name);

		if (time > reader->last_wall_ns)
			ret[cnt++] = time;
	}
	if (dir != NULL)
		(void)closedir(dir);
	qsort(ret, cnt, sizeof(*ret), by_time);
	return cnt;
}

/* The offset between the writer's clock and this process's, if they differ. */
static int64_t clock_distance(const struct sidecar_header *header)
{
	int64_t theirs, ours = clock_wall_ns() - clock_mono_ns(), distance;

	if (__builtin_sub_overflow(header->wall_ns, header->mono_ns, &theirs) ||
	    __builtin_sub_overflow(theirs, ours, &distance))
		return 0;
	return distance > OTHER_CLOCK_NS || distance < -OTHER_CLOCK_NS ? distance : 0;
}

static void to_our_clock(struct sidecar *piece)
{
	int64_t distance_ns = clock_distance(&piece->header);
	size_t kept = 0;

	vec_foreach(sample, &piece->gpu_samples) {
		struct sidecar_gpu_sample moved = *sample;

		if (!__builtin_add_overflow(sample->time_ns, distance_ns, &moved.time_ns))
			piece->gpu_samples.data[kept++] = moved;
	}
	piece->gpu_samples.cnt = kept;
}

static int read_piece(int folder_fd, int64_t time, struct sidecar *ret)
{
	char name[NAME_BYTES];
	struct stat st;
	int fd, error;

	name_of(time, name);
	fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || st.st_size > GPUSHARE_PIECE_MAX)
		error = -EFBIG;
	else
		error = sidecar_read_fd(name, fd, ret, NULL);
	(void)close(fd);
	return error;
}

static int read_pieces(struct gpushare_reader *reader, int folder_fd,
		       void (*take)(void *arg, const struct sidecar *), void *arg)
{
	int64_t times[GPUSHARE_PIECES_MAX];
	size_t cnt = find_pieces(reader, folder_fd, times);
	int taken = 0;

	for (size_t i = 0; i < cnt; i++) {
		struct sidecar piece;

		reader->last_wall_ns = times[i];
		if (read_piece(folder_fd, times[i], &piece) < 0) {
			reader->refused++;
			continue;
		}
		to_our_clock(&piece);
		take(arg, &piece);
		sidecar_done(&piece);
		taken++;
	}
	return taken;
}

int gpushare_read(struct gpushare_reader *reader, void (*take)(void *arg, const struct sidecar *),
		  void *arg)
{
	int folder_fd = open_folder(reader, GPUSHARE_SAMPLES), ret;

	if (folder_fd < 0)
		return folder_fd;
	ret = is_trusted(folder_fd) ? read_pieces(reader, folder_fd, take, arg) : -EPERM;
	(void)close(folder_fd);
	return ret;
}
