/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One window of all workers: it is ordered at a step, each worker answers, and when all have, or it took too
 * long, the report is made of their fingerprints.
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "live/link/wire.h"
#include "model/report.h"

struct hub;

enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_EXPORTED, ANSWER_READY, ANSWER_MISSED };

/* One worker's answer to the order. */
struct answer {
	uint32_t worker;
	int rank;
	enum answer_state state;
	int64_t stall_ns;
	uint32_t kept;	      /* results that wait in the spool of its host, which is silent */
	char text[WIRE_TEXT]; /* the fingerprint's path, or the reason why it is missing */
};

#define PROFILE_EARLY "early"	  /* the kind of a window that is kept and makes no report */
#define PROFILE_REQUEST "request" /* of one that a person asked for */

/* A profile of all watched workers. */
struct profile_wish {
	const char *kind; /* a constant */
	int64_t window_ns;
	uint64_t steps_max;
};

struct profile {
	bool active;
	struct profile_wish wish;
	unsigned tries; /* orders for that wish */
	unsigned late;	/* of struct plan_limits: grows with orders that came too late */
	uint64_t id;
	uint64_t epoch, order_id; /* recovered: of the hub that ordered it */
	struct report_trigger trigger;
	VEC(struct answer) answers;
	struct idmap places; /* of them, by worker */
	int64_t deadline_ns;
	int64_t length_ns;    /* expected */
	bool begun, canceled; /* at least one worker; those that have not begun must not */
	bool recovered;	      /* an earlier hub ordered it (recovery.c) */
	bool torch;	      /* torch.profiler recorded at least one worker of the latest */
};

/* Orders it; returns 0 or -errno. */
int hub_start_profile(struct hub *hub, const struct profile_wish *wish, int64_t now_ns);
void hub_take_answer(void *arg, const struct bus_message *message); /* struct wire_answer */

/* The worker can no longer export a trace; one that has exported it stays in the profile. */
void hub_lose_worker(struct hub *hub, uint32_t worker, const char *why);

/* Nothing comes from its host any more. What lies in its spool may be sent by another daemon. */
void hub_lose_host(struct hub *hub, const struct wire_state *state);

/* Finishes the profile when all have answered or the deadline has passed. */
void hub_watch_profile(struct hub *hub, int64_t now_ns);
void hub_finish_profile(struct hub *hub);
