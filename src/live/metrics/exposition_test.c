/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/exposition.h"

#include "base/test_random.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const int64_t bounds[] = { 1000, 1500000000, INT64_MAX };
static const struct metric_desc wait = { .name = "wait_seconds",
					 .help = "Time waited.",
					 .unit = "seconds",
					 .type = METRIC_HISTOGRAM,
					 .scale = NSEC_PER_SEC,
					 .bounds = bounds,
					 .labels = { "rank" } };
static const struct metric_desc bytes = { .name = "moved_bytes",
					  .help = "Bytes.",
					  .unit = "bytes",
					  .type = METRIC_COUNTER,
					  .scale = 1,
					  .labels = { "a", "b" } };

static void expect(struct str *out, const char *text)
{
	assert_string_equal(str_borrow(out), text);
	str_done(out);
	*out = (struct str){ 0 };
}

static void a_histogram_is_cumulative_and_exact(void **state)
{
	struct metric_histogram histogram = { .sum = 3000000001, .buckets = { 2, 1, 4 } };
	const char *values[METRIC_LABEL_MAX] = { "7" };
	struct str out = { 0 };

	(void)state;
	exposition_family(&out, EXPOSITION_PROMETHEUS, &wait);
	exposition_histogram(&out, &wait, values, &histogram);
	expect(&out, "# HELP wait_seconds Time waited.\n"
		     "# TYPE wait_seconds histogram\n"
		     "wait_seconds_bucket{rank=\"7\",le=\"0.000001\"} 2\n"
		     "wait_seconds_bucket{rank=\"7\",le=\"1.5\"} 3\n"
		     "wait_seconds_bucket{rank=\"7\",le=\"+Inf\"} 7\n"
		     "wait_seconds_count{rank=\"7\"} 7\n"
		     "wait_seconds_sum{rank=\"7\"} 3.000000001\n");
}

static void a_counter_has_its_suffix_where_the_format_wants_it(void **state)
{
	const char *values[METRIC_LABEL_MAX] = { NULL, "x" };
	struct str out = { 0 };

	(void)state;
	exposition_family(&out, EXPOSITION_PROMETHEUS, &bytes);
	expect(&out, "# HELP moved_bytes_total Bytes.\n# TYPE moved_bytes_total counter\n");
	exposition_family(&out, EXPOSITION_OPENMETRICS, &bytes);
	exposition_count(&out, &bytes, values, UINT64_MAX);
	exposition_end(&out, EXPOSITION_OPENMETRICS);
	expect(&out, "# HELP moved_bytes Bytes.\n# TYPE moved_bytes counter\n"
		     "# UNIT moved_bytes bytes\n"
		     "moved_bytes_total{b=\"x\"} 18446744073709551615\n# EOF\n");
}

static void numbers_that_are_none_have_their_words(void **state)
{
	static const struct metric_desc gauge = { "g", "G.", "", METRIC_GAUGE, 1, NULL, { NULL } };
	struct str out = { 0 };

	(void)state;
	exposition_number(&out, &gauge, NULL, (double)NAN);
	exposition_number(&out, &gauge, NULL, (double)INFINITY);
	exposition_number(&out, &gauge, NULL, -(double)INFINITY);
	exposition_number(&out, &gauge, NULL, 0.1);
	expect(&out, "g NaN\ng +Inf\ng -Inf\ng 0.1\n");
}

static void labels_are_escaped_and_never_end_a_line(void **state)
{
	const char *values[METRIC_LABEL_MAX] = { "a\"b\\c\nd\re", "\xff\xc3\xa9\xe2\x82" };
	struct str out = { 0 };

	(void)state;
	exposition_count(&out, &bytes, values, 1);
	expect(&out, "moved_bytes_total{a=\"a\\\"b\\\\c\\nd e\",b=\"?\xc3\xa9??\"} 1\n");
}

