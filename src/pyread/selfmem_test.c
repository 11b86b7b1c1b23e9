/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/selfmem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Both ways to read. */
static void open_both(struct selfmem both[static 2])
{
	assert_int_equal(selfmem_open(&both[0]), 0);
	both[1] = both[0];
	both[1].fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	assert_true(both[1].fd >= 0);
}

static void close_both(struct selfmem both[static 2])
{
	assert_int_equal(close(both[1].fd), 0);
}

/* A page with text in it, followed by one that is not there. */
static char *map_edge(size_t *ret_page)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + page, page), 0);
	memcpy(pages + page - 8, "the edge", 8); /* NOLINT(bugprone-not-null-terminated-result) */
	*ret_page = page;
	return pages;
}

static void memory_that_is_not_there_is_an_error(void **state)
{
	struct selfmem both[2];
	size_t page;
	char *pages = map_edge(&page), text[16];

	(void)state;
	open_both(both);
	for (size_t i = 0; i < 2; i++) {
		uintptr_t edge = (uintptr_t)pages + page;

		assert_true(selfmem_read(&both[i], edge - 8, text, 8));
		assert_memory_equal(text, "the edge", 8);
		assert_false(selfmem_read(&both[i], edge - 8, text, 9));
		assert_false(selfmem_read(&both[i], edge, text, 1));
		assert_false(selfmem_read(&both[i], 0, text, 1));
		assert_false(selfmem_read(&both[i], UINTPTR_MAX - 3, text, 8));
		assert_false(selfmem_read(&both[i], (uintptr_t)1 << 63, text, 8));
	}
	close_both(both);
	(void)munmap(pages, page);
}

static void parts_are_read_up_to_the_first_that_fails(void **state)
{
	struct selfmem both[2];
	size_t page;
	char *pages = map_edge(&page), got[4][8];
	uintptr_t edge = (uintptr_t)pages + page;

	(void)state;
	open_both(both);
	for (size_t i = 0; i < 2; i++) {
		struct selfmem_part parts[] = {
			{ edge - 8, got[0], 8 },
			{ edge - 4, got[1], 4 },
			{ edge - 4, got[2], 8 },
			{ edge - 8, got[3], 8 },
		};

		assert_int_equal(selfmem_read_parts(&both[i], parts, 4), 2);
		assert_memory_equal(got[1], "edge", 4);
		assert_int_equal(selfmem_read_parts(&both[i], parts, 2), 2);
		assert_int_equal(selfmem_read_parts(&both[i], parts + 2, 2), 0);
		assert_int_equal(selfmem_read_parts(&both[i], parts + 3, 1), 1);
		assert_int_equal(selfmem_read_parts(&both[i], parts, 0), 0);
	}
	close_both(both);
	(void)munmap(pages, page);
}

static void more_parts_than_fit_are_left(void **state)
{
	struct selfmem both[2];
	struct selfmem_part parts[SELFMEM_PARTS + 3];
	char byte = 7, got[ARRAY_SIZE(parts)] = "";

	(void)state;
	open_both(both);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = (struct selfmem_part){ (uintptr_t)&byte, &got[i], 1 };
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(selfmem_read_parts(&both[i], parts, ARRAY_SIZE(parts)),
				 SELFMEM_PARTS);
	assert_int_equal(got[SELFMEM_PARTS - 1], 7);
	assert_int_equal(got[SELFMEM_PARTS], 0);
	close_both(both);
}

static void a_child_cannot_use_it(void **state)
{
	struct selfmem mem = { 0 };
	int status;
	pid_t child;

	(void)state;
	assert_false(selfmem_usable(&mem));
	assert_int_equal(selfmem_open(&mem), 0);
	assert_true(selfmem_usable(&mem));
	child = fork();
	if (child == 0)
		_exit(selfmem_usable(&mem) ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_is_not_there_is_an_error),
		cmocka_unit_test(parts_are_read_up_to_the_first_that_fails),
		cmocka_unit_test(more_parts_than_fit_are_left),
		cmocka_unit_test(a_child_cannot_use_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
