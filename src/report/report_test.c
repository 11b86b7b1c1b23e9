/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/clean.h"
#include "report/finding_fields.h"
#include "report/formats.h"
#include "report/page.h"
#include "report/phrase.h"
#include "report/test_help.h"
#include "report/test_reports.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static int as_text(const struct report *report, struct str *out)
{
	return report_text(report, &(struct report_text_options){ .width = 80 }, out);
}

static int as_verbose_text(const struct report *report, struct str *out)
{
	return report_text(report, &(struct report_text_options){ .width = 120, .verbose = true },
			   out);
}

static void what_stalls_explain_is_there_after_a_stall_window_alone(void **state)
{
	struct finding finding = { .id = "PT-101", .cause = "host-stall", .title = "", .name = "" };
	struct json_writer w = { 0 };
	json_t *json;
	const json_t *fields;

	(void)state;
	json = finding_fields_json(&w, &finding);
	assert_null(json_object_get(json, "stalls_explain"));
	json_decref(json);
	finding.stalls = (struct finding_explained){
		.present = true, .iteration_ms = 40, .baseline_ms = 10, .frac = 0.75
	};
	json = finding_fields_json(&w, &finding);
	fields = json_object_get(json, "stalls_explain");
	assert_float_equal(json_number_value(json_object_get(fields, "explained_pct")), 75, 1e-9);
	assert_float_equal(json_number_value(json_object_get(fields, "unexplained_pct")), 25, 1e-9);
	assert_float_equal(json_number_value(json_object_get(fields, "iteration_ms")), 40, 1e-9);
	assert_float_equal(json_number_value(json_object_get(fields, "baseline_ms")), 10, 1e-9);
	assert_true(json_is_false(json_object_get(fields, "bound")));
	json_decref(json);
}

static void text_reports_are_as_in_the_golden_files(void **state)
{
	(void)state;
	help_compare_golden("txt", as_text);
	help_compare_golden("verbose.txt", as_verbose_text);
}

static void json_reports_are_as_in_the_golden_files(void **state)
{
	(void)state;
	help_compare_golden("json", report_json);
}

static void the_rows_of_figure_7_are_printed_as_in_the_paper(void **state)
{
	char *text = help_print("figure7", as_verbose_text);

	(void)state;
	help_assert_contains(text, "dataloader.py: socket recv_into  all ");
	help_assert_contains(text, " 500 ms (+480 ms)    98 % CPU                1 % ");
	help_assert_contains(text, "CUDA GEMM                        0-3 ");
	help_assert_contains(text, " 300 ms (+200 ms)    33 % GPU SM (-66 %)     5 % ");
	help_assert_contains(text, "Ring Allreduce                   7 ");
	help_assert_contains(text, " 200 ms              37 % PCIe Tx (-38 %)    5 % ");
	free(text);
}

