/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pytext.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Strings as CPython 3.12 lays them out. */
static const struct pylayout LAYOUT = { .minor = 12, .str_ascii = 40, .str_compact = 56 };

enum { COMPACT = 1 << 5, ASCII = 1 << 6, INTERNED = 3 };

struct fake {
	_Alignas(8) unsigned char bytes[4096];
};

static void make(struct fake *fake, uint32_t kind, uint32_t flags, const void *chars, size_t cnt)
{
	uint32_t state = kind << 2 | flags;
	size_t length = cnt;

	memset(fake, 0x5a, sizeof(*fake));
	memcpy(fake->bytes + 16, &length, 8);
	memcpy(fake->bytes + 32, &state, 4);
	memcpy(fake->bytes + ((flags & ASCII) != 0 ? 40 : 56), chars, cnt * kind);
}

/* Reads it with room for size - 1 bytes and compares. */
static void expect(const struct fake *fake, enum pytext_part part, size_t size, const char *wanted)
{
	struct selfmem mem;
	char got[2048];

	memset(got, 'x', sizeof(got));
	assert_int_equal(selfmem_open(&mem), 0);
	assert_true(pytext_copy(&mem, &LAYOUT, (uintptr_t)fake, part, got, size));
	assert_string_equal(got, wanted);
	assert_int_equal(got[size], 'x');
}

static void all_widths_become_utf8(void **state)
{
	static const uint16_t WIDE[] = { 'a', 0x20ac, 0xd800, 0xff };
	static const uint32_t WIDEST[] = { 0x1f40d, 'b', 0x110000 };
	struct fake fake;

	(void)state;
	make(&fake, 1, COMPACT | ASCII | INTERNED, "plain", 5);
	expect(&fake, PYTEXT_START, 64, "plain");
	make(&fake, 1, COMPACT, "\xe9t\xe9", 3);
	expect(&fake, PYTEXT_START, 64, "\u00e9t\u00e9");
	make(&fake, 2, COMPACT, WIDE, 4);
	expect(&fake, PYTEXT_START, 64, "a\u20ac?\u00ff");
	make(&fake, 4, COMPACT, WIDEST, 3);
	expect(&fake, PYTEXT_END, 64, "\U0001f40db?");
	make(&fake, 1, COMPACT | ASCII, "", 0);
	expect(&fake, PYTEXT_START, 1, "");
}

static void long_strings_keep_whole_characters_of_one_end(void **state)
{
	struct fake fake;

	(void)state;
	make(&fake, 1, COMPACT | ASCII, "abcdef", 6);
	expect(&fake, PYTEXT_START, 7, "abcdef");
	expect(&fake, PYTEXT_START, 6, "abcde");
	expect(&fake, PYTEXT_END, 6, "bcdef");
	expect(&fake, PYTEXT_END, 1, "");
	make(&fake, 1, COMPACT, "\xe9\xe9\xe9", 3);
	expect(&fake, PYTEXT_START, 6, "\u00e9\u00e9");
	expect(&fake, PYTEXT_END, 6, "\u00e9\u00e9");
	expect(&fake, PYTEXT_START, 2, "");
	expect(&fake, PYTEXT_END, 2, "");
}

static void of_very_long_strings_256_characters_are_read(void **state)
{
	char chars[300], wanted[257];
	struct fake fake;

	(void)state;
	for (size_t i = 0; i < sizeof(chars); i++)
		chars[i] = (char)('a' + i % 26);
	make(&fake, 1, COMPACT | ASCII, chars, sizeof(chars));
	wanted[256] = '\0';
	memcpy(wanted, chars, 256);
	expect(&fake, PYTEXT_START, 512, wanted);
	memcpy(wanted, chars + sizeof(chars) - 256, 256);
	expect(&fake, PYTEXT_END, 512, wanted);
}

static void objects_other_than_strings_are_refused(void **state)
{
	struct selfmem mem;
	struct fake fake;
	char got[64] = "as before";
	uint64_t random = 1, readable = 0;

	(void)state;
	assert_int_equal(selfmem_open(&mem), 0);
	make(&fake, 1, ASCII, "not compact", 11);
	assert_false(pytext_copy(&mem, &LAYOUT, (uintptr_t)&fake, PYTEXT_END, got, sizeof(got)));
	make(&fake, 3, COMPACT, "no width", 2);
	assert_false(pytext_copy(&mem, &LAYOUT, (uintptr_t)&fake, PYTEXT_END, got, sizeof(got)));
	make(&fake, 1, COMPACT | ASCII, "endless", 7);
	memset(fake.bytes + 16, 0x7f, 8);
	assert_false(pytext_copy(&mem, &LAYOUT, (uintptr_t)&fake, PYTEXT_END, got, sizeof(got)));
	assert_false(pytext_copy(&mem, &LAYOUT, 8, PYTEXT_END, got, sizeof(got)));
	assert_string_equal(got, "as before");
	for (int i = 0; i < 20000; i++) {
		for (size_t j = 0; j < 100; j++)
			fake.bytes[j] = (unsigned char)((random = random * 6364136223846793005u +
								  1442695040888963407u) >>
							56);
		readable += pytext_copy(&mem, &LAYOUT, (uintptr_t)&fake,
					i % 2 == 0 ? PYTEXT_END : PYTEXT_START, got,
					1 + (size_t)i % sizeof(got));
	}
	assert_in_range(readable, 0, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_widths_become_utf8),
		cmocka_unit_test(long_strings_keep_whole_characters_of_one_end),
		cmocka_unit_test(of_very_long_strings_256_characters_are_read),
		cmocka_unit_test(objects_other_than_strings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
