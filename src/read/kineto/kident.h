/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "pid" and "tid" of an event: mostly numbers, but writers also put a text there
 * ("Spans"), or a number as a text: "25738" (torch 1.8), "stream 7" (Kineto's own tool).
 */
#pragma once

#include "read/common/build.h"
#include "read/kineto/scan_values.h"

/*
 * Reads the value at the scan; a text without a number is added to strings. Returns 1; 0 for
 * a value of another type, which is consumed, with *ret the number 0; -errno.
 */
_must_check_ int kident_read(struct scan *scan, struct strtab *strings, struct ident *ret);