static void the_verdict_comes_first(void **state)
{
	static const struct {
		const char *name, *line;
	} cases[] = {
		{ "stall",
		  "ABNORMAL: rank 2 costs the job 1001 ms per iteration (88 %) idle in \"# running" },
		{ "figure7", "ABNORMAL: all 16 workers lose 480 ms per iteration (24 %) in " },
		{ "blocked", "ABNORMAL: rank 3 is blocked in checkpoint.py: save\n" },
		{ "healthy", "HEALTHY: no function differs " },
		{ "inconclusive", "INCONCLUSIVE: only 3 of 8 workers " },
		{ "slow", "SLOW, CAUSE NOT FOUND: 9.8 -> 33.8 ms since step 650 (3.4x)\n" },
		{ "failed", "JOB FAILED (exit 1) after 60 steps; rank 2 (pid 77) was the first " },
		{ "throttled", "ABNORMAL: 300 ranks (5,14,23,32,41,50,...) cost the job " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = help_print(cases[i].name, as_text);

		assert_int_equal(strncmp(text, cases[i].line, strlen(cases[i].line)), 0);
		free(text);
	}
}

/* The verdict of a report with two findings of gains in ms. */
static char *verdict_of_two(double first_ms, double second_ms, enum confidence second)
{
	struct str text = { 0 };
	struct report report;
	struct finding findings[2];

	sample_make("figure7", &report);
	findings[0] = findings[1] = report.findings[0];
	findings[0].gain_ms_per_iteration = first_ms;
	findings[0].gain_pct = (double)NAN;
	findings[0].confidence = CONFIDENCE_HIGH;
	findings[1].gain_ms_per_iteration = second_ms;
	findings[1].gain_pct = (double)NAN;
	findings[1].confidence = second;
	findings[1].name = "load";
	report.findings = findings;
	report.finding_cnt = 2;
	phrase_verdict(&text, &report);
	arena_done(&report.arena);
	return text.data;
}

static void a_far_larger_loss_that_is_less_sure_is_in_the_first_sentence(void **state)
{
	static const struct {
		double first_ms, second_ms;
		enum confidence second;
		const char *end;
	} cases[] = {
		{ 2, 20, CONFIDENCE_LOW, "; weaker evidence of a larger loss: " },
		{ 2, 5, CONFIDENCE_LOW, "; 1 more finding below" },
		{ 20, 20, CONFIDENCE_HIGH, "; 1 more finding below" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = verdict_of_two(cases[i].first_ms, cases[i].second_ms, cases[i].second);
		const char *end = strstr(text, "; ");

		assert_non_null(end);
		assert_int_equal(strncmp(end, cases[i].end, strlen(cases[i].end)), 0);
		assert_int_equal(strstr(text, " 20.0 ms per iteration in load") != NULL, i == 0);
		free(text);
	}
}

static char *verdict_of_hang(const char *id, const char *name, size_t stack_cnt)
{
	struct str text = { 0 };
	struct report report;
	struct finding hang;

	sample_make("blocked", &report);
	hang = report.findings[0];
	hang.id = id;
	hang.name = name;
	hang.stack_cnt = stack_cnt;
	hang.gain_ms_per_iteration = 61000;
	report.findings = &hang;
	phrase_verdict(&text, &report);
	arena_done(&report.arena);
	return text.data;
}

static void the_verdict_of_a_hang_names_the_state_of_a_process_without_a_stack(void **state)
{
	static const struct {
		const char *id, *name;
		size_t stack_cnt;
		const char *verdict;
	} cases[] = {
		{ "PT-107", "process stopped (SIGSTOP or a debugger)", 0,
		  "rank 3 is blocked: process stopped (SIGSTOP or a debugger)" },
		{ "PT-902", "process ended", 0, "rank 3 is blocked: process ended" },
		{ "PT-905", "checkpoint.py: save", 2, "rank 3 is blocked in checkpoint.py: save" },
		{ "PT-905", "", 0, "rank 3 is blocked" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = verdict_of_hang(cases[i].id, cases[i].name, cases[i].stack_cnt);

		assert_string_equal(text, cases[i].verdict);
		free(text);
	}
}

static void missing_data_is_reported(void **state)
{
	char *text = help_print("inconclusive", as_text);

	(void)state;
	help_assert_contains(text, "3 of 8 workers analyzed");
	help_assert_contains(text, "ranks 1-3,5,7");
	help_assert_contains(text, "traces/rank5.json: byte 0: expected '{' or '[', found 'P'");
	help_assert_contains(text, "GPU counters: not recorded");
	help_assert_contains(text, "12 events of an unknown category");
	free(text);
}

/* Fails when a line is wider than width or holds a character that steers the terminal. */
static void assert_lines_are_sane(const char *text, size_t width)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		if (clean_cells(text, len) > width)
			fail_msg("wider than %zu: %.*s", width, (int)len, text);
		for (size_t i = 0; i < len; i++)
			assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
		assert_true(len == 0 || text[len - 1] != ' ');
		text += len + 1;
	}
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	static const int widths[] = { 0, 80, 81, 97, 120, 160, 1000 };

	(void)state;
	for (const struct sample_report *s = sample_reports; s->name != NULL; s++) {
		for (size_t i = 0; i < 2 * ARRAY_SIZE(widths); i++) {
			int width = widths[i / 2];
			struct report_text_options options = { .width = width, .verbose = i % 2 };
			struct report report;
			struct str out = { 0 };

			sample_make(s->name, &report);
			assert_int_equal(report_text(&report, &options, &out), 0);
			assert_lines_are_sane(out.data, width < 80 ? 80 : (size_t)width);
			str_done(&out);
			arena_done(&report.arena);
		}
	}
}

static void strip_color(char *text)
{
	char *to = text;

	for (char *from = text; *from != '\0';) {
		if (from[0] == '\x1b')
			from += strcspn(from, "m") + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

static void color_changes_nothing_but_color(void **state)
{
	struct report_text_options options = { .width = 80, .color = true };
	char *plain = help_print("figure7", as_text);
	struct report report;
	struct str out = { 0 };

	(void)state;
	sample_make("figure7", &report);
	assert_int_equal(report_text(&report, &options, &out), 0);
	help_assert_contains(out.data, "\x1b[1;31mABNORMAL:\x1b[0m");
	assert_null(strchr(plain, '\x1b'));
	strip_color(out.data);
	assert_string_equal(out.data, plain);
	free(plain);
	str_done(&out);
	arena_done(&report.arena);
}

static void a_colored_line_ends_without_color(void **state)
{
	struct report_text_options options = { .width = 80, .color = true };
	struct report report;
	struct str out = { 0 };
	bool colored = false;

	(void)state;
	sample_make("hostile", &report);
	assert_int_equal(report_text(&report, &options, &out), 0);
	for (const char *p = out.data; *p != '\0'; p++) {
		if (*p == '\x1b')
			colored = strncmp(p, "\x1b[0m", 4) != 0;
		assert_false(*p == '\n' && colored);
	}
	str_done(&out);
	arena_done(&report.arena);
}

static void all_findings_are_listed_and_the_first_are_printed_in_full(void **state)
{
	char *text = help_print("many", as_text), *verbose = help_print("many", as_verbose_text);

	(void)state;
	help_assert_contains(text,
			     "\n12  ampere_bf16_s16816gemm_bf16_75x128_ldg8_f2f_stages_64x11_tn\n");
	help_assert_contains(text, "\n12  PT-302 unexplained-difference: This function");
	help_assert_contains(text, "--verbose");
	assert_null(strstr(verbose, "--verbose"));
	free(text);
	free(verbose);
}

static char *cleaned(const char *text)
{
	struct str out = { 0 };

	clean_append(&out, text);
	assert_int_equal(str_error(&out), 0);
	return out.data;
}

static void unsafe_characters_become_visible(void **state)
{
	static const struct {
		const char *text, *clean;
	} cases[] = {
		{ "plain \xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80",
		  "plain \xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\rd" },
		{ "\x1b[31m\x07\x7f", "\\x1b[31m\\x07\\x7f" },
		{ "\xc2\x9b"
		  "1m",
		  "\\x9b1m" },
		{ "\xe2\x80\xae"
		  "cod.exe",
		  "\\u202ecod.exe" },
		{ "\xef\xbb\xbfname", "\\ufeffname" },
		{ "\xf3\xa0\x81\x81", "\\U000e0041" },
		{ "\xff\xc0\x80", "\\xff\\xc0\\x80" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "cut \xe4\xb8", "cut \\xe4\\xb8" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *once = cleaned(cases[i].text), *twice = cleaned(once);

		assert_string_equal(once, cases[i].clean);
		assert_string_equal(twice, once);
		free(once);
		free(twice);
	}
}

static void a_long_name_keeps_both_ends(void **state)
{
	struct str out = { 0 };

	(void)state;
	clean_append_short(&out, "0123456789abcdefghij", 20);
	assert_string_equal(out.data, "0123456789abcdefghij");
	out.len = 0;
	clean_append_short(&out, "0123456789abcdefghijk", 20);
	assert_string_equal(out.data, "012345678...defghijk");
	out.len = 0;
	clean_append_short(&out, "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 8);
	assert_string_equal(out.data, "\xe4\xb8\xad...\xe4\xb8\xad");
	str_done(&out);
}

static void wrapped(const char *text, size_t width, struct str *ret)
{
	struct page page = { .out = ret, .width = width };

	ret->len = 0;
	page_wrap(&page, PAGE_PLAIN, 0, 2, text);
}

static void lines_break_at_words_and_inside_only_when_they_must(void **state)
{
	struct str out = { 0 };

	(void)state;
	wrapped("one two three four five six", 20, &out);
	assert_string_equal(out.data, "one two three four\n  five six\n");
	wrapped("it has waited for 61 s here", 20, &out);
	assert_string_equal(out.data, "it has waited for\n  61 s here\n");
	wrapped("0,2,4,6,8,10,12,14,16,18,20", 20, &out);
	assert_string_equal(out.data, "0,2,4,6,8,10,12,14,\n  16,18,20\n");
	wrapped("aaaaaaaaaaaaaaaaaaaaaaaaa", 20, &out);
	assert_string_equal(out.data, "aaaaaaaaaaaaaaaaaaaa\n  aaaaa\n");
	wrapped("", 20, &out);
	assert_string_equal(out.data, "\n");
	str_done(&out);
}

static void numbers_have_few_digits_and_a_unit(void **state)
{
	static const struct {
		double ms;
		const char *text;
	} cases[] = {
		{ 0.0, "0 ms" },       { 0.0123, "0.012 ms" },	  { 0.21, "0.21 ms" },
		{ 9.994, "9.99 ms" },  { 9.996, "10.0 ms" },	  { 99.96, "100 ms" },
		{ 1003.2, "1003 ms" }, { 9999.4, "9999 ms" },	  { 10166.0, "10.2 s" },
		{ 99999.4, "100 s" },  { 125000.0, "125 s" },	  { -12.34, "-12.3 ms" },
		{ (double)NAN, "-" },  { (double)INFINITY, "-" },
	};
	struct str out = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		out.len = 0;
		phrase_ms(&out, cases[i].ms);
		assert_string_equal(out.data, cases[i].text);
	}
	str_done(&out);
}

static void a_place_that_was_not_there_before_is_new(void **state)
{
	static const struct {
		double before_ms, now_ms;
		const char *text;
	} cases[] = {
		{ 4.1, 33.8, "4.10 ms -> 33.8 ms per iteration" },
		{ 0, 33.8, "33.8 ms per iteration, none before" },
		{ 0.3, 33.8, "33.8 ms per iteration, none before" },
		{ 0.4, 33.8, "0.40 ms -> 33.8 ms per iteration" },
	};
	struct str out = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct report_growth growth = { .before_ms = cases[i].before_ms,
						.now_ms = cases[i].now_ms };

		out.len = 0;
		phrase_growth(&out, &growth);
		assert_string_equal(out.data, cases[i].text);
	}
	str_done(&out);
}

static void sets_of_ranks_are_cut_at_a_comma(void **state)
{
	static const int ranks[] = { 0, 2, 4, 6, 8, 10, 12, 14, 1000001, 1000002, 1000005 };
	struct str out = { 0 };

	(void)state;
	phrase_rank_list(&out, ranks, 11, 80);
	assert_string_equal(out.data, "0,2,4,6,8,10,12,14,1000001-1000002,1000005");
	out.len = 0;
	phrase_rank_list(&out, ranks, 11, 24);
	assert_string_equal(out.data, "0,2,4,6,... (11 ranks)");
	out.len = 0;
	phrase_rank_list(&out, ranks, 11, 23);
	assert_string_equal(out.data, "11 ranks");
	out.len = 0;
	phrase_rank_list(&out, ranks + 8, 3, 22);
	assert_string_equal(out.data, "3 ranks");
	out.len = 0;
	phrase_rank_list(&out, ranks, 0, 24);
	assert_string_equal(str_borrow(&out), "");
	str_done(&out);
}

static void json_has_the_keys_of_the_contract_in_order(void **state)
{
	static const char *const keys[] = {
		"schema",   "verdict", "reason",  "job",   "coverage",
		"findings", "notes",   "workers", "waits", "trigger",
	};
	char *text = help_print("figure7", report_json);
	const char *at = text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "\n \"%s\": ", keys[i]);
		at = strstr(at, key);
		assert_non_null(at);
	}
	free(text);
}

static void json_has_null_for_absent_values(void **state)
{
	char *text = help_print("blocked", report_json);
	json_t *root = json_loads(text, 0, NULL), *finding;

	(void)state;
	finding = json_array_get(json_object_get(root, "findings"), 0);
	assert_true(json_is_null(json_object_get(finding, "time_ms_per_iteration")));
	assert_true(json_is_null(json_object_get(finding, "gain_pct")));
	assert_true(json_is_null(json_object_get(finding, "mu")));
	assert_null(strstr(text, "nan"));
	json_decref(root);
	free(text);
}

static void json_keeps_names_but_mends_their_bytes(void **state)
{
	struct report report;
	struct str out = { 0 };
	json_t *root, *finding;

	(void)state;
	sample_make_named("</script>\"\n\x01 \xff", &report);
	assert_int_equal(report_json(&report, &out), 0);
	root = json_loads(out.data, 0, NULL);
	assert_non_null(root);
	finding = json_array_get(json_object_get(root, "findings"), 0);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(finding, "function"), "name")),
		"</script>\"\n\x01 \xef\xbf\xbd");
	json_decref(root);
	str_done(&out);
	arena_done(&report.arena);
}

