/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accused hosts as the documents perftracker.hosts.v1 and perftracker.exclude.v1, for the API and
 * `perftracker hosts`.
 */
#pragma once

#include "report/jsonwriter.h"
#include "serve/hostledger.h"

#define HOSTSJSON_JOBS_PRESET 3u /* fewer jobs do not exclude a host */

/* Return 0 or -ENOMEM. */
_must_check_ int hostsjson_print(const struct hostledger *ledger, struct str *out);
/* form: "slurm" or "kubernetes". */
_must_check_ int hostsjson_print_exclude(const struct hostledger *ledger, const char *form,
					 uint64_t jobs_min, struct str *out);

/* The text alone. */
_must_check_ int hostsjson_exclude(const struct hostledger *ledger, const char *form,
				   uint64_t jobs_min, struct str *out);
