/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the pictures in the JSON report. */
#pragma once

#include "model/report.h"
#include "report/jsonwriter.h"

/* Null where there is no such picture. An error of memory is kept by w. */
json_t *json_lanes(struct json_writer *w, const struct report_lanes *lanes);
json_t *json_flame(struct json_writer *w, const struct report_flame *flame);
json_t *json_pace(struct json_writer *w, const struct report_pace *pace);

/* Lateness of a worker by iteration, or null. */
json_t *json_lateness(struct json_writer *w, const struct report_worker *worker);
