/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of relay.h on their stream: a head of fixed size, the subject, the data. */
#pragma once

#include "live/link/bus.h"

#define RELAYFRAME_MAGIC 0x50544652u /* "PTFR" */

struct relayframe_head {
	uint32_t magic, subject_len, data_len;
};
_Static_assert(sizeof(struct relayframe_head) == 12, "both sides must agree");

struct relayframe {
	char subject[BUS_SUBJECT_MAX];
	const void *data; /* in the bytes that were parsed */
	size_t len;
};

/*
 * The first message of bytes[len]. Returns how many bytes it takes; 0: it is not complete; -EPROTO:
 * no message can begin so.
 */
_must_check_ int64_t relayframe_parse(const void *bytes, size_t len, struct relayframe *ret);
