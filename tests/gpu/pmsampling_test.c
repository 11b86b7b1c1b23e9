/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/counters/pmsampling.c, against a double (PM_DOUBLE, PM_DOUBLE_OLD) and against
 * CUPTI's own host API for all chips that it knows (CUPTI_REAL; skipped without).
 */
#include "host/counters/pmsampling.h"

#include "host/counters/pmsampling_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BIT(kind) (1u << PM_##kind)
#define ALL ((1u << PM_KIND_CNT) - 1)
#define LINKS (BIT(LINK_RX) | BIT(LINK_TX))
#define PCIE_WAYS (BIT(PCIE_READ) | BIT(PCIE_WRITE))
#define MEMORY (BIT(MEMORY_READ) | BIT(MEMORY_WRITE) | BIT(MEMORY_CLOCK))

static struct pm_library open_library(const char *path)
{
	struct pm_library library;
	char why[GPUHW_WHY] = "";

	assert_non_null(path);
	if (pm_library_open(&library, path, why) < 0)
		fail_msg("%s: %s", path, why);
	return library;
}

static uint32_t kinds_of(const struct pm_choice *choice)
{
	uint32_t ret = 0;
	size_t cnt = 0;

	for (uint32_t kind = 0; kind < PM_KIND_CNT; kind++) {
		if (choice->names[kind] == NULL)
			continue;
		ret |= 1u << kind;
		cnt++;
	}
	assert_int_equal(choice->cnt, cnt);
	return ret;
}

static struct pm_choice choose(const struct pm_library *library, const char *chip)
{
	struct pm_choice choice;
	char why[GPUHW_WHY] = "";

	if (pm_choose(library, chip, NULL, &choice, why) < 0)
		fail_msg("%s: %s", chip, why);
	return choice;
}

/* --- the double --- */

static void assert_hosts_closed(const struct pm_library *library)
{
	void *symbol = dlsym(library->handle, "double_pm_hosts");
	int (*hosts)(void);

	assert_non_null(symbol);
	memcpy(&hosts, &symbol, sizeof(hosts));
	assert_int_equal(hosts(), 0);
}

static void test_first_candidates(void **state)
{
	struct pm_library library = open_library(getenv("PM_DOUBLE"));
	struct pm_choice choice = choose(&library, "EASY");

	(void)state;
	assert_int_equal(kinds_of(&choice), ALL & ~BIT(PCIE_BOTH));
	assert_non_null(strstr(choice.names[PM_MEMORY_READ], "dramc__"));
	assert_non_null(strstr(choice.names[PM_MATRIX], "realtime"));
	assert_hosts_closed(&library);
	pm_library_close(&library);
}

static void test_later_candidates(void **state)
{
	struct pm_library library = open_library(getenv("PM_DOUBLE"));
	struct pm_choice choice = choose(&library, "OLD");

	(void)state;
	assert_int_equal(kinds_of(&choice), ALL & ~BIT(PCIE_BOTH) & ~BIT(ISSUE));
	assert_non_null(strstr(choice.names[PM_MEMORY_READ], "dram__"));
	assert_non_null(strstr(choice.names[PM_MEMORY_WRITE], "dram__"));
	assert_non_null(strstr(choice.names[PM_MATRIX], "inst_executed_pipe_tensor"));
	assert_hosts_closed(&library);
	pm_library_close(&library);
}

/* Counters go to the metrics that come first. */
static void test_counters_are_short(void **state)
{
	struct pm_library library = open_library(getenv("PM_DOUBLE"));
	struct pm_choice choice = choose(&library, "SMALL");

	(void)state;
	assert_int_equal(kinds_of(&choice), (1u << 6) - 1);
	assert_hosts_closed(&library);
	pm_library_close(&library);
}

static void test_the_sum_replaces_both_directions(void **state)
{
	struct pm_library library = open_library(getenv("PM_DOUBLE"));
	struct pm_choice choice = choose(&library, "WAYS");

	(void)state;
	assert_int_equal(kinds_of(&choice), ALL & ~PCIE_WAYS);
	assert_hosts_closed(&library);
	pm_library_close(&library);
}

static void assert_refused(const struct pm_library *library, const char *chip, const char *expected)
{
	struct pm_choice choice = { .cnt = 99 };
	char why[GPUHW_WHY] = "";

	assert_int_equal(pm_choose(library, chip, NULL, &choice, why), -ENOTSUP);
	assert_string_equal(why, expected);
	assert_int_equal(choice.cnt, 99);
	assert_hosts_closed(library);
}

static void test_says_why_not(void **state)
{
	struct pm_library library = open_library(getenv("PM_DOUBLE"));

	(void)state;
	assert_refused(&library, "GV100", "no PM sampling on GV100 (CUPTI: 27)");
	assert_refused(&library, "EMPTY", "EMPTY has no counter that fits");
	assert_refused(&library, "BROKEN", "BROKEN has no counter that fits");
	pm_library_close(&library);
}

static void test_opening(void **state)
{
	struct pm_library library = { 0 };
	char why[GPUHW_WHY] = "";

	(void)state;
	assert_int_equal(pm_library_open(&library, "/nowhere/libcupti.so.13", why), -ENOENT);
	assert_string_equal(why, "no libcupti of CUDA 12.6 or later that opens");
	assert_int_equal(pm_library_open(&library, getenv("PM_DOUBLE_OLD"), why), -ENOTSUP);
	assert_string_equal(why, "libcupti lacks cuptiProfilerHostGetNumOfPasses");
	assert_null(library.handle);
	library = open_library(getenv("PM_DOUBLE"));
	assert_string_equal(pm_library_file(&library), getenv("PM_DOUBLE"));
	pm_library_close(&library);
	assert_null(library.handle);
	pm_library_close(&library);
}

