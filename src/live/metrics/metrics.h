/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /metrics shows: families (serve/metrics_list.h), each with a bounded number of series.
 * The daemon's loop is the only writer; a page is made of a copy that is taken under the lock,
 * so that whoever reads slowly holds nobody up. A series, once there, stays, and its counts
 * never go back, also when a rank's process is followed by another.
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

#define METRICS_SERIES_MAX 512u /* of a family; what comes then goes into "other" */
#define METRICS_TOTAL_MAX 8192u /* of all families */
#define METRICS_NONE UINT32_MAX /* no series: out of memory */

struct metrics;

/* Returns NULL when out of memory. */
struct metrics *metrics_new(void);
struct metrics *metrics_free(struct metrics *metrics);

const struct metric_desc *metrics_desc(enum metric metric);

/*
 * The series of a family with these values of its labels, which are copied; made when it isn't
 * there. Beyond the limit the family's series whose labels are all "other". Stays valid until
 * it is dropped. METRICS_NONE may be given to the functions below, which then do nothing.
 */
uint32_t metrics_series(struct metrics *metrics, enum metric metric, const char *const *values);
#define METRIC_VALUES(...) ((const char *const[METRIC_LABEL_MAX]){ __VA_ARGS__ })

/* A counter: small units more. */
void metrics_add(struct metrics *metrics, uint32_t series, uint64_t small_units);

/* A counter that somebody else keeps: it becomes small_units, unless it is more already. */
void metrics_raise(struct metrics *metrics, uint32_t series, uint64_t small_units);

/* A gauge. */
void metrics_set(struct metrics *metrics, uint32_t series, double value);

/* All series of a gauge's family become 0, so that none tells what is no longer true. */
void metrics_clear(struct metrics *metrics, enum metric metric);

/* A histogram; a negative value counts as 0. */
void metrics_observe(struct metrics *metrics, uint32_t series, int64_t small_units);

/* The series is no more shown, until it is asked for again; the number stays its own. */
void metrics_drop(struct metrics *metrics, uint32_t series);

/* The whole page. Safe from any thread. Returns 0 or -ENOMEM; out is empty then. */
_must_check_ int metrics_render(struct metrics *metrics, enum exposition_format format,
				struct str *out);

/* How often something has changed: the same number, the same page. Safe from any thread. */
uint64_t metrics_generation(struct metrics *metrics);
