/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Similarity of two names: the share of their words that are in both. Words end at punctuation and
 * between a lower-case and an upper-case letter, so that _SingleProcessDataLoaderIter and
 * _MultiProcessingDataLoaderIter have words in common. Numbers are ignored.
 */
#pragma once

#include "base/base.h"

#define ALIKE_WORDS 64 /* further words of a name are ignored */

/* 0 (no word in common) to 1 (the same words); Jaccard's index. */
double alike_names(const char *a, const char *b);
