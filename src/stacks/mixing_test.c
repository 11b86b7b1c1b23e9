/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/mixing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { CAP = 16 };

/* A native stack by names, innermost first; "E" is the interpreter's loop. */
static size_t make_native(const char *names, struct stacks_frame *frames,
			  const struct stacks_frame **ret)
{
	static char texts[CAP][2];
	size_t cnt = 0;

	for (; names[cnt] != '\0'; cnt++) {
		texts[cnt][0] = names[cnt];
		frames[cnt] = (struct stacks_frame){ .kind = STACKS_NATIVE,
						     .interpreter = true,
						     .function = texts[cnt] };
		if (names[cnt] == 'E')
			frames[cnt].function = "_PyEval_EvalFrameDefault.cold";
		if (names[cnt] == 'T')
			frames[cnt].function = "_TAIL_CALL_CALL";
		ret[cnt] = &frames[cnt];
	}
	return cnt;
}

/* A Python stack; a capital letter is a frame that C code called. */
static size_t make_python(const char *names, struct mixing_python *ret)
{
	static char texts[CAP][2];
	size_t cnt = 0;

	for (; names[cnt] != '\0'; cnt++) {
		texts[cnt][0] = names[cnt];
		ret[cnt] = (struct mixing_python){
			.frame = { .kind = STACKS_PYTHON, .function = texts[cnt] },
			.entry = names[cnt] >= 'A' && names[cnt] <= 'Z',
		};
	}
	return cnt;
}

static void expect(const char *native, const char *python, bool whole, const char *joined,
		   bool mixed)
{
	struct stacks_frame native_frames[CAP], frames[2 * CAP];
	const struct stacks_frame *pointers[CAP];
	struct mixing_python python_frames[CAP];
	const size_t native_cnt = make_native(native, native_frames, pointers);
	const size_t python_cnt = make_python(python, python_frames);
	char found[2 * CAP + 1] = "";
	bool is_mixed;
	size_t cnt = mixing_join(pointers, native_cnt, whole, python_frames, python_cnt, frames,
				 &is_mixed);

	for (size_t i = 0; i < cnt; i++)
		found[i] = frames[i].function[0];
	assert_string_equal(found, joined);
	assert_int_equal(is_mixed, mixed);
}

static void each_loop_has_one_frame_before_3_11(void **state)
{
	(void)state;
	expect("sEvEm", "AB", true, "sAvBm", true);
}

static void a_loop_has_all_frames_up_to_the_entry(void **state)
{
	(void)state;
	expect("sEvEm", "abCdE", true, "sabCvdEm", true);
}

static void a_thread_without_python_is_as_it_is(void **state)
{
	(void)state;
	expect("abc", "", true, "abc", true);
	/* C code whose interpreter has no frames, as during its start. */
	expect("aEc", "", true, "a_c", true);
}

static void without_native_frames_python_is_what_there_is(void **state)
{
	(void)state;
	expect("", "aB", false, "aB", true);
}

static void a_native_stack_that_is_cut_still_mixes(void **state)
{
	(void)state;
	expect("sEv", "aBcD", false, "saBvcD", true);
}

static void numbers_that_differ_leave_both_apart(void **state)
{
	(void)state;
	expect("sEvEm", "A", true, "s_v_mA", false);
	expect("sEv", "AB", true, "s_vAB", false);
}

static void the_running_instruction_of_a_tail_call_build_is_left_out(void **state)
{
	(void)state;
	expect("sTEv", "aB", true, "saBv", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_loop_has_one_frame_before_3_11),
		cmocka_unit_test(a_loop_has_all_frames_up_to_the_entry),
		cmocka_unit_test(a_thread_without_python_is_as_it_is),
		cmocka_unit_test(without_native_frames_python_is_what_there_is),
		cmocka_unit_test(a_native_stack_that_is_cut_still_mixes),
		cmocka_unit_test(numbers_that_differ_leave_both_apart),
		cmocka_unit_test(the_running_instruction_of_a_tail_call_build_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
