/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a list of mappings: an image that is found holds what it was asked for. */
#include "pyread/image.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);
	struct image image;
	uintptr_t start;

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	if (image_of(fd, 0x1000, &image) == 0 &&
	    (image.inode == 0 || image_find(fd, &image, &start) != 0)) {
		fprintf(stderr, "image_fuzz: an image that is not there\n");
		abort();
	}
	(void)close(fd);
	return 0;
}
