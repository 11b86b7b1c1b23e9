/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/leaver.h"

#include <string.h>

static bool is_below(const char *function, const char *folder)
{
	return strncmp(function, folder, strlen(folder)) == 0;
}

/* A backward pass that waits in the kernel waits for its reductions, as DDP does for buffers. */
static bool is_in_collective(const struct wire_where *where)
{
	const char *last = strrchr(where->stack, '\n');
	const char *innermost = last != NULL ? last + 1 : where->stack;

	return is_below(innermost, "torch/distributed/") ||
	       (where->leaf[0] != '\0' && (is_below(innermost, "torch/autograd/") ||
					   is_below(innermost, "torch/nn/parallel/")));
}

/* The stack of the worker's present step; NULL: unknown. */
static const struct wire_where *find_where(const struct wire_where *wheres, size_t cnt,
					   const struct wire_state *state)
{
	for (size_t i = 0; i < cnt; i++) {
		if (wheres[i].worker == state->worker && wheres[i].step == state->step)
			return &wheres[i];
	}
	return NULL;
}

bool leaver_is_awaited(const struct wire_state *states, size_t cnt, const struct wire_where *wheres,
		       size_t where_cnt, int64_t now_ns)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct wire_where *where;

		if (states[i].phase != PHASE_BLOCKED || now_ns - states[i].last_ns < LEAVER_NS)
			continue;
		where = find_where(wheres, where_cnt, &states[i]);
		if (where != NULL && is_in_collective(where))
			return true;
	}
	return false;
}
