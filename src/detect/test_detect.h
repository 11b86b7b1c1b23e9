/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of this folder are one binary; each file gives its group. Seeded numbers for all. */
#pragma once

#include "base/base.h"
#include "base/splitmix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

int run_sequence_tests(void);
int run_loop_tests(void);
int run_pace_tests(void);
int run_jobwatch_tests(void);

/* Box and Muller; one of the two numbers is thrown away. */
static inline double rng_normal(uint64_t *state)
{
	double u = splitmix_uniform(state) + 0x1p-54;

	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * splitmix_uniform(state));
}
