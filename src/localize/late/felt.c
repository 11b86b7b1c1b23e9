/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/felt.h"

#include <math.h>
#include <string.h>

static bool is_call(const struct job *job, uint32_t function)
{
	uint32_t frame = function != FRAME_NONE ? job->functions.data[function].frame : FRAME_NONE;

	return frame != FRAME_NONE && job->frames.data[frame].kind == KIND_RUNTIME;
}

static bool synchronizes(const struct job *job, uint32_t function)
{
	const char *name = job->frames.data[job->functions.data[function].frame].name;

	return strstr(name, "Synchronize") != NULL || strcmp(name, "cudaMemcpy") == 0 ||
	       strcmp(name, "hipMemcpy") == 0 || strcmp(name, "hipMemcpyWithStream") == 0;
}

/* Time in which the launching thread waited for its device; INFINITY: not recorded. */
static double synchronized_ns(const struct job *job, uint32_t w)
{
	const struct job_worker *worker = &job->workers[w];
	bool calls = false;
	double sum = 0;

	for (size_t i = 0; i < worker->fp->collective_cnt; i++) {
		const struct fp_collective *c = &worker->fp->collectives[i];

		for (uint32_t k = 0; k < c->host_cnt; k++) {
			const struct fp_share *share = &worker->fp->shares[c->host_first + k];
			uint32_t function = share->function != FRAME_NONE
						    ? worker->function_of[share->function]
						    : FRAME_NONE;

			if (!is_call(job, function))
				continue;
			calls = true;
			sum += synchronizes(job, function) ? (double)share->ns : 0;
		}
	}
	return calls ? sum : (double)INFINITY;
}

/* Whether the device waits for its host again in each iteration: it has caught up. */
static bool is_led_by_host(const struct job_worker *worker)
{
	double gated = 0;

	for (size_t i = 0; i < worker->fp->collective_cnt; i++)
		gated += worker->fp->collectives[i].host_gated;
	return gated >= worker->iterations;
}

double felt_loss(const struct job *job, const struct blame *blame, uint32_t w)
{
	double longest = 0;

	for (size_t i = blame->wait_first[w]; i < blame->wait_first[w + 1]; i++) {
		const struct blame_wait *wait = &blame->waits.data[blame->wait_idx[i]];
		double felt = wait->ns;

		if (is_led_by_host(&job->workers[wait->to]))
			felt = fmin(felt, synchronized_ns(job, wait->to));
		longest = fmax(longest, felt);
	}
	return longest;
}
