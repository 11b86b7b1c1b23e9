/* SPDX-License-Identifier: Apache-2.0 */
#include "pyread/image.h"

#include "pyread/mapping.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
	BUFFER_BYTES = 4096, /* as much as the kernel writes at once */
	FIELDS_BYTES = 128,  /* of a line before the file's name, at most */
};

/* Lines of an open "maps", one by one. */
struct lines {
	int fd, error;
	uint32_t read_cnt;
	off_t offset;
	size_t at, len; /* of the buffer */
	char buffer[BUFFER_BYTES];
};

/* The next byte. False: at the end, with `error` 0, or on an error. */
static bool next_byte(struct lines *lines, char *ret)
{
	ssize_t len;

	if (lines->at == lines->len) {
		len = lines->read_cnt++ < IMAGE_READS
			      ? pread(lines->fd, lines->buffer, BUFFER_BYTES, lines->offset)
			      : 0;
		if (len <= 0) {
			lines->error = len < 0 ? -errno : 0;
			return false;
		}
		lines->offset += len;
		lines->at = 0;
		lines->len = (size_t)len;
	}
	*ret = lines->buffer[lines->at++];
	return true;
}

/* The next line that is a mapping. */
static bool next_mapping(struct lines *lines, struct mapping *ret)
{
	char fields[FIELDS_BYTES + 2], byte = '\n';
	size_t len = 0;

	while (next_byte(lines, &byte)) {
		if (byte != '\n') {
			if (len < FIELDS_BYTES)
				fields[len++] = byte;
			continue;
		}
		fields[len] = ' ';
		fields[len + 1] = '\0';
		if (mapping_parse(fields, ret))
			return true;
		len = 0;
	}
	return false;
}

static bool is_of(const struct mapping *mapping, const struct image *image)
{
	return mapping->inode == image->inode && mapping->device == image->device;
}

int image_of(int fd, uintptr_t addr, struct image *ret)
{
	struct lines lines = { .fd = fd };
	struct image image = { 0 };
	struct mapping mapping;
	bool has_code = false, has_addr = false;
	uintptr_t end = 0;

	while (!(has_code && has_addr) && next_mapping(&lines, &mapping)) {
		bool follows = mapping.inode == 0 && mapping.start == end;

		if (!follows && !is_of(&mapping, &image)) {
			if (has_addr)
				break;
			image = (struct image){ .device = mapping.device, .inode = mapping.inode };
			has_code = false;
		}
		if (mapping.executable && mapping.inode != 0 && !has_code) {
			image.offset = mapping.offset;
			image.start = mapping.start;
			has_code = true;
		}
		has_addr = has_addr || (addr >= mapping.start && addr < mapping.end);
		end = mapping.end;
	}
	if (!has_code || !has_addr)
		return lines.error != 0 ? lines.error : -ENOENT;
	*ret = image;
	return 0;
}

int image_find(int fd, const struct image *image, uintptr_t *ret_start)
{
	struct lines lines = { .fd = fd };
	struct mapping mapping;

	while (next_mapping(&lines, &mapping)) {
		if (mapping.executable && is_of(&mapping, image) &&
		    mapping.offset == image->offset) {
			*ret_start = mapping.start;
			return 0;
		}
	}
	return lines.error != 0 ? lines.error : -ENOENT;
}
