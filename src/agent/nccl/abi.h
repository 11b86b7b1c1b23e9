/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler interface as its loader calls it, versions 1 to 7: the agent's own
 * declarations, limited to the fields it reads. A descriptor begins the same in all
 * versions; the rest is a union by the kind of event. Fields of network operations and
 * states never moved, those of collectives moved four times.
 * abi_test.c compares all of it with NCCL's own headers where they are at hand.
 *
 * Source: NCCL 2.23 to 2.32, nccl_profiler.h and profiler_v1.h to profiler_v7.h.
 */
#pragma once

#include "base/base.h"

#define NCCL_SUCCESS 0

/* Bits of the mask, and the kind of a descriptor. */
enum nccl_event {
	NCCL_GROUP = 1 << 0, /* what is launched together */
	NCCL_COLL = 1 << 1,
	NCCL_P2P = 1 << 2,
	NCCL_PROXY_OP = 1 << 3,	  /* one direction of one channel through the network */
	NCCL_PROXY_STEP = 1 << 4, /* one transfer of it */
	NCCL_COLL_API = 1 << 9,	  /* from version 5: the call itself */
	NCCL_P2P_API = 1 << 10,
	NCCL_KERNEL_LAUNCH = 1 << 11, /* in the caller's thread; before the calls it does */
};

/* What a transfer waits for from now on. */
enum nccl_state {
	NCCL_SEND_GPU_WAIT = 8,	   /* the GPU's data */
	NCCL_SEND_WIRE_WAIT = 9,   /* it is on its way; comes with its bytes */
	NCCL_RECV_WIRE_WAIT = 10,  /* the peer's data */
	NCCL_RECV_FLUSH_WAIT = 11, /* it is here, on its way into the GPU; comes with its bytes */
	NCCL_RECV_GPU_WAIT = 12,   /* the GPU to take it */
	NCCL_SEND_PEER_WAIT = 20,  /* the peer to be ready for it; from version 4 */
};

/* The beginning of every descriptor. kind: 8 bits to version 4, 64 from 5 on. */
struct nccl_descr {
	uint64_t kind;
	void *parent;
	int rank;
};

struct nccl_proxy_op {
	struct nccl_descr head;
	int pid; /* the process that owns the GPU; the parent is valid only there */
	uint8_t channel;
	int peer, steps, chunk_bytes, is_send;
};

struct nccl_kernel_launch {
	struct nccl_descr head;
	void *stream;
};

/* Of all states that are looked at; from version 4 on the bytes of one transfer. */
struct nccl_state_args {
	size_t bytes;
};

/* The tables that NCCL looks up; only init differs. The last argument of init is its logger. */
#define NCCL_TABLE_REST                                                        \
	int (*start)(void *context, void **handle, void *descr);               \
	int (*stop)(void *handle);                                             \
	int (*state)(void *handle, int state, const struct nccl_state_args *); \
	int (*finalize)(void *context)

struct nccl_table_v1 { /* versions 1 to 3 */
	const char *name;
	int (*init)(void **context, int *mask);
	NCCL_TABLE_REST;
};

struct nccl_table_v4 {
	const char *name;
	int (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
		    int node_cnt, int rank_cnt, int rank, void (*log)(void));
	NCCL_TABLE_REST;
};

struct nccl_table_v5 { /* to 7 */
	const char *name;
	int (*init)(void **context, uint64_t comm_hash, int *mask, const char *comm_name,
		    int node_cnt, int rank_cnt, int rank, void (*log)(void));
	NCCL_TABLE_REST;
};

#define NCCL_TABLE_EXPORT __attribute__((visibility("default")))

extern NCCL_TABLE_EXPORT const struct nccl_table_v1 ncclProfiler_v1, ncclProfiler_v2,
	ncclProfiler_v3;
extern NCCL_TABLE_EXPORT const struct nccl_table_v4 ncclProfiler_v4;
extern NCCL_TABLE_EXPORT const struct nccl_table_v5 ncclProfiler_v5, ncclProfiler_v6,
	ncclProfiler_v7;
