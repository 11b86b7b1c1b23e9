/* SPDX-License-Identifier: Apache-2.0 */
#include "live/cluster/subject.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define PLAIN_MAX 24u /* characters of a name that are kept */

static void token(char ret[PLAIN_MAX + 18], const char *name)
{
	size_t len = strlen(name), at = 0;
	bool changed = len == 0 || len > PLAIN_MAX;

	for (; at < MIN(len, PLAIN_MAX); at++) {
		bool plain = isalnum((unsigned char)name[at]) || name[at] == '-';

		ret[at] = plain ? name[at] : '_';
		changed |= !plain;
	}
	ret[at] = '\0';
	if (changed)
		(void)snprintf(ret + at, 18, "-%016" PRIx64, (uint64_t)XXH3_64bits(name, len));
}

void subject_write(char ret[BUS_SUBJECT_MAX], const char *job, const char *kind, const char *host)
{
	char job_token[PLAIN_MAX + 18], host_token[PLAIN_MAX + 18];

	token(job_token, job);
	if (host == NULL) {
		(void)snprintf(ret, BUS_SUBJECT_MAX, "pt.v1.%s.%s", job_token, kind);
		return;
	}
	token(host_token, host);
	(void)snprintf(ret, BUS_SUBJECT_MAX, "pt.v1.%s.%s.%s", job_token, kind, host_token);
}
