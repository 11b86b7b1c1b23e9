/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pylayout.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* What CPython 3.13.0 for x86-64 has at the start of _PyRuntime. */
static const uint64_t PUBLISHED_3_13[] = {
	0,	0x030d00f0, 0,	 /* cookie, version, free-threaded */
	283320, 608,	    632, /* runtime */
	194968, 7272,	    7264, 7344, 7400, 7656, 7640, 7648, 16,  7752,
	0,	7768,	    7760,					  /* interpreter */
	304,	0,	    8,	  16,	72,   152,  160,  232,	32,	  /* thread */
	80,	8,	    0,	  56,	72,   70,			  /* frame */
	208,	112,	    120,  128,	136,  68,   52,	  96,	104, 200, /* code */
	16,	8,							  /* object */
	416,	24,	    88,	  168,					  /* type */
	32,	24,	    16,						  /* tuple */
	40,	24,	    16,						  /* list */
	48,	32,	    40,						  /* dict */
	24,	16,							  /* float */
	32,	16,	    24,						  /* int */
	40,	16,	    32,						  /* bytes */
	64,	32,	    16,	  40,					  /* str */
	240,	200,							  /* garbage collection */
};

static void copy_published(uint64_t ret[static ARRAY_SIZE(PUBLISHED_3_13)])
{
	memcpy(ret, PUBLISHED_3_13, sizeof(PUBLISHED_3_13));
	memcpy(ret, "xdebugpy", 8);
}

static void only_known_versions_have_offsets(void **state)
{
	static const uint64_t NOTHING[128];
	struct pylayout layout = { .minor = 99 };
	char version[] = "3.8.0 (x)";

	(void)state;
	for (int minor = '8'; minor <= '9'; minor++) {
		version[2] = (char)minor;
		assert_int_equal(pylayout_find(version, NOTHING, &layout), 0);
		assert_int_equal(layout.minor, minor - '0');
	}
	assert_int_equal(pylayout_find("3.10.13 (main)", NOTHING, &layout), 0);
	assert_int_equal(pylayout_find("3.11.7+", NOTHING, &layout), 0);
	assert_int_equal(pylayout_find("3.12", NOTHING, &layout), 0);
	assert_int_equal(layout.minor, 12);
	assert_int_equal(pylayout_find("3.7.16", NOTHING, &layout), -ENOENT);
	assert_int_equal(pylayout_find("3.13.0", NOTHING, &layout), -ENOENT);
	assert_int_equal(pylayout_find("3.15.0a1", NOTHING, &layout), -ENOENT);
	assert_int_equal(pylayout_find("2.7.18", NOTHING, &layout), -ENOENT);
	assert_int_equal(pylayout_find("3.99999999999999999999", NOTHING, &layout), -ENOENT);
	assert_int_equal(pylayout_find("", NOTHING, &layout), -ENOENT);
	assert_int_equal(layout.minor, 12);
}

static void newer_interpreters_publish_their_offsets(void **state)
{
	uint64_t published[ARRAY_SIZE(PUBLISHED_3_13)];
	struct pylayout layout;

	(void)state;
	copy_published(published);
	assert_int_equal(pylayout_find("3.13.0 (main)", published, &layout), 0);
	assert_int_equal(layout.runtime_main, 640);
	assert_int_equal(layout.threads, 7344);
	assert_int_equal(layout.gil_holder, 8);
	assert_int_equal(layout.collecting, published[10] + 200);
	assert_int_equal(layout.gil_locked, 16);
	assert_int_equal(layout.gil_cond, 32);
	assert_int_equal(layout.thread_frame, 72);
	assert_int_equal(layout.thread_native, 160);
	assert_int_equal(layout.thread_chunk, 232);
	assert_int_equal(layout.frame_prev, 8);
	assert_int_equal(layout.frame_mark, 70);
	assert_int_equal(layout.code_line, 68);
	assert_int_equal(layout.code_traceable, 184);
	assert_int_equal(layout.str_compact, 56);
	assert_int_equal(layout.thread_bytes, 248);
}

static void published_offsets_are_checked(void **state)
{
	uint64_t published[ARRAY_SIZE(PUBLISHED_3_13)];
	struct pylayout layout;

	(void)state;
	copy_published(published);
	assert_int_equal(pylayout_find("3.14.0", published, &layout), -ENOENT);
	published[2] = 1;
	assert_int_equal(pylayout_find("3.13.0", published, &layout), -ENOTSUP);
	copy_published(published);
	published[44] = 24;
	assert_int_equal(pylayout_find("3.13.0", published, &layout), -ENOENT);
	copy_published(published);
	published[72] = 4000; /* outside its structure: whether garbage is collected is not known */
	assert_int_equal(pylayout_find("3.13.0", published, &layout), 0);
	assert_int_equal(layout.collecting, 0);
	published[0] ^= 1;
	assert_int_equal(pylayout_find("3.13.0", published, &layout), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_known_versions_have_offsets),
		cmocka_unit_test(newer_interpreters_publish_their_offsets),
		cmocka_unit_test(published_offsets_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