static void an_empty_report_is_printed(void **state)
{
	static const printer printers[] = { as_text, as_verbose_text, report_json };
	struct finding finding = { 0 };
	struct report report = { 0 };
	struct str out = { 0 };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(printers); i++) {
		report.findings = &finding;
		report.finding_cnt = i % 2;
		report.verdict = i % 2 == 1 ? VERDICT_ABNORMAL : VERDICT_HEALTHY;
		assert_int_equal(printers[i / 2](&report, &out), 0);
	}
	str_done(&out);
}

static void same_report_gives_same_bytes(void **state)
{
	static const printer printers[] = { as_text, report_json };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(printers); i++) {
		char *a = help_print("throttled", printers[i]),
		     *b = help_print("throttled", printers[i]);

		assert_string_equal(a, b);
		free(a);
		free(b);
	}
}

static void an_allocation_failure_is_returned_and_leaves_the_output_unchanged(void **state)
{
	static const printer printers[] = { as_text, as_verbose_text, report_json };

	(void)state;
	json_set_alloc_funcs(malloc, free); /* the malloc that fails on order */
	for (size_t i = 0; i < ARRAY_SIZE(printers); i++) {
		help_print_without_memory("inconclusive", printers[i]);
		help_print_without_memory("stall", printers[i]);
	}
}

