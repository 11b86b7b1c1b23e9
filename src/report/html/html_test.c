/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/clean.h"
#include "report/html/meaning.h"
#include "report/test_help.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONG_NAME 10240
#define SIZE_MAX_BYTES (3u << 20)

/* Names as user code and files may hold them. */
static const char *const hostile_names[] = {
	"<script>alert(1)</script>",
	"\"><img src=x onerror=alert(1)>",
	"' onmouseover='alert(1)",
	"</title><script>alert(1)</script>",
	"</style><script>alert(1)</script>",
	"</svg></body></html><iframe src=//example.org>",
	"]]>-->*/",
	"<!--",
	"javascript:alert(1)",
	"&lt;script&gt; &#x3c; &amp;",
	"right \xe2\x80\xae to left \xe2\x80\xac",
	"\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d <b>",
	"nul \xc0\x80 bell \x07 esc \x1b[2J",
	"\xff\xfe\x80 <",
	"%s%n %d",
	"{{constructor.constructor('alert(1)')()}}",
	"",
};

static char *print_named(const char *name)
{
	struct report report;
	struct str out = { 0 };

	sample_make_named(name, &report);
	assert_int_equal(report_html(&report, &out), 0);
	arena_done(&report.arena);
	return out.data;
}

/* The page without what stands between its tags: a name may be in the latter only. */
static char *skeleton(const char *html)
{
	struct str out = { 0 };

	for (const char *p = strchr(html, '<'); p != NULL; p = strchr(p, '<')) {
		size_t len = strcspn(p, ">") + 1;

		str_append_len(&out, p, len);
		p += len;
	}
	assert_int_equal(str_error(&out), 0);
	return out.data;
}

static void assert_harmless(const char *html)
{
	assert_null(strstr(html, "<script"));
	assert_null(strstr(html, "<img"));
	assert_null(strstr(html, "<iframe"));
	for (const char *p = html; *p != '\0';) {
		uint32_t c = 0;
		size_t len = clean_decode(p, &c);

		assert_true(len > 0);
		assert_true(c == '\n' || (c >= 0x20 && c != 0x7f && c != 0x202e && c != 0x9b));
		p += len;
	}
}

static void no_name_changes_the_markup(void **state)
{
	char *plain = print_named("plain"), *expected = skeleton(plain);

	(void)state;
	for (size_t i = 0; i + 1 < ARRAY_SIZE(hostile_names); i++) {
		char *html = print_named(hostile_names[i]), *tags = skeleton(html);

		assert_harmless(html);
		assert_string_equal(tags, expected);
		free(html);
		free(tags);
	}
	free(plain);
	free(expected);
}

static void an_empty_name_is_harmless(void **state)
{
	char *html = print_named("");

	(void)state;
	assert_harmless(html);
	free(html);
}

static void long_names_are_shortened_and_stay_text(void **state)
{
	static const char *const units[] = { "<", "\"", "&", "a", "\xc3\xa9", "\xff", "\x01" };
	char *plain = print_named("plain"), *expected = skeleton(plain);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		struct str name = { 0 };
		char *html, *tags;

		while (name.len < LONG_NAME)
			str_append(&name, units[i]);
		html = print_named(name.data);
		tags = skeleton(html);
		assert_harmless(html);
		assert_string_equal(tags, expected);
		/* About twenty places, some hundred characters each, escaped. */
		assert_true(strlen(html) < strlen(plain) + 10 * LONG_NAME);
		free(html);
		free(tags);
		str_done(&name);
	}
	free(plain);
	free(expected);
}

static void nothing_is_loaded_and_nothing_runs(void **state)
{
	static const char *const forbidden[] = {
		"http:",   "https:", "url(",	  "@import", " src=",
		"<script", "<link",  " onclick=", " style=",
	};

	(void)state;
	for (const struct sample_report *s = sample_reports; s->name != NULL; s++) {
		char *html = help_print(s->name, report_html);
		char *tags = skeleton(html);

		help_assert_contains(html, "default-src 'none'");
		help_assert_contains(html, "prefers-color-scheme:dark");
		for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
			assert_null(strstr(tags, forbidden[i]));
		assert_null(strstr(html, "url("));
		assert_null(strstr(html, "@import"));
		free(html);
		free(tags);
	}
}

static bool is_void(const char *name)
{
	return strcmp(name, "meta") == 0 || strcmp(name, "!doctype") == 0;
}

