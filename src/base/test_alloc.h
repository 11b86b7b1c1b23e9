/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injects allocation failures into tests. In a binary with test_alloc_dep the linker (ld --wrap)
 * redirects calls of malloc, calloc and realloc to test_alloc.c, except those inside libc.
 *
 * A test lets n = 0, 1, 2... allocations succeed until its subject succeeds:
 *
 *	for (int n = 0; error == -ENOMEM; n++) {
 *		allocations_left = n;
 *		error = subject();
 *		allocations_left = -1;
 *	}
 */
#pragma once

#include <stdbool.h>

/* Allocations of this thread that succeed before all its others fail; negative (default): none. */
extern _Thread_local long allocations_left;

/* If set, only the first allocation after those fails and later ones succeed. */
extern _Thread_local bool allocations_fail_once;
