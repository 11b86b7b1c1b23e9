/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL describes its calls by NVTX payload: the communicator, the bytes, its ranks. A call
 * is the range around the launch of its kernel; those of a group are all before it.
 */
#pragma once

#include "read/nsys/nsys_parts.h"

_must_check_ int nsys_read_schemas(struct nsys_pass *pass);

/* What one range of NCCL's domain says of itself. */
struct nsys_payload {
	uint64_t communicator;
	int64_t bytes, size, rank; /* -1: it does not say */
	bool known;		   /* it names a communicator */
};

void nsys_payload_binary(const struct nsys_pass *pass, const uint8_t *data, size_t len,
			 struct nsys_payload *ret);
void nsys_payload_json(const char *text, size_t len, struct nsys_payload *ret);

/* Keeps the payload of a range such as "ncclAllReduce". Returns 0 or -ENOMEM. */
_must_check_ int nsys_note_call(struct nsys_pass *pass, const char *name,
				const struct nsys_payload *payload, uint16_t lane, int64_t start_ns,
				int64_t end_ns);

/* After build_finish(): gives the kernels of NCCL what their calls said. */
_must_check_ int nsys_join_calls(struct nsys_pass *pass);
