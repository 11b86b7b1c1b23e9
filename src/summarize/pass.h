/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one summary, shared by the files that make it: summarize.c (order, functions,
 * identity), tally.c (functions), launchers.c and hoststats.c. Private to this folder.
 */
#pragma once

#include "summarize/collectives/collectives.h"
#include "summarize/critpath.h"
#include "summarize/summarize.h"
#include "summarize/utilize.h"

/* The accumulated data of one (node, class) before it becomes a function. */
struct tally {
	uint32_t node;
	uint8_t class, resource;
	int64_t critical_ns, share_ns, total_ns, thread_ns;
	uint64_t executions;
	double elements, bytes; /* sums */
	uint64_t elements_cnt, bytes_cnt;
	struct utilize_sum sum;
	uint32_t links; /* of a collective: index in pass.links + 1; 0: none */
};

/* Links that a collective may have used, in order of preference. */
#define LINK_CNT 4

struct link_sums {
	int64_t critical_ns; /* of all executions */
	struct utilize_sum of[LINK_CNT];
	double moving_ns; /* executions during which any link carried data */
	/* of these, executions during which this link did throughout */
	double carried_ns[LINK_CNT];
};

/* Sums of a function by reach, for groups that differ. */
struct reach_sums {
	struct link_sums of[REACH_CNT];
};

/* State of one pass; everything in it is freed at its end. */
struct pass {
	const struct trace *trace;
	const struct summarize_options *options;
	struct window window;
	struct cct cct;
	enum classify_mode mode;
	uint32_t *node_of;     /* by event */
	const uint16_t *facts; /* of names, by string id */
	crit_execs execs;
	struct critpath path;
	VEC(struct tally) tallies;
	VEC(struct reach_sums) links; /* of collectives, until a link is chosen */
	struct idmap reaches;	      /* (string of ranks, size) -> enum reach */
	struct nodemap tally_of;      /* index in tallies */
	struct idmap exec_classes;    /* (kind, name) -> class of device work, CLASS_IDLE: none */
	struct utilize_scratch scratch;
	struct function_index index;
	struct collectives collectives;
	int64_t rest_ns;
};

static inline bool is_device_kind(uint8_t kind)
{
	return kind == KIND_KERNEL || kind == KIND_GPU_MEMOP;
}

static inline bool is_device_exec(const struct event *event)
{
	return is_device_kind(event->kind);
}

/* Saturates: durations outside the window can have any value. */
static inline int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* What a walk over one thread's events needs (hostpath.h). Valid as long as the pass. */
static inline struct hostpath pass_hostpath(struct pass *p)
{
	return (struct hostpath){ .trace = p->trace,
				  .window = &p->window,
				  .facts = p->facts,
				  .cct = &p->cct,
				  .mode = p->mode,
				  .node_of = p->node_of };
}

/* The training thread's stretches, replaced by the autograd thread's while it waits. */
struct host_line {
	struct hostpath path;
	struct hostwalk *training, *backward;
	struct stand_in stand_in;
	struct host_source source;
};

/* Each host_line walks the events again. Returns 0 or -ENOMEM; done is fine after either. */
_must_check_ int host_line_init(struct pass *p, struct host_line *ret);
void host_line_done(struct host_line *line);

/* The function's tally, created if new; NULL: out of memory. */
_must_check_ struct tally *tally_get(struct pass *p, uint32_t node, uint8_t class);

/* One tally per (node, class), eq. 2, 4, 5; small ones are their callers'. Returns 0 or -ENOMEM. */
_must_check_ int tally_all(struct pass *p);

/* Fills launched_by of fp's kernels. Returns 0 or -ENOMEM. */
_must_check_ int launchers_add(struct pass *p, struct fingerprint *fp);

/* Fills fp->host_stats and fp->resources. Returns 0 or -ENOMEM. */
_must_check_ int hoststats_add(struct pass *p, struct fingerprint *fp);

/* Fills fp->flows. Returns 0 or -ENOMEM. */
_must_check_ int hostflows_add(const struct sidecar_info *info, struct fingerprint *fp);
