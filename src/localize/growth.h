/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes longer than in the job's own past, for reports: the functions of the user (else of
 * libraries) and the collectives that grew, largest first, whether or not they are the cause.
 */
#pragma once

#include "localize/past.h"
#include "model/report.h"

/* Lists in out->growth what grew by at least min_ns per iteration. Returns 0 or -ENOMEM. */
_must_check_ int growth_list(const struct past *past, double min_ns, struct report *out);
