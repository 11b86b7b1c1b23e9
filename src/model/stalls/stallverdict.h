/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why watched threads did not run: the time of each that was lost, in parts, and findings that name
 * what took them. Made by the stage `stalls` of a recording (stallrecording.h), which it refers
 * to; printed by `report`.
 */
#pragma once

#include "base/vec.h"
#include "model/stalls/stallclass.h"
#include "model/stalls/stallrecording.h"

/* Time of a thread without a CPU, for one reason. */
struct stall_part {
	uint32_t thread; /* index in the recording */
	int64_t begin_ns, end_ns;
	enum stall_class class;
	uint32_t finding;     /* index; UINT32_MAX: too short for one */
	uint32_t chain;	      /* text id of the recording */
	uint32_t file;	      /* text id */
	uint32_t pid, tid;    /* who woke or stopped it; 0: unknown */
	uint32_t waker_chain; /* text id */
};

enum { STALL_CULPRITS_MAX = 5, STALL_FUNCTION_BYTES = 64 };

struct stall_culprit {
	uint32_t pid, tid;	/* tid 0: not one thread */
	uint32_t name, command; /* text ids; 0: unknown */
	int64_t ns;
	bool own;  /* PerfTracker */
	bool same; /* a thread of the watched process itself */
};

struct stall_finding {
	enum stall_class class;
	bool matters;			     /* beyond the thresholds of its class */
	uint32_t chain;			     /* text id: of its longest part */
	char function[STALL_FUNCTION_BYTES]; /* of the kernel, what the thread asked for; "" */
	char holder[STALL_FUNCTION_BYTES];   /* of the kernel, what the culprit did; "" */
	char did[160];			     /* of an own thread: what it did meanwhile; "" */
	uint32_t file;			     /* text id; 0: unknown */
	struct stall_culprit culprits[STALL_CULPRITS_MAX]; /* by ns, largest first */
	size_t culprit_cnt, culprits_more;
	bool likely; /* culprits used most CPU meanwhile; that they took this one is not seen */
	size_t cnt;  /* parts, those that follow each other at once taken together */
	int64_t total_ns, longest_ns, median_ns;
	size_t burst_cnt;     /* parts less than 0.3 s apart, taken together, of one thread */
	int64_t period_ns;    /* of the bursts; 0: not periodic */
	bool in_turn;	      /* its threads are hit one after the other, in the same order */
	uint64_t thread_bits; /* bit i: thread i of the recording */
	uint64_t quota_us, period_us, throttled_cnt, throttled_ns; /* QUOTA */
	uint64_t minor_faults, major_faults;			   /* FAULTS */
	double cpu_frac; /* STEAL, INTERRUPTS: share of all CPUs */
};

/* How a thread spent the window. */
struct stall_account {
	bool judged; /* the main thread, or one that worked; others explain these */
	bool exact;  /* running_ns and the others are sums of exact times */
	int64_t running_ns, runnable_ns, blocked_ns;
	int64_t waited_ns;	       /* of blocked_ns: by its own wish */
	int64_t lost_ns, explained_ns; /* in parts that are stalls; with a cause */
	uint64_t unpaired;	       /* switches that the kernel lost */
};

struct stall_verdict {
	const struct stall_recording *recording; /* borrowed */
	VEC(struct stall_finding) findings;	 /* those that matter first, then by time lost */
	VEC(struct stall_part) parts;		 /* by thread and time */
	VEC(struct stall_account) accounts;	 /* in the order of the recording's threads */
	size_t stall_cnt;			 /* findings that matter and are stalls */
	bool incomplete; /* records were lost, or hardly anything could be seen */
};

void stallverdict_done(struct stall_verdict *verdict);
