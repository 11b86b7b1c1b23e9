/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: calls the plugin's tables as NCCL does, and keeps the resulting records, the newest
 * RECORD_MAX, with their texts. Begin with setup(), which raises the level.
 */
#pragma once

#include "agent/nccl/abi_calls.h"
#include "agent/nccl/events.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define RECORD_MAX 4096
#define TEXT_MAX 1024
#define HASH UINT64_C(0x0123456789abcdef)

extern struct ring_record records[RECORD_MAX];
extern size_t record_cnt;
extern char texts[TEXT_MAX][80];
extern unsigned drop_cnt;
extern bool refuse; /* the sink has no place */
extern int mask;    /* NCCL's */

size_t cnt_of(uint16_t kind);
const struct ring_record *nth(uint16_t kind, size_t n);
int setup(void **state);
int teardown(void **state);
void *open_comm(int node_cnt);
void close_comm(void *context);
void *begin(void *context, void *descr);
void end(void *handle);
struct nccl_coll_v4 all_reduce(uint64_t seq);
void *begin_all_reduce(void *context, uint64_t seq);
void *begin_op(void *context, void *parent, bool is_send);
void *begin_step(void *context, void *op);
void set_state(void *step, int to, size_t bytes);
void wait_us(long us);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
