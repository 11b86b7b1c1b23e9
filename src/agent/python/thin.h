/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the records of a thread that makes more calls than a reader can take: long calls are kept,
 * short ones dropped. Each kept call adds THIN_COST_NS to a debt, which passing time pays off. At a
 * small debt all calls are kept; the larger the debt, the longer a call must be. So bursts stay
 * exact, and a thread that calls without pause converges to a minimum length that fits the rate.
 *
 * Caller/callee links stay valid: callees of a dropped call are shorter still, so they are dropped
 * too.
 */
#pragma once

#include "base/base.h"

#define THIN_COST_NS (10 * NSEC_PER_USEC) /* so 100,000 calls a second */
#define THIN_FREE_CNT 8192		  /* calls owed, until which all are kept */
#define THIN_STEP_CNT 1024		  /* calls owed beyond that, for each doubling of... */
#define THIN_LEAST_NS 500		  /* ...the shortest call that is kept */
#define THIN_DOUBLINGS 16

/* State of one thread; starts as zeros. */
struct thin {
	int64_t paid_ns; /* the moment at which all calls that were kept are paid */
};

/* The shortest call to keep while so many are owed. */
static inline int64_t thin_least_ns(int64_t owed_cnt)
{
	int64_t doublings = (owed_cnt - THIN_FREE_CNT) / THIN_STEP_CNT;

	if (owed_cnt < THIN_FREE_CNT)
		return 0;
	return (int64_t)THIN_LEAST_NS << MIN(doublings, (int64_t)THIN_DOUBLINGS);
}

/* Whether to keep a call that ends now. Times: CLOCK_MONOTONIC, not going back. */
static inline bool thin_keep(struct thin *thin, int64_t now_ns, int64_t duration_ns)
{
	int64_t paid_ns = MAX(thin->paid_ns, now_ns);

	if (duration_ns < thin_least_ns((paid_ns - now_ns) / THIN_COST_NS))
		return false;
	thin->paid_ns = paid_ns + THIN_COST_NS;
	return true;
}
