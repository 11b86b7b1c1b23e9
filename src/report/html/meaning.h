/* SPDX-License-Identifier: Apache-2.0 */
/* What the ids of findings mean, in one line each, as the table in docs/findings.md has it. */
#pragma once

/* NULL: an id that the table does not have. The text has no markup. */
const char *meaning_of(const char *id);
