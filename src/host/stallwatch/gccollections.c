/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/gccollections.h"

#include <errno.h>

enum { LOOKS_MIN = 2 };

/* The collection is over, in the middle of its latest look and `until_ns`. */
static int finish(struct collection *of, int64_t until_ns, struct stall_recording *recording)
{
	const int64_t end_ns = until_ns - of->last_ns <= GCCOLLECTIONS_APART_NS
				       ? of->last_ns + (until_ns - of->last_ns) / 2
				       : of->last_ns;
	const struct stall_event event = {
		.time_ns = of->begin_ns,
		.kind = STALL_COLLECT,
		.pid = of->pid,
		.tid = of->tid,
		.state = '-',
		.value = (uint64_t)(end_ns - of->begin_ns),
	};
	const bool counts = of->looks >= LOOKS_MIN && of->tid != 0;

	of->looks = 0;
	return counts ? stallrecording_add(recording, &event) : 0;
}

static int take(struct collection *of, bool collects, uint32_t tid, int64_t before_ns,
		int64_t now_ns, struct stall_recording *recording)
{
	const bool apart = now_ns - before_ns > GCCOLLECTIONS_APART_NS;
	int error = 0;

	if (of->looks > 0 && (!collects || apart || (tid != 0 && of->tid != 0 && tid != of->tid)))
		error = finish(of, collects ? of->last_ns : now_ns, recording);
	if (!collects)
		return error;
	if (of->looks == 0) {
		of->begin_ns = apart ? now_ns : before_ns + (now_ns - before_ns) / 2;
		of->tid = 0;
	}
	if (of->tid == 0)
		of->tid = tid;
	of->last_ns = now_ns;
	of->looks++;
	return error;
}

int gccollections_look(struct gccollections *collections, const struct stallwatch_options *options,
		       int64_t now_ns, struct stall_recording *recording)
{
	int error = 0;

	for (size_t i = 0; i < options->pid_cnt && error == 0; i++) {
		const struct collection none = { .pid = options->pids[i] };
		uint32_t tid = 0;
		bool collects;

		if (i == collections->list.cnt)
			error = vec_push(&collections->list, none);
		if (error < 0)
			break;
		collects = options->collects(options->python_context, options->pids[i], &tid);
		error = take(&collections->list.data[i], collects, tid, collections->looked_ns,
			     now_ns, recording);
	}
	collections->looked_ns = now_ns;
	return error;
}

int gccollections_end(struct gccollections *collections, int64_t now_ns,
		      struct stall_recording *recording)
{
	int error = 0;

	vec_foreach(of, &collections->list) {
		if (of->looks > 0 && error == 0)
			error = finish(of, now_ns, recording);
	}
	return error;
}

void gccollections_done(struct gccollections *collections)
{
	vec_done(&collections->list);
}
