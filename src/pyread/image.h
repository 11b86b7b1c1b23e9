/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a program or library lies in the memory of a process. Two processes map the same file at
 * different addresses, but everything in it keeps its distance to the file's code: an address of
 * one process becomes that of the other by the difference of the two starts of code.
 *
 * Both functions read a process's "maps" from its begin, by at most IMAGE_READS system calls, and
 * neither allocate nor lock. Source: proc_pid_maps(5).
 */
#pragma once

#include "base/base.h"

enum { IMAGE_READS = 4096 };

/* A mapped file. */
struct image {
	uint64_t device, inode;
	uint64_t offset; /* in the file: of the code */
	uintptr_t start; /* in memory: of the code */
};

/*
 * The file whose mappings hold that address, or end where memory with it begins: variables without
 * a value in the file follow it. fd: an open "maps". Returns 0, -ENOENT, or -errno of the read.
 */
_must_check_ int image_of(int fd, uintptr_t addr, struct image *ret);

/* Where another process has the code of that file. fd: its "maps". As image_of. */
_must_check_ int image_find(int fd, const struct image *image, uintptr_t *ret_start);
