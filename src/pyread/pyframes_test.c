/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/pyframes.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { FRAME = 80, CHUNK_WORDS = 2048, BIG_WORDS = 8192 };

/* A thread as in CPython 3.13, and as in 3.10: frames are anywhere. */
static const struct pylayout LAYOUT_3_13 = {
	.minor = 13,
	.thread_frame = 8,
	.thread_chunk = 16,
	.frame_prev = 8,
	.frame_bytes = FRAME,
};
static const struct pylayout LAYOUT_3_10 = {
	.minor = 10,
	.thread_frame = 8,
	.frame_prev = 8,
	.frame_bytes = FRAME,
};

struct chunk {
	uintptr_t prev, size, top;
	uintptr_t data[CHUNK_WORDS];
};

struct thread {
	uintptr_t something, frame, chunk, top;
};

/* Each frame has a number, and the one before it. */
static uintptr_t put_frame(uintptr_t *at, uintptr_t number, uintptr_t prev)
{
	at[0] = number;
	at[1] = prev;
	return (uintptr_t)at;
}

/* Walks and expects the numbers from `first` down to 1. */
static void expect_numbers(const struct thread *thread, const struct pylayout *layout,
			   uintptr_t first)
{
	static struct pyframes frames;
	struct selfmem mem;
	const unsigned char *bytes;
	uintptr_t frame;

	assert_int_equal(selfmem_open(&mem), 0);
	assert_true(pyframes_begin(&frames, &mem, layout, (uintptr_t)thread,
				   (const unsigned char *)thread));
	frame = frames.first;
	for (uintptr_t number = first; number > 0; number--) {
		bytes = pyframes_borrow(&frames, frame);
		assert_non_null(bytes);
		assert_int_equal(pylayout_word(bytes, 0), number);
		frame = pylayout_word(bytes, 8);
	}
	assert_int_equal(frame, 0);
	pyframes_remember(&frames);
}

static void a_stack_spans_chunks_and_generators(void **state)
{
	static struct chunk chunks[3];
	static uintptr_t generators[100][16];
	struct thread thread = { 0 };
	uintptr_t frame = 0, number = 0;

	(void)state;
	for (size_t c = 0; c < 3; c++) {
		size_t used = 0;

		chunks[c].prev = c > 0 ? (uintptr_t)&chunks[c - 1] : 0;
		for (; used + 20 < CHUNK_WORDS - 100 * c; used += 13 + number % 7) {
			number++;
			if (number % 5 == 0 && number / 5 < 100) {
				frame = put_frame(generators[number / 5], number, frame);
				number++;
			}
			frame = put_frame(&chunks[c].data[used], number, frame);
		}
		/* Of the newest only the thread knows how full it is. */
		chunks[c].top = c < 2 ? used : 0;
		thread.chunk = (uintptr_t)&chunks[c];
		thread.top = (uintptr_t)&chunks[c].data[used];
	}
	thread.frame = frame;
	for (int i = 0; i < 3; i++)
		expect_numbers(&thread, &LAYOUT_3_13, number);
	for (int i = 0; i < 3; i++)
		expect_numbers(&thread, &LAYOUT_3_10, number);
}

static void a_chunk_may_be_bigger_than_the_window(void **state)
{
	static struct {
		uintptr_t prev, size, top;
		uintptr_t data[BIG_WORDS];
	} chunk;
	struct thread thread = { .chunk = (uintptr_t)&chunk };
	uintptr_t number = 0;
	size_t used = 0;

	(void)state;
	for (; used + 1000 < BIG_WORDS; used += number % 9 == 0 ? 900 : 12)
		thread.frame = put_frame(&chunk.data[used], ++number, thread.frame);
	thread.top = (uintptr_t)&chunk.data[used];
	expect_numbers(&thread, &LAYOUT_3_13, number);
}

/* The trail of the last walk must not be believed about anything but addresses. */
static void frames_that_change_are_read_anew(void **state)
{
	static uintptr_t objects[200][16];
	struct thread thread = { 0 };

	(void)state;
	for (size_t round = 0; round < 50; round++) {
		uintptr_t frame = 0, number = 0;
		size_t depth = 1 + round * 37 % 120;

		for (size_t i = 0; i < depth; i++)
			frame = put_frame(objects[(i + (i > depth / 2 ? round : 0)) % 200],
					  ++number, frame);
		thread.frame = frame;
		expect_numbers(&thread, &LAYOUT_3_10, number);
	}
}

static void a_thread_without_frames_has_an_empty_stack(void **state)
{
	struct thread thread = { 0 };

	(void)state;
	expect_numbers(&thread, &LAYOUT_3_13, 0);
	expect_numbers(&thread, &LAYOUT_3_10, 0);
}

/* Nothing but garbage points into the header of a chunk; it is copied as any stray. */
static void a_chunks_header_holds_no_frames(void **state)
{
	static struct pyframes frames;
	static struct chunk chunks[2];
	struct thread thread = { .chunk = (uintptr_t)&chunks[1], .top = (uintptr_t)&chunks[2] };
	struct selfmem mem;
	const unsigned char *bytes;

	(void)state;
	assert_int_equal(selfmem_open(&mem), 0);
	for (size_t c = 0; c < 2; c++)
		chunks[c] = (struct chunk){ .size = 77, .top = CHUNK_WORDS };
	chunks[1].prev = (uintptr_t)&chunks[0];
	assert_true(pyframes_begin(&frames, &mem, &LAYOUT_3_13, (uintptr_t)&thread,
				   (const unsigned char *)&thread));
	for (size_t c = 2; c-- > 0;) {
		bytes = pyframes_borrow(&frames, (uintptr_t)&chunks[c].size);
		assert_ptr_equal(bytes, frames.stray);
		assert_int_equal(pylayout_word(bytes, 0), 77);
	}
}

static void garbage_is_refused(void **state)
{
	static struct pyframes frames;
	static struct chunk chunk;
	static const uintptr_t JUNK[] = { 0, 1, 8, 0x7fffffffffff, UINTPTR_MAX - 7, UINTPTR_MAX };
	struct selfmem mem;

	(void)state;
	assert_int_equal(selfmem_open(&mem), 0);
	for (size_t i = 0; i < ARRAY_SIZE(JUNK) * ARRAY_SIZE(JUNK); i++) {
		struct thread thread = { .frame = JUNK[i % 6],
					 .chunk = i % 5 == 0 ? (uintptr_t)&chunk : JUNK[i / 6],
					 .top = JUNK[i % 6] };

		chunk.prev = JUNK[i / 6];
		if (!pyframes_begin(&frames, &mem, &LAYOUT_3_13, (uintptr_t)&thread,
				    (const unsigned char *)&thread))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(JUNK); j++)
			assert_null(pyframes_borrow(&frames, JUNK[j]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_spans_chunks_and_generators),
		cmocka_unit_test(a_chunk_may_be_bigger_than_the_window),
		cmocka_unit_test(frames_that_change_are_read_anew),
		cmocka_unit_test(a_thread_without_frames_has_an_empty_stack),
		cmocka_unit_test(a_chunks_header_holds_no_frames),
		cmocka_unit_test(garbage_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
