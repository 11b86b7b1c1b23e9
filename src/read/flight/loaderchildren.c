/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/loaderchildren.h"

#include <errno.h>

/* By node of the trie of stacks: where it is in the loader's loop. */
enum part_of_loop {
	OUTSIDE,
	LOOP,	/* the function that makes batches */
	WAITS,	/* for the number of the next batch */
	BATCHES /* below the loop: makes one */
};

static enum part_of_loop part_of(const struct flightlog *log, const uint8_t *parts, uint32_t node)
{
	enum part_of_loop above = (enum part_of_loop)parts[log->nodes.data[node].parent];

	if (above == WAITS || above == BATCHES)
		return above;
	if (above == LOOP)
		return flight_node_is(log, node, "multiprocessing/queues.py", "get") ? WAITS
										     : BATCHES;
	return flight_node_is(log, node, "", "_worker_loop") ? LOOP : OUTSIDE;
}

/* Parents have smaller numbers than their children. */
static void find_parts(struct placing *p, uint8_t *parts)
{
	for (uint32_t i = 1; i < p->node_cnt; i++) {
		parts[i] = (uint8_t)part_of(p->log, parts, i);
		p->users[i] = parts[i] == BATCHES &&
			      p->names.frames[p->log->nodes.data[i].frame].part != PART_LOADER;
	}
}

static int add_samples(struct placing *p, const uint8_t *parts, int64_t start_ns, int64_t end_ns)
{
	int error = 0;

	for (size_t i = 0; i < p->log->samples.cnt && error == 0; i++) {
		const struct ring_record *record = &p->log->samples.data[i];
		struct placing_sample sample = { (uint32_t)record->extra, record->detail };

		if (record->kind == FLIGHT_CHILD && record->time_ns >= start_ns &&
		    record->time_ns <= end_ns &&
		    (parts[sample.node] == LOOP || parts[sample.node] == BATCHES))
			error = vec_push(&p->samples, sample);
	}
	return error;
}

int flight_children(const struct flightlog *log, int64_t start_ns, int64_t end_ns,
		    struct flight_place *ret)
{
	_cleanup_free_ uint8_t *parts = calloc(log->nodes.cnt + 1, sizeof(*parts));
	struct flight_place found = { .by = AWAITED_LOADER };
	struct placing placing;
	int error = placing_init(&placing, log);

	if (parts == NULL)
		error = -ENOMEM;
	if (error == 0 && placing.node_cnt > 0) {
		find_parts(&placing, parts);
		error = add_samples(&placing, parts, start_ns, end_ns);
	}
	if (error == 0)
		error = placing_find(&placing, &found);
	placing_done(&placing);
	if (error == 0)
		*ret = found;
	return error;
}
