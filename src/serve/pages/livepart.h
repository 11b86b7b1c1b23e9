/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a job's page that its daemon fills while the job runs: coverage, the order under way,
 * ranks, own cost, and a form that asks for a profile. Works without a script.
 */
#pragma once

#include "base/str.h"
#include "serve/routes.h"

/* Nothing, where no daemon of the job is behind the server. key, folder: of the job. */
void livepart_put(struct str *out, struct call *call, const char *key, const char *folder);
