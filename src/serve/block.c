/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/block.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* A mark may be a little ahead of our own look at the clock, not more. */
#define FUTURE_NS (1 * NSEC_PER_SEC)

static int check_fd(int fd, struct err *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return err_set(err, EINVAL, "block: expected a memory file with seals, found none");
	/* Without it the worker could shrink the file and we would die of SIGBUS. */
	if ((seals & F_SEAL_SHRINK) == 0)
		return err_set(err, EINVAL, "block: expected F_SEAL_SHRINK, found seals %#x",
			       seals);
	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "block: %s", strerror(errno));
	if (st.st_size != (off_t)sizeof(struct worker_block))
		return err_set(err, EINVAL, "block: expected %zu bytes, found %lld",
			       sizeof(struct worker_block), (long long)st.st_size);
	return 0;
}

int block_open(int fd, struct block_reader *ret, struct err *err)
{
	struct worker_block *block;
	int r = check_fd(fd, err);

	if (r < 0)
		return r;
	block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (block == MAP_FAILED)
		return err_set(err, errno, "block: cannot map: %s", strerror(errno));
	if (block->magic != BLOCK_MAGIC || block->version != BLOCK_VERSION ||
	    block->ring_cnt != MARK_RING_CNT) {
		(void)munmap(block, sizeof(*block));
		return err_set(err, EINVAL,
			       "block: not of version %u: the daemon and the agent library are of "
			       "different releases",
			       BLOCK_VERSION);
	}
	*ret = (struct block_reader){ .block = block };
	return 0;
}

void block_close(struct block_reader *reader)
{
	if (reader->block != NULL)
		(void)munmap(reader->block, sizeof(*reader->block));
	*reader = (struct block_reader){ 0 };
}

static void count_fault(struct block_reader *reader, uint64_t *counter)
{
	(*counter)++;
	if (reader->torn + reader->invalid >= BLOCK_FAULTS_MAX)
		reader->given_up = true;
}

/*
 * The writer clears seq, writes, sets seq, then moves head: a copy between two
 * equal looks at seq is whole.
 */
static bool copy_record(const struct block_reader *reader, uint64_t position,
			struct mark_record *ret)
{
	const struct mark_record *record = &reader->block->ring[position % MARK_RING_CNT];
	uint32_t expected = (uint32_t)(position + 1);

	if (__atomic_load_n(&record->seq, __ATOMIC_ACQUIRE) != expected)
		return false;
	memcpy(ret, record, sizeof(*ret));
	atomic_thread_fence(memory_order_acquire);
	return __atomic_load_n(&record->seq, __ATOMIC_RELAXED) == expected;
}

static bool record_valid(const struct block_reader *reader, const struct mark_record *record,
			 int64_t now_ns)
{
	return record->mark >= MARK_DATALOADER && record->mark <= MARK_OPTIMIZER_BEGIN &&
	       record->value >= 0 && record->time_ns >= reader->last_ns &&
	       record->time_ns <= now_ns + FUTURE_NS;
}

/* Brings tail within one ring's length of head. Returns head. */
static uint64_t catch_up(struct block_reader *reader)
{
	uint64_t head = atomic_load_explicit(&reader->block->head, memory_order_acquire);

	if (head < reader->tail) {
		count_fault(reader, &reader->invalid);
		reader->tail = head;
	}
	if (head - reader->tail > MARK_RING_CNT) {
		reader->overrun += head - reader->tail - MARK_RING_CNT;
		reader->tail = head - MARK_RING_CNT;
	}
	return head;
}

size_t block_drain(struct block_reader *reader, int64_t now_ns, struct mark_record *ret, size_t cap)
{
	uint64_t head;
	size_t cnt = 0;

	if (reader->given_up)
		return 0;
	head = catch_up(reader);
	for (; reader->tail < head && cnt < cap && !reader->given_up; reader->tail++) {
		struct mark_record record;

		if (!copy_record(reader, reader->tail, &record)) {
			count_fault(reader, &reader->torn);
		} else if (!record_valid(reader, &record, now_ns)) {
			count_fault(reader, &reader->invalid);
		} else {
			reader->last_ns = record.time_ns;
			ret[cnt++] = record;
		}
	}
	return cnt;
}

uint64_t block_step(const struct block_reader *reader)
{
	return atomic_load_explicit(&reader->block->worker_step, memory_order_acquire);
}

uint64_t block_worker_drops(const struct block_reader *reader)
{
	return atomic_load_explicit(&reader->block->worker_drops, memory_order_relaxed);
}

void block_order(struct block_reader *reader, const struct order_plan *plan)
{
	struct order *order = &reader->block->order;

	atomic_store_explicit(&order->start_step, plan->start_step, memory_order_relaxed);
	atomic_store_explicit(&order->window_ns, plan->window_ns, memory_order_relaxed);
	atomic_store_explicit(&order->min_steps, plan->steps, memory_order_relaxed);
	atomic_store_explicit(&order->max_steps, plan->steps, memory_order_relaxed);
	atomic_store_explicit(&order->stride, plan->stride, memory_order_relaxed);
	atomic_store_explicit(&order->cancelled, 0, memory_order_relaxed);
	atomic_store_explicit(&order->id, plan->id, memory_order_release);
}

void block_cancel(struct block_reader *reader)
{
	atomic_store_explicit(&reader->block->order.cancelled, 1, memory_order_release);
}
