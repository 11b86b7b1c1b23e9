/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a timeline (docs/timebins-schema.json) as a picture and as tables, which say the same without it. */
#pragma once

#include "base/str.h"

#include <jansson.h>

/* bins: from `perftracker timeline --format bins`; what is missing in it is left out. */
void timelinepicture_draw(struct str *out, const json_t *bins);

/* The names that took most time, by rank and row. */
void timelinepicture_tables(struct str *out, const json_t *bins);
