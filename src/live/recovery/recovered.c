/* SPDX-License-Identifier: Apache-2.0 */
#include "live/recovery/recovered.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *recovered_kind(const struct wire_window *window)
{
	static const char *const kinds[] = { "slowdown", "request", "checkup", "early" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strncmp(window->kind, kinds[i], sizeof(window->kind)) == 0)
			return kinds[i];
	}
	return NULL;
}

static struct recovered_window *find(struct recovered *recovered, const struct wire_result *result)
{
	vec_foreach(window, &recovered->windows) {
		if (window->epoch == result->epoch && window->order_id == result->order_id)
			return window;
	}
	return NULL;
}

static struct recovered_window *find_or_add(struct recovered *recovered,
					    const struct wire_result *result)
{
	const struct recovered_window fresh = { .epoch = result->epoch,
						.order_id = result->order_id,
						.window = result->window };
	struct recovered_window *window = find(recovered, result);

	if (window != NULL)
		return window;
	if (recovered->windows.cnt >= RECOVERED_WINDOWS_MAX ||
	    recovered_kind(&result->window) == NULL || vec_push(&recovered->windows, fresh) < 0)
		return NULL;
	return &recovered->windows.data[recovered->windows.cnt - 1];
}

/* NULL: too many, or no memory. */
static struct recovered_result *find_rank(struct recovered_window *window, int rank)
{
	const struct recovered_result fresh = { .rank = rank };

	vec_foreach(result, &window->results) {
		if (result->rank == rank)
			return result;
	}
	if (window->results.cnt >= RECOVERED_RESULTS_MAX || vec_push(&window->results, fresh) < 0)
		return NULL;
	return &window->results.data[window->results.cnt - 1];
}

int recovered_add(struct recovered *recovered, const struct wire_result *result, int64_t now_ns)
{
	struct recovered_window *window = find_or_add(recovered, result);
	struct recovered_result *known = window != NULL ? find_rank(window, result->rank) : NULL;

	if (known == NULL) {
		recovered->refused++;
		return -ENOSPC;
	}
	window->heard_ns = now_ns;
	if (known->ready)
		return 0;
	known->ready = result->outcome == OUTCOME_SUMMARIZED;
	(void)snprintf(known->text, sizeof(known->text), "%.*s", (int)sizeof(known->text) - 1,
		       result->text);
	return 0;
}

struct recovered_window *recovered_due(struct recovered *recovered, bool all, int64_t now_ns)
{
	vec_foreach(window, &recovered->windows) {
		bool whole = window->results.cnt >= window->window.workers;

		if (all ||
		    now_ns - window->heard_ns >= (whole ? RECOVERED_GRACE_NS : RECOVERED_WAIT_NS))
			return window;
	}
	return NULL;
}

void recovered_drop(struct recovered *recovered, struct recovered_window *window)
{
	vec_done(&window->results);
	*window = recovered->windows.data[--recovered->windows.cnt];
}

void recovered_done(struct recovered *recovered)
{
	while (recovered->windows.cnt > 0)
		recovered_drop(recovered, &recovered->windows.data[0]);
	vec_done(&recovered->windows);
}
