/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagrams between a worker and the daemon of its host, on a Unix SOCK_SEQPACKET socket, and
 * the environment that `perftracker run` sets for the hook.
 *
 * The worker creates the shared block (format/shared/block.h), connects, sends MSG_HELLO with the
 * block's descriptor attached (SCM_RIGHTS) and never waits for an answer. After that the socket
 * carries rare messages only; iterations go through the ring.
 * Source: ARCHITECTURE.md, "Processes of a live job".
 */
#pragma once

#include "base/base.h"

/* Environment that `perftracker run` sets and the hook reads. */
#define PT_ENV_SOCKET "PERFTRACKER_SOCKET" /* path of the daemon's socket; unset: do nothing */
#define PT_ENV_AGENT "PERFTRACKER_AGENT"   /* path of libperftracker-agent.so */
#define PT_ENV_DIR "PERFTRACKER_DIR"	   /* directory for the traces of a window */

#define MESSAGE_MAGIC 0x50544d31u /* "PTM1" */
#define MESSAGE_VERSION 1u
#define MESSAGE_TEXT 512u

enum message_type {
	MSG_HELLO = 1,	   /* worker: its identity; the block's fd is attached */
	MSG_PROFILE_BEGUN, /* worker: window open at `step`; `text`: SOURCE_AGENT or SOURCE_TORCH */
	MSG_PROFILE_DONE,  /* worker: trace complete at path `text`; "": in the flight recorder */
	MSG_PROFILE_MISSED, /* worker: the order's step has passed, or the source failed; `text`:
			     * the reason */
	MSG_BYE,	    /* worker: the interpreter ends; `text`: class of the exception that
			     * ends the program, "": none */
	MSG_REQUEST,	    /* `perftracker profile`: asks for a profile now; `text`: "" or
			     * "USER\nREASON" */
	MSG_REPLY,  /* daemon's answer to MSG_REQUEST; `status` 0 or errno, `text`: a message */
	MSG_STATUS, /* `perftracker status`: asks for a line of state of each worker, from
		      * number `window_ns` on; `step` of the last answer: the next number, 0: all */
	MSG_FLIGHT, /* `perftracker timeline`: asks for the flight recorders as files; the answer
		      * is a MSG_REPLY with the directory in `text` */
	MSG_JOB,    /* `perftracker status`: asks about the job; a MSG_REPLY per "key=value" in
		      * `text`, the last one empty */
	MSG_ACCEPT, /* `perftracker accept`: the pace of now is the baseline */
	MSG_RELAY, /* hostd of a fleet, after its restart: its stream to the bus is attached; `text`:
		      * the job's key */
};

/* `text` of MSG_PROFILE_MISSED where the order came too late. */
#define MISSED_LATE "the step of the order is past"

/* Values of `text` in MSG_PROFILE_BEGUN: the recorder of a window. */
#define SOURCE_AGENT "agent"
#define SOURCE_TORCH "torch"

/* One datagram. Fixed size: a shorter or longer one is refused and counted. */
struct message {
	uint32_t magic;	  /* MESSAGE_MAGIC */
	uint16_t version; /* MESSAGE_VERSION */
	uint16_t type;	  /* enum message_type */
	uint32_t pid;
	uint32_t tid; /* the training thread */
	int32_t rank; /* -1: unknown */
	int32_t local_rank;
	int32_t world_size;
	int32_t status;
	uint64_t order_id;  /* the order this answers */
	uint64_t step;	    /* iteration mark count of the worker */
	uint64_t window_ns; /* MSG_REQUEST: requested length, 0 default; MSG_PROFILE_DONE: actual
			    * length */
	int64_t mono_ns;    /* sender's CLOCK_MONOTONIC */
	int64_t wall_ns;    /* CLOCK_REALTIME at the same moment: maps trace times */
	uint64_t stall_ns;  /* MSG_PROFILE_DONE: how long the profile stopped the job */
	char text[MESSAGE_TEXT]; /* NUL-terminated */
};
_Static_assert(sizeof(struct message) == 80 + MESSAGE_TEXT, "both sides must agree");
