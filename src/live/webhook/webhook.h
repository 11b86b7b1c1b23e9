/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends reports to the webhooks of a file, each on a thread of its own: a server that is slow, away or
 * refuses delays neither the job, the hub, nor another webhook. A report is tried a few times; what
 * does not get through is counted and logged. The log names the server, never the whole URL.
 *
 * All functions take NULL, which sends nothing, and return at once, but for webhook_close().
 */
#pragma once

#include "live/webhook/webhookbody.h"

#define WEBHOOK_QUEUE_MAX 32u
#define WEBHOOK_TRIES_MAX 5u
#define WEBHOOK_TIMEOUT_MS 10000 /* of one try */
#define WEBHOOK_CLOSE_S 5	 /* for what waits at the end of the job */

struct webhook;

/* Texts are copied, file is borrowed. Returns 0 or -errno with a line in err. */
struct webhook_setup {
	const struct webhookfile *file;
	const char *job, *key, *folder;
};
_must_check_ int webhook_open(const struct webhook_setup *setup, struct webhook **ret,
			      struct err *err);

/* number: of the report, 0 at the end of the job. */
void webhook_report(struct webhook *webhook, const struct report *report, uint64_t number);

/* Sends what waits, for WEBHOOK_CLOSE_S at most, and ends the threads. Returns NULL. */
struct webhook *webhook_close(struct webhook *webhook);
