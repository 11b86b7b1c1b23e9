/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a scan, for scan.c and scan_values.c. */
#pragma once

#include "read/kineto/scan.h"

/* Reads more text behind end. Returns 1, 0 at the end of the text, or -errno. */
_must_check_ int scan_refill(struct scan *scan);

/* Refills until p has need bytes behind it or the text ends. Returns 0 or -errno. */
_must_check_ int scan_ensure(struct scan *scan, size_t need);

/* Reports a token of more than SCAN_MAX_TOKEN_BYTES that begins at off. Returns -EMSGSIZE. */
int scan_token_too_long(struct scan *scan, uint64_t off);
