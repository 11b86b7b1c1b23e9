/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kineto's categories ("cat") of all generations: what they mean here.
 * Source: libkineto/include/ActivityType.h; torch 1.8 and 1.9 wrote other names.
 */
#pragma once

#include "model/event.h"

struct category {
	const char *name;
	uint8_t len;
	uint8_t kind; /* enum event_kind */
	uint8_t lane; /* enum lane_type */
};

/* NULL when unknown. */
const struct category *category_find(const char *name, size_t len);

/* Bytes of one element of a dtype as torch spells it ("Float", "c10::BFloat16"); 0: unknown. */
int dtype_bytes(const char *name, size_t len);

/* "allreduce"... from a NCCL kernel's name; NULL if the name contains none. */
const char *collective_of_kernel(const char *name);
