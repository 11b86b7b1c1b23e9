/* SPDX-License-Identifier: Apache-2.0 */
/* Where and when the workers of a report recorded: hosts, time and steps of the window. */
#pragma once

#include "format/fingerprint/fingerprint.h"
#include "model/report.h"

/* fps[cnt]: by rank, ascending. Texts are copied. Returns 0 or -ENOMEM. O(cnt). */
_must_check_ int origin_fill(const struct fingerprint *const *fps, size_t cnt, struct report *out);
