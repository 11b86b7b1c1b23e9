/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rules: which facts make which finding, and that each row can decide. */
#include "hang/hangrules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char *id_of(uint32_t facts)
{
	const size_t rule = hangrules_match(facts);

	return rule != HANG_NO_RULE ? hangrules[rule].id : NULL;
}

static void facts_decide_by_the_first_row_that_fits(void **state)
{
	static const struct {
		uint32_t facts;
		const char *id; /* NULL: a victim */
	} rows[] = {
		{ 0, NULL },
		{ HANG_ENDED | HANG_ENDED_MEMORY, "PT-909" },
		{ HANG_ENDED | HANG_ENDED_WELL | HANG_BEHIND, "PT-910" },
		{ HANG_ENDED, "PT-902" },
		{ HANG_TRACED | HANG_HALTED, "PT-911" },
		{ HANG_STOPPED | HANG_HALTED | HANG_BEHIND | HANG_ACCUSED, "PT-107" },
		{ HANG_HALTED | HANG_BEHIND | HANG_ACCUSED, NULL },
		{ HANG_SKIPPED | HANG_AT_LOADER, NULL },
		{ HANG_SKIPPED | HANG_ROAMS | HANG_ACCUSED, "PT-906" },
		{ HANG_SKIPPED | HANG_ROAMS | HANG_ACCUSED | HANG_AT_LOADER, "PT-904" },
		{ HANG_BEHIND | HANG_ACCUSED | HANG_IN_KERNEL | HANG_AT_LOADER, "PT-903" },
		{ HANG_BEHIND | HANG_ACCUSED | HANG_LOCK | HANG_AT_LOADER, "PT-912" },
		{ HANG_ELSEWHERE | HANG_ACCUSED | HANG_LOOP, "PT-913" },
		{ HANG_LOOP, NULL }, /* it runs, but no rank waits for it */
		{ HANG_LOCK, NULL },
		{ HANG_IN_KERNEL, NULL },
		{ HANG_UNFINISHED | HANG_ACCUSED, "PT-914" },
		{ HANG_ALONE | HANG_ACCUSED | HANG_GPU, "PT-914" },
		{ HANG_NOT_ENTERED | HANG_ACCUSED | HANG_GPU, "PT-906" },
		{ HANG_BEHIND | HANG_ACCUSED | HANG_AT_LOADER, "PT-904" },
		{ HANG_BEHIND | HANG_ACCUSED, "PT-905" },
		{ HANG_NOT_ENTERED | HANG_ACCUSED, "PT-906" },
		{ HANG_NOT_ENTERED | HANG_ACCUSED | HANG_AT_LOADER, "PT-904" },
		{ HANG_UNBEGUN | HANG_ACCUSED, "PT-914" },
		{ HANG_ABSENT | HANG_HALTED, "PT-917" },
		{ HANG_MISMATCH | HANG_ACCUSED, "PT-915" },
		{ HANG_ELSEWHERE | HANG_ACCUSED, "PT-907" },
		{ HANG_ELSEWHERE | HANG_ACCUSED | HANG_AT_LOADER, "PT-904" },
		{ HANG_ALONE | HANG_ACCUSED, "PT-908" },
		{ HANG_UNLAUNCHED, NULL }, /* another rank is accused */
		{ HANG_UNLAUNCHED | HANG_NOBODY, "PT-916" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *id = id_of(rows[i].facts);

		if (rows[i].id == NULL)
			assert_null(id);
		else
			assert_string_equal(id, rows[i].id);
	}
}

/* What may only take long is no hang, but a lock that is not released is one. */
static void a_pause_goes_before_what_it_could_be_and_behind_a_lock(void **state)
{
	const uint32_t pause = HANG_ACCUSED | HANG_BEHIND | HANG_PAUSES;

	(void)state;
	assert_true(hangrules[hangrules_match(pause)].pause);
	assert_true(hangrules[hangrules_match(pause | HANG_IN_KERNEL)].pause);
	assert_true(hangrules[hangrules_match(pause | HANG_LOOP)].pause);
	assert_string_equal(id_of(pause | HANG_LOCK), "PT-912");
	assert_string_equal(id_of(pause | HANG_STOPPED), "PT-107");
	assert_true(hangrules[hangrules_match(HANG_NOBODY | HANG_ALL_MOVE)].pause);
}

/* A row whose own needs another row takes first would never decide. */
static void every_row_decides_about_its_own_facts(void **state)
{
	(void)state;
	for (size_t i = 0; i < hangrules_cnt; i++) {
		const struct hang_rule *rule = &hangrules[i];

		assert_int_equal(rule->needs & rule->lacks, 0);
		if (rule->id == NULL)
			assert_true(hangrules_match(rule->needs) == HANG_NO_RULE);
		else
			assert_int_equal(hangrules_match(rule->needs), i);
	}
}

static void rows_of_one_id_have_one_cause_and_all_have_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < hangrules_cnt; i++) {
		const struct hang_rule *rule = &hangrules[i];

		if (rule->id == NULL || rule->pause)
			continue;
		assert_true(strlen(rule->advice) > 20 && strlen(rule->title) > 5);
		assert_true(strlen(rule->place) > 5);
		for (size_t k = 0; k < i; k++)
			if (hangrules[k].id != NULL && strcmp(hangrules[k].id, rule->id) == 0)
				assert_string_equal(hangrules[k].cause, rule->cause);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_decide_by_the_first_row_that_fits),
		cmocka_unit_test(a_pause_goes_before_what_it_could_be_and_behind_a_lock),
		cmocka_unit_test(every_row_decides_about_its_own_facts),
		cmocka_unit_test(rows_of_one_id_have_one_cause_and_all_have_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
