/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "carpet" of a live job (live/ui/carpet.h) as a picture: ranks by time, neighbors alike as one
 * box, so that its size depends on what changed, not on the ranks.
 */
#pragma once

#include "base/str.h"

#include <jansson.h>

/* Nothing for a job that has none. */
void livecarpet_put(struct str *out, const json_t *live);
