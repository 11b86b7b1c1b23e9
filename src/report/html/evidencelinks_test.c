/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/evidencelinks.h"

#include "base/test_random.h"
#include "report/html/markup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define WORKERS 4

static double late_ms[WORKERS][2] = { { 0, 0 }, { 0, 0 }, { 80, 90 }, { 0, 0 } };
static double iteration_ms[2] = { 200, 200 };

static void fill(struct report *report, struct report_worker workers[WORKERS], bool late)
{
	memset(workers, 0, WORKERS * sizeof(*workers));
	for (int i = 0; i < WORKERS; i++) {
		workers[i].rank = i;
		workers[i].iteration_ms = iteration_ms;
		workers[i].iteration_cnt = 2;
		workers[i].late_ms = late ? late_ms[i] : NULL;
	}
	*report = (struct report){ .workers = workers, .worker_cnt = WORKERS };
	report->iteration_ms = 200;
}

static void expect(const char *line, bool late, bool all, const char *wanted)
{
	int ranks[] = { 2 };
	const struct finding finding = { .ranks = ranks, .rank_cnt = 1, .all_workers = all };
	struct report_worker workers[WORKERS];
	struct report report;
	struct str out = { 0 };

	fill(&report, workers, late);
	evidencelinks_line(&out, &report, &finding, line);
	assert_string_equal(str_borrow(&out), wanted);
	str_done(&out);
}

#define A(to, text) "<a href=\"#" to "\">" text "</a>"

static void a_number_leads_to_the_rank_that_it_is_of(void **state _unused_)
{
	expect("spends 144.0 ms per iteration there, its peers 0.0 ms", true, false,
	       "spends " A("rank-2", "144.0 ms") " per iteration there, its peers " A("workers",
										      "0.0 ms"));
	expect("a CPU for 1.2 ms (peers 1.0 ms), 25 % of it", true, false,
	       "a CPU for " A("rank-2", "1.2 ms") " (peers " A("workers", "1.0 ms") "), " A(
		       "rank-2", "25 %") " of it");
	expect("rank 1 needs 3 s; 9 % here", true, false,
	       A("rank-1", "rank 1") " needs " A("rank-1", "3 s") "; " A("rank-2", "9 %") " here");
	expect("25 % of the window", true, true, A("workers", "25 %") " of the window");
}

static void waiting_leads_to_the_picture_of_it_where_there_is_one(void **state _unused_)
{
	expect("arrived last at 17 of 30 collectives, in 15 of 16 iterations", true, false,
	       "arrived last at " A("late-2", "17 of 30") " collectives, in " A(
		       "late-2", "15 of 16") " iterations");
	expect("arrived last at 17 of 30 collectives", false, false,
	       "arrived last at " A("rank-2", "17 of 30") " collectives");
	expect("made ranks 0-1,3 wait up to 110.8 ms", true, false,
	       "made " A("rank-0", "ranks 0-1,3") " wait up to " A("late-2", "110.8 ms"));
}

static void parts_of_names_are_no_numbers(void **state _unused_)
{
	static const char *const lines[] = { "faults.py(59): tokenize_slow",
					     "CUDA 12.6",
					     "v1.2 ms-1",
					     "x2 ms",
					     "frank 3",
					     "rank",
					     "rank x",
					     "ranks ,",
					     "rank 99999999999",
					     "port 5555 is open" };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		expect(lines[i], true, false, lines[i]);
	expect("a rank that is not here: rank 77", true, false,
	       "a rank that is not here: " A("workers", "rank 77"));
}

static void names_made_of_markup_stay_text(void **state _unused_)
{
	expect("<b>3 ms</b> & \"4 ms\"", true, false,
	       "&lt;b&gt;3 ms&lt;/b&gt; &amp; &quot;4 ms&quot;");
	expect("a\x01\xe2\x80\xae 4 ms", true, false, "a\\x01\\u202e " A("rank-2", "4 ms"));
	expect("<img src=x> took 4 ms", true, false, "&lt;img src=x&gt; took " A("rank-2", "4 ms"));
}

/* Drops the links again. */
static void strip(char *text)
{
	char *to = text;

	for (const char *at = text; *at != '\0';) {
		if (strncmp(at, "<a ", 3) == 0 || strncmp(at, "</a>", 4) == 0)
			at = strchr(at, '>') + 1;
		else
			*to++ = *at++;
	}
	*to = '\0';
}

static void without_links_a_line_is_what_it_was(void **state _unused_)
{
	static const char *const pieces[] = { "rank", "ranks ", " ",	    "2",    "0-3,",
					      " of ", "3.5",	"ms",	    "%",    "peers ",
					      "(",    ")",	";",	    "wait", "<a>",
					      "&",    ".",	"\xc3\xa9", "," };
	uint64_t seed = 42;

	for (int round = 0; round < 20000; round++) {
		struct str line = { 0 }, plain = { 0 }, out = { 0 };
		int ranks[] = { 2 };
		const struct finding finding = { .ranks = ranks, .rank_cnt = 1 };
		struct report_worker workers[WORKERS];
		struct report report;

		fill(&report, workers, (round & 1) != 0);
		for (uint64_t i = test_random(&seed) % 12; i > 0; i--)
			str_append(&line, pieces[test_random(&seed) % ARRAY_SIZE(pieces)]);
		markup_text(&plain, str_borrow(&line));
		evidencelinks_line(&out, &report, &finding, str_borrow(&line));
		if (out.len > 0)
			strip(out.data);
		assert_string_equal(out.len > 0 ? out.data : "", str_borrow(&plain));
		str_done(&line);
		str_done(&plain);
		str_done(&out);
	}
}

static void places_are_those_that_the_page_has(void **state _unused_)
{
	int ranks[] = { 2, 3 };
	struct finding finding = { .ranks = ranks, .rank_cnt = 2 };
	struct report_worker workers[WORKERS];
	struct report report;
	struct str out = { 0 };

	fill(&report, workers, true);
	evidencelinks_places(&out, &report, &finding);
	assert_non_null(strstr(str_borrow(&out), "href=\"#rank-2\""));
	assert_non_null(strstr(str_borrow(&out), "href=\"#late-2\""));
	assert_null(strstr(str_borrow(&out), "#lane-"));
	str_done(&out);
	out = (struct str){ 0 };
	finding.all_workers = true;
	evidencelinks_places(&out, &report, &finding);
	finding.all_workers = false;
	report.worker_cnt = 0;
	evidencelinks_places(&out, &report, &finding);
	assert_string_equal(str_borrow(&out), "");
	str_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_leads_to_the_rank_that_it_is_of),
		cmocka_unit_test(waiting_leads_to_the_picture_of_it_where_there_is_one),
		cmocka_unit_test(parts_of_names_are_no_numbers),
		cmocka_unit_test(names_made_of_markup_stay_text),
		cmocka_unit_test(without_links_a_line_is_what_it_was),
		cmocka_unit_test(places_are_those_that_the_page_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
