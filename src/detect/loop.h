/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop of a job, found in its marks, also if its iterations are not all alike.
 *
 * Loader calls in a row count as one: an epoch that ends asks once more, an evaluation loads
 * many batches, the last accumulation of an epoch loads fewer. What remains is given to
 * sequence.h, which finds what repeats. Where nothing does (steps of several optimizers in
 * random order), or where too many iterations have further steps, each optimizer step is an
 * iteration, and its kind is its optimizer and whether a batch was loaded for it: times are
 * compared within a kind only.
 */
#pragma once

#include "detect/sequence.h"

#define LOOP_KIND_CNT 8u /* kinds of iterations; further ones are not measured */
#define LOOP_KIND_NONE UINT32_MAX
#define LOOP_TEXT 96u

/* The latest complete iteration. */
struct loop_match {
	int64_t begin_ns; /* its first mark: where the first loader call began */
	int64_t end_ns;	  /* its last mark: where the last step ended */
	int64_t bound_ns; /* where a profile divides iterations: struct sequence_match */
	uint32_t skipped; /* marks between it and the one before */
	uint32_t kind;	  /* below LOOP_KIND_CNT, or LOOP_KIND_NONE */
	bool partial;	  /* it loaded less than usual: its time says nothing */
};

struct loop;

/* Returns NULL when out of memory. Freed by loop_free. */
struct loop *loop_new(const struct sequence_config *config);
struct loop *loop_free(struct loop *loop);

/* As sequence_mark(). */
enum sequence_result loop_mark(struct loop *loop, uint16_t mark, uint16_t detail, int64_t time_ns);

bool loop_is_learned(const struct loop *loop);
const struct loop_match *loop_borrow_match(const struct loop *loop);

/* As sequence_step_cnt(). */
uint32_t loop_step_cnt(const struct loop *loop);

/* "5 x (loader, optimizer 1), optimizer 2"; "" while learning. Cut to size - 1. */
void loop_describe(const struct loop *loop, char *buf, size_t size);
