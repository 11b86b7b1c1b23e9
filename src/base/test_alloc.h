/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that fail on order, for tests. A binary with test_alloc_dep has its calls of
 * malloc, calloc and realloc sent here by the linker (ld --wrap), those of libc itself not.
 *
 * A test lets n = 0, 1, 2... allocations through until its subject gets by:
 *
 *	for (int n = 0; error == -ENOMEM; n++) {
 *		allocations_left = n;
 *		error = subject();
 *		allocations_left = -1;
 *	}
 */
#pragma once

#include <stdbool.h>

/* Allocations to let through before all fail; negative, as at first: none fails. */
extern long allocations_left;

/* Whether only the first after those fails, and what follows is let through again. */
extern bool allocations_fail_once;
