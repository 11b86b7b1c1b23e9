/* SPDX-License-Identifier: Apache-2.0 */
/* The result of `perftracker roofline` for people and programs. */
#pragma once

#include "base/str.h"
#include "cmd/roofline/ceiling.h"

/* left_out: processes whose files could not be read. */
void rooftext_append(struct str *out, const struct ceiling *ceiling, size_t left_out);

/* One JSON document. Returns 0 or -ENOMEM. */
_must_check_ int rooftext_json(struct str *out, const struct ceiling *ceiling, size_t left_out);
