/* SPDX-License-Identifier: Apache-2.0 */
#include "live/spool/spool.h"

#include "base/file.h"
#include "base/test_alloc.h"
#include "base/test_random.h"
#include "base/vec.h"
#include "format/spoolfile/spoolfile.h"
#include "host/process/test_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

static struct spool *open_at(const char *dir)
{
	const struct spool_setup setup = { .dir = dir, .bytes_max = SPOOL_BYTES_MIN };
	struct spool *spool = NULL;
	struct err err = { "" };

	assert_int_equal(spool_open(&setup, &spool, &err), 0);
	return spool;
}

/* As after SIGKILL: what was not written is lost, and nothing is tidied up. */
static void kill_spool(struct spool *spool, const char *dir)
{
	char copy[300], command[900];

	(void)snprintf(copy, sizeof(copy), "%s.killed", dir);
	(void)snprintf(command, sizeof(command), "rm -rf %s && cp -r %s %s", copy, dir, copy);
	assert_int_equal(system(command), 0);
	(void)spool_close(spool);
	(void)snprintf(command, sizeof(command), "rm -rf %s && mv %s %s", dir, copy, dir);
	assert_int_equal(system(command), 0);
}

static uint64_t add(struct spool *spool, const char *text)
{
	uint64_t number = 0;
	struct err err;

	assert_int_equal(spool_add(spool, text, strlen(text), &number, &err), 0);
	return number;
}

static void assert_record(struct spool *spool, uint64_t number, const char *text)
{
	_cleanup_free_ char *data = NULL;
	struct err err;
	size_t len;

	assert_int_equal(spool_read(spool, number, &data, &len, &err), 0);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(data, text, len);
}

static void sub(void **state, const char *name, char ret[200])
{
	(void)snprintf(ret, 200, "%s/%s", (const char *)*state, name);
}

static void test_a_record_is_there_until_it_is_done(void **state)
{
	char dir[200];
	struct spool *spool;
	uint64_t one, two;

	sub(state, "s", dir);
	spool = open_at(dir);
	one = add(spool, "one");
	two = add(spool, "");
	assert_int_equal(spool_after(spool, 0), one);
	assert_int_equal(spool_after(spool, one), two);
	assert_int_equal(spool_after(spool, two), 0);
	assert_record(spool, one, "one");
	assert_record(spool, two, "");
	spool_finish(spool, one);
	spool_finish(spool, one);
	spool_finish(spool, 77);
	assert_int_equal(spool_after(spool, 0), two);
	assert_int_equal(spool_stats(spool).waiting, 1);
	(void)spool_close(spool);
}

static void test_a_killed_process_leaves_what_is_not_done(void **state)
{
	uint64_t id, one, two;
	struct spool *spool;
	char dir[200];

	sub(state, "s", dir);
	spool = open_at(dir);
	id = spool_id(spool);
	one = add(spool, "one");
	two = add(spool, "two");
	spool_finish(spool, one);
	kill_spool(spool, dir);
	spool = open_at(dir);
	assert_int_equal(spool_id(spool), id);
	assert_int_equal(spool_after(spool, 0), two);
	assert_record(spool, two, "two");
	assert_true(add(spool, "three") > two + 1); /* a torn end may have had the next numbers */
	spool_finish(spool, two);
	kill_spool(spool, dir);
	spool = open_at(dir);
	assert_record(spool, spool_after(spool, 0), "three");
	spool_finish(spool, spool_after(spool, 0));
	(void)spool_close(spool);
	spool = open_at(dir);
	assert_int_equal(spool_stats(spool).bytes, 0);
	assert_true(spool_id(spool) != id); /* numbers begin again */
	(void)spool_close(spool);
}

static void test_one_process_has_the_folder(void **state)
{
	const struct spool_setup setup = { .dir = *state, .bytes_max = SPOOL_BYTES_MIN };
	struct spool *spool = open_at(*state), *second = NULL;
	struct err err;

	assert_int_equal(spool_open(&setup, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "another process"));
	(void)spool_close(spool);
}

/* --- torn files --- */

static const char *file_of(const char *dir)
{
	static char path[600];
	DIR *entries = opendir(dir);

	path[0] = '\0';
	for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
		if (strstr(entry->d_name, ".spool") != NULL)
			(void)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
	}
	(void)closedir(entries);
	return path;
}

static char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	char *data = NULL;
	struct err err;

	assert_int_equal(file_read_whole(path, fd, 1 << 20, &data, len, &err), 0);
	(void)close(fd);
	return data;
}

