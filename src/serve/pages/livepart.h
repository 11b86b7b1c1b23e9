/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a job's page that its daemon fills while the job runs: pace, the order under way,
 * coverage, own cost, a form that asks for a profile, ranks by time and now. Works without a script.
 */
#pragma once

#include "base/str.h"
#include "serve/routes.h"

#include <jansson.h>

/* "Live" of the API; NULL: no daemon of the job is behind the server. key, folder: of the job. */
json_t *livepart_read(struct call *call, const char *key, const char *folder);

void livepart_put_now(struct str *out, const json_t *live, const char *key);
void livepart_put_ranks(struct str *out, const json_t *live, const char *key);
