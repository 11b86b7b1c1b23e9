/* SPDX-License-Identifier: Apache-2.0 */
#include "host/counters/gpushare.h"

#include "base/clock.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG_AGO (60 * NSEC_PER_SEC)

static struct {
	struct gpushare_writer writer;
	struct gpushare_reader reader;
	size_t taken, samples;
	struct sidecar_gpu_sample last;
} fixture;

static int make_share(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	if (make_root(state) < 0)
		return -1;
	gpushare_open(*state, clock_wall_ns() - LONG_AGO, &fixture.reader);
	return gpushare_create(*state, true, &fixture.writer, NULL);
}

static int end_share(void **state)
{
	gpushare_close_writer(&fixture.writer);
	return remove_root(state);
}

static void take(void *arg, const struct sidecar *piece)
{
	assert_ptr_equal(arg, &fixture);
	fixture.taken++;
	fixture.samples += piece->gpu_samples.cnt;
	if (piece->gpu_samples.cnt > 0)
		fixture.last = piece->gpu_samples.data[piece->gpu_samples.cnt - 1];
}

static int read_all(void)
{
	return gpushare_read(&fixture.reader, take, &fixture);
}

/* A piece of one sample; ahead_ns: how far its writer's CLOCK_MONOTONIC is ahead. */
static struct sidecar piece_of(double value, int64_t ahead_ns)
{
	int64_t now_ns = clock_mono_ns() + ahead_ns;
	struct sidecar piece = { .header = { .mono_ns = now_ns, .wall_ns = clock_wall_ns() } };
	struct sidecar_gpu gpu = { .index = 0 };
	struct sidecar_gpu_sample sample = { .time_ns = now_ns, .value = value };

	assert_int_equal(vec_push(&piece.gpus, gpu), 0);
	assert_int_equal(vec_push(&piece.gpu_samples, sample), 0);
	return piece;
}

static void put(double value, int64_t ahead_ns)
{
	struct sidecar piece = piece_of(value, ahead_ns);

	assert_int_equal(gpushare_write(&fixture.writer, &piece), 0);
	sidecar_done(&piece);
}

static size_t count_files(const char *root, const char *folder)
{
	char path[256];
	struct dirent *entry;
	size_t cnt = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/%s", root, folder);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		cnt += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(dir);
	return cnt;
}

static void pieces_are_read_once_in_their_order(void **state _unused_)
{
	assert_int_equal(read_all(), 0);
	put(1, 0);
	put(2, 0);
	assert_int_equal(read_all(), 2);
	assert_true(fixture.last.value > 1.9);
	assert_int_equal(read_all(), 0);
	put(3, 0);
	assert_int_equal(read_all(), 1);
	assert_int_equal(fixture.samples, 3);
	assert_int_equal(fixture.reader.refused, 0);
}

static void a_reader_takes_pieces_written_after_its_start(void **state)
{
	put(1, 0);
	gpushare_open(*state, clock_wall_ns(), &fixture.reader);
	assert_int_equal(read_all(), 0);
	put(2, 0);
	assert_int_equal(read_all(), 1);
}

static void pieces_go_when_they_are_old_and_with_the_writer(void **state)
{
	struct sidecar old = piece_of(1, 0);

	old.header.wall_ns -= GPUSHARE_KEEP_NS + NSEC_PER_SEC;
	assert_int_equal(gpushare_write(&fixture.writer, &old), 0);
	sidecar_done(&old);
	write_file(*state, "samples/.0000000000000001.sidecar", "of one who died");
	assert_int_equal(count_files(*state, "samples"), 2);
	put(2, 0);
	assert_int_equal(count_files(*state, "samples"), 1);
	gpushare_close_writer(&fixture.writer);
	assert_int_equal(count_files(*state, "."), 0);
	assert_int_equal(gpushare_create(*state, true, &fixture.writer, NULL), 0);
}

/* As in a container with a time namespace: times are converted to this process's clock. */
static void times_are_in_the_readers_clock(void **state _unused_)
{
	put(1, 5 * LONG_AGO);
	assert_int_equal(read_all(), 1);
	assert_true(fixture.last.time_ns <= clock_mono_ns() + NSEC_PER_SEC);
	put(1, -5 * LONG_AGO);
	assert_int_equal(read_all(), 1);
	assert_true(fixture.last.time_ns >= clock_mono_ns() - 2 * LONG_AGO);
}

