/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with random fingerprints, and their encoding and decoding, for the tests of fpwire. */
#pragma once

#include "center/wire/fpwire.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define HOST_MAX 4

struct host {
	struct fingerprint fps[HOST_MAX];
	const struct fingerprint *list[HOST_MAX];
	size_t cnt;
	uint64_t rng; /* state of test_random.h after host_init(), for further draws */
};

/* The same seed makes the same host; seeds 2n and 2n + 1 run the same program. */
void host_init(struct host *host, uint64_t seed);
void host_done(struct host *host);

/* Makes fp a worker with two functions, the second small, and two collectives after both. */
void make_short(struct fingerprint *fp);

extern const struct fpwire_options complete; /* names are sent */
extern const struct fpwire_options nameless; /* without names */

/* These fail the test on an error. The caller frees what they return. */
struct str encode(const struct host *host, const struct fpwire_options *options);
void decode(struct fpwire *m, const struct str *message, struct fpnames *names);
struct fingerprint rebuild(const struct fpwire *m, size_t worker, const struct fpnames *names);