/* Parses a quoted label as a reader of the format does; -1: invalid. */
static int unescape(const char *at, char *ret)
{
	int len = 0;

	for (; *at != '"'; at++) {
		if (*at == '\n' || *at == '\0')
			return -1;
		if (*at == '\\') {
			at++;
			if (*at != 'n' && *at != '\\' && *at != '"')
				return -1;
			ret[len++] = *at == 'n' ? '\n' : *at;
			continue;
		}
		ret[len++] = *at;
	}
	ret[len] = '\0';
	return strcmp(at, "\"} 5\n") == 0 ? len : -1;
}

static void any_ascii_text_can_be_read_back(void **state)
{
	char text[METRIC_TEXT_MAX + 1], back[2 * METRIC_TEXT_MAX];
	uint64_t random = 17;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		const char *values[METRIC_LABEL_MAX] = { text };
		size_t len = test_random(&random) % METRIC_TEXT_MAX;
		static const char hard[] = "\"\\\n{}=,a";
		struct str out = { 0 };

		for (size_t i = 0; i < len; i++)
			text[i] = hard[test_random(&random) % (sizeof(hard) - 1)];
		text[len] = '\0';
		exposition_count(&out, &bytes, values, 5);
		assert_int_equal(unescape(strchr(out.data, '"') + 1, back), len);
		assert_string_equal(back, text);
		str_done(&out);
	}
}

static void random_bytes_stay_within_one_line_of_utf8(void **state)
{
	char text[200];
	uint64_t random = 3;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		const char *values[METRIC_LABEL_MAX] = { text };
		struct str out = { 0 };
		char *end;

		for (size_t i = 0; i < sizeof(text) - 1; i++)
			text[i] = (char)(test_random(&random) % 255 + 1);
		text[sizeof(text) - 1] = '\0';
		exposition_count(&out, &bytes, values, 1);
		end = strchr(out.data, '\n');
		assert_non_null(end);
		assert_int_equal(end - out.data, out.len - 1);
		assert_true(mbstowcs(NULL, out.data, 0) != (size_t)-1);
		str_done(&out);
	}
}

static void a_scraper_gets_the_format_it_prefers(void **state)
{
	static const struct {
		const char *accept;
		enum exposition_format format;
	} cases[] = {
		{ NULL, EXPOSITION_PROMETHEUS },
		{ "", EXPOSITION_PROMETHEUS },
		{ "*/*", EXPOSITION_PROMETHEUS },
		{ "text/html,application/xhtml+xml,*/*;q=0.8", EXPOSITION_PROMETHEUS },
		{ "application/openmetrics-text", EXPOSITION_OPENMETRICS },
		{ "Application/OpenMetrics-Text; version=1.0.0", EXPOSITION_OPENMETRICS },
		{ "application/openmetrics-text;version=\"1.0.0\"", EXPOSITION_OPENMETRICS },
		{ "application/openmetrics-text;version=2.0.0", EXPOSITION_PROMETHEUS },
		{ "application/openmetrics-text;version=1.0.0;q=0.5,application/"
		  "openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		  EXPOSITION_OPENMETRICS }, /* Prometheus itself */
		{ "application/openmetrics-text;q=0.1,text/plain;q=0.9", EXPOSITION_PROMETHEUS },
		{ "application/openmetrics-text;q=0", EXPOSITION_PROMETHEUS },
		{ "application/openmetrics-textual", EXPOSITION_PROMETHEUS },
		{ ";;;,,;q=;q", EXPOSITION_PROMETHEUS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (exposition_choose(cases[i].accept) != cases[i].format)
			fail_msg("%s", cases[i].accept != NULL ? cases[i].accept : "none");
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_histogram_is_cumulative_and_exact),
		cmocka_unit_test(a_counter_has_its_suffix_where_the_format_wants_it),
		cmocka_unit_test(numbers_that_are_none_have_their_words),
		cmocka_unit_test(labels_are_escaped_and_never_end_a_line),
		cmocka_unit_test(any_ascii_text_can_be_read_back),
		cmocka_unit_test(random_bytes_stay_within_one_line_of_utf8),
		cmocka_unit_test(a_scraper_gets_the_format_it_prefers),
	};

	(void)setlocale(LC_ALL, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
