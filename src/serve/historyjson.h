/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job of the store as the document perftracker.history.v1: the job, its reports with findings,
 * events and pace. `perftracker history --format json` prints it, the API answers with it.
 */
#pragma once

#include "report/jsonwriter.h"
#include "store/storelist.h"

/*
 * The finest tier of the pace, in seconds, that has rows and at most rows_max of them, else the
 * coarsest. ret_slowest_ns: the largest mean of a row; ret_cnt: 0 when no tier has rows.
 */
_must_check_ int historyjson_choose_tier(struct store *store, const char *key, size_t rows_max,
					 int *ret_tier_s, int64_t *ret_slowest_ns, size_t *ret_cnt,
					 struct err *err);

/* tier_s 0: chosen as above. Appends the document to out. Returns 0 or -errno with a line in err. */
_must_check_ int historyjson_print(struct store *store, const char *key, int tier_s,
				   size_t rows_max, struct str *out, struct err *err);

/* "3fa9d1e0b2c4/2", "3fa9d1e0b2c4/end": how a report is called. */
void historyjson_report_name(const struct store_report *report, char ret[static 40]);

/* A report and its findings as an object, without the list of findings when with_findings is not. */
json_t *historyjson_report(struct json_writer *w, const struct store_report *report);
json_t *historyjson_finding(struct json_writer *w, const struct store_finding *finding);
json_t *historyjson_event(struct json_writer *w, const struct store_event *event);
