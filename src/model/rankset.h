/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of ranks in text form: "0-2,7". Used in reports, options and messages.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

typedef VEC(int) rankset_vec;

/* Appends the compressed form of ranks[cnt] (ascending, distinct) to out. */
void rankset_format(struct str *out, const int *ranks, size_t cnt);

/*
 * Parses "0-2,7" into ascending distinct ranks. At most 2^20 ranks. Returns 0,
 * -EINVAL with a line in err, or -ENOMEM; *ret is untouched on failure. The
 * caller frees ret with vec_done().
 */
_must_check_ int rankset_parse(const char *text, rankset_vec *ret, struct err *err);
