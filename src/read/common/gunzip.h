/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One gzip member at a time, through ISA-L (several times faster) or zlib where
 * ISA-L is absent. Both verify the member's checksum and length.
 */
#pragma once

#include "base/base.h"

struct gunzip;

/* What is left to read and to write; gunzip_run() advances it. */
struct gunzip_step {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
};

/* NULL: out of memory. */
_must_check_ struct gunzip *gunzip_new(void);
struct gunzip *gunzip_free(struct gunzip *gunzip);

/* Begins a new member. */
void gunzip_reset(struct gunzip *gunzip);

/*
 * Decompresses until one side is used up. Returns 1 when the member ended, 0
 * when not, -EBADMSG for damaged data with *ret_why set to static text.
 */
_must_check_ int gunzip_run(struct gunzip *gunzip, struct gunzip_step *step, const char **ret_why);
