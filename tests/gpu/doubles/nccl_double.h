/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test's control of NCCL's double, by names that no library interposes; and NCCL's names, for
 * which a communicator is one of the double's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NCCL_DOUBLE_EXPORT __attribute__((visibility("default")))

#define DOUBLE_NCCL_FUNCS 5

struct double_comm {
	void *context; /* the plugin's */
	int rank, rank_cnt, node_cnt;
	uint64_t seqs[DOUBLE_NCCL_FUNCS]; /* each function is counted by itself */
	uint32_t id;			  /* the same on all ranks */
	double slowdown; /* of this rank's link; 0: kernels take a set time and don't wait */
	struct network *network;
};

/* The number of a communicator, below 32, then its name. */
struct double_nccl_id {
	char internal[128];
};

struct double_plan;

NCCL_DOUBLE_EXPORT struct double_comm *double_nccl_comm(int node_cnt, int rank_cnt, int rank);
NCCL_DOUBLE_EXPORT void double_nccl_destroy(struct double_comm *comm);

/* Which events the plugin wants. */
NCCL_DOUBLE_EXPORT int double_nccl_mask(void);

/*
 * A call of cnt elements of 2 bytes, or a send or receive to peer (else -1), in a kernel that takes
 * ns; in a group as one kernel with the others of its communicator, at the group's end. Of a queue
 * that is being captured the plan is returned, to be replayed and freed.
 */
NCCL_DOUBLE_EXPORT struct double_plan *double_nccl_call(struct double_comm *comm, const char *func,
							uint64_t cnt, int peer, void *queue,
							int64_t ns);
NCCL_DOUBLE_EXPORT void double_nccl_group_start(void);
NCCL_DOUBLE_EXPORT struct double_plan *double_nccl_group_end(int64_t ns);
NCCL_DOUBLE_EXPORT void double_nccl_replay(const struct double_plan *plan);

/* This rank's link carries data so many times slower from now on. */
NCCL_DOUBLE_EXPORT void double_nccl_slow(struct double_comm *comm, double slowdown);

/* How long a call takes once all have come. */
NCCL_DOUBLE_EXPORT int64_t double_nccl_ns(const struct double_comm *comm, const char *func,
					  uint64_t cnt);

/* An operation on the network for a call of the process pid, whose plugin gave parent. */
NCCL_DOUBLE_EXPORT void double_nccl_proxy_for(struct double_comm *comm, void *parent, int pid);

NCCL_DOUBLE_EXPORT int ncclCommInitRank(void **ret, int rank_cnt, struct double_nccl_id id,
					int rank);
NCCL_DOUBLE_EXPORT int ncclCommDestroy(void *comm);
NCCL_DOUBLE_EXPORT int ncclAllGather(const void *from, void *to, size_t cnt, int type, void *comm,
				     void *queue);
NCCL_DOUBLE_EXPORT int ncclReduceScatter(const void *from, void *to, size_t cnt, int type, int op,
					 void *comm, void *queue);
NCCL_DOUBLE_EXPORT int ncclAllReduce(const void *from, void *to, size_t cnt, int type, int op,
				     void *comm, void *queue);
NCCL_DOUBLE_EXPORT int ncclSend(const void *from, size_t cnt, int type, int peer, void *comm,
				void *queue);
NCCL_DOUBLE_EXPORT int ncclRecv(void *to, size_t cnt, int type, int peer, void *comm, void *queue);
NCCL_DOUBLE_EXPORT int ncclGroupStart(void);
NCCL_DOUBLE_EXPORT int ncclGroupEnd(void);

int cuStreamIsCapturing(void *queue, int *ret);
int cuLaunchHostFunc(void *queue, void (*host)(void *arg), void *arg);
