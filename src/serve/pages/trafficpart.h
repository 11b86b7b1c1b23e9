/* SPDX-License-Identifier: Apache-2.0 */
/* The collective traffic of a job, as its latest report measured it in its window. */
#pragma once

#include "base/str.h"

#include <jansson.h>

/* report: JSON, may be NULL; id: of it. Appends nothing where it has no collectives. */
void trafficpart_put(struct str *out, const json_t *report, const char *id);
