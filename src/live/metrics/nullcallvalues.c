/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of callvalues.c by -Dgpu_calls=false: exports nothing of calls. */
#include "live/metrics/metrics_parts.h"

void metrics_take_timed(_unused_ struct metrics_worker *worker,
			_unused_ const struct ring_record *timed,
			_unused_ const struct matmul *matmul)
{
}

void metrics_take_calls(_unused_ struct metrics_worker *worker,
			_unused_ const struct ring_record *calls)
{
}
