/* SPDX-License-Identifier: Apache-2.0 */
/* The script of `perftracker replay`: one file of Python with the recorded shapes as JSON in it. */
#pragma once

#include "cmd/replay/opshapes.h"

/* source: the trace, in UTF-8. Returns 0 or -ENOMEM; then out ends as before. */
_must_check_ int replayscript_append(struct str *out, const struct opshapes *shapes,
				     const char *source);