static void times_out_of_range_are_left_out(void **state _unused_)
{
	struct sidecar piece = piece_of(1, 0);

	piece.header.mono_ns = INT64_MIN;
	piece.gpu_samples.data[0].time_ns = INT64_MAX;
	assert_int_equal(gpushare_write(&fixture.writer, &piece), 0);
	piece.header.mono_ns = 5;
	assert_int_equal(gpushare_write(&fixture.writer, &piece), 0);
	sidecar_done(&piece);
	assert_int_equal(read_all(), 2);
}

static void files_other_than_pieces_are_refused_and_counted(void **state)
{
	char path[256];

	write_file(*state, "samples/7000000000000000.sidecar", "no sidecar");
	write_file(*state, "samples/7000000000000001.sidecar", "");
	(void)snprintf(path, sizeof(path), "%s/samples/7000000000000002.sidecar", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)snprintf(path, sizeof(path), "%s/samples/7000000000000003.sidecar", (char *)*state);
	assert_int_equal(symlink("/dev/zero", path), 0);
	(void)snprintf(path, sizeof(path), "%s/samples/7000000000000004.sidecar", (char *)*state);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(*state, "samples/7000000000000005.sidecar", "");
	(void)snprintf(path, sizeof(path), "%s/samples/7000000000000005.sidecar", (char *)*state);
	assert_int_equal(truncate(path, GPUSHARE_PIECE_MAX + 1), 0);
	/* Names that are none are not looked at. */
	write_file(*state, "samples/f000000000000000.sidecar", "before 1970, or after 2262");
	write_file(*state, "samples/7000000000000006.sidecar.tmp", "");
	write_file(*state, "samples/700000000000006.sidecar", "");
	write_file(*state, "samples/7000000000000006", "");
	assert_int_equal(read_all(), 0);
	assert_int_equal(fixture.reader.refused, 6);
	(void)snprintf(path, sizeof(path), "%s/samples/7000000000000004.sidecar", (char *)*state);
	assert_int_equal(rmdir(path), 0);
}

/* Any byte of a piece may be any other: sidecar_fuzz has more of that. */
static void damaged_pieces_do_no_harm(void **state)
{
	uint64_t random = 11;
	struct sidecar piece = piece_of(1, 0);
	unsigned char bytes[1024];
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	assert_int_equal(sidecar_write_fd(&piece, fileno(file)), 0);
	sidecar_done(&piece);
	rewind(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	assert_true(len > sizeof(struct sidecar_header) && len < sizeof(bytes));
	(void)fclose(file);
	for (int i = 0; i < 500; i++) {
		size_t at = test_random(&random) % len;
		unsigned char before = bytes[at];

		bytes[at] = (unsigned char)test_random(&random);
		write_bytes(*state, "samples/7000000000000000.sidecar", bytes,
			    len - test_random(&random) % 8);
		fixture.reader.last_wall_ns = 0;
		assert_true(read_all() <= 1);
		bytes[at] = before;
	}
	assert_true(fixture.reader.refused > 0 && fixture.taken > 0);
}

static void a_folder_that_others_may_write_to_is_not_read(void **state)
{
	char path[256];

	put(1, 0);
	(void)snprintf(path, sizeof(path), "%s/samples", (char *)*state);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(read_all(), -EPERM);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(read_all(), 1);
	gpushare_open("/nonexistent", 0, &fixture.reader);
	assert_int_equal(read_all(), -ENOENT);
	assert_int_equal(gpushare_request(&fixture.reader), -ENOENT);
}

static void a_request_is_valid_until_it_is_removed_or_old(void **state _unused_)
{
	int64_t now_ns = clock_wall_ns();

	assert_false(gpushare_is_wanted(&fixture.writer, now_ns));
	assert_int_equal(gpushare_request(&fixture.reader), 0);
	assert_int_equal(gpushare_request(&fixture.reader), 0);
	now_ns = clock_wall_ns();
	assert_true(gpushare_is_wanted(&fixture.writer, now_ns));
	assert_false(gpushare_is_wanted(&fixture.writer, now_ns + GPUSHARE_WANTED_NS));
	gpushare_close(&fixture.reader);
	assert_false(gpushare_is_wanted(&fixture.writer, clock_wall_ns()));
}

static void requests_of_dead_readers_are_removed(void **state)
{
	assert_int_equal(gpushare_request(&fixture.reader), 0);
	assert_int_equal(count_files(*state, "wanted"), 1);
	assert_false(gpushare_is_wanted(&fixture.writer, clock_wall_ns() + 2 * LONG_AGO));
	assert_int_equal(count_files(*state, "wanted"), 0);
}

static void only_files_of_now_are_requests(void **state)
{
	const struct timespec later[2] = { { .tv_sec = time(NULL) + 3600 },
					   { .tv_sec = time(NULL) + 3600 } };
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/wanted/link", (char *)*state);
	assert_int_equal(symlink("/", path), 0);
	(void)snprintf(path, sizeof(path), "%s/wanted/folder", (char *)*state);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file(*state, "wanted/later", "");
	(void)snprintf(path, sizeof(path), "%s/wanted/later", (char *)*state);
	assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0);
	assert_false(gpushare_is_wanted(&fixture.writer, clock_wall_ns()));
}

