/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as the body of a webhook: JSON of its own (perftracker.webhook.v1), a message of Slack, or
 * alerts of Alertmanager.
 * Source: api.slack.com, "Incoming webhooks" and "Formatting text"; Alertmanager's API v2,
 * POST /api/v2/alerts.
 */
#pragma once

#include "live/webhook/webhookfile.h"
#include "model/report.h"
#include "report/jsonwriter.h"

#define WEBHOOKBODY_FINDINGS_MAX 10u

/* Where the report is. Texts are borrowed; "" unknown. */
struct webhookbody_about {
	const char *job, *key, *host, *folder;
	uint64_t number; /* of the report; 0: at the end of the job */
	int64_t made_ns; /* wall clock */
};

/* Returns 0 or -ENOMEM. */
_must_check_ int webhookbody_print(enum webhook_format format, const struct report *report,
				   const struct webhookbody_about *about, struct str *out);
