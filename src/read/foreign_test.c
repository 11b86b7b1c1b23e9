/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside traces is named; what may be a trace is not. */
#include "read/foreign.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static char folder[] = "/tmp/foreign-test-XXXXXX";

static const char *describe(const char *name, const char *bytes, size_t len)
{
	char path[128];
	const char *what;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_replace(path, bytes, len, 0600), 0);
	what = foreign_describe(path);
	assert_int_equal(unlink(path), 0);
	return what;
}

static void known_files_are_named(void **state)
{
	static const struct {
		const char *bytes, *what;
	} cases[] = {
		{ "{\"schema\": \"perftracker.report.v2\"}", "a report of PerfTracker" },
		{ "{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": [", "an execution trace" },
		{ "{\"version\": \"2.4\", \"pg_config\": {}, \"entries\": [",
		  "NCCL flight recorder" },
		{ "[[1, 2], [[0, 1]]]", "a memory timeline" },
		{ "{\"lr\": 0.1}\n", "JSON without a \"traceEvents\" array" },
		{ "[{\"lr\": 0.1}]", "a JSON array of no events" },
		{ "<!DOCTYPE html>", "a page of HTML" },
		{ "PK\003\004....", "a ZIP archive" },
		{ "\x80\x04}\x94(\x8c\tpg_config", "NCCL flight recorder" },
		{ "\x80\x04}\x94(\x8c\rdevice_traces", "a memory snapshot" },
		{ "PERFILE2....", "a profile of Linux perf" },
		{ "python3 20824 55209.261456:   10101010 cpu-clock: \n"
		  "\t          1c6fae find_name_in_mro+0x9e (/usr/lib/libpython3.11.so)\n\n",
		  "the text of 'perf script'" },
		{ "# ========\n# hostname : a\n#\nswapper     0 [002] 1.5: 1 cycles: \n"
		  "\tffffffff8105ac5a native_safe_halt ([kernel])\n",
		  "the text of 'perf script'" },
		{ " iteration  10/ 100 | elapsed time per iteration (ms): 812.5 | loss",
		  "Megatron" },
		{ "\n\x40\x08\x01\x12\x09/host:CPU", "a profile of XLA" },
		{ "\x80\x04]\x94", "a pickle of Python" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *what = describe("a.json", cases[i].bytes, strlen(cases[i].bytes));

		assert_non_null(what);
		assert_non_null(strstr(what, cases[i].what));
	}
	assert_non_null(strstr(describe("a.nsys-rep", "x", 1), "nsys export --type sqlite"));
}

static void what_may_be_a_trace_is_left_to_its_reader(void **state)
{
	static const char *const cases[] = {
		"{\"traceEvents\": []}",
		"[{\"ph\": \"X\"}]",
		"[]",
		"{\"schemaVersion\": 1, \"dev",
		"[{\"name\": \"a",
		"text",
		"{",
		"PTFP",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_null(describe("a.json", cases[i], strlen(cases[i])));
	assert_null(describe("empty.json", "", 0));
	assert_null(foreign_describe("/nonexistent.json"));
	assert_null(foreign_describe(folder));
}

/* Metadata may be longer than what is looked at. */
static void a_long_head_may_be_a_trace(void **state)
{
	size_t len = 200000;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	memset(text, ' ', len);
	text[0] = '{';
	text[len - 1] = '}';
	assert_null(describe("a.json", text, len));
	free(text);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_files_are_named),
		cmocka_unit_test(what_may_be_a_trace_is_left_to_its_reader),
		cmocka_unit_test(a_long_head_may_be_a_trace),
	};

	return cmocka_run_group_tests_name("foreign", tests, make_folder, remove_folder);
}
