/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: whether two reports are of one job, and values of a report. */
#pragma once

#include "repair/repair.h"

/* NAN: none. */
double repair_number(const json_t *object, const char *key);
/* "": none. */
const char *repair_member(const json_t *object, const char *key);

/* Whether the times of both reports can be compared; else false with the reason. */
bool repair_is_one_job(const struct repair *repair, char ret_reason[static REPAIR_REASON_BYTES]);

/* Why a finding may be absent after though it is there; false: it would be seen. */
bool repair_is_blind(const struct repair *repair, char ret_reason[static REPAIR_REASON_BYTES]);

/* Fills returned_ms and chance_ms. Returns 0 or -ENOMEM. */
_must_check_ int repair_measure(struct repair *repair);
