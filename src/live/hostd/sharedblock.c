/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/sharedblock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A mark's time may be so far ahead of now_ns. */
#define FUTURE_NS (1 * NSEC_PER_SEC)

static int check_fd(int fd, struct err *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return err_set(err, EINVAL, "block: expected a memory file with seals, found none");
	/* Without the seal the worker could shrink the file, and reading it would raise SIGBUS. */
	if ((seals & F_SEAL_SHRINK) == 0)
		return err_set(err, EINVAL, "block: expected F_SEAL_SHRINK, found seals %#x",
			       seals);
	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "block: %s", strerror(errno));
	if (st.st_size != (off_t)sizeof(struct flight))
		return err_set(err, EINVAL, "block: expected %zu bytes, found %lld",
			       sizeof(struct flight), (long long)st.st_size);
	return 0;
}

int block_open(int fd, struct block_reader *ret, struct err *err)
{
	struct flight *flight;
	int r = check_fd(fd, err), copy;

	if (r < 0)
		return r;
	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (flight == MAP_FAILED)
		return err_set(err, errno, "block: cannot map: %s", strerror(errno));
	if (flight->block.magic != BLOCK_MAGIC || flight->block.version != BLOCK_VERSION ||
	    flight->block.ring_cnt != MARK_RING_CNT || flight->layout_bytes != sizeof(*flight)) {
		(void)munmap(flight, sizeof(*flight));
		return err_set(err, EINVAL,
			       "block: not of version %u: the daemon and the agent library are of "
			       "different releases",
			       BLOCK_VERSION);
	}
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		r = err_set(err, errno, "block: %s", strerror(errno));
		(void)munmap(flight, sizeof(*flight));
		return r;
	}
	*ret = (struct block_reader){ .flight = flight, .block = &flight->block, .fd = copy };
	return 0;
}

void block_close(struct block_reader *reader)
{
	if (reader->flight != NULL) {
		(void)munmap(reader->flight, sizeof(*reader->flight));
		(void)close(reader->fd);
	}
	*reader = (struct block_reader){ 0 };
}

static void count_fault(struct block_reader *reader, uint64_t *counter)
{
	(*counter)++;
	if (reader->torn + reader->invalid >= BLOCK_FAULTS_MAX)
		reader->given_up = true;
}

static bool record_valid(const struct block_reader *reader, const struct ring_record *record,
			 int64_t now_ns)
{
	return record->kind >= MARK_DATALOADER && record->kind <= MARK_BACKWARD &&
	       record->value >= 0 && record->time_ns >= reader->last_ns &&
	       record->time_ns <= now_ns + FUTURE_NS;
}

/* Advances tail to within one ring's length of head. Returns head. */
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

size_t block_drain(struct block_reader *reader, int64_t now_ns, struct ring_record *ret, size_t cap)
{
	uint64_t head;
	size_t cnt = 0;

	if (reader->given_up)
		return 0;
	head = catch_up(reader);
	for (; reader->tail < head && cnt < cap && !reader->given_up; reader->tail++) {
		struct ring_record record;

		if (!ring_copy(reader->block->ring, MARK_RING_CNT, reader->tail, &record)) {
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
	atomic_store_explicit(&order->source, plan->source, memory_order_relaxed);
	atomic_store_explicit(&order->exact, plan->exact, memory_order_relaxed);
	atomic_store_explicit(&order->canceled, 0, memory_order_relaxed);
	atomic_store_explicit(&order->id, plan->id, memory_order_release);
}

void block_measure_overhead(struct block_reader *reader, const struct overhead_plan *plan)
{
	struct overhead_order *order = &reader->block->overhead;

	atomic_store_explicit(&order->start_step, plan->start_step, memory_order_relaxed);
	atomic_store_explicit(&order->slice_steps, plan->slice_steps, memory_order_relaxed);
	atomic_store_explicit(&order->slice_cnt, plan->slice_cnt, memory_order_relaxed);
	atomic_store_explicit(&order->kind, plan->kind, memory_order_relaxed);
	atomic_store_explicit(&order->id, plan->id, memory_order_release);
}

void block_back_off(struct block_reader *reader, uint32_t backoff)
{
	atomic_store_explicit(&reader->block->backoff, backoff, memory_order_relaxed);
}

void block_cancel(struct block_reader *reader)
{
	atomic_store_explicit(&reader->block->order.canceled, 1, memory_order_release);
}
