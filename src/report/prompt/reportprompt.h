/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as a question to a language model: rules, what was found, who waited for whom, what is
 * not known, and the form of the answer. All that comes from the job is JSON in ASCII inside a fence
 * that it cannot close, and the rules say that it is data: a name of a function may hold an
 * instruction. What does not fit is left out and counted. Same bytes in, same bytes out.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define REPORTPROMPT_TOKENS_MIN 1000
#define REPORTPROMPT_TOKENS_MAX 100000
#define REPORTPROMPT_TOKEN_BYTES 3 /* at least, for ASCII text with numbers and names */

/*
 * json[len]: a report (docs/report-schema.json); path names it in err. tokens: the most, at
 * REPORTPROMPT_TOKEN_BYTES each. Appends to out. Returns 0; -EINVAL with a line in err for what is
 * no report; -ENOMEM.
 */
_must_check_ int reportprompt_write(const char *path, const char *json, size_t len, size_t tokens,
				    struct str *out, struct err *err);
