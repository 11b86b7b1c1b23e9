/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/test_nccl.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- where the records go --- */

struct ring_record records[RECORD_MAX];
size_t record_cnt;
char texts[TEXT_MAX][80];
static uint32_t text_cnt;
unsigned drop_cnt;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

bool refuse;

static bool keep_records(const struct ring_record *from, size_t cnt)
{
	pthread_mutex_lock(&sink_lock);
	for (size_t i = 0; i < cnt && !refuse; i++)
		records[record_cnt++ % RECORD_MAX] = from[i];
	pthread_mutex_unlock(&sink_lock);
	return !refuse;
}

static uint32_t keep_text(const char *text, size_t len)
{
	uint32_t i;

	pthread_mutex_lock(&sink_lock);
	for (i = 1; i < text_cnt; i++) {
		if (strlen(texts[i]) == len && memcmp(texts[i], text, len) == 0)
			break;
	}
	assert_true(i < TEXT_MAX);
	if (i == text_cnt)
		(void)snprintf(texts[text_cnt++], sizeof(texts[0]), "%.*s", (int)len, text);
	pthread_mutex_unlock(&sink_lock);
	return i;
}

static void count_drop(void)
{
	pthread_mutex_lock(&sink_lock);
	drop_cnt++;
	pthread_mutex_unlock(&sink_lock);
}

static const struct nccl_sink sink = { keep_records, keep_text, count_drop, NULL };

size_t cnt_of(uint16_t kind)
{
	size_t cnt = 0;

	for (size_t i = 0; i < record_cnt; i++)
		cnt += records[i].kind == kind;
	return cnt;
}

/* The n-th record of a kind, from 0. */
const struct ring_record *nth(uint16_t kind, size_t n)
{
	for (size_t i = 0; i < record_cnt; i++) {
		if (records[i].kind == kind && n-- == 0)
			return &records[i];
	}
	fail_msg("there is no such record of kind %u", kind);
	return NULL;
}

/* --- NCCL's side --- */

int mask;

int setup(void **state)
{
	(void)state;
	record_cnt = drop_cnt = 0;
	text_cnt = 1;
	mask = -1;
	refuse = false;
	nccl_set_sink(&sink);
	nccl_set_level(NCCL_ALWAYS);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	nccl_set_level(NCCL_OFF);
	return 0;
}

void *open_comm(int node_cnt)
{
	void *context = NULL;

	assert_int_equal(ncclProfiler_v5.init(&context, HASH, &mask, "dp", node_cnt, 8, 3, NULL),
			 NCCL_SUCCESS);
	assert_non_null(context);
	return context;
}

void close_comm(void *context)
{
	assert_int_equal(ncclProfiler_v5.finalize(context), NCCL_SUCCESS);
}

/* Begins an event of version 5. The handle starts as what NCCL left there. */
void *begin(void *context, void *descr)
{
	void *handle = (void *)UINTPTR_MAX;

	assert_int_equal(ncclProfiler_v5.start(context, &handle, descr), NCCL_SUCCESS);
	assert_true(handle != (void *)UINTPTR_MAX);
	return handle;
}

void end(void *handle)
{
	assert_int_equal(ncclProfiler_v5.stop(handle), NCCL_SUCCESS);
}

struct nccl_coll_v4 all_reduce(uint64_t seq)
{
	return (struct nccl_coll_v4){ .head = { .kind = NCCL_COLL, .rank = 3 },
				      .seq = seq,
				      .func = "AllReduce",
				      .cnt = 1000,
				      .datatype = "ncclFloat32",
				      .channels = 16,
				      .algorithm = "RING",
				      .protocol = "LL128" };
}

void *begin_all_reduce(void *context, uint64_t seq)
{
	struct nccl_coll_v4 descr = all_reduce(seq);

	return begin(context, &descr);
}

void *begin_op(void *context, void *parent, bool is_send)
{
	struct nccl_proxy_op descr = {
		.head = { .kind = NCCL_PROXY_OP, .parent = parent, .rank = 3 },
		.pid = getpid(),
		.is_send = is_send
	};

	return begin(context, &descr);
}

void *begin_step(void *context, void *op)
{
	struct nccl_descr descr = { .kind = NCCL_PROXY_STEP, .parent = op };

	return begin(context, &descr);
}

void set_state(void *step, int to, size_t bytes)
{
	struct nccl_state_args args = { bytes };

	assert_int_equal(ncclProfiler_v5.state(step, to, &args), NCCL_SUCCESS);
}

void wait_us(long us)
{
	int64_t until_ns = clock_mono_ns() + us * NSEC_PER_USEC;

	while (clock_mono_ns() < until_ns)
		;
}