/* Whether the spool holds some of these texts, in this order, and nothing else. */
static size_t assert_some_of(struct spool *spool, const char *const *texts, size_t cnt)
{
	size_t at = 0, found = 0;

	for (uint64_t n = 0; (n = spool_after(spool, n)) != 0; found++) {
		_cleanup_free_ char *data = NULL;
		struct err err;
		size_t len;

		assert_int_equal(spool_read(spool, n, &data, &len, &err), 0);
		while (at < cnt && (len != strlen(texts[at]) || memcmp(data, texts[at], len) != 0))
			at++;
		assert_true(at < cnt);
		at++;
	}
	return found;
}

static const char *const texts[] = { "first", "the second one", "", "4th: four" };

static void test_a_file_torn_at_any_offset_gives_the_records_before_it(void **state)
{
	_cleanup_free_ char *data = NULL;
	size_t len, end[ARRAY_SIZE(texts)], off = sizeof(struct spoolfile_head);
	struct spool *spool;
	char dir[200], path[600];

	sub(state, "s", dir);
	spool = open_at(dir);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		(void)add(spool, texts[i]);
		off += sizeof(struct spoolfile_mark) + strlen(texts[i]);
		end[i] = off;
	}
	kill_spool(spool, dir);
	(void)snprintf(path, sizeof(path), "%s", file_of(dir));
	data = read_all(path, &len);
	assert_int_equal(len, off);
	for (size_t cut = 0; cut <= len; cut++) {
		size_t whole = 0;

		while (whole < ARRAY_SIZE(texts) && end[whole] <= cut)
			whole++;
		assert_int_equal(file_replace(path, data, cut, 0600), 0);
		spool = open_at(dir);
		assert_int_equal(assert_some_of(spool, texts, ARRAY_SIZE(texts)), whole);
		if (cut < sizeof(struct spoolfile_head))
			assert_int_equal(spool_stats(spool).foreign, 1);
		else
			assert_int_equal(spool_stats(spool).torn,
					 cut != sizeof(struct spoolfile_head) &&
						 (whole == 0 || end[whole - 1] != cut));
		/* It goes on: the new record is there after the next start, too. */
		(void)add(spool, "fresh");
		kill_spool(spool, dir);
		spool = open_at(dir);
		assert_int_equal(spool_stats(spool).waiting, whole + 1);
		(void)spool_close(spool);
		remove_root((void *[]){ dir });
		assert_int_equal(mkdir(dir, 0700), 0);
	}
}

static void test_a_changed_byte_gives_no_wrong_record(void **state)
{
	_cleanup_free_ char *data = NULL;
	struct spool *spool;
	char dir[200], path[600];
	size_t len;

	sub(state, "s", dir);
	spool = open_at(dir);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		(void)add(spool, texts[i]);
	kill_spool(spool, dir);
	(void)snprintf(path, sizeof(path), "%s", file_of(dir));
	data = read_all(path, &len);
	for (size_t at = 0; at < len; at++) {
		struct spool_stats stats;

		data[at] ^= 0x20;
		assert_int_equal(file_replace(path, data, len, 0600), 0);
		data[at] ^= 0x20;
		spool = open_at(dir);
		assert_true(assert_some_of(spool, texts, ARRAY_SIZE(texts)) < ARRAY_SIZE(texts) ||
			    (at >= 12 && at < 16)); /* reserved: a head of a later writer */
		stats = spool_stats(spool);
		assert_true(stats.torn + stats.foreign > 0 || (at >= 12 && at < 16));
		(void)spool_close(spool);
		remove_root((void *[]){ dir });
		assert_int_equal(mkdir(dir, 0700), 0);
	}
}

static void test_a_file_of_another_version_stays_and_is_counted(void **state)
{
	struct spoolfile_head head;
	char path[300];
	struct spool *spool;
	struct err err;
	uint64_t id;

	spoolfile_head(9, &head);
	head.version = 2;
	assert_int_equal(spoolfile_parse_head("f", &head, sizeof(head), &id, &err), -EPROTO);
	assert_string_equal(err.text, "f:8: expected version 1, found 2");
	write_bytes(*state, "0000000000000001.spool", &head, sizeof(head));
	write_bytes(*state, "0000000000000002.spool", "junk", 4);
	write_bytes(*state, "notes.txt", "mine", 4);
	spool = open_at(*state);
	assert_int_equal(spool_stats(spool).foreign, 2);
	assert_true(add(spool, "one") > 2);
	(void)spool_close(spool);
	(void)snprintf(path, sizeof(path), "%s/0000000000000001.spool", (const char *)*state);
	assert_int_equal(access(path, F_OK), 0);
}

