/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's activity from its profiler events, independent of the interface's version: communicators,
 * queued collectives, sends and receives, and the work of the network threads for them. Written as
 * records of the flight recorder (format/shared/recorder.h), on the thread on which NCCL calls the
 * plugin.
 *
 * A collective is recorded when it is queued: NCCL has no cheap event at its end. Network events
 * have more: how long transfers waited for the GPU, for the peer and for the wire, which identifies
 * the late side. From version 5 on NCCL reports launches and their queue: then the sink may time
 * them (struct nccl_timing).
 *
 * Handles are numbers (handles.h), 0 for none; a stale handle or one of another process is
 * recognized. The network thread of one rank also works for other ranks (PXN): the context and
 * parent that it gets then belong to their process and are ignored. No lock, no allocation, no
 * system call but a first communicator; nothing is written while it is off.
 * Survives: fork (the child switches it off), dlclose (the library stays),
 * several threads, events in any order, communicators that are aborted.
 */
#pragma once

#include "agent/nccl/eventmask.h"
#include "format/shared/recorder.h"

/*
 * Times on the GPU. begin: 0 if it can't be timed, as in a capture; each other timer is ended on
 * the same thread. claim: records[cnt] are written when the time is known, which becomes the value
 * of the first.
 */
struct nccl_timing {
	uint64_t (*begin)(void *queue);
	void (*end)(uint64_t timer);
	void (*claim)(uint64_t timer, const struct ring_record *records, size_t cnt);
};

/* Where records go. Called on any thread; none may wait or allocate. */
struct nccl_sink {
	/* Writes them in a row on one lane. False: no lane is free. */
	bool (*write)(const struct ring_record *records, size_t cnt);
	uint32_t (*string)(const char *text, size_t len); /* a text's id; 0: none */
	void (*drop)(void);				  /* counts a dropped event */
	const struct nccl_timing *timing;		  /* NULL: nothing is timed */
};

/* Before the level is first raised; sink must stay valid. */
void nccl_set_sink(const struct nccl_sink *sink);

/* Initially off. A few stores. */
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
	bool launches; /* NCCL reports them */
};

/* One collective, send or receive. */
struct nccl_call {
	const char *func;			     /* "AllReduce" */
	const char *datatype, *algorithm, *protocol; /* "ncclFloat32", "RING", "LL" */
	const char *comm_name;			     /* when init did not have it; else NULL */
	uint64_t comm_hash;			     /* likewise; else 0 */
	uint64_t cnt;				     /* elements of one rank's part */
	int64_t seq;				     /* in its communicator and function; -1 */
	int root;				     /* or peer */
	uint8_t channels;
	bool p2p;
	nccl_handle api, group;
};

struct nccl_network_op {
	nccl_handle parent; /* from nccl_call_start() */
	int pid, rank;	    /* of the process that started the call */
};

/* A communicator. 0: there are too many; its events are dropped, and counted. */
nccl_handle nccl_comm_open(const struct nccl_comm_about *about);
void nccl_comm_close(nccl_handle comm);

/* A group; a launch; the call of a function. 0: recording is off. */
nccl_handle nccl_group_start(nccl_handle comm);
nccl_handle nccl_launch_start(nccl_handle comm, void *queue);
nccl_handle nccl_api_start(nccl_handle comm, bool captured);

/*
 * Around a function that launches a kernel on this thread, for versions of NCCL that don't report
 * launches: calls reported in between identify the launch. 0: not timed; the stop then does
 * nothing.
 */
nccl_handle nccl_outer_start(void *queue);
void nccl_outer_stop(nccl_handle launch);

/* 0: recording is off, or too many are under way (counted). */
nccl_handle nccl_call_start(nccl_handle comm, const struct nccl_call *call);
nccl_handle nccl_op_start(nccl_handle comm, const struct nccl_network_op *op);
nccl_handle nccl_step_start(nccl_handle op);

/* The state of a step changed: enum nccl_state. bytes: of the transfer; 0: unknown. */
void nccl_state(nccl_handle step, int state, uint64_t bytes);

/* The end of an event of any kind. */
void nccl_stop(nccl_handle handle);