/* Fails when an element is closed that is not the innermost open one, or stays open. */
static void assert_balanced(const char *html)
{
	char stack[32][16], name[16];
	size_t depth = 0;

	for (const char *p = strchr(html, '<'); p != NULL; p = strchr(p + 1, '<')) {
		const char *end = strchr(p, '>');

		assert_non_null(end);
		if (p[1] == '/') {
			assert_int_equal(sscanf(p, "</%15[a-z0-9]>", name), 1);
			assert_true(depth > 0);
			assert_string_equal(stack[--depth], name);
		} else if (end[-1] != '/') {
			assert_int_equal(sscanf(p, "<%15[!a-z0-9]", name), 1);
			assert_true(depth < ARRAY_SIZE(stack));
			if (!is_void(name))
				memcpy(stack[depth++], name, sizeof(name));
		}
	}
	assert_int_equal(depth, 0);
}

static void elements_are_closed_in_order(void **state)
{
	(void)state;
	for (const struct sample_report *s = sample_reports; s->name != NULL; s++) {
		char *html = help_print(s->name, report_html);

		assert_balanced(html);
		free(html);
	}
}

static size_t count(const char *text, const char *part)
{
	size_t cnt = 0;

	for (const char *p = strstr(text, part); p != NULL; p = strstr(p + 1, part))
		cnt++;
	return cnt;
}

static void every_picture_has_a_title_and_a_description(void **state)
{
	char *html = help_print("figure7", report_html);

	(void)state;
	assert_int_equal(count(html, "<svg "), 9);
	assert_int_equal(count(html, "<svg "), count(html, "role=\"img\" aria-labelledby="));
	assert_int_equal(count(html, "<svg "), count(html, "<desc id="));
	for (int i = 1; i <= 3; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "<title id=\"finding%d-a-t\">", i);
		assert_int_equal(count(html, id), 1);
	}
	free(html);
}

static void the_pictures_show_the_measurements(void **state)
{
	char *html = help_print("stall", report_html);

	(void)state;
	help_assert_contains(html, "Time in the function, per rank");
	help_assert_contains(html, "rank 2, flagged: ");
	help_assert_contains(html, "per iteration for rank 2, in 12 collectives");
	help_assert_contains(html, "rank 2: idle 88 %");
	assert_int_equal(count(html, "class=\"dot bad\""), 1);
	assert_int_equal(count(html, "class=\"dot peer\""), 3);
	assert_int_equal(count(html, "class=\"line bad\""), 1);
	assert_int_equal(count(html, "class=\"line peer\""), 3);
	free(html);
}

static void the_new_pictures_show_what_the_report_has(void **state)
{
	char *stall = help_print("stall", report_html), *slow = help_print("slow", report_html);

	(void)state;
	help_assert_contains(stall, "Who was late in which iteration");
	help_assert_contains(stall, "One iteration, rank by rank: step 121");
	help_assert_contains(stall, "in collectives for 32.0 ms, of it waiting 30.0 ms");
	help_assert_contains(stall, "Call stacks of rank 2 against its peers");
	help_assert_contains(stall, "loader.py: load_batch: 60.0 ms, peers 5.00 ms");
	help_assert_contains(stall, "class=\"heat h8\"");
	help_assert_contains(slow, "Pace of the run");
	help_assert_contains(slow, "slow since");
	assert_null(strstr(slow, "Who was late"));
	assert_null(strstr(stall, "Pace of the run"));
	free(stall);
	free(slow);
}

/* A function that no peer has: the picture would be one dot in empty axes. */
static void a_picture_without_a_comparison_is_left_out(void **state)
{
	struct report report;
	struct finding finding;
	struct finding_point points[4];
	struct str out = { 0 };

	(void)state;
	sample_make("stall", &report);
	finding = report.findings[0];
	memcpy(points, finding.points, sizeof(points));
	for (size_t i = 0; i < 4; i++) {
		if (!points[i].accused)
			points[i].time_ms = points[i].beta_frac = (double)NAN;
	}
	finding.points = points;
	report.findings = &finding;
	assert_int_equal(report_html(&report, &out), 0);
	assert_null(strstr(out.data, "Time in the function, per rank"));
	str_done(&out);
	arena_done(&report.arena);
}

/* The table in docs/findings.md and the page say the same of each id. */
static void meanings_are_those_of_the_documents(void **state)
{
	char line[512], id[16];
	FILE *file = fopen(DOCS_DIR "/findings.md", "r");
	size_t cnt = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "| [%6[-PT0-9]](", id) != 1)
			continue;
		assert_non_null(meaning_of(id));
		help_assert_contains(line, meaning_of(id));
		cnt++;
	}
	(void)fclose(file);
	assert_true(cnt > 20);
	assert_null(meaning_of("PT-000"));
}

