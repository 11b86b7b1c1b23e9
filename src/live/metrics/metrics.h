/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of /metrics: families (families.h), each with a bounded number of series. The
 * daemon's loop is the only writer; a page is made from a copy taken under the lock, so a slow
 * reader blocks nothing. A series, once made, stays, and its counts never decrease, also when
 * a rank's process is replaced.
 * Source: docs/metrics.md.
 */
#pragma once

#include "base/str.h"
#include "live/metrics/exposition.h"
#include "live/metrics/families.h"

enum metric {
#define X(id, ...) METRIC_##id,
	METRIC_LIST(X)
#undef X
		METRIC_CNT
};

#define METRICS_SERIES_MAX 512u /* of a family; further ones are counted in "other" */
#define METRICS_TOTAL_MAX 8192u /* of all families */
#define METRICS_NONE UINT32_MAX /* no series: out of memory */

struct metrics;

/* Returns NULL when out of memory. */
struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *metrics);

const struct metric_desc *metrics_desc(enum metric metric);

/*
 * Finds or makes the series of a family with these values of its labels, which are copied.
 * Beyond the limit it returns the family's series whose labels are all "other". Valid until
 * the series is dropped. The functions below accept METRICS_NONE and do nothing then.
 */
uint32_t metrics_series(struct metrics *metrics, enum metric metric, const char *const *values);
#define METRIC_VALUES(...) ((const char *const[METRIC_LABEL_MAX]){ __VA_ARGS__ })

/* Adds small units to a counter. */
void metrics_add(struct metrics *metrics, uint32_t series, uint64_t small_units);

/* A counter kept by another source: raises it to small_units; it never decreases. */
void metrics_raise(struct metrics *metrics, uint32_t series, uint64_t small_units);

/* Sets a gauge. */
void metrics_set(struct metrics *metrics, uint32_t series, double value);

/* Sets all series of a gauge's family to 0, so that none shows an outdated value. */
void metrics_clear(struct metrics *metrics, enum metric metric);

/* Adds to a histogram; a negative value counts as 0. */
void metrics_observe(struct metrics *metrics, uint32_t series, int64_t small_units);

/* Hides the series until metrics_series() returns it again; its number stays reserved. */
void metrics_drop(struct metrics *metrics, uint32_t series);

/* The whole page. Safe from any thread. Returns 0 or -ENOMEM; out is empty then. */
_must_check_ int metrics_render(struct metrics *metrics, enum exposition_format format,
				struct str *out);

/* Number of changes so far: pages of the same number are equal. Safe from any thread. */
uint64_t metrics_generation(struct metrics *metrics);
