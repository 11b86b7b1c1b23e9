/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pylines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/*
 * A function over eleven lines with a loop and a call of two lines, compiled by each version, and
 * what dis.findlinestarts() says: from which instruction on which line.
 */
struct sample {
	uint32_t minor;
	size_t len;
	const char *table;
	struct {
		uint32_t instr, line;
	} starts[12];
};

static const struct sample SAMPLES[] = {
	{
		.minor = 8,
		.len = 16,
		.table = "\x00\x02\x02\x01\x02\xff\x04\x03\x0c\x01\x0a\x03\x02\x01\x02\xff",
		.starts = { { 0, 3 },
			    { 2, 4 },
			    { 4, 3 },
			    { 8, 6 },
			    { 20, 7 },
			    { 30, 10 },
			    { 32, 11 },
			    { 34, 10 } },
	},
	{
		.minor = 10,
		.len = 16,
		.table = "\x02\x02\x02\x01\x04\xff\x0c\x03\x0a\x01\x02\x03\x02\x01\x04\xff",
		.starts = { { 0, 3 },
			    { 2, 4 },
			    { 4, 3 },
			    { 8, 6 },
			    { 20, 7 },
			    { 30, 10 },
			    { 32, 11 },
			    { 34, 10 } },
	},
	{
		.minor = 11,
		.len = 72,
		.table = "\x80\x00\xe0\x09\x0a\xd8\x09\x0a\xf1\x03\x01\x0a\x0b\x80\x41\xf5"
			 "\x06\x00\x0e\x13\x90\x31\x89\x58\x8c\x58\xf0\x00\x01\x05\x0f\xf0"
			 "\x00\x01\x05\x0f\x88\x01\xd8\x08\x09\x88\x51\x89\x06\x88\x01\x88"
			 "\x01\xf5\x06\x00\x0c\x0d\xd8\x08\x09\xf1\x03\x01\x0c\x0b\xf4\x00"
			 "\x01\x0c\x0b\xf0\x00\x01\x05\x0b",
		.starts = { { 0, 1 },
			    { 2, 3 },
			    { 4, 4 },
			    { 6, 3 },
			    { 12, 6 },
			    { 46, 7 },
			    { 58, 10 },
			    { 70, 11 },
			    { 72, 10 } },
	},
	{
		.minor = 13,
		.len = 56,
		.table = "\x80\x00\xe0\x09\x0a\xd8\x09\x0a\xf1\x03\x01\x0a\x0b\x80\x41\xf4"
			 "\x06\x00\x0e\x13\x90\x31\x8e\x58\x88\x01\xd8\x08\x09\x89\x06\x8a"
			 "\x01\xf1\x03\x00\x0e\x16\xf4\x08\x00\x0c\x0d\xd8\x08\x09\xf3\x03"
			 "\x01\x0c\x0b\xf0\x00\x01\x05\x0b",
		.starts = { { 0, 1 },
			    { 2, 3 },
			    { 4, 4 },
			    { 6, 3 },
			    { 12, 6 },
			    { 40, 7 },
			    { 52, 6 },
			    { 56, 10 },
			    { 66, 11 },
			    { 68, 10 } },
	},
};

static uint32_t line_at(const struct sample *sample, uint32_t instr)
{
	return pylines_find(sample->minor, 1, (const unsigned char *)sample->table, sample->len,
			    instr);
}

static void each_instruction_has_the_line_that_dis_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++)
		for (size_t j = 0; j < ARRAY_SIZE(SAMPLES[i].starts); j++) {
			const uint32_t instr = SAMPLES[i].starts[j].instr;

			if (SAMPLES[i].starts[j].line == 0)
				continue;
			assert_int_equal(line_at(&SAMPLES[i], instr), SAMPLES[i].starts[j].line);
			if (j > 0) /* the instruction before has the line before */
				assert_int_equal(line_at(&SAMPLES[i], instr - 1),
						 SAMPLES[i].starts[j - 1].line);
		}
}

static void an_instruction_behind_the_table_has_its_last_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++)
		assert_int_equal(line_at(&SAMPLES[i], 10000), 10);
}

static void a_table_that_is_cut_anywhere_is_no_trouble(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(SAMPLES); i++)
		for (size_t len = 0; len < SAMPLES[i].len; len++) {
			struct sample cut = SAMPLES[i];

			cut.len = len;
			assert_in_range(line_at(&cut, 70), 1, 11);
		}
}

static void a_function_without_a_table_has_its_first_line(void **state)
{
	(void)state;
	for (uint32_t minor = 8; minor < 15; minor++)
		assert_int_equal(pylines_find(minor, 7, NULL, 0, 4), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_has_the_line_that_dis_says),
		cmocka_unit_test(an_instruction_behind_the_table_has_its_last_line),
		cmocka_unit_test(a_table_that_is_cut_anywhere_is_no_trouble),
		cmocka_unit_test(a_function_without_a_table_has_its_first_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
