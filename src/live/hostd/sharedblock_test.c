/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/sharedblock.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC
#define NOW (1000 * NSEC_PER_SEC)

/* A worker's block as the agent makes it, and the daemon's reader of it. */
struct pair {
	int fd;
	struct worker_block *block;
	struct block_reader reader;
};

static int make_block(size_t size, int seals)
{
	int fd = memfd_create("sharedblock_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct worker_block *map_block(int fd)
{
	struct flight *flight =
		mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(flight != MAP_FAILED);
	flight->block.magic = BLOCK_MAGIC;
	flight->block.version = BLOCK_VERSION;
	flight->block.ring_cnt = MARK_RING_CNT;
	flight->layout_bytes = sizeof(*flight);
	return &flight->block;
}

static int open_pair(void **state)
{
	static struct pair pair;
	struct err err;

	pair.fd = make_block(sizeof(struct flight), F_SEAL_SHRINK | F_SEAL_GROW);
	pair.block = map_block(pair.fd);
	assert_int_equal(block_open(pair.fd, &pair.reader, &err), 0);
	*state = &pair;
	return 0;
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	block_close(&pair->reader);
	(void)munmap(pair->block, sizeof(struct flight)); /* its first part */
	return close(pair->fd);
}

static void push(struct worker_block *block, uint16_t mark, int64_t time_ns)
{
	uint64_t head = atomic_load(&block->head);
	struct ring_record *record = &block->ring[head % MARK_RING_CNT];

	*record = (struct ring_record){ .time_ns = time_ns,
					.kind = mark,
					.seq = (uint32_t)(head + 1) };
	atomic_store(&block->head, head + 1);
}

static void a_file_that_could_shrink_is_refused(void **state)
{
	struct block_reader reader;
	struct err err;
	int fd = make_block(sizeof(struct flight), 0);

	(void)state;
	assert_int_equal(block_open(fd, &reader, &err), -EINVAL);
	assert_non_null(strstr(err.text, "F_SEAL_SHRINK"));
	assert_int_equal(close(fd), 0);
}

static void a_file_of_another_size_or_version_is_refused(void **state)
{
	struct block_reader reader;
	struct err err;
	int small = make_block(4096, F_SEAL_SHRINK);
	int empty = make_block(sizeof(struct flight), F_SEAL_SHRINK);

	(void)state;
	assert_int_equal(block_open(small, &reader, &err), -EINVAL);
	assert_int_equal(block_open(empty, &reader, &err), -EINVAL);
	assert_non_null(strstr(err.text, "different releases"));
	assert_int_equal(block_open(STDIN_FILENO, &reader, &err), -EINVAL);
	assert_int_equal(close(small), 0);
	assert_int_equal(close(empty), 0);
}

static void marks_come_out_in_order_and_once(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[8];

	for (int i = 0; i < 5; i++)
		push(pair->block, MARK_OPTIMIZER, NOW + i);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records, 3), 3);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records + 3, 5), 2);
	assert_int_equal(records[4].time_ns, NOW + 4);
	assert_int_equal(block_drain(&pair->reader, NOW + 10, records, 8), 0);
}

static void an_overrun_ring_loses_and_counts_the_oldest_records(void **state)
{
	struct pair *pair = *state;
	struct ring_record record;

	for (unsigned i = 0; i < MARK_RING_CNT + 7; i++)
		push(pair->block, MARK_OPTIMIZER, NOW + i);
	assert_int_equal(block_drain(&pair->reader, NOW + 1 * NSEC_PER_SEC, &record, 1), 1);
	assert_int_equal(record.time_ns, NOW + 7);
	assert_int_equal(pair->reader.overrun, 7);
}

static void a_record_being_written_is_not_taken(void **state)
{
	struct pair *pair = *state;
	struct ring_record record;

	push(pair->block, MARK_OPTIMIZER, NOW);
	pair->block->ring[0].seq = 0;
	assert_int_equal(block_drain(&pair->reader, NOW, &record, 1), 0);
	assert_int_equal(pair->reader.torn, 1);
}

static void invalid_records_are_dropped_and_counted(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[8];

	push(pair->block, MARK_OPTIMIZER, NOW);
	push(pair->block, 999, NOW + 1);
	push(pair->block, MARK_OPTIMIZER, NOW - 1);
	push(pair->block, MARK_OPTIMIZER, NOW + 3600 * NSEC_PER_SEC);
	push(pair->block, MARK_OPTIMIZER, INT64_MIN);
	pair->block->ring[4].value = -5;
	push(pair->block, MARK_OPTIMIZER, NOW + 2);
	assert_int_equal(block_drain(&pair->reader, NOW + 5, records, 8), 2);
	assert_int_equal(pair->reader.invalid, 4);
}

static void a_head_anywhere_is_survived(void **state)
{
	static const uint64_t heads[] = { UINT64_MAX, 3, 0, 1ull << 63, MARK_RING_CNT, 1 };
	struct pair *pair = *state;
	struct ring_record records[64];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		atomic_store(&pair->block->head, heads[i]);
		for (unsigned j = 0; j < MARK_RING_CNT / 64 + 1; j++)
			assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
	}
}

static void a_ring_of_garbage_is_given_up(void **state)
{
	struct pair *pair = *state;
	struct ring_record records[64];

	memset(pair->block->ring, 0xa5, sizeof(pair->block->ring));
	atomic_store(&pair->block->head, MARK_RING_CNT);
	for (unsigned i = 0; i < MARK_RING_CNT; i++)
		assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
	assert_true(pair->reader.given_up);
	push(pair->block, MARK_OPTIMIZER, NOW);
	assert_int_equal(block_drain(&pair->reader, NOW, records, 64), 0);
}

static void an_order_reaches_the_block_with_its_id_last(void **state)
{
	const struct order_plan plan = { 3, 120, 5 * NSEC_PER_SEC, 16, 2 };
	struct pair *pair = *state;

	block_order(&pair->reader, &plan);
	assert_int_equal(atomic_load(&pair->block->order.id), 3);
	assert_int_equal(atomic_load(&pair->block->order.start_step), 120);
	assert_int_equal(atomic_load(&pair->block->order.min_steps), 16);
	assert_int_equal(atomic_load(&pair->block->order.max_steps), 16);
	assert_int_equal(atomic_load(&pair->block->order.stride), 2);
	block_cancel(&pair->reader);
	assert_int_equal(atomic_load(&pair->block->order.canceled), 1);
}

#define with_pair(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_could_shrink_is_refused),
		cmocka_unit_test(a_file_of_another_size_or_version_is_refused),
		with_pair(marks_come_out_in_order_and_once),
		with_pair(an_overrun_ring_loses_and_counts_the_oldest_records),
		with_pair(a_record_being_written_is_not_taken),
		with_pair(invalid_records_are_dropped_and_counted),
		with_pair(a_head_anywhere_is_survived),
		with_pair(a_ring_of_garbage_is_given_up),
		with_pair(an_order_reaches_the_block_with_its_id_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
