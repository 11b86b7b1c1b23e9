/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How alike two names are: the share of their words that both have. Words end at
 * punctuation and where a small letter is followed by a capital one, so that
 * _SingleProcessDataLoaderIter and _MultiProcessingDataLoaderIter have some in common. Numbers don't count.
 */
#pragma once

#include "base/base.h"

#define ALIKE_WORDS 64 /* further words of a name are not looked at */

/* 0 (no word in common) to 1 (the same words); Jaccard's index. */
double alike_names(const char *a, const char *b);