/* Any user may create them; a later request is found nevertheless. */
static void other_entries_do_not_fill_the_folder(void **state)
{
	static const struct timespec old[2] = { { .tv_sec = 7 }, { .tv_sec = 7 } };
	static const struct timespec later[2] = { { .tv_sec = INT32_MAX },
						  { .tv_sec = INT32_MAX } };
	static const char *const names[] = { "folder", ".folder" };
	static const char *const files[] = { ".hidden", "file" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/wanted/%s", (char *)*state, names[i]);
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(utimensat(AT_FDCWD, path, i == 0 ? old : later, 0), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(path, sizeof(path), "wanted/%s", files[i]);
		write_file(*state, path, "");
		(void)snprintf(path, sizeof(path), "%s/wanted/%s", (char *)*state, files[i]);
		assert_int_equal(utimensat(AT_FDCWD, path, i == 0 ? old : later, 0), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/wanted/.link", (char *)*state);
	assert_int_equal(symlink("/", path), 0);
	(void)snprintf(path, sizeof(path), "%s/wanted/.fifo", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(gpushare_is_wanted(&fixture.writer, clock_wall_ns()));
	assert_int_equal(count_files(*state, "wanted"), 0);
}

/* As any user could make it in a folder that all may write to. */
static void the_folder_of_another_user_is_not_read(void **state)
{
	char samples[256];

	if (geteuid() != 0)
		skip();
	put(1, 0);
	(void)snprintf(samples, sizeof(samples), "%s/samples", (char *)*state);
	assert_int_equal(chown(samples, 12345, 12345), 0);
	assert_int_equal(read_all(), -EPERM);
	assert_int_equal(chown(*state, 12345, 12345), 0);
	assert_int_equal(read_all(), 1);
}

static void folders_of_others_are_not_written_to(void **state)
{
	struct gpushare_writer writer;
	char path[256];
	struct err err;

	gpushare_close_writer(&fixture.writer);
	(void)snprintf(path, sizeof(path), "%s/samples", (char *)*state);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_true(gpushare_create(*state, true, &writer, &err) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(gpushare_create("/nonexistent", true, &writer, &err), -ENOENT);
	assert_int_equal(gpushare_create(*state, true, &fixture.writer, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_share, end_share)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_are_read_once_in_their_order),
		TEST(a_reader_takes_pieces_written_after_its_start),
		TEST(pieces_go_when_they_are_old_and_with_the_writer),
		TEST(times_are_in_the_readers_clock),
		TEST(times_out_of_range_are_left_out),
		TEST(files_other_than_pieces_are_refused_and_counted),
		TEST(damaged_pieces_do_no_harm),
		TEST(a_folder_that_others_may_write_to_is_not_read),
		TEST(a_request_is_valid_until_it_is_removed_or_old),
		TEST(requests_of_dead_readers_are_removed),
		TEST(only_files_of_now_are_requests),
		TEST(other_entries_do_not_fill_the_folder),
		TEST(the_folder_of_another_user_is_not_read),
		TEST(folders_of_others_are_not_written_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
