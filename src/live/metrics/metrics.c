/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/metrics.h"

#include "base/idmap.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#define OTHER "other"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

/* For the times of kernels up to those of blocked collectives. */
static const int64_t bounds_FINE[] = {
	1 * US,	 3 * US,   10 * US,  30 * US,	100 * US, 300 * US, 1 * MS,   3 * MS,	 10 * MS,
	30 * MS, 100 * MS, 300 * MS, 1000 * MS, 3 * SEC,  10 * SEC, 30 * SEC, 100 * SEC, INT64_MAX
};
/* Iterations: closer together, since 10 % more is much. */
static const int64_t bounds_WIDE[] = { 1 * MS,	 2 * MS,   5 * MS,    10 * MS,	 20 * MS,  50 * MS,
				       75 * MS,	 100 * MS, 150 * MS,  200 * MS,	 300 * MS, 500 * MS,
				       750 * MS, 1 * SEC,  1500 * MS, 2 * SEC,	 3 * SEC,  5 * SEC,
				       10 * SEC, 20 * SEC, 60 * SEC,  300 * SEC, INT64_MAX };
static const int64_t bounds_BYTES[] = { 1 << 10,  1 << 13, 1 << 16,	     1 << 18,
					1 << 20,  1 << 22, 1 << 24,	     1 << 26,
					1 << 28,  1 << 30, INT64_C(1) << 32, INT64_C(1) << 34,
					INT64_MAX };
/* Of a link or a network card, to all links of a GPU. */
#define GB INT64_C(1000000000)
static const int64_t bounds_RATE[] = { GB / 10,	 GB / 5,   GB / 2,    GB,	 2 * GB,   5 * GB,
				       10 * GB,	 20 * GB,  50 * GB,   100 * GB,	 200 * GB, 300 * GB,
				       400 * GB, 600 * GB, 1000 * GB, 2000 * GB, INT64_MAX };
/* In 10^6 a second. */
#define TERA INT64_C(1000000)
static const int64_t bounds_FLOPS[] = { TERA,	    2 * TERA,	 5 * TERA,    10 * TERA,
					20 * TERA,  50 * TERA,	 100 * TERA,  200 * TERA,
					300 * TERA, 400 * TERA,	 500 * TERA,  600 * TERA,
					800 * TERA, 1000 * TERA, 1500 * TERA, 2000 * TERA,
					INT64_MAX };
#define bounds_NONE NULL

/* Compares units by length: no other unit of counted values is as long as a scaled one. */
#define IS_UNIT(unit, which) (sizeof(unit) == sizeof(which))
#define SCALE(unit)                                                                 \
	(IS_UNIT(unit, "seconds")					     ? SEC  \
	 : IS_UNIT(unit, "teraflop") || IS_UNIT(unit, "teraflop_per_second") ? TERA \
									     : 1)

static const struct metric_desc descs[METRIC_CNT] = {
#define X(id, family, kind, base_unit, buckets, text, ...) \
	[METRIC_##id] = { .name = family,                  \
			  .help = text,                    \
			  .unit = base_unit,               \
			  .type = METRIC_##kind,           \
			  .scale = SCALE(base_unit),       \
			  .bounds = bounds_##buckets,      \
			  .labels = { __VA_ARGS__ } },
	METRIC_LIST(X)
#undef X
};

struct series {
	bool used, other;
	uint16_t metric;
	const char *values[METRIC_LABEL_MAX]; /* interned */
	union {
		uint64_t small_units; /* counter */
		double number;	      /* gauge, info */
		struct metric_histogram histogram;
	};
};

typedef VEC(struct series) series_vec;

struct metrics {
	pthread_mutex_t lock; /* of all that follows */
	uint64_t generation;
	struct strtab texts;
	series_vec series;
	struct idmap places;	       /* hash of metric and values: number */
	uint32_t cnt[METRIC_CNT];      /* series of a family, "other" left out */
	uint64_t overflow[METRIC_CNT]; /* values that went into "other" */
};

const struct metric_desc *metrics_desc(enum metric metric)
{
	return &descs[metric];
}

struct metrics *metrics_new(void)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics == NULL)
		return NULL;
	if (strtab_init(&metrics->texts) < 0) {
		free(metrics);
		return NULL;
	}
	(void)pthread_mutex_init(&metrics->lock, NULL);
	return metrics;
}

struct metrics *metrics_free(struct metrics *metrics)
{
	if (metrics == NULL)
		return NULL;
	vec_done(&metrics->series);
	idmap_done(&metrics->places);
	strtab_done(&metrics->texts);
	(void)pthread_mutex_destroy(&metrics->lock);
	free(metrics);
	return NULL;
}

/* --- series --- */

/*
 * Interns the values. known: only finds texts already interned, so that a full family takes no
 * more memory. Returns 0, -ENOENT or -ENOMEM.
 */
static int intern(struct metrics *metrics, const char *const *values, bool known,
		  struct series *ret)
{
	const struct metric_desc *desc = &descs[ret->metric];

