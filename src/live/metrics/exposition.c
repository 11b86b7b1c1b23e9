/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

size_t metric_bound_cnt(const struct metric_desc *desc)
{
	size_t cnt = 0;

	while (desc->bounds != NULL && cnt < METRIC_BUCKET_MAX && desc->bounds[cnt] != INT64_MAX)
		cnt++;
	return cnt;
}

/* --- which format --- */

/* One element of an Accept header, "text/plain;version=0.0.4;q=0.5", up to its comma. */
struct media_range {
	const char *text;
	size_t len;
};

static struct media_range next_range(const char **at)
{
	struct media_range range;

	*at += strspn(*at, " \t,");
	range.text = *at;
	range.len = strcspn(*at, ",");
	*at += range.len;
	return range;
}

static bool range_is(const struct media_range *range, const char *type)
{
	size_t len = strlen(type);

	return range->len >= len && strncasecmp(range->text, type, len) == 0 &&
	       (range->len == len || strchr(" \t;", range->text[len]) != NULL);
}

/* The text of a parameter, NULL when the range has none of this name. */
static const char *range_parameter(const struct media_range *range, const char *name)
{
	const char *end = range->text + range->len, *at = range->text;
	size_t len = strlen(name);

	while ((at = memchr(at, ';', (size_t)(end - at))) != NULL) {
		at++;
		at += strspn(at, " \t");
		if (at + len < end && strncasecmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
		if (at >= end)
			break;
	}
	return NULL;
}

/* 0..1; a range without one has 1. */
static double range_quality(const struct media_range *range)
{
	const char *text = range_parameter(range, "q");
	double value = 0, place = 1;

	if (text == NULL)
		return 1;
	for (; (*text >= '0' && *text <= '9') || *text == '.'; text++) {
		if (*text == '.') {
			place = 0.1;
		} else if (place == 1) {
			value = value * 10 + (*text - '0');
		} else {
			value += (*text - '0') * place;
			place /= 10;
		}
	}
	return fmin(value, 1);
}

/* Versions of OpenMetrics that are written here: 1.0.0, and 0.0.1 which equals it. */
static bool version_is_known(const struct media_range *range)
{
	const char *version = range_parameter(range, "version");

	if (version == NULL)
		return true;
	version += *version == '"';
	return strncmp(version, "1.", 2) == 0 || strncmp(version, "0.0.1", 5) == 0;
}

enum exposition_format exposition_choose(const char *accept)
{
	double open = 0, plain = 0;

	while (accept != NULL && *accept != '\0') {
		struct media_range range = next_range(&accept);
		double quality = range_quality(&range);

		if (range_is(&range, "application/openmetrics-text") && version_is_known(&range))
			open = fmax(open, quality);
		else if (range_is(&range, "text/plain"))
			plain = fmax(plain, quality);
	}
	return open > 0 && open >= plain ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}

const char *exposition_content_type(enum exposition_format format)
{
	return format == EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* --- texts --- */

/* Bytes of the UTF-8 character at text, 0 when there is none. */
static size_t utf8_len(const unsigned char *text)
{
	size_t cnt = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : 0;

	if (text[0] >= 0xe0 && text[0] < 0xf5)
		cnt = text[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < cnt; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Too long forms, surrogates, beyond the last plane. */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return cnt;
}

static void append_escaped(struct str *out, const char *text)
{
	size_t used = 0;

	while (*text != '\0') {
		size_t cnt = utf8_len((const unsigned char *)text);

		if (used + MAX(cnt, (size_t)1) > METRIC_TEXT_MAX)
			return;
		if (cnt == 0)
			str_append_char(out, '?');
		else if (*text == '\n')
			str_append(out, "\\n");
		else if (*text == '\\' || *text == '"')
			str_printf(out, "\\%c", *text);
		else if (*text == '\r') /* ends a line for some readers */
			str_append_char(out, ' ');
		else
			str_append_len(out, text, cnt);
		used += MAX(cnt, (size_t)1);
		text += MAX(cnt, (size_t)1);
	}
}

/* {a="x",b="y"}; name: one more label, NULL for none. */
static void append_labels(struct str *out, const struct metric_desc *desc,
			  const char *const *values, const char *name, const char *value)
{
	const char *before = "{";

	for (size_t i = 0; i < METRIC_LABEL_MAX && desc->labels[i] != NULL; i++) {
		if (values == NULL || values[i] == NULL)
			continue;
		str_printf(out, "%s%s=\"", before, desc->labels[i]);
		append_escaped(out, values[i]);
		str_append_char(out, '"');
		before = ",";
	}
	if (name != NULL) {
		str_printf(out, "%s%s=\"%s\"", before, name, value);
		before = ",";
	}
	if (*before == ',')
		str_append_char(out, '}');
}

/* 1500000000 of 10^9 is "1.5"; a whole number is "2", or "2.0" where point. */
static void format_units(char *ret, size_t size, uint64_t small_units, int64_t scale, bool point)
{
	uint64_t whole = small_units / (uint64_t)scale, rest = small_units % (uint64_t)scale;
	int len = snprintf(ret, size, "%" PRIu64, whole);

	if (rest == 0) {
		(void)snprintf(ret + len, size - (size_t)len, "%s", point ? ".0" : "");
		return;
	}
	ret[len++] = '.';
	for (uint64_t place = (uint64_t)scale / 10; rest > 0; place /= 10) {
		ret[len++] = (char)('0' + rest / place);
		rest %= place;
	}
	ret[len] = '\0';
}

#define NUMBER_BYTES 48

/* --- families --- */

static const char *type_word(enum exposition_format format, enum metric_type type)
{
	static const char *const words[] = {
		[METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_HISTOGRAM] = "histogram",
		[METRIC_INFO] = "info",
	};

	if (type == METRIC_INFO && format == EXPOSITION_PROMETHEUS)
		return "gauge";
	return words[type];
}

static const char *suffix(enum metric_type type)
{
	return type == METRIC_COUNTER ? "_total" : type == METRIC_INFO ? "_info" : "";
}

void exposition_family(struct str *out, enum exposition_format format,
		       const struct metric_desc *desc)
{
	/* In OpenMetrics a family's name has no suffix, its samples do. */
	const char *end = format == EXPOSITION_PROMETHEUS ? suffix(desc->type) : "";

	str_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", desc->name, end, desc->help, desc->name,
		   end, type_word(format, desc->type));
	if (format == EXPOSITION_OPENMETRICS && desc->unit[0] != '\0')
		str_printf(out, "# UNIT %s %s\n", desc->name, desc->unit);
}

void exposition_count(struct str *out, const struct metric_desc *desc, const char *const *values,
		      uint64_t small_units)
{
	char number[NUMBER_BYTES];

	format_units(number, sizeof(number), small_units, desc->scale, false);
	str_printf(out, "%s%s", desc->name, suffix(desc->type));
	append_labels(out, desc, values, NULL, NULL);
	str_printf(out, " %s\n", number);
}

void exposition_number(struct str *out, const struct metric_desc *desc, const char *const *values,
		       double value)
{
	char number[NUMBER_BYTES];

	if (isnan(value))
		(void)snprintf(number, sizeof(number), "NaN");
	else if (isinf(value))
		(void)snprintf(number, sizeof(number), value > 0 ? "+Inf" : "-Inf");
	else
		(void)snprintf(number, sizeof(number), "%.15g", value);
	str_printf(out, "%s%s", desc->name, suffix(desc->type));
	append_labels(out, desc, values, NULL, NULL);
	str_printf(out, " %s\n", number);
}

void exposition_histogram(struct str *out, const struct metric_desc *desc,
			  const char *const *values, const struct metric_histogram *histogram)
{
	size_t cnt = metric_bound_cnt(desc);
	char number[NUMBER_BYTES];
	uint64_t seen = 0;

	for (size_t i = 0; i <= cnt; i++) {
		if (i < cnt)
			format_units(number, sizeof(number), (uint64_t)desc->bounds[i], desc->scale,
				     true);
		seen += histogram->buckets[i];
		str_printf(out, "%s_bucket", desc->name);
		append_labels(out, desc, values, "le", i < cnt ? number : "+Inf");
		str_printf(out, " %" PRIu64 "\n", seen);
	}
	str_printf(out, "%s_count", desc->name);
	append_labels(out, desc, values, NULL, NULL);
	str_printf(out, " %" PRIu64 "\n", seen);
	format_units(number, sizeof(number), histogram->sum, desc->scale, false);
	str_printf(out, "%s_sum", desc->name);
	append_labels(out, desc, values, NULL, NULL);
	str_printf(out, " %s\n", number);
}

void exposition_end(struct str *out, enum exposition_format format)
{
	if (format == EXPOSITION_OPENMETRICS)
		str_append(out, "# EOF\n");
}
