/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/orphans.h"

#include "host/process/procfs.h"

#define SHOWN_MAX 8u

static bool runs(const char *proc_root, const struct wire_state *state)
{
	struct procfs_stat stat;

	if (state->phase == PHASE_GONE || state->worker >= WIRE_OWN_WORKERS)
		return false;
	return procfs_read_stat(proc_root, state->pid, 0, &stat) == 0 && stat.state != 'Z' &&
	       stat.state != 'X';
}

void orphans_append(const char *proc_root, const struct wire_state *states, size_t cnt,
		    struct str *out)
{
	struct str pids = { 0 };
	size_t found = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!runs(proc_root, &states[i]))
			continue;
		if (found++ < SHOWN_MAX)
			str_printf(&pids, "%s%u", found > 1 ? ", " : "", states[i].pid);
	}
	if (found > 0)
		str_printf(out,
			   "; %zu rank%s still run%s without it (pid%s %s%s): end %s before the "
			   "next start, to free the devices",
			   found, found > 1 ? "s" : "", found > 1 ? "" : "s", found > 1 ? "s" : "",
			   str_borrow(&pids), found > SHOWN_MAX ? ", ..." : "",
			   found > 1 ? "them" : "it");
	str_done(&pids);
}