/* --- limits --- */

struct dropped {
	VEC(uint64_t) numbers;
	size_t bytes;
};

static void note_dropped(void *arg, uint64_t number, const void *data, size_t len)
{
	struct dropped *dropped = arg;

	assert_non_null(data);
	dropped->bytes += len;
	assert_int_equal(vec_push(&dropped->numbers, number), 0);
}

static void test_the_oldest_are_dropped_counted_and_told(void **state)
{
	static char data[100000];
	struct dropped dropped = { 0 };
	const struct spool_setup setup = {
		.dir = *state, .bytes_max = SPOOL_BYTES_MIN, .drop = note_dropped, .arg = &dropped
	};
	struct spool *spool = NULL;
	struct err err;
	uint64_t number = 0, first = 0;

	assert_int_equal(spool_open(&setup, &spool, &err), 0);
	for (size_t i = 0; i < 30; i++) {
		memset(data, (int)i, sizeof(data));
		assert_int_equal(spool_add(spool, data, sizeof(data), &number, &err), 0);
		first = first == 0 ? number : first;
		assert_true(spool_stats(spool).bytes <= SPOOL_BYTES_MIN);
	}
	assert_true(dropped.numbers.cnt > 0 && dropped.numbers.cnt < 30);
	assert_int_equal(spool_stats(spool).dropped, dropped.numbers.cnt);
	assert_int_equal(spool_stats(spool).waiting + dropped.numbers.cnt, 30);
	assert_int_equal(dropped.bytes, dropped.numbers.cnt * sizeof(data));
	for (size_t i = 0; i < dropped.numbers.cnt; i++)
		assert_int_equal(dropped.numbers.data[i], first + i);
	assert_int_equal(spool_after(spool, 0), first + dropped.numbers.cnt);
	assert_int_equal(spool_add(spool, data, SPOOL_BYTES_MIN / 2, &number, &err), -E2BIG);
	vec_done(&dropped.numbers);
	(void)spool_close(spool);
}

