/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pycodes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct pylayout LAYOUT = {
	.code_name = 16,
	.code_file = 24,
	.code_line = 32,
	.code_traceable = 36,
	.code_bytes = 40,
	.str_ascii = 40,
};

struct code {
	uintptr_t count, type, name, file;
	uint32_t line, traceable;
};

/* An ASCII string of CPython. */
struct text {
	uintptr_t head[2], length, hash;
	uint32_t state, padding;
	char data[8];
};

enum { TYPE = 0x1000, OTHER_TYPE = 0x2000 };

static struct text name = { .length = 4, .state = 1 << 5 | 1 << 6 | 1 << 2, .data = "work" };
static struct text file = { .length = 4, .state = 1 << 5 | 1 << 6 | 1 << 2, .data = "a.py" };

/* This process, and one that is it again under another salt: with another interpreter. */
static void open_both(struct pysource both[static 2])
{
	both[0] = (struct pysource){ .layout = &LAYOUT, .code_type = TYPE };
	assert_int_equal(selfmem_open(&both[0].mem), 0);
	both[1] = both[0];
	both[1].salt = UINT64_C(0x9e3779b97f4a7c15);
}

/* Each test has its own: an address stays known. */
static _Alignas(16) struct code pool[16];
static size_t pool_cnt;

static struct code *make_code(uint32_t line)
{
	struct code *code = &pool[pool_cnt++];

	assert_true(pool_cnt <= ARRAY_SIZE(pool));
	*code = (struct code){ .type = TYPE,
			       .name = (uintptr_t)&name,
			       .file = (uintptr_t)&file,
			       .line = line,
			       .traceable = 3 };
	return code;
}

static void code_objects_are_known_and_named(_unused_ void **state)
{
	struct pysource both[2];
	struct code *code = make_code(7);
	struct pycode names;

	open_both(both);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pycodes_find(&both[i], (uintptr_t)code),
				 (uintptr_t)code | UINT64_C(3) << 48);
		assert_int_equal(pycodes_name(&both[i], (uintptr_t)code, &names), 0);
		assert_string_equal(names.name, "work");
		assert_string_equal(names.file, "a.py");
		assert_int_equal(names.first_line, 7);
	}
	assert_int_equal(pycodes_find(&both[0], 0), 0);
	assert_int_equal(pycodes_find(&both[0], 16), 0);
	assert_int_equal(pycodes_name(&both[0], 16, &names), -EFAULT);
}

/* Without a read: the object is no longer one. */
static void what_is_known_of_a_process_is_not_of_another(_unused_ void **state)
{
	struct pysource both[2];

	open_both(both);
	for (size_t knows = 0; knows < 2; knows++) {
		struct code *code = make_code(7);

		assert_true(pycodes_find(&both[knows], (uintptr_t)code) != 0);
		code->type = OTHER_TYPE;
		assert_true(pycodes_find(&both[knows], (uintptr_t)code) != 0);
		assert_int_equal(pycodes_find(&both[1 - knows], (uintptr_t)code), 0);
	}
}

static void each_process_has_its_own_type_of_code(_unused_ void **state)
{
	struct pysource both[2];
	struct code *code = make_code(7);
	uintptr_t addr = (uintptr_t)code;
	uint64_t stamp;

	open_both(both);
	both[1].code_type = OTHER_TYPE;
	assert_int_equal(pycodes_stamp(&both[0], &addr, 1, &stamp), 1);
	assert_int_equal(pycodes_stamp(&both[1], &addr, 1, &stamp), 0);
	assert_int_equal(stamp, 0);
	code->type = OTHER_TYPE;
	assert_int_equal(pycodes_stamp(&both[0], &addr, 1, &stamp), 0);
	assert_int_equal(pycodes_stamp(&both[1], &addr, 1, &stamp), 1);
}

static void stamps_differ_by_object_and_process(_unused_ void **state)
{
	struct pysource both[2];
	struct code *codes[2] = { make_code(7), make_code(8) };
	uintptr_t addrs[SELFMEM_PARTS + 2];
	uint64_t stamps[2][ARRAY_SIZE(addrs)];

	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		addrs[i] = (uintptr_t)codes[i % 2];
	addrs[5] = 16;
	open_both(both);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pycodes_stamp(&both[i], addrs, ARRAY_SIZE(addrs), stamps[i]),
				 ARRAY_SIZE(addrs) - 1);
		assert_int_equal(stamps[i][5], 0);
		assert_int_equal(stamps[i][0], stamps[i][SELFMEM_PARTS]);
		assert_true(stamps[i][0] != stamps[i][1]);
	}
	assert_true(stamps[0][0] != stamps[1][0]);
	codes[0]->line++;
	assert_int_equal(pycodes_stamp(&both[0], addrs, 1, stamps[1]), 1);
	assert_true(stamps[1][0] != stamps[0][0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_objects_are_known_and_named),
		cmocka_unit_test(what_is_known_of_a_process_is_not_of_another),
		cmocka_unit_test(each_process_has_its_own_type_of_code),
		cmocka_unit_test(stamps_differ_by_object_and_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
