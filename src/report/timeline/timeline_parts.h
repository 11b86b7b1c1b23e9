/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the timeline share: a rank and the tracks of its slices
 * (timeline_slices.h); the writer of trace events is in timeline_writer.h. Not for other files.
 */
#pragma once

#include "report/timeline/rows.h"
#include "report/timeline/slicing.h"
#include "report/timeline/writer.h"

typedef VEC(uint32_t) tid_vec;

struct rank_view {
	const struct flightlog *log;
	comm_vec comms;
	nccl_slice_vec nccl;
	timed_slice_vec timed;
	struct gpu_view gpu;	       /* while the rank is drawn */
	struct instance_event *events; /* of comms, in their order */
	int64_t first_ns, last_ns;     /* of its records, on its clock */
	int64_t from_ns;	       /* what ended before is left out */
	struct timeline_rank *result;  /* the clock; counts */
};

/* Each appends the slices of one track. Returns 0 or -ENOMEM. */
_must_check_ int timeline_marks(const struct rank_view *view, slice_vec *ret);
_must_check_ int timeline_samples(const struct rank_view *view, uint32_t tid, slice_vec *ret);
_must_check_ int timeline_lane(const struct flightlog_lane *lane, slice_vec *ret);
_must_check_ int timeline_comms(const struct rank_view *view, slice_vec *ret);
_must_check_ int timeline_nccl(const struct rank_view *view, enum slice_kind kind, slice_vec *ret);
_must_check_ int timeline_gpu(const struct rank_view *view, uint32_t gpu_lane, slice_vec *ret);
_must_check_ int timeline_timed(const struct rank_view *view, slice_vec *ret);

/* The sampled threads, 64 at most: the one that trains first, others by id. */
_must_check_ int timeline_threads(const struct flightlog *log, tid_vec *ret);

/* Collects the collectives of view->log by start, for the alignment of clocks, too. */
_must_check_ int timeline_collect_comms(struct rank_view *view);

/* Collects the records of NCCL itself, which are not among the collectives. */
_must_check_ int timeline_collect_nccl(struct rank_view *view);
struct nccl_slice timeline_read_nccl(const struct ring_record *records, size_t cnt);

/* Collects the calls that were timed. */
_must_check_ int timeline_collect_timed(struct rank_view *view);

/* Collects the GPU records before they are drawn; timeline_gpu_done() frees them. */
_must_check_ int timeline_collect_gpu(struct rank_view *view);
void timeline_gpu_done(struct rank_view *view);

/* Draws arrows from calls to the first of what each launched, behind all slices of both. */
void timeline_gpu_arrows(struct place *to);

/* Draws the hardware in sidecars, behind all ranks. Returns 0 or -ENOMEM. */
_must_check_ int timeline_hardware(struct writer *w, const struct rank_view *views, size_t cnt,
				   const struct timeline_options *options);

/* records[cnt]: what begins with a collective's name or a FLIGHT_NETWORK, and what is behind it. */
struct comm timeline_read_comm(const struct ring_record *records, size_t cnt);

/*
 * Sets the turn of each collective among its members, by their starts. Collectives
 * that ended before from_ns have none. instance_cnt: as align_match() says.
 */
_must_check_ int timeline_take_turns(struct rank_view *views, size_t cnt, uint32_t instance_cnt);

/* Sorts slices and writes them, each row properly nested, outer ones first. */
_must_check_ int timeline_put(struct place *to, slice_vec *slices);

/* What is known of a collective, as arguments. */
void timeline_put_comm(struct place *to, const struct comm *comm, bool *first);

/* What is special about one of NCCL's slices, of a GPU's, or of a call that was timed. */
void timeline_put_gpu(struct place *to, const struct slice *slice, bool *first);
void timeline_put_nccl(struct place *to, const struct nccl_slice *nccl, bool *first);
void timeline_put_timed(struct place *to, const struct timed_slice *timed, bool *first);