/* By its name: the copy that is mapped. One that is too old says more than those that aren't. */
static void test_finding(void **state)
{
	struct pm_library library = { 0 }, again;
	char why[GPUHW_WHY] = "";

	(void)state;
	assert_int_equal(pm_library_find(&library, NULL, NULL, 11080, why), -ENOENT);
	assert_string_equal(why, "no libcupti for a driver of CUDA 11.8");
	assert_int_equal(pm_library_find(&library, getenv("PM_DOUBLE_OLD"), NULL, 11080, why),
			 -ENOTSUP);
	assert_int_equal(pm_library_find(&library, getenv("PM_DOUBLE"), NULL, 11080, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(pm_library_find(&again, NULL, NULL, 13000, why), 0);
	assert_ptr_equal(again.handle, library.handle);
	pm_library_close(&again);
	pm_library_close(&library);
}

/* --- CUPTI itself --- */

static const struct {
	const char *chip;
	uint32_t lacking, since_13_2; /* 0: the same */
} expected_chips[] = {
	{ "TU102", BIT(MATRIX) | BIT(MEMORY_CLOCK) | BIT(PCIE_BOTH) },
	{ "GA100", BIT(PCIE_BOTH) },
	{ "GA102", BIT(PCIE_BOTH) },
	{ "GH100", BIT(PCIE_BOTH) },
	{ "AD102", BIT(PCIE_BOTH) | LINKS },
	{ "GB202", BIT(PCIE_BOTH) | LINKS },
	{ "GB100", PCIE_WAYS, BIT(PCIE_BOTH) },
	{ "GB102", PCIE_WAYS, BIT(PCIE_BOTH) },
	{ "GB110", PCIE_WAYS, BIT(PCIE_BOTH) },
	{ "GB10B", BIT(PCIE_BOTH) | PCIE_WAYS | LINKS | MEMORY },
};

static struct pm_library open_real(void)
{
	const char *path = getenv("CUPTI_REAL");

	if (path == NULL || path[0] == '\0') {
		print_message("no CUPTI on this machine: its host API was not asked\n");
		skip();
	}
	return open_library(path);
}

static bool is_known(const struct pm_library *library, const char *chip)
{
	const char *const *names;
	size_t cnt;

	assert_int_equal(pm_library_chips(library, &names, &cnt), 0);
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(names[i], chip) == 0)
			return true;
	}
	return false;
}

static uint32_t lacking(const struct pm_library *library, size_t idx)
{
	bool later = dlsym(library->handle, "cuptiProfilerHostGetSinglePassSets") != NULL;

	return later && expected_chips[idx].since_13_2 != 0 ? expected_chips[idx].since_13_2
							    : expected_chips[idx].lacking;
}

static void test_real_chips(void **state)
{
	struct pm_library library = open_real();
	size_t known = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected_chips); i++) {
		struct pm_choice choice;

		/* An older or newer library may know others. */
		if (!is_known(&library, expected_chips[i].chip))
			continue;
		known++;
		choice = choose(&library, expected_chips[i].chip);
		if (kinds_of(&choice) != (ALL & ~lacking(&library, i)))
			fail_msg("%s: kinds 0x%x", expected_chips[i].chip, kinds_of(&choice));
	}
	assert_true(known > 0);
	pm_library_close(&library);
}

static void assert_plan(const struct pm_library *library, const char *chip,
			const struct pm_choice *choice)
{
	struct pm_plan plan;

	assert_int_equal(pm_plan_open(library, chip, NULL, choice, &plan), 0);
	assert_int_equal(plan.cnt, choice->cnt);
	assert_true(plan.config_bytes > 0);
	for (size_t i = 0; i < plan.cnt; i++)
		assert_ptr_equal(plan.names[i], choice->names[plan.kinds[i]]);
	pm_plan_close(library, &plan);
	assert_null(plan.host);
}

static bool is_before_turing(const char *chip)
{
	static const char *const families[] = { "GM", "GP", "GV", "T1", "T2" };

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		if (strncmp(chip, families[i], 2) == 0)
			return true;
	}
	return false;
}

/* Whatever chip: the clocks and what the cores do always fit; those before Turing are refused. */
static void test_every_real_chip(void **state)
{
	struct pm_library library = open_real();
	const uint32_t least = BIT(ACTIVE) | BIT(CORES_ACTIVE) | BIT(ISSUE) | BIT(CORE_CLOCK);
	const char *const *names;
	size_t cnt;

	(void)state;
	assert_int_equal(pm_library_chips(&library, &names, &cnt), 0);
	for (size_t i = 0; i < cnt; i++) {
		struct pm_choice choice;
		char why[GPUHW_WHY] = "";

		if (pm_choose(&library, names[i], NULL, &choice, why) < 0) {
			assert_true(is_before_turing(names[i]));
			continue;
		}
		print_message("%s: %zu\n", names[i], choice.cnt);
		assert_int_equal(kinds_of(&choice) & least, least);
		assert_plan(&library, names[i], &choice);
	}
	pm_library_close(&library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_candidates),
		cmocka_unit_test(test_later_candidates),
		cmocka_unit_test(test_counters_are_short),
		cmocka_unit_test(test_the_sum_replaces_both_directions),
		cmocka_unit_test(test_says_why_not),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_finding),
		cmocka_unit_test(test_real_chips),
		cmocka_unit_test(test_every_real_chip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
