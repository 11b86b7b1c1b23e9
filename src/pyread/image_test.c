/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char PARENT[] =
	"55d000000000-55d000001000 r--p 00000000 08:02 173521                     /usr/bin/python3\n"
	"55d000001000-55d000005000 r-xp 00001000 08:02 173521                     /usr/bin/python3\n"
	"55d000005000-55d000006000 rw-p 00005000 08:02 173521                     /usr/bin/python3\n"
	"55d000100000-55d000200000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000010000 r--p 00000000 08:02 99                         /lib/libpython\n"
	"7f0000010000-7f0000090000 r-xp 00010000 08:02 99                         /lib/libpython\n"
	"7f0000090000-7f00000a0000 r--p 00090000 08:02 99                         /lib/libpython\n"
	"7f00000b0000-7f00000c0000 rw-p 000a0000 08:02 99                         /lib/libpython\n"
	"7f00000c0000-7f00000d0000 rw-p 00000000 00:00 0 \n"
	"7f00000e0000-7f00000f0000 rw-p 00000000 00:00 0 \n"
	"7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]\n";

/* Once only to be read, elsewhere; the same number on another device; then the library. */
static const char CHILD[] =
	"561000000000-561000001000 r--p 00000000 08:02 173521                     /usr/bin/python3\n"
	"561000001000-561000005000 r-xp 00001000 08:02 173521                     /usr/bin/python3\n"
	"7e0000000000-7e0000010000 r-xp 00010000 08:03 99                         /lib/other\n"
	"7e0000100000-7e0000200000 r--p 00010000 08:02 99                         /lib/libpython\n"
	"7e5500010000-7e5500090000 r-xp 00010000 08:02 99                         /lib/libpython\n";

static int file_of(const char *text, size_t len)
{
	char name[] = "/tmp/image_test.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	return fd;
}

static int image_at(const char *text, uintptr_t addr, struct image *ret)
{
	int fd = file_of(text, strlen(text)), error = image_of(fd, addr, ret);

	assert_int_equal(close(fd), 0);
	return error;
}

static int start_in(const char *text, const struct image *image, uintptr_t *ret)
{
	int fd = file_of(text, strlen(text)), error = image_find(fd, image, ret);

	assert_int_equal(close(fd), 0);
	return error;
}

static void an_address_belongs_to_the_file_around_it(_unused_ void **state)
{
	static const uintptr_t LIBRARY[] = { 0x7f0000000000, 0x7f0000010000, 0x7f000009ffff,
					     0x7f00000b0010, 0x7f00000c0008 };
	static const uintptr_t NONE[] = {
		0, 0x55d000150000, 0x7f00000a0000, 0x7f00000e0000, 0x7ffc00000010, UINTPTR_MAX
	};
	struct image image;

	for (size_t i = 0; i < ARRAY_SIZE(LIBRARY); i++) {
		assert_int_equal(image_at(PARENT, LIBRARY[i], &image), 0);
		assert_int_equal(image.inode, 99);
		assert_int_equal(image.device, UINT64_C(8) << 32 | 2);
		assert_int_equal(image.offset, 0x10000);
		assert_int_equal(image.start, 0x7f0000010000);
	}
	assert_int_equal(image_at(PARENT, 0x55d000005000, &image), 0);
	assert_int_equal(image.inode, 173521);
	assert_int_equal(image.start, 0x55d000001000);
	for (size_t i = 0; i < ARRAY_SIZE(NONE); i++)
		assert_int_equal(image_at(PARENT, NONE[i], &image), -ENOENT);
}

static void another_process_has_its_code_elsewhere(_unused_ void **state)
{
	struct image image = { 0 };
	uintptr_t start = 1;

	assert_int_equal(image_at(PARENT, 0x7f00000b0010, &image), 0);
	assert_int_equal(start_in(CHILD, &image, &start), 0);
	assert_int_equal(start, 0x7e5500010000);
	assert_int_equal(start_in(PARENT, &image, &start), 0);
	assert_int_equal(start, image.start);
	image.inode = 98;
	assert_int_equal(start_in(CHILD, &image, &start), -ENOENT);
	assert_int_equal(start, 0x7f0000010000);
}

static void what_cannot_be_read_is_an_error(_unused_ void **state)
{
	struct image image = { 0 };
	uintptr_t start;

	assert_int_equal(image_of(-1, 1, &image), -EBADF);
	assert_int_equal(image_find(-EACCES, &image, &start), -EBADF);
	assert_int_equal(image_at("", 1, &image), -ENOENT);
	assert_int_equal(image_at("\n\nnonsense\n1-2\n1-2 r-xp\n-- r-xp 0 0:0 1 x\n", 1, &image),
			 -ENOENT);
	assert_int_equal(image_at("1-2 r-xp 0 0:0 1", 1, &image), -ENOENT);
	assert_int_equal(image_at("nonsense\n1-2 r-xp 0 0:0 1\n", 1, &image), 0);
}

/* Lines end at other places in the buffer each time. */
static void lines_of_any_length_are_read(_unused_ void **state)
{
	static char text[3 * 5000 + sizeof(PARENT)];
	struct image image;

	for (size_t len = 4000; len < 4200; len++) {
		size_t at = (size_t)sprintf(text, "1000-2000 r-xp 00000000 08:02 7 /");

		memset(text + at, '1', len);
		text[at + len] = '\n';
		(void)memcpy(text + at + len + 1, PARENT, sizeof(PARENT));
		assert_int_equal(image_at(text, 0x7f00000b0010, &image), 0);
		assert_int_equal(image.start, 0x7f0000010000);
		assert_int_equal(image_at(text, 0x1000, &image), 0);
		assert_int_equal(image.inode, 7);
	}
}

static int here;

static void this_process_has_an_image(_unused_ void **state)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct image image = { 0 };
	uintptr_t start = 0;

	assert_int_equal(image_of(fd, (uintptr_t)&here, &image), 0);
	assert_true(image.inode != 0);
	assert_int_equal(image_find(fd, &image, &start), 0);
	assert_int_equal(start, image.start);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_belongs_to_the_file_around_it),
		cmocka_unit_test(another_process_has_its_code_elsewhere),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
		cmocka_unit_test(lines_of_any_length_are_read),
		cmocka_unit_test(this_process_has_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
