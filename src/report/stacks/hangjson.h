/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a hang as JSON, perftracker.hang.v1: all that the stage `hang` judges by, so that it can be
 * judged again elsewhere (read/dumps/recorddump.c reads it). docs/hangs.md describes it.
 */
#pragma once

#include "base/str.h"
#include "model/hang/hangrecord.h"

/* Appends the document. Returns 0 or -ENOMEM; out is unchanged on failure. */
_must_check_ int hangjson_print(const struct hang_record *records, size_t cnt, struct str *out);
