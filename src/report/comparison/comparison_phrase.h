/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phrases that the text and the HTML of a comparison share. All output is clean (see
 * clean.h) and contains no markup.
 */
#pragma once

#include "base/str.h"
#include "model/comparison.h"

/* "+25.9 ms", "-0.21 ms", "0 ms". */
void phrase_delta_ms(struct str *out, double ms);

/* "+23 %" */
void phrase_delta_pct(struct str *out, double pct);

/* "23 % slower: 112 ms before, 138 ms after per iteration (+25.9 ms)". */
void phrase_comparison(struct str *out, const struct comparison *comparison);

/* "4 workers, 3 windows each, 6 iterations of 112 ms". */
void phrase_run(struct str *out, const struct comparison_side *side);

/* "0.003", "<0.001", "-" when it could not be tested. */
void phrase_chance(struct str *out, double p);

/* "chance 0.003 over iterations and ranks; confidence medium". */
void phrase_test(struct str *out, const struct comparison *comparison);

/* "appeared +12 ms, vanished -4 ms, ... = +25.9 ms": the changes add up. */
void phrase_sum(struct str *out, const struct comparison *comparison);

/* The word of the verdict: "same", "slower"... */
const char *phrase_comparison_word(const struct comparison *comparison);

/* Where a change is: its callers or its launcher; all: not only the innermost four. */
void phrase_place(struct str *out, const struct change *change, bool all);

/* The old name or the old callers; nothing for other kinds of changes. */
void phrase_before(struct str *out, const struct change *change, bool all);

/* "with 12 functions below", "on the training thread 35 ms -> 0 ms"; may be nothing. */
void phrase_extent(struct str *out, const struct change *change);

/* The title of the changes of a kind: "Grew". */
const char *phrase_kind(enum change_kind kind);
