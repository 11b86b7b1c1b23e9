/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a GPU's libraries that the worker counted, and those of them that it timed. */
#include "live/metrics/metrics_parts.h"

#include <math.h>

#define MFLOP_MAX 1e15 /* of one call: more is no multiplication that a GPU does */

static uint32_t series_of(struct metrics_worker *worker, enum metric metric, const char *third)
{
	return metrics_series(worker->host->metrics, metric,
			      METRIC_VALUES(worker->rank, worker->local_rank, third));
}

static void take_matmul(struct metrics_worker *worker, int64_t dur_ns, const struct matmul *matmul)
{
	struct metrics *metrics = worker->host->metrics;
	const char *type = matmul_type_name(matmul->type);
	double mflop = matmul->flop * 1e-6;

	metrics_observe(metrics, series_of(worker, METRIC_MATMUL, type), dur_ns);
	if (dur_ns > 0 && mflop > 0 && mflop < MFLOP_MAX)
		metrics_observe(metrics, series_of(worker, METRIC_MATMUL_RATE, type),
				llround(mflop * NSEC_PER_SEC / (double)dur_ns));
	if (worker->host->xpu != NULL)
		metrics_xpu_matmul(worker->host->xpu, worker, type, dur_ns, mflop * 1e6);
}

void metrics_take_timed(struct metrics_worker *worker, const struct ring_record *timed,
			const struct matmul *matmul)
{
	const char *kind = kernel_kind(worker->log.strings.data[timed->extra]);

	if (matmul != NULL)
		take_matmul(worker, timed->value, matmul);
	else
		metrics_observe(worker->host->metrics,
				series_of(worker, METRIC_KERNEL_SAMPLED, kind), timed->value);
}

/* The worker's counts never go back; what it says may be nonsense all the same. */
static void count_up(struct metrics_worker *worker, uint32_t series, uint64_t *known, uint64_t now)
{
	if (now > *known) {
		metrics_add(worker->host->metrics, series, now - *known);
		*known = now;
	}
}

void metrics_take_calls(struct metrics_worker *worker, const struct ring_record *calls)
{
	static const char *const kinds[FLIGHT_CALLS_CNT] = {
		[FLIGHT_CALLS_MATMUL] = "matmul", [FLIGHT_CALLS_LAUNCH] = "launch"
	};
	uint16_t kind = calls->detail;

	count_up(worker, series_of(worker, METRIC_GPU_CALLS, kinds[kind]), &worker->calls[kind],
		 (uint64_t)calls->value);
	if (kind == FLIGHT_CALLS_MATMUL)
		count_up(worker, series_of(worker, METRIC_MATMUL_FLOP, NULL), &worker->mflop,
			 calls->extra);
}