	for (size_t i = 0; i < METRIC_LABEL_MAX && desc->labels[i] != NULL; i++) {
		uint32_t id;
		size_t len;

		if (values == NULL || values[i] == NULL)
			continue;
		len = strnlen(values[i], METRIC_TEXT_MAX);
		id = known ? strtab_find(&metrics->texts, values[i], len)
			   : strtab_intern(&metrics->texts, values[i], len);
		if (id == STRTAB_NONE)
			return known ? -ENOENT : -ENOMEM;
		ret->values[i] = strtab_text(&metrics->texts, id);
	}
	return 0;
}

/* Texts are interned, so that equal ones have one address. */
static uint64_t key_of(const struct series *series, uint64_t round)
{
	return XXH3_64bits_withSeed(series->values, sizeof(series->values),
				    (uint64_t)series->metric << 32 | round);
}

static bool same_series(const struct series *a, const struct series *b)
{
	return a->metric == b->metric && memcmp(a->values, b->values, sizeof(a->values)) == 0;
}

/* The number of an equal series, or METRICS_NONE; *ret_key: its key in places. */
static uint32_t find(const struct metrics *metrics, const struct series *like, uint64_t *ret_key)
{
	for (uint64_t round = 0;; round++) {
		uint64_t key = key_of(like, round);
		uint32_t at = idmap_get(&metrics->places, key);

		*ret_key = key;
		/* A dropped series keeps its place until one with the same labels is made. */
		if (at == IDMAP_NONE || same_series(&metrics->series.data[at], like))
			return at == IDMAP_NONE ? METRICS_NONE : at;
	}
}

static uint32_t add(struct metrics *metrics, const struct series *series, uint64_t key)
{
	uint32_t at = (uint32_t)metrics->series.cnt;

	if (vec_push(&metrics->series, *series) < 0)
		return METRICS_NONE;
	if (idmap_set(&metrics->places, key, at) < 0) {
		metrics->series.cnt--;
		return METRICS_NONE;
	}
	return at;
}

static uint32_t find_or_add(struct metrics *metrics, const struct series *like)
{
	uint64_t key;
	uint32_t at = find(metrics, like, &key);

	if (at != METRICS_NONE && metrics->series.data[at].used)
		return at;
	if (at == METRICS_NONE)
		at = add(metrics, like, key);
	else
		metrics->series.data[at] = *like;
	metrics->cnt[like->metric] += at != METRICS_NONE && !like->other;
	return at;
}

static bool is_full(const struct metrics *metrics, enum metric metric)
{
	return metrics->cnt[metric] >= METRICS_SERIES_MAX ||
	       metrics->series.cnt >= METRICS_TOTAL_MAX;
}

/* All labels of the family are "other". */
static uint32_t other_series(struct metrics *metrics, enum metric metric)
{
	const struct metric_desc *desc = &descs[metric];
	const char *values[METRIC_LABEL_MAX] = { 0 };
	struct series other;

	memset(&other, 0, sizeof(other));
	other.used = other.other = true;
	other.metric = (uint16_t)metric;
	for (size_t i = 0; i < METRIC_LABEL_MAX && desc->labels[i] != NULL; i++)
		values[i] = OTHER;
	if (intern(metrics, values, false, &other) < 0)
		return METRICS_NONE;
	return find_or_add(metrics, &other);
}

static uint32_t get_series(struct metrics *metrics, enum metric metric, const char *const *values)
{
	bool full = is_full(metrics, metric);
	struct series like;
	uint64_t key;
	uint32_t at;

	memset(&like, 0, sizeof(like));
	like.used = true;
	like.metric = (uint16_t)metric;
	switch (intern(metrics, values, full, &like)) {
	case 0:
		break;
	case -ENOENT:
		return other_series(metrics, metric);
	default:
		return METRICS_NONE;
	}
	at = full ? find(metrics, &like, &key) : METRICS_NONE;
	if (full && (at == METRICS_NONE || !metrics->series.data[at].used))
		return other_series(metrics, metric);
	return find_or_add(metrics, &like);
}

uint32_t metrics_series(struct metrics *metrics, enum metric metric, const char *const *values)
{
	uint32_t at;

	(void)pthread_mutex_lock(&metrics->lock);
	at = get_series(metrics, metric, values);
	metrics->generation++;
	(void)pthread_mutex_unlock(&metrics->lock);
	return at;
}

/* Takes the lock if there is such a series. */
static struct series *enter(struct metrics *metrics, uint32_t series)
{
	if (series == METRICS_NONE)
		return NULL;
	(void)pthread_mutex_lock(&metrics->lock);
	metrics->generation++;
	if (metrics->series.data[series].other)
		metrics->overflow[metrics->series.data[series].metric]++;
	return &metrics->series.data[series];
}

static void leave(struct metrics *metrics)
{
	(void)pthread_mutex_unlock(&metrics->lock);
}

void metrics_add(struct metrics *metrics, uint32_t series, uint64_t small_units)
{
	struct series *s = enter(metrics, series);

	if (s == NULL)
		return;
	s->small_units += small_units;
	leave(metrics);
}

