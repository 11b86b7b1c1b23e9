/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": the known word nearest to a mistyped one, by the number of letters inserted,
 * omitted, replaced or swapped with their neighbor (optimal string alignment distance).
 */
#pragma once

#include "base/base.h"

struct nearest {
	const char *typed;
	size_t typed_len;
	const char *best; /* NULL: no word is near enough */
	size_t best_distance;
};

/* typed is borrowed. */
void nearest_init(struct nearest *nearest, const char *typed, size_t len);

/* Considers a known word, borrowed; of equally near words the first stays. O(length squared). */
void nearest_offer(struct nearest *nearest, const char *word);
