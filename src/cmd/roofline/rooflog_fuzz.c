/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a file of a training process: they are refused, or give numbers in range. */
#include "cmd/roofline/rooflog.h"

#include "cmd/roofline/ceiling.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rooflog log;
	struct ceiling ceiling;
	struct err err = { "" };

	if (rooflog_parse("file", (const char *)data, len, &log, &err) < 0) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	vec_foreach(block, &log.blocks) {
		if (block->cnt == 0 || block->wall_ns < 0)
			abort();
	}
	if (ceiling_find(&log, 1, &ceiling) == 0) {
		if (!isfinite(ceiling.cost_ns) || ceiling.low_ns > ceiling.high_ns)
			abort();
		ceiling_done(&ceiling);
	}
	rooflog_done(&log);
	return 0;
}
