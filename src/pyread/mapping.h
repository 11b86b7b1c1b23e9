/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a process's list of mappings. Source: proc_pid_maps(5). */
#pragma once

#include "base/base.h"

struct mapping {
	uintptr_t start, end;
	bool readable, writable, executable;
	uint64_t offset, device, inode; /* inode 0: of no file; device: major << 32 | minor */
	const char *path;		/* in the text; "" without one */
};

/*
 * text: "55d0-55e0 r-xp 00002000 08:02 173521 /usr/bin/python3", NUL-terminated, with a blank or the
 * path behind the inode. False: it is no such line.
 */
_must_check_ bool mapping_parse(const char *text, struct mapping *ret);
