/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where reports are sent: a file that only its owner can read, since a URL may be a secret. Each
 * "url" begins another webhook; the lines after it are about that one.
 *	# on call
 *	url https://hooks.slack.com/services/T0/B0/XXXX
 *	format slack
 *	url https://alerts.example/api/v2/alerts
 *	format alertmanager
 *	token-file /home/ann/alerts.token
 *	when all
 */
#pragma once

#include "base/err.h"

#define WEBHOOKFILE_HOOKS_MAX 8u
#define WEBHOOKFILE_URL_BYTES 2048u
#define WEBHOOKFILE_TOKEN_BYTES 1024u

enum webhook_format { WEBHOOK_JSON, WEBHOOK_SLACK, WEBHOOK_ALERTMANAGER };

struct webhookfile_hook {
	char url[WEBHOOKFILE_URL_BYTES];
	char place[256]; /* for the log: scheme and host, without what may be secret */
	char token_path[1024],
		token[WEBHOOKFILE_TOKEN_BYTES]; /* of Authorization: Bearer; "": none */
	enum webhook_format format;
	bool all; /* also reports of nothing wrong */
};

struct webhookfile {
	struct webhookfile_hook hooks[WEBHOOKFILE_HOOKS_MAX];
	size_t cnt;
};

/* Reads the file and the tokens that it names. 0 or -errno with a line in err. */
_must_check_ int webhookfile_read(const char *path, struct webhookfile **ret, struct err *err);

/* The text alone; path names it in err, tokens are not read. */
_must_check_ int webhookfile_parse(const char *path, const char *text, size_t len,
				   struct webhookfile *ret, struct err *err);