static void the_schema_of_a_finding_is_made_from_its_fields(void **state)
{
	(void)state;
	help_compare_schema("finding", finding_fields_schema());
}

static void tables_without_utilization_have_fewer_columns(void **state)
{
	static const char *const all[] = { "Workers", "Per iteration", "Utilization", "Dev.",
					   "Recoverable" };
	const struct finding_field *column = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		column = finding_fields_column(column, true);
		assert_string_equal(column->title, all[i]);
	}
	assert_null(finding_fields_column(column, true));
	column = finding_fields_column(finding_fields_column(NULL, false), false);
	assert_string_equal(finding_fields_column(column, false)->title, "Recoverable");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_reports_are_as_in_the_golden_files),
		cmocka_unit_test(the_schema_of_a_finding_is_made_from_its_fields),
		cmocka_unit_test(tables_without_utilization_have_fewer_columns),
		cmocka_unit_test(json_reports_are_as_in_the_golden_files),
		cmocka_unit_test(the_rows_of_figure_7_are_printed_as_in_the_paper),
		cmocka_unit_test(the_verdict_comes_first),
		cmocka_unit_test(a_far_larger_loss_that_is_less_sure_is_in_the_first_sentence),
		cmocka_unit_test(
			the_verdict_of_a_hang_names_the_state_of_a_process_without_a_stack),
		cmocka_unit_test(missing_data_is_reported),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(color_changes_nothing_but_color),
		cmocka_unit_test(a_colored_line_ends_without_color),
		cmocka_unit_test(all_findings_are_listed_and_the_first_are_printed_in_full),
		cmocka_unit_test(unsafe_characters_become_visible),
		cmocka_unit_test(a_long_name_keeps_both_ends),
		cmocka_unit_test(lines_break_at_words_and_inside_only_when_they_must),
		cmocka_unit_test(numbers_have_few_digits_and_a_unit),
		cmocka_unit_test(a_place_that_was_not_there_before_is_new),
		cmocka_unit_test(sets_of_ranks_are_cut_at_a_comma),
		cmocka_unit_test(json_has_the_keys_of_the_contract_in_order),
		cmocka_unit_test(json_has_null_for_absent_values),
		cmocka_unit_test(json_keeps_names_but_mends_their_bytes),
		cmocka_unit_test(an_empty_report_is_printed),
		cmocka_unit_test(what_stalls_explain_is_there_after_a_stall_window_alone),
		cmocka_unit_test(same_report_gives_same_bytes),
		cmocka_unit_test(an_allocation_failure_is_returned_and_leaves_the_output_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
