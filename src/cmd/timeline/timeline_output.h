/* SPDX-License-Identifier: Apache-2.0 */
/* Where a timeline is written: standard output, a device, or a file, complete or not at all. */
#pragma once

#include "base/base.h"

#include <stdio.h>

/*
 * Calls write(arg, out) with a stream to path ("-": standard output), compressed if path ends in .gz or compress
 * is set. A file takes its place when all was written. Returns what write() does, or -errno.
 */
_must_check_ int timeline_output(const char *path, bool compress,
				 int (*write)(void *arg, FILE *out), void *arg);
