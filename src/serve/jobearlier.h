/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of the store against earlier runs of its name, for commands, the API and pages. The same
 * comparison that its hub made at its end, by what the store has now.
 */
#pragma once

#include "memory/earlier.h"
#include "report/jsonwriter.h"

/* Returns 0 or -errno with a line in err. */
_must_check_ int jobearlier_read(struct store *store, const char *key, struct earlier_answer *ret,
				 struct err *err);

/* "Earlier" of the API; null: there is no earlier run. */
json_t *jobearlier_object(struct json_writer *w, const struct earlier_answer *answer);
