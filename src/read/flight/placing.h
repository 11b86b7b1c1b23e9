/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place in a program that most of some samples share: the function in which at least half of
 * them are, with its callers from the user's own code on, and the system call that it waits in.
 */
#pragma once

#include "base/vec.h"
#include "format/flightlog/flightlog.h"
#include "model/place/awaited.h"
#include "read/flight/labels.h"

#define FLIGHT_PLACE_MAX 496u

struct flight_place {
	enum awaited_by by;
	double frac;	     /* share of the samples that were there */
	uint32_t sample_cnt; /* 0: nothing is known */
	/* "train.py(8): collate > train.py(3): decode > <system call read>", NUL-terminated */
	char place[FLIGHT_PLACE_MAX];
};

struct placing_sample {
	uint32_t node;
	uint16_t detail; /* enum flight_sample_flag */
};

struct placing {
	const struct flightlog *log;
	struct flight_names names;
	struct strtab strings;
	bool *users;	/* by node: the user's own code; set by the caller, false at first */
	uint32_t *cnt;	/* by node: samples there and below */
	uint32_t *heir; /* by node: its child with most samples; 0: none */
	size_t node_cnt;
	VEC(struct placing_sample) samples; /* added by the caller */
};

/* Returns 0 or -ENOMEM; done is fine after either. */
_must_check_ int placing_init(struct placing *p, const struct flightlog *log);
void placing_done(struct placing *p);

/* "train.py(3): decode", of a node. */
const char *placing_text(const struct placing *p, uint32_t node);

/* Leaves *ret as it is without samples. Returns 0 or -ENOMEM. O(samples + nodes), once. */
_must_check_ int placing_find(struct placing *p, struct flight_place *ret);
