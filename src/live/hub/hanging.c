/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a hang: what hostd has said of all workers, and the stacks of those of this host. */
#include "base/log.h"
#include "live/hang/hang.h"
#include "live/hub/hub_parts.h"
#include "live/hub/jobstate.h"
#include "read/dumps/dumps.h"

#include <inttypes.h>
#include <stdio.h>

/* A checkpoint, a compilation: a line in the log, once for the silence. */
static void log_pause(struct hub *hub, const struct report *report)
{
	const uint64_t step = jobstate_step(hub->workers.data, hub->workers.cnt);

	if (hub->pause_step != step + 1 && !hub->options->quiet)
		log_line(LOG_INFO, "event=pause step=%" PRIu64 " why=\"%s\"", step, report->reason);
	hub->pause_step = step + 1;
}

/* The stacks that hostd has put into OUT/stacks; those of other hosts are not there. */
static void read_stacks(const struct hub *hub, struct dumps *dumps)
{
	vec_foreach(state, &hub->workers) {
		const size_t before = dumps->records.cnt;
		struct err err;
		char path[4200];

		(void)snprintf(path, sizeof(path), "%s/stacks/rank%d.json", hub->options->out_dir,
			       state->rank);
		if (!dumps_is(path) || dumps_read(path, dumps, &err) < 0)
			continue;
		for (size_t i = before; i < dumps->records.cnt; i++)
			dumps->records.data[i].rank = state->rank;
	}
	dumps_join(dumps);
}

static bool publish(struct hub *hub, struct report *report, int64_t now_ns)
{
	if (report->verdict == VERDICT_INCONCLUSIVE) {
		log_pause(hub, report);
		arena_done(&report->arena);
		return false;
	}
	hub->quiet_hangs += report->verdict != VERDICT_ABNORMAL;
	hub->hang_step = MAX(jobstate_step(hub->workers.data, hub->workers.cnt), UINT64_C(1));
	hub->hang_ns = now_ns;
	hub_publish_report(hub, report, ++hub->number, true);
	return true;
}

bool hub_report_blocked(struct hub *hub, int64_t now_ns)
{
	struct hang_input input = { .states = hub->workers.data,
				    .cnt = hub->workers.cnt,
				    .wheres = hub->wheres.data,
				    .where_cnt = hub->wheres.cnt,
				    .now_ns = now_ns,
				    .blind = overhead_is_blind(&hub->overhead) };
	struct report report;
	struct dumps dumps;
	char path[4200];
	bool ret = true;

	dumps_init(&dumps);
	read_stacks(hub, &dumps);
	(void)snprintf(path, sizeof(path), "%s/hang-%" PRIu64 ".json", hub->options->out_dir,
		       hub->number + 1);
	input.read = dumps.records.data;
	input.read_cnt = dumps.records.cnt;
	input.record_path = path;
	if (hang_report(&input, &report) < 0)
		log_line(LOG_ERROR, "event=report-not-made why=\"out of memory\"");
	else
		ret = publish(hub, &report, now_ns);
	dumps_done(&dumps);
	return ret;
}
