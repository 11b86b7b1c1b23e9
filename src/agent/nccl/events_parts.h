/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of events.h: events.c (communicators, groups and calls, the sink) and
 * netevents.c (operations on the network and their transfers, which belong to calls).
 */
#pragma once

#include "agent/nccl/events.h"
#include "agent/nccl/handles.h"

#define NCCL_CALL_CNT 2048u
#define COMM_TEXT 64u

/* name##s[max] with their handles; tag: see handles.h. */
#define HANDLES(name, max, number)                                       \
	static struct name name##s[max];                                 \
	static struct handle_pool_slot name##_slots[max];                \
	static struct handle_pool name##_pool = { .slots = name##_slots, \
						  .cnt = (max),          \
						  .tag = (number) }

enum network_sum {
	SUM_SEND_GPU, /* waits, in ns, of all steps */
	SUM_SEND_PEER,
	SUM_SEND_WIRE,
	SUM_RECV_WIRE,
	SUM_RECV_FLUSH,
	SUM_RECV_GPU,
	SUM_BYTES,
	SUM_STEPS,
	SUM_CNT,
	SUM_NONE = SUM_CNT
};

struct comm {
	char text[COMM_TEXT]; /* its group's name in records; "": the calls have it */
	uint32_t text_len;
	uint32_t rank_cnt;
	int rank; /* -1: unknown */
	int *mask;
	enum eventmask_reach reach;
	bool launches;
};

/* A collective, or the sends and receives of a group. Written by its thread but for the last part. */
struct call {
	nccl_handle comm;
	int64_t start_ns, bytes, seq, sent_bytes, received_bytes;
	uint32_t name, what, group, group_size, datatype, algorithm, protocol;
	uint32_t root, call_cnt, pending_cnt; /* calls; those that were not stopped */
	uint16_t detail;

	/* On the network: by the threads that drive it. */
	_Atomic uint32_t op_cnt, open_op_cnt;
	_Atomic int64_t network_start_ns;
	_Atomic uint64_t sums[SUM_CNT];
};

extern struct call nccl_calls[NCCL_CALL_CNT];
extern struct handle_pool nccl_call_pool;

bool nccl_is_on(void);

/* NULL: not a communicator's, or closed. */
const struct comm *nccl_find_comm(nccl_handle handle);

/* Whether communicators were opened by this pid: a forked child has none. */
bool nccl_is_own_pid(int pid);

/* The sink: records[cnt] are written in a row, or dropped and counted. Texts may be NULL. */
void nccl_write(const struct ring_record *records, size_t cnt);
void nccl_drop(void);
uint32_t nccl_text_id(const char *text);
uint32_t nccl_comm_text_id(const struct comm *comm);

struct ring_record nccl_group_record(const struct call *call, int64_t start_ns);

/* Releases all operations and transfers of a communicator. */
void netevents_reclaim(nccl_handle comm);

/* The end of an operation or a transfer. False: the handle is another kind's. */
bool netevents_stop(nccl_handle handle);
