/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL does, as its profiler events tell, whatever the version of the
 * interface: communicators, collectives, sends and receives that are queued, and
 * what the network threads do for them. Becomes records of the flight recorder
 * (format/flight.h), handed out on the thread that NCCL calls us on.
 *
 * A collective is recorded when it is queued, which is all that NCCL says cheaply of its
 * end. On the network there is more: how long transfers waited for the GPU, for
 * the peer and for the wire, which tells who is late. From version 5 on NCCL tells of
 * launches and their queue: then the sink may time them (struct nccl_timing).
 *
 * Handles are numbers of a pool (handles.h), 0 for none; an event of the past or of
 * another process is known as such. The network thread of one rank also works for others
 * (PXN): what it gets then, context and parent, belongs to their process and is not looked at. No lock, no allocation, no system call but a
 * first communicator; nothing is written while it is off.
 * Survives: fork (the child switches it off), dlclose (the library stays),
 * several threads, events in any order, communicators that are aborted.
 */
#pragma once

#include "agent/nccl/eventmask.h"
#include "format/shared/recorder.h"

/*
 * Times on the GPU. begin: 0 if it can't be timed, as in a capture; each other timer is ended on
 * the same thread. tell: records[cnt] are written when the time is known, which becomes the value
 * of the first.
 */
struct nccl_timing {
	uint64_t (*begin)(void *queue);
	void (*end)(uint64_t timer);
	void (*tell)(uint64_t timer, const struct ring_record *records, size_t cnt);
};

/* Where records go. Called on any thread; none may wait or allocate. */
struct nccl_sink {
	/* One behind the other on one lane. False: there is none now. */
	bool (*write)(const struct ring_record *records, size_t cnt);
	uint32_t (*string)(const char *text, size_t len); /* a text's id; 0: none */
	void (*drop)(void);				  /* counts an event that was left out */
	const struct nccl_timing *timing;		  /* NULL: nothing is timed */
};

/* Before it is on for the first time; sink stays. */
void nccl_set_sink(const struct nccl_sink *sink);

/* Off is what it begins with. A few stores. */
void nccl_set_level(enum nccl_level level);

typedef uint64_t nccl_handle;

/* Texts are borrowed for the call; NULL: unknown. */
struct nccl_comm_about {
	const char *name;
	uint64_t hash; /* the same on all its ranks; 0: unknown */
	int node_cnt;  /* 0: unknown */
	int rank_cnt;  /* likewise */
	int rank;      /* -1: unknown */
	int *mask;     /* NCCL's, see eventmask.h */
	bool launches; /* it tells of them */
};

/* One collective, send or receive. */
struct nccl_call {
	const char *func;			     /* "AllReduce" */
	const char *datatype, *algorithm, *protocol; /* "ncclFloat32", "RING", "LL" */
	const char *comm_name;			     /* when init did not tell; else NULL */
	uint64_t comm_hash;			     /* likewise; else 0 */
	uint64_t cnt;				     /* elements of one rank's part */
	int64_t seq;				     /* in its communicator and function; -1 */
	int root;				     /* or peer */
	uint8_t channels;
	bool p2p;
	nccl_handle api, group;
};

struct nccl_network_op {
	nccl_handle parent; /* what nccl_call_start() gave */
	int pid, rank;	    /* of the process that gave it */
};

/* A communicator. 0: there are too many; its events are dropped, and counted. */
nccl_handle nccl_comm_open(const struct nccl_comm_about *about);
void nccl_comm_close(nccl_handle comm);

/* What is launched together; a launch; the call of a function. 0: nothing is recorded now. */
nccl_handle nccl_group_start(nccl_handle comm);
nccl_handle nccl_launch_start(nccl_handle comm, void *queue);
nccl_handle nccl_api_start(nccl_handle comm, bool captured);

/*
 * Around what launches a kernel on this thread, where NCCL doesn't tell of launches itself: what it
 * tells of calls meanwhile says what it was. 0: it is not timed; the end then does nothing.
 */
nccl_handle nccl_outer_start(void *queue);
void nccl_outer_stop(nccl_handle launch);

/* 0: nothing is recorded now, or too much is under way (counted). */
nccl_handle nccl_call_start(nccl_handle comm, const struct nccl_call *call);
nccl_handle nccl_op_start(nccl_handle comm, const struct nccl_network_op *op);
nccl_handle nccl_step_start(nccl_handle op);

/* A step waits for something else now: enum nccl_state. bytes: of the transfer; 0: not told. */
void nccl_state(nccl_handle step, int state, uint64_t bytes);

/* The end of any of them. */
void nccl_stop(nccl_handle handle);
