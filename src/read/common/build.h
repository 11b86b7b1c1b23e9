/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a struct trace from events in any order: lanes, tracks, begin/end
 * pairs, and the two links by id (Python frame to calling frame, device event to
 * launching call), which are resolved at the end because either side may come
 * first. Until then event.parent holds the parent's code and, as frames and launching calls
 * have no arguments, event.args their own.
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "read/common/build_items.h"

struct lane_label {
	struct ident pid, tid;
	uint32_t name;
};

/* The result of the last build_lane(). */
struct last_lane {
	struct ident pid, tid;
	bool known;
	uint16_t lane;
};

/* One per track. */
struct counter {
	struct series series;
	double scale; /* from the writer's unit to 0..1 */
};

struct build {
	struct trace *trace;
	VEC(struct half) halves;
	VEC(struct lane_label) labels;
	VEC(struct ident) lane_tids; /* by lane: with the texts that struct lane lacks */
	VEC(struct ident) lane_pids;
	VEC(struct counter) counters; /* by track */
	size_t sample_cnt;
	struct idmap lane_map, track_map;
	struct idmap wide_ids;			    /* ids that do not fit 32 bits */
	struct last_lane last_lane[LANE_OTHER + 1]; /* by type */
	uint32_t recent_args[16384];		    /* by hash; 0: none */
};

/* trace was given to trace_init(). */
void build_init(struct build *build, struct trace *trace);
void build_done(struct build *build);

/* Slow path of build_lane(): a lane that is not the last of its type. */
_must_check_ int build_lane_other(struct build *build, struct ident pid, struct ident tid,
				  enum lane_type type);

/*
 * Lane of (pid, tid), added when new. Returns its index, -ENOMEM, or -ENOSPC
 * above 65535 lanes.
 */
_must_check_ static inline int build_lane(struct build *build, struct ident pid, struct ident tid,
					  enum lane_type type)
{
	const struct last_lane *last = &build->last_lane[type];

	/* Events of one lane follow each other. */
	if (last->known && ident_same(last->pid, pid) && ident_same(last->tid, tid))
		return last->lane;
	return build_lane_other(build, pid, tid, type);
}

/* As above, without adding: -ENOENT. */
_must_check_ int build_lane_find(const struct build *build, struct ident pid, struct ident tid,
				 enum lane_type type);

/* Ids below are their own code; wider ones are numbered from here on. */
#define BUILD_WIDE_BASE 0xf0000000u

/* Slow path of build_code(). */
_must_check_ int build_code_wide(struct build *build, uint64_t id, uint32_t *ret);

/* Short form of an id: equal ids have equal codes. 0 or -ENOMEM. */
_must_check_ static inline int build_code(struct build *build, uint64_t id, uint32_t *ret)
{
	if (id >= BUILD_WIDE_BASE)
		return build_code_wide(build, id, ret);
	*ret = (uint32_t)id;
	return 0;
}

/*
 * Adds event, whose parent field is set here. link: NULL when it has none; only frames and
 * runtime calls, which must have no args, can be found by their id.
 */
_must_check_ int build_event(struct build *build, struct event event, const struct link *link);

/* Adds args unless equal ones were added recently; *ret: the value for event.args. */
_must_check_ int build_args(struct build *build, const struct event_args *args, uint32_t *ret);

_must_check_ int build_half(struct build *build, struct half half);

/* Returns 0, -ENOMEM, or -ENOSPC above 4096 tracks. value as the writer gave it. */
_must_check_ int build_sample(struct build *build, const struct series *series, int64_t time_ns,
			      double value);

/*
 * Pairs, sorts, links, adds base_ns to all times and names the lanes. Returns 0
 * or -ENOMEM. Temporary memory: 4 bytes an event.
 */
_must_check_ int build_finish(struct build *build, int64_t base_ns);

/* Bytes held by the trace so far, for a limit. O(1). */
uint64_t build_bytes(const struct build *build);
