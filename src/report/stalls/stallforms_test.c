/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stalls/stallforms.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* A command line that wants to break out of each form: quotes, a line end, and no UTF-8. */
#define HOSTILE "ag\"ent\\.py `x`\n\xff"

struct fixture {
	struct stall_recording recording;
	struct stall_verdict verdict;
};

static uint32_t text(struct fixture *fixture, const char *words)
{
	return strtab_intern(&fixture->recording.texts, words, strlen(words));
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct stall_recording *r = &fixture->recording;
	struct stall_finding finding = { .class = STALL_MMAP_LOCK, .matters = true };
	const struct stall_culprit culprit = { .pid = 800, .ns = 90000000 };

	assert_int_equal(stallrecording_init(r), 0);
	r->begin_ns = NSEC_PER_SEC;
	r->end_ns = 11 * NSEC_PER_SEC;
	r->sources = STALL_BY_SWITCHES;
	assert_int_equal(
		vec_push(&r->processes, (struct stall_process){ .pid = 100,
								.watched = true,
								.command = text(fixture, "job") }),
		0);
	assert_int_equal(vec_push(&r->processes,
				  (struct stall_process){ .pid = 101,
							  .watched = true,
							  .command = text(fixture, "other") }),
			 0);
	assert_int_equal(
		vec_push(&r->threads, (struct stall_thread){ .tid = 100,
							     .pid = 100,
							     .main = true,
							     .name = text(fixture, "job") }),
		0);
	assert_int_equal(vec_push(&r->events, (struct stall_event){ .time_ns = 2 * NSEC_PER_SEC,
								    .kind = STALL_RUN,
								    .pid = 100 }),
			 0);
	assert_int_equal(stallrecording_note(r, "a note"), 0);
	fixture->verdict.recording = r;
	finding.chain = text(fixture, "__schedule<schedule<rwsem_down<__vm_munmap");
	finding.culprits[0] = culprit;
	finding.culprits[0].command = text(fixture, HOSTILE);
	finding.culprit_cnt = 1;
	finding.total_ns = 91 * NSEC_PER_MSEC;
	finding.longest_ns = 9 * NSEC_PER_MSEC;
	finding.cnt = 12;
	finding.period_ns = 2530 * NSEC_PER_MSEC;
	finding.thread_bits = 1;
	(void)strcpy(finding.holder, "smap_gather_stats");
	assert_int_equal(vec_push(&fixture->verdict.findings, finding), 0);
	assert_int_equal(vec_push(&fixture->verdict.accounts,
				  (struct stall_account){ .judged = true,
							  .lost_ns = 100 * NSEC_PER_MSEC,
							  .explained_ns = 91 * NSEC_PER_MSEC }),
			 0);
	assert_int_equal(vec_push(&fixture->verdict.parts,
				  (struct stall_part){ .begin_ns = 3 * NSEC_PER_SEC,
						       .end_ns = 3 * NSEC_PER_SEC + 9000000,
						       .class = STALL_MMAP_LOCK,
						       .pid = 800,
						       .chain = finding.chain }),
			 0);
	fixture->verdict.stall_cnt = 1;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	stallverdict_done(&fixture->verdict);
	stallrecording_done(&fixture->recording);
	free(fixture);
	return 0;
}

static void the_text_names_culprit_function_period_and_what_is_missing(void **state)
{
	static const char *const WORDS[] = { "91 ms in 12 times, longest 9.0 ms",
					     "every 2.53 s",
					     "process 800 `ag\"ent",
					     "in smap_gather_stats",
					     "rwsem_down < __vm_munmap",
					     "91 % explained",
					     "Not seen\n  a note",
					     "memory_info" };
	struct fixture *fixture = *state;
	_cleanup_(str_done) struct str out = { 0 };

	assert_int_equal(stallforms_text(&fixture->verdict, false, &out), 0);
	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++)
		if (strstr(out.data, WORDS[i]) == NULL)
			fail_msg("no '%s' in %s", WORDS[i], out.data);
	assert_null(strstr(out.data, "schedule <"));
	assert_null(strstr(out.data, "`x`\n")); /* no line end out of a name */
	assert_null(strchr(out.data, '\xff'));
}

static void a_verdict_without_stalls_says_what_it_is_worth(void **state)
{
	struct fixture *fixture = *state;
	_cleanup_(str_done) struct str sure = { 0 }, unsure = { 0 };

	fixture->verdict.stall_cnt = 0;
	fixture->verdict.findings.cnt = 0;
	assert_int_equal(stallforms_text(&fixture->verdict, false, &sure), 0);
	assert_non_null(strstr(sure.data, "\nNo stall.\n"));
	fixture->verdict.incomplete = true;
	assert_int_equal(stallforms_text(&fixture->verdict, false, &unsure), 0);
	assert_null(strstr(unsure.data, "\nNo stall.\n"));
	assert_non_null(strstr(unsure.data, "not all could be seen"));
}

static void the_json_is_valid_whatever_a_program_is_called(void **state)
{
	struct fixture *fixture = *state;
	_cleanup_(str_done) struct str out = { 0 };
	const json_t *finding, *culprit;
	json_t *root;

	assert_int_equal(stallforms_json(&fixture->verdict, &out), 0);
	root = json_loadb(out.data, out.len, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "schema")),
			    "perftracker.stalls.v1");
	assert_string_equal(json_string_value(json_object_get(root, "verdict")), "stalls");
	finding = json_array_get(json_object_get(root, "findings"), 0);
	assert_string_equal(json_string_value(json_object_get(finding, "cause")), "mmap_lock");
	assert_int_equal(json_array_size(json_object_get(finding, "kernel")), 4);
	culprit = json_array_get(json_object_get(finding, "culprits"), 0);
	assert_int_equal(json_integer_value(json_object_get(culprit, "pid")), 800);
	assert_non_null(strstr(json_string_value(json_object_get(finding, "summary")),
			       "of process 100: 91 ms in 12 times"));
	json_decref(root);
}

static void the_timeline_is_valid_and_begins_at_zero(void **state)
{
	struct fixture *fixture = *state;
	_cleanup_(str_done) struct str out = { 0 };
	const json_t *event;
	size_t index, slices = 0;
	json_t *root;

	assert_int_equal(stallforms_timeline(&fixture->verdict, &out), 0);
	root = json_loadb(out.data, out.len, 0, NULL);
	assert_non_null(root);
	json_array_foreach(json_object_get(root, "traceEvents"), index, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0)
			continue;
		slices++;
		assert_true(json_number_value(json_object_get(event, "ts")) >= 0);
		assert_true(json_number_value(json_object_get(event, "dur")) > 0);
	}
	assert_int_equal(slices, 2); /* the part, and the stay on the CPU */
	json_decref(root);
}

static void each_failed_allocation_is_an_error_and_prints_nothing(void **state)
{
	struct fixture *fixture = *state;
	int error = -ENOMEM;

	for (int n = 0; error == -ENOMEM; n++) {
		_cleanup_(str_done) struct str out = { 0 };

		allocations_left = n;
		error = stallforms_text(&fixture->verdict, true, &out);
		allocations_left = -1;
		assert_true(error == 0 || out.len == 0);
		assert_true(n < 1000);
	}
	assert_int_equal(error, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_text_names_culprit_function_period_and_what_is_missing),
		TEST(a_verdict_without_stalls_says_what_it_is_worth),
		TEST(the_json_is_valid_whatever_a_program_is_called),
		TEST(the_timeline_is_valid_and_begins_at_zero),
		TEST(each_failed_allocation_is_an_error_and_prints_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
