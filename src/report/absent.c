/* SPDX-License-Identifier: Apache-2.0 */
#include "report/absent.h"

#include "base/text/clean.h"

#include <string.h>

bool absent_is_first(const struct report *report, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (strcmp(report->absences[k].why, report->absences[i].why) == 0)
			return false;
	}
	return true;
}

size_t absent_cnt(const struct report *report)
{
	size_t cnt = 0;

	for (size_t i = 0; i < report->absence_cnt; i++)
		cnt += absent_is_first(report, i);
	return cnt;
}

/* JSON has the name of the resource; people get what measures it. */
static void append_source(struct str *out, const char *source)
{
	static const char *const words[][2] = {
		{ "sm_active", "GPU counters" },	{ "dram", "GPU memory counters" },
		{ "nvlink_tx", "NVLink counters" },	{ "pcie_tx", "PCIe send counters" },
		{ "pcie_rx", "PCIe receive counters" }, { "nic_tx", "network counters" },
		{ "cpu_thread", "CPU samples" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(source, words[i][0]) == 0) {
			str_append(out, words[i][1]);
			return;
		}
	}
	clean_append_short(out, source, 200);
}

void absent_phrase(struct str *out, const struct report *report, size_t i)
{
	const char *why = report->absences[i].why;

	for (size_t k = i; k < report->absence_cnt; k++) {
		if (strcmp(report->absences[k].why, why) != 0)
			continue;
		str_append(out, k > i ? ", " : "");
		append_source(out, report->absences[k].source);
	}
	str_append(out, ": ");
	clean_append_short(out, why, 400);
}
