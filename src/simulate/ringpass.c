/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/ringpass.h"

#include "simulate/random.h"

#define CHUNK_JITTER 0.02

static double chunk_ns(const struct ring *ring, size_t node, unsigned int step)
{
	double jitter = random_gauss(random_at(ring->seed, RANDOM_CHUNK, node, step, 0));

	return ring->step_ns * ring->slow[node] * (1 + CHUNK_JITTER * jitter);
}

int64_t ring_play(const struct ring *ring, struct ring_burst *bursts)
{
	size_t cnt = ring->node_cnt;
	int64_t end_ns = INT64_MIN;

	for (unsigned int step = 0; step < ring->step_cnt; step++) {
		for (size_t node = 0; node < cnt; node++) {
			size_t before = (node + cnt - 1) % cnt, after = (node + 1) % cnt;
			struct ring_burst *own = &bursts[node * ring->step_cnt];
			int64_t start = MAX(ring->ready_ns[node], ring->ready_ns[after]);

			if (step > 0) {
				start = MAX(start, own[step - 1].end_ns);
				start = MAX(start,
					    bursts[before * ring->step_cnt + step - 1].end_ns);
			}
			if (step >= RING_BUFFERS)
				start = MAX(start,
					    bursts[after * ring->step_cnt + step - RING_BUFFERS]
						    .end_ns);
			own[step].start_ns = start;
			own[step].end_ns = start + (int64_t)chunk_ns(ring, node, step);
			end_ns = MAX(end_ns, own[step].end_ns);
		}
	}
	return end_ns;
}

double ring_length_ns(const struct ring *ring)
{
	double slowest = 1;

	for (size_t node = 0; node < ring->node_cnt; node++)
		slowest = fmax(slowest, ring->slow[node]);
	return ring->step_ns * ring->step_cnt * slowest;
}
