/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/fleetend.h"

#include "base/clock.h"
#include "live/link/wire.h"

#include <string.h>
#include <sys/wait.h>

#define RANKS_MAX 65536u

void fleetend_init(struct fleetend *end, int64_t linger_ns)
{
	*end = (struct fleetend){ .linger_ns = linger_ns };
}

void fleetend_done(struct fleetend *end)
{
	vec_done(&end->ranks);
}

void fleetend_take_state(void *arg, const struct bus_message *message)
{
	struct fleetend *end = arg;
	struct wire_state state;
	struct fleetend_rank fresh;

	if (message->len != sizeof(state))
		return;
	memcpy(&state, message->data, sizeof(state));
	fresh = (struct fleetend_rank){ .rank = state.rank, .status = state.exit_status };
	if (state.phase != PHASE_GONE || !state.exit_known)
		return;
	vec_foreach(known, &end->ranks) {
		if (known->rank == state.rank) {
			known->status = state.exit_status;
			return;
		}
	}
	if (end->ranks.cnt < RANKS_MAX)
		(void)!vec_push(&end->ranks, fresh); /* no memory: the hub knows of it, too */
}

int fleetend_status(const struct fleetend *end)
{
	int ret = 0;

	vec_foreach(known, &end->ranks)
		ret = MAX(ret, WIFSIGNALED(known->status) ? 128 + WTERMSIG(known->status)
							  : WEXITSTATUS(known->status));
	return ret;
}

bool fleetend_of_host(struct fleetend *end, size_t workers, int64_t now_ns)
{
	bool well = end->ranks.cnt > 0 && fleetend_status(end) == 0;
	int64_t wait_ns = well ? MIN(end->linger_ns, FLEETEND_WELL_NS) : end->linger_ns;

	if (workers > 0)
		end->alone_ns = 0;
	else if (end->alone_ns == 0)
		end->alone_ns = now_ns;
	return workers == 0 && now_ns - end->alone_ns >= wait_ns;
}

bool fleetend_of_hosts(struct fleetend *end, const struct leader_ends *hosts, int64_t now_ns)
{
	bool all = hosts->hosts > 0 && hosts->ended == hosts->hosts;
	/* Silent ones may be well, and the bus down. */
	bool none = hosts->ended + hosts->silent == hosts->hosts;

	if (!none)
		end->alone_ns = 0;
	else if (end->alone_ns == 0)
		end->alone_ns = now_ns;
	return none && now_ns - end->alone_ns >= (all		      ? FLEETEND_ALL_NS
						  : hosts->hosts == 0 ? end->linger_ns
								      : FLEETEND_SILENT_NS);
}
