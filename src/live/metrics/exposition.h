/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two text formats that scrapers read, over one set of families. A family is begun
 * once, all its samples follow. Numbers that are counted in small units (ns, bytes) are
 * written as exact decimals of the base unit, and bounds of buckets alike in both formats,
 * so that a series is the same whichever format a scraper asks for.
 * Source: Prometheus text format 0.0.4; OpenMetrics 1.0.0.
 */
#pragma once

#include "base/str.h"

enum exposition_format { EXPOSITION_PROMETHEUS, EXPOSITION_OPENMETRICS };

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

#define METRIC_LABEL_MAX 11
#define METRIC_BUCKET_MAX 24
#define METRIC_TEXT_MAX 128 /* bytes of a label's value; more is cut off */

/* A family. */
struct metric_desc {
	const char *name; /* without the suffix that its type brings */
	const char *help; /* one line without quotes or backslashes */
	const char *unit; /* "seconds", "bytes", ""; the name ends in it */
	enum metric_type type;
	int64_t scale;	       /* small units in one base unit: 10^9 for counted ns, else 1 */
	const int64_t *bounds; /* of a histogram, ascending, in small units */
	const char *labels[METRIC_LABEL_MAX + 1]; /* NULL ends them */
};

/* Observations. buckets[i]: those up to bounds[i] and above the one before; the last: the rest. */
struct metric_histogram {
	uint64_t sum; /* small units */
	uint64_t buckets[METRIC_BUCKET_MAX + 1];
};

/* Number of bounds: they end with INT64_MAX. */
size_t metric_bound_cnt(const struct metric_desc *desc);

/* The format that an Accept header prefers; NULL: the Prometheus format. */
enum exposition_format exposition_choose(const char *accept);

const char *exposition_content_type(enum exposition_format format);

/* HELP, TYPE and UNIT of a family. */
void exposition_family(struct str *out, enum exposition_format format,
		       const struct metric_desc *desc);

/* One sample. values: of desc->labels, in their order; NULL where a label has none. */
void exposition_count(struct str *out, const struct metric_desc *desc, const char *const *values,
		      uint64_t small_units);
void exposition_number(struct str *out, const struct metric_desc *desc, const char *const *values,
		       double value);
void exposition_histogram(struct str *out, const struct metric_desc *desc,
			  const char *const *values, const struct metric_histogram *histogram);

/* After the last family. */
void exposition_end(struct str *out, enum exposition_format format);