void metrics_raise(struct metrics *metrics, uint32_t series, uint64_t small_units)
{
	struct series *s = enter(metrics, series);

	if (s == NULL)
		return;
	s->small_units = MAX(s->small_units, small_units);
	leave(metrics);
}

void metrics_set(struct metrics *metrics, uint32_t series, double value)
{
	struct series *s = enter(metrics, series);

	if (s == NULL)
		return;
	s->number = value;
	leave(metrics);
}

void metrics_clear(struct metrics *metrics, enum metric metric)
{
	(void)pthread_mutex_lock(&metrics->lock);
	metrics->generation++;
	vec_foreach(series, &metrics->series) {
		if (series->used && series->metric == metric)
			series->number = 0;
	}
	leave(metrics);
}

void metrics_observe(struct metrics *metrics, uint32_t series, int64_t small_units)
{
	struct series *s = enter(metrics, series);
	const int64_t *bounds;
	size_t bucket = 0;

	if (s == NULL)
		return;
	small_units = MAX(small_units, (int64_t)0);
	bounds = descs[s->metric].bounds;
	while (small_units > bounds[bucket]) /* the last one is INT64_MAX */
		bucket++;
	s->histogram.sum += (uint64_t)small_units;
	s->histogram.buckets[bucket]++;
	leave(metrics);
}

void metrics_drop(struct metrics *metrics, uint32_t series)
{
	struct series *s = enter(metrics, series);

	if (s == NULL)
		return;
	if (s->used && !s->other) {
		s->used = false;
		metrics->cnt[s->metric]--;
	}
	leave(metrics);
}

/* --- the page --- */

static int compare_values(const struct series *x, const struct series *y)
{
	for (size_t i = 0; i < METRIC_LABEL_MAX; i++) {
		const char *p = x->values[i] != NULL ? x->values[i] : "";
		const char *q = y->values[i] != NULL ? y->values[i] : "";
		size_t p_len = strlen(p), q_len = strlen(q);
		bool digits =
			p[strspn(p, "0123456789")] == '\0' && q[strspn(q, "0123456789")] == '\0';
		int order = strcmp(p, q);

		if (digits && p_len != q_len) /* rank 10 comes after rank 9 */
			return p_len < q_len ? -1 : 1;
		if (order != 0)
			return order;
	}
	return 0;
}

static int by_family(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return compare_values(x, y);
}

/* A copy of all series, taken under the lock. */
struct copy {
	series_vec series;
	uint64_t overflow[METRIC_CNT];
};

static int copy_all(struct metrics *metrics, struct copy *ret)
{
	int error;

	(void)pthread_mutex_lock(&metrics->lock);
	error = vec_reserve(&ret->series, metrics->series.cnt + 1);
	vec_foreach(series, &metrics->series) {
		if (error == 0 && series->used)
			ret->series.data[ret->series.cnt++] = *series;
	}
	memcpy(ret->overflow, metrics->overflow, sizeof(ret->overflow));
	(void)pthread_mutex_unlock(&metrics->lock);
	return error;
}

static void render_series(struct str *out, const struct series *series)
{
	const struct metric_desc *desc = &descs[series->metric];

	switch (desc->type) {
	case METRIC_COUNTER:
		exposition_count(out, desc, series->values, series->small_units);
		break;
	case METRIC_HISTOGRAM:
		exposition_histogram(out, desc, series->values, &series->histogram);
		break;
	case METRIC_GAUGE:
	case METRIC_INFO:
		exposition_number(out, desc, series->values, series->number);
		break;
	}
}

static void render_overflow(struct str *out, enum exposition_format format, const struct copy *copy)
{
	const struct metric_desc *desc = &descs[METRIC_OVERFLOW];

	exposition_family(out, format, desc);
	for (size_t i = 0; i < METRIC_CNT; i++) {
		if (copy->overflow[i] > 0)
			exposition_count(out, desc, METRIC_VALUES(descs[i].name),
					 copy->overflow[i]);
	}
}

int metrics_render(struct metrics *metrics, enum exposition_format format, struct str *out)
{
	struct copy copy = { 0 };
	int error = copy_all(metrics, &copy), last = -1;

	if (error == 0 && copy.series.cnt > 0)
		qsort(copy.series.data, copy.series.cnt, sizeof(*copy.series.data), by_family);
	vec_foreach(series, &copy.series) {
		if (series->metric != last)
			exposition_family(out, format, &descs[series->metric]);
		last = series->metric;
		render_series(out, series);
	}
	render_overflow(out, format, &copy);
	exposition_end(out, format);
	vec_done(&copy.series);
	if (error == 0)
		error = str_error(out);
	if (error < 0)
		str_done(out);
	return error;
}

uint64_t metrics_generation(struct metrics *metrics)
{
	uint64_t generation;

	(void)pthread_mutex_lock(&metrics->lock);
	generation = metrics->generation;
	(void)pthread_mutex_unlock(&metrics->lock);
	return generation;
}
