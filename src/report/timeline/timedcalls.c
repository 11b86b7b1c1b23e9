/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was timed on the GPU without a window: one call in many, and NCCL's launches. Known are
 * the moment of the call and how long the GPU took, not when it began.
 */
#include "report/timeline/timeline_parts.h"

#include <errno.h>

#define MFLOP_MAX 1e15 /* more is no multiplication that a GPU does */

static struct timed_slice read_timed(const struct ring_record *records, size_t cnt)
{
	struct timed_slice ret = { .start_ns = records[0].time_ns,
				   .dur_ns = records[0].value,
				   .name = (uint32_t)records[0].extra };

	ret.is_matmul = cnt > 1 && matmul_of(&records[1], &ret.matmul);
	return ret;
}

int timeline_collect_timed(struct rank_view *view)
{
	vec_foreach(lane, &view->log->lanes) {
		const record_vec *records = &lane->records;

		for (size_t i = 0; i < records->cnt; i++) {
			const struct ring_record *at = &records->data[i];

			if (at->kind == FLIGHT_TIMED &&
			    vec_push(&view->timed, read_timed(at, records->cnt - i)) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

int timeline_timed(const struct rank_view *view, slice_vec *ret)
{
	for (size_t i = 0; i < view->timed.cnt; i++) {
		const struct timed_slice *at = &view->timed.data[i];
		struct slice slice = { .start_ns = at->start_ns,
				       .end_ns = at->start_ns + at->dur_ns,
				       .number = (int64_t)i,
				       .cpu_ns = -1,
				       .what = at->name,
				       .kind = SLICE_TIMED };

		if (vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return timeline_nccl(view, SLICE_NCCL_TIMED, ret);
}

/* --- writing --- */

static void put_speed(struct writer *w, const struct timed_slice *timed, bool *first)
{
	double mflop = timed->matmul.flop * 1e-6;

	if (mflop > MFLOP_MAX)
		return;
	writer_number(w, first, "mflop", (int64_t)mflop);
	if (timed->dur_ns > 0)
		writer_number(w, first, "gflop_per_s",
			      (int64_t)(timed->matmul.flop / (double)timed->dur_ns));
}

void timeline_put_timed(struct place *to, const struct timed_slice *timed, bool *first)
{
	const struct matmul *matmul = &timed->matmul;
	struct writer *w = to->writer;

	if (!timed->is_matmul)
		return;
	if (matmul->groups > 0) {
		writer_number(w, first, "groups", matmul->groups);
	} else {
		writer_number(w, first, "m", matmul->m);
		writer_number(w, first, "n", matmul->n);
		writer_number(w, first, "k", matmul->k);
	}
	writer_number(w, first, "matrices", matmul->matrices);
	writer_string(w, first, "datatype", matmul_type_name(matmul->type));
	put_speed(w, timed, first);
}
