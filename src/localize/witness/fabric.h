/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the links of a job do while they carry collectives. A link that is either silent or
 * sends at a rate u, a share d of the time, has mu = u d and sigma^2 = u^2 d (1 - d): u and
 * d follow from what was measured. A ring moves data at the pace of its slowest link, so
 * means show which workers are in a slow ring, not its slow link. The slow link sends all the
 * time at a low rate; the others send at their own rate and wait by turns.
 * Source: PerfTracker section 3, figures 3-5; section 6.1, figure 13 for NVLink.
 */
#pragma once

#include "localize/witness/witness.h"
#include "model/thresholds.h"

enum link_role {
	ROLE_NONE,    /* not measured, or nothing strange about it */
	ROLE_WAITING, /* held up by another link */
	ROLE_SLOW,    /* sends all the time, at less than the usual rate */
	ROLE_DETOUR,  /* its traffic takes PCIe, that of the others NVLink */
};

/* How a worker uses a resource, over all functions that its peers use it for. */
struct link {
	double weight; /* ns of transfers: the other numbers are means over these */
	double rate;   /* while it sends: share of the usual one */
	double reach;  /* the same: share of the free rate */
	double level;  /* on average, pauses included: share of the free rate */
	double busy;   /* share of the time that it sends */
	double detour; /* ns of transfers that take PCIe in place of it */
	enum link_role role;
};

/* What links do in one function and peer group. */
struct pace {
	double usual; /* the median rate; 0: most of the group use another resource */
	double free;  /* what the best of them reach */
};

/* One resource and all workers that use it. */
struct fabric {
	const struct job *job;
	const struct blame *blame;
	const struct accuse_options *options;
	struct arena *arena; /* of what accusations point to */
	struct arena own;    /* of the rest; ended by accuse_by_link() */
	enum resource resource;
	bool *detours;	    /* by worker: lost its NVLink, by this or another resource */
	bool *messages;	    /* by worker: it sends some */
	bool *waits;	    /* by worker: it waits for late ranks for much of its collectives */
	struct link *links; /* by worker */
	struct pace *paces; /* by function and peer group */
	bool *mate;	    /* by worker: shares a group with a culprit */
	bool *seen_host;    /* by host; scratch of the count of hosts */
	double *scratch;    /* room for two numbers a worker */
};

/*
 * Measures the links of b->resource and finds the role of each. The first six members of b
 * are set by the caller; detours are added to. Arrays live in b->arena. Returns 0 or -ENOMEM.
 */
_must_check_ int fabric_init(struct fabric *b);

/*
 * Whether a worker sends messages to single ranks, and whether a function may be one: NCCL runs the
 * same kernel for messages and for an exchange among all ranks, so the name alone does not decide.
 */
bool fabric_sends_messages(const struct fingerprint *fp);
bool fabric_may_send(const struct job *job, const struct job_function *f);

struct pace *fabric_pace(const struct fabric *b, size_t function, uint32_t group);

/* What worker w says of its link by a function, if it is of a peer group; NULL: nothing. */
const struct fp_function *fabric_measured(const struct fabric *b, const struct job_function *f,
					  size_t w, uint32_t group);

/* Whether the worker uses the resource, or PCIe in place of it. */
static inline bool link_is_used(const struct link *link)
{
	return link->weight > 0 || link->detour > 0;
}
