/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of /metrics and its address: the server, and OUT/metrics.json, which names the
 * address in the format of Prometheus' file_sd_configs. A page is made at most once for each
 * change; further requests get the same page.
 */
#pragma once

#include "live/metrics/hostvalues.h"

#define METRICS_FILE "metrics.json"

struct metrics_page;

/* Serves host's metrics as options say. Returns 0 or -errno with a line in err. */
_must_check_ int metrics_page_open(struct metrics_host *host, const struct run_options *options,
				   struct metrics_page **ret, struct err *err);

/* Ends the server and removes the file. */
struct metrics_page *metrics_page_close(struct metrics_page *page);

/* Cuts old connections; call it at every tick. */
void metrics_page_tick(struct metrics_page *page, int64_t now_ns);

/* "127.0.0.1:9400" */
const char *metrics_page_borrow_address(const struct metrics_page *page);
