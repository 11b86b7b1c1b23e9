/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a report: they are refused with a line, or give findings with sorted ranks. */
#include "cmd/timeline/timeline_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct timeline_report report;
	struct err err = { "" };

	if (timeline_report_parse("out/report-3.json", (const char *)data, len, &report, &err) <
		    0 &&
	    err.text[0] == '\0')
		abort();
	vec_foreach(finding, &report.findings) {
		for (size_t i = 1; i < finding->rank_cnt; i++) {
			if (finding->ranks[i - 1] >= finding->ranks[i])
				abort();
		}
	}
	timeline_report_done(&report);
	return 0;
}
