/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder of calls_harness got. */
#include "calls_harness_parts.h"

#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 10000

void take(struct flightlog *log)
{
	flightlog_init(log);
	CHECK(flightlog_take(log, hostd.flight, false) == 0);
	CHECK(log->drops.invalid == 0 && log->drops.torn == 0);
}

size_t timed_cnt(const char *name)
{
	struct flightlog log;
	size_t cnt = 0;

	take(&log);
	vec_foreach(lane, &log.lanes) {
		vec_foreach(record, &lane->records)
			cnt += record->kind == FLIGHT_TIMED &&
			       strcmp(log.strings.data[record->extra], name) == 0;
	}
	flightlog_done(&log);
	return cnt;
}

bool soon(bool (*what)(uint64_t arg), uint64_t arg)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
		if (what(arg))
			return true;
		(void)usleep(5000);
	}
	return false;
}

bool newest(const char *name, struct ring_record ret[2])
{
	struct flightlog log;
	bool found = false;

	take(&log);
	vec_foreach(lane, &log.lanes) {
		for (size_t i = 0; i < lane->records.cnt; i++) {
			const struct ring_record *record = &lane->records.data[i];

			if (record->kind != FLIGHT_TIMED ||
			    strcmp(log.strings.data[record->extra], name) != 0)
				continue;
			ret[0] = ret[1] = *record;
			if (i + 1 < lane->records.cnt)
				ret[1] = record[1];
			found = true;
		}
	}
	flightlog_done(&log);
	return found;
}

uint64_t calls(enum flight_calls kind, uint64_t *ret_mflop)
{
	struct flightlog log;
	int64_t most = 0;

	take(&log);
	vec_foreach(lane, &log.lanes) {
		vec_foreach(record, &lane->records) {
			if (record->kind == FLIGHT_CALLS && record->detail == kind &&
			    record->value >= most) {
				most = record->value;
				*ret_mflop = record->extra;
			}
		}
	}
	flightlog_done(&log);
	return (uint64_t)most;
}

bool newest_done(struct ring_record ret[4])
{
	struct flightlog log;
	bool found = false;

	take(&log);
	vec_foreach(lane, &log.lanes) {
		for (size_t i = 0; i + 3 < lane->records.cnt; i++) {
			if (lane->records.data[i].kind != FLIGHT_COLLECTIVE_DONE)
				continue;
			memcpy(ret, &lane->records.data[i], 4 * sizeof(*ret));
			found = true;
		}
	}
	flightlog_done(&log);
	return found;
}

size_t cnt_of(uint16_t kind)
{
	struct flightlog log;
	size_t cnt = 0;

	take(&log);
	vec_foreach(lane, &log.lanes) {
		vec_foreach(record, &lane->records)
			cnt += record->kind == kind;
	}
	flightlog_done(&log);
	return cnt;
}