/* Thirty findings, each over 3,000 workers. */
static void thousands_of_workers_fit_into_three_megabytes(void **state)
{
	struct finding findings[30];
	struct report report;
	struct str out = { 0 };

	(void)state;
	sample_make("throttled", &report);
	for (size_t i = 0; i < ARRAY_SIZE(findings); i++)
		findings[i] = report.findings[i % report.finding_cnt];
	report.findings = findings;
	report.finding_cnt = ARRAY_SIZE(findings);
	assert_int_equal(report_html(&report, &out), 0);
	assert_true(out.len < SIZE_MAX_BYTES);
	help_assert_contains(out.data, "those that lie close together are one dot");
	help_assert_contains(out.data, "Each column is the mean of 19 workers");
	help_assert_contains(out.data, "the 48 that waited longest for them (2952 left out)");
	help_assert_contains(out.data, "The first 200 of 3000 workers");
	help_assert_contains(out.data, "Pictures of the first 8 findings");
	str_done(&out);
	arena_done(&report.arena);
}

static void html_reports_are_as_in_the_golden_files(void **state)
{
	(void)state;
	help_compare_golden("html", report_html);
}

static void numbers_out_of_order_do_not_break_a_picture(void **state)
{
	static const double odd[] = {
		0.0, -1.0, 1e308, -1e308, (double)__builtin_nan(""), (double)__builtin_inf()
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct finding_point points[2] = { { .rank = 0, .accused = true }, { .rank = 1 } };
		struct finding finding = { .points = points, .point_cnt = 2 };
		struct report_worker worker = { .iteration_ms = &odd[i], .iteration_cnt = 1 };
		struct report_wait wait = { 0, 1, odd[i], 1 };
		struct report report = { .findings = &finding,
					 .finding_cnt = 1,
					 .workers = &worker,
					 .worker_cnt = 1,
					 .waits = &wait,
					 .wait_cnt = 1,
					 .iterations = odd[i],
					 .iteration_ms = 10 };
		struct report_stretch stretch = { odd[i], 5, { odd[i], odd[i] } };
		struct report_meeting meeting = { odd[i], odd[i], odd[i] };
		struct report_lane lanes[2] = { { 0, "", &stretch, 1, &meeting, 1 },
						{ 1, "", &stretch, 1, &meeting, 1 } };
		struct report_flame_node nodes[2] = { { "a", -1, CLASS_HOST, odd[i], 1 },
						      { "b", 0, CLASS_HOST, 3, odd[i] } };
		struct report_pace_point pace[2] = { { 1, odd[i], odd[i], odd[i] },
						     { 2, 1, 1, 1 } };
		struct str out = { 0 };

		report.lanes = (struct report_lanes){ .lanes = lanes, 2, 10, false, 0, false };
		report.flame = (struct report_flame){ nodes, 2, 0, true, 1, 10 };
		report.pace = (struct report_pace){ pace, 2, odd[i] };
		worker.late_ms = &odd[i];

		points[0].beta_frac = points[0].mu_frac = points[0].time_ms = odd[i];
		points[1].sigma_frac = worker.window_ms = worker.class_frac[0] = odd[i];
		assert_int_equal(report_html(&report, &out), 0);
		assert_balanced(out.data);
		assert_null(strstr(out.data, "=\"nan"));
		assert_null(strstr(out.data, "=\"-nan"));
		assert_null(strstr(out.data, "=\"inf"));
		assert_null(strstr(out.data, "NaN"));
		assert_null(strstr(out.data, "width=\"-"));
		assert_null(strstr(out.data, "height=\"-"));
		assert_null(strstr(out.data, "nan "));
		str_done(&out);
	}
}

static void an_empty_report_is_a_page(void **state)
{
	struct report report = { 0 };
	struct str out = { 0 };

	(void)state;
	assert_int_equal(report_html(&report, &out), 0);
	assert_balanced(out.data);
	str_done(&out);
}

static void an_allocation_failure_is_returned_and_leaves_the_output_unchanged(void **state)
{
	(void)state;
	help_print_without_memory("inconclusive", report_html);
	help_print_without_memory("stall", report_html);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(html_reports_are_as_in_the_golden_files),
		cmocka_unit_test(no_name_changes_the_markup),
		cmocka_unit_test(an_empty_name_is_harmless),
		cmocka_unit_test(long_names_are_shortened_and_stay_text),
		cmocka_unit_test(nothing_is_loaded_and_nothing_runs),
		cmocka_unit_test(elements_are_closed_in_order),
		cmocka_unit_test(every_picture_has_a_title_and_a_description),
		cmocka_unit_test(the_pictures_show_the_measurements),
		cmocka_unit_test(the_new_pictures_show_what_the_report_has),
		cmocka_unit_test(a_picture_without_a_comparison_is_left_out),
		cmocka_unit_test(meanings_are_those_of_the_documents),
		cmocka_unit_test(thousands_of_workers_fit_into_three_megabytes),
		cmocka_unit_test(numbers_out_of_order_do_not_break_a_picture),
		cmocka_unit_test(an_empty_report_is_a_page),
		cmocka_unit_test(an_allocation_failure_is_returned_and_leaves_the_output_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
