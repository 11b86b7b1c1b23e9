/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/hostcounters.h"

#include "host/process/pressure.h"
#include "host/process/procfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guest is in user. */
void hostcounters_parse_stat(const char *text, struct stall_counters *ret)
{
	uint64_t v[8] = { 0 };

	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return;
	ret->irq_ticks = v[5] + v[6];
	ret->steal_ticks = v[7];
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		ret->total_ticks += v[i];
}

void hostcounters_parse_vmstat(const char *text, struct stall_counters *ret)
{
	static const char *const COMPACT = "compact_stall ", *const RECLAIM = "allocstall_";

	for (const char *line = text; *line != '\0';) {
		if (strncmp(line, COMPACT, strlen(COMPACT)) == 0)
			ret->compact_stalls += strtoull(line + strlen(COMPACT), NULL, 10);
		else if (strncmp(line, RECLAIM, strlen(RECLAIM)) == 0)
			ret->reclaim_stalls += strtoull(line + strcspn(line, " \n"), NULL, 10);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
}

static uint64_t read_pressure(const char *root, const char *path)
{
	char text[512];
	uint64_t us = 0;

	if (procfs_read(root, path, text, sizeof(text)) < 0 || pressure_parse(text, &us) < 0)
		return 0;
	return us;
}

void hostcounters_read(const char *root, struct stall_counters *ret)
{
	char text[16 << 10];

	if (procfs_read(root, "stat", text, sizeof(text)) > 0)
		hostcounters_parse_stat(text, ret);
	if (procfs_read(root, "vmstat", text, sizeof(text)) > 0)
		hostcounters_parse_vmstat(text, ret);
	ret->pressure_cpu_us = read_pressure(root, "pressure/cpu");
	ret->pressure_io_us = read_pressure(root, "pressure/io");
	ret->pressure_memory_us = read_pressure(root, "pressure/memory");
}