static void test_a_disk_without_room_refuses_a_record_and_keeps_the_others(void **state)
{
	static char data[3000];
	struct rlimit limit, low;
	struct spool *spool;
	struct err err;
	uint64_t number;
	char dir[200];

	sub(state, "s", dir);
	spool = open_at(dir);
	(void)add(spool, "one");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	low = (struct rlimit){ 1000, limit.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_true(spool_add(spool, data, sizeof(data), &number, &err) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(strstr(err.text, "cannot write"));
	(void)add(spool, "two");
	kill_spool(spool, dir);
	spool = open_at(dir);
	assert_int_equal(assert_some_of(spool, (const char *const[]){ "one", "two" }, 2), 2);
	assert_int_equal(spool_stats(spool).torn, 0);
	(void)spool_close(spool);
}

static void test_a_long_record_may_follow_a_file_without_records(void **state)
{
	static char data[SPOOL_BYTES_MIN / SPOOL_RECORD_PART];
	struct spool *spool;
	struct err err;
	uint64_t number;
	char dir[200];

	sub(state, "s", dir);
	spool = open_at(dir);
	(void)add(spool, "one");
	number = add(spool, "two");
	kill_spool(spool, dir);
	spool = open_at(dir);
	spool_finish(spool, number); /* its mark is in a file of its own */
	for (int i = 0; i < 2; i++)
		assert_int_equal(spool_add(spool, data, sizeof(data), &number, &err), 0);
	kill_spool(spool, dir);
	spool = open_at(dir);
	assert_int_equal(spool_stats(spool).waiting, 3);
	(void)spool_close(spool);
}

/* Closing removes nothing that waits. */
static void keep_files_and_reopen(struct spool **spool, const char *dir)
{
	(void)spool_close(*spool);
	*spool = open_at(dir);
}

/* A disk of its own, seen by this process alone. */
static bool mount_small(const char *dir)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(dir, 0700) == 0 &&
	       mount("none", dir, "tmpfs", 0, "size=256k") == 0;
}

static void test_a_full_disk_refuses_records_until_others_are_done(void **state)
{
	static char data[20000];
	struct spool *spool;
	struct err err = { "" };
	uint64_t first = 0, number = 0;
	char dir[200];
	size_t cnt = 0;
	int ret;

	sub(state, "disk", dir);
	if (!mount_small(dir)) {
		print_message("skipped: a file system cannot be mounted here\n");
		skip();
	}
	spool = open_at(dir);
	while ((ret = spool_add(spool, data, sizeof(data), &number, &err)) == 0) {
		first = first == 0 ? number : first;
		assert_true(++cnt < 100);
	}
	assert_int_equal(ret, -ENOSPC);
	assert_non_null(strstr(err.text, "No space left"));
	assert_int_equal(spool_stats(spool).waiting, cnt);
	assert_int_equal(spool_stats(spool).dropped, 0);
	keep_files_and_reopen(&spool, dir);
	assert_int_equal(spool_stats(spool).waiting, cnt);
	assert_int_equal(spool_stats(spool).torn, 0);
	for (uint64_t n = 0; (n = spool_after(spool, n)) != 0;)
		spool_finish(spool, n); /* the last file that is removed makes room */
	assert_int_equal(spool_add(spool, data, sizeof(data), &number, &err), 0);
	spool_finish(spool, number);
	(void)spool_close(spool);
	assert_int_equal(umount(dir), 0);
}

/* --- by chance, against a list in memory --- */

static void test_any_order_of_calls_and_kills_keeps_exactly_what_is_not_done(void **state)
{
	struct {
		uint64_t number;
		char text[40];
	} twin[400];
	uint64_t random = 20261128;
	size_t cnt = 0;
	struct spool *spool;
	char dir[200];

	sub(state, "s", dir);
	spool = open_at(dir);
	for (int i = 0; i < 400; i++) {
		int64_t what = test_below(&random, 20);

		if (what < 10) {
			(void)snprintf(twin[cnt].text, sizeof(twin[cnt].text), "%.*s%d",
				       (int)test_below(&random, 20), "abcdefghijklmnopqrstuvwxyz",
				       i);
			twin[cnt].number = add(spool, twin[cnt].text);
			cnt++;
		} else if (what < 19 && cnt > 0) {
			size_t at = (size_t)test_below(&random, (int64_t)cnt);

			spool_finish(spool, twin[at].number);
			memmove(&twin[at], &twin[at + 1], (--cnt - at) * sizeof(*twin));
		} else if (what == 19) {
			kill_spool(spool, dir);
			spool = open_at(dir);
		}
		assert_int_equal(spool_stats(spool).waiting, cnt);
		for (size_t k = 0; k < cnt; k++)
			assert_record(spool, twin[k].number, twin[k].text);
	}
	assert_int_equal(spool_stats(spool).torn + spool_stats(spool).dropped, 0);
	(void)spool_close(spool);
}

static void test_no_memory_is_an_error(void **state)
{
	const struct spool_setup setup = { .dir = *state, .bytes_max = SPOOL_BYTES_MIN };
	struct spool *spool = open_at(*state);
	struct err err;

	(void)add(spool, "one");
	(void)spool_close(spool);
	for (long n = 0, ret = -ENOMEM; ret == -ENOMEM; n++) {
		struct spool *opened = NULL;

		assert_true(n < 20);
		allocations_left = n;
		ret = spool_open(&setup, &opened, &err);
		allocations_left = -1;
		(void)spool_close(opened);
	}
	spool = open_at(*state);
	assert_int_equal(spool_stats(spool).waiting, 1);
	(void)spool_close(spool);
}

int main(void)
{
#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
	const struct CMUnitTest tests[] = {
		IN_ROOT(test_a_record_is_there_until_it_is_done),
		IN_ROOT(test_a_killed_process_leaves_what_is_not_done),
		IN_ROOT(test_one_process_has_the_folder),
		IN_ROOT(test_a_file_torn_at_any_offset_gives_the_records_before_it),
		IN_ROOT(test_a_changed_byte_gives_no_wrong_record),
		IN_ROOT(test_a_file_of_another_version_stays_and_is_counted),
		IN_ROOT(test_the_oldest_are_dropped_counted_and_told),
		IN_ROOT(test_a_disk_without_room_refuses_a_record_and_keeps_the_others),
		IN_ROOT(test_a_full_disk_refuses_records_until_others_are_done),
		IN_ROOT(test_a_long_record_may_follow_a_file_without_records),
		IN_ROOT(test_any_order_of_calls_and_kills_keeps_exactly_what_is_not_done),
		IN_ROOT(test_no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
