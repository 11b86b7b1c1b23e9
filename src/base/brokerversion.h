/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which versions of nats-server PerfTracker uses. Older ones have known ways around their
 * permissions (CVE-2023-47090, and the advisories 2026-16 and 2026-18 of nats-server).
 */
#pragma once

#include "base/base.h"

#include <stdio.h>

#define BROKER_LEAST "2.12.7"

/* Names of the client library. Later versions keep what is used; Debian 12 has the first. */
#define BROKER_LIBRARIES                                                        \
	{                                                                       \
		"libnats.so.3.4", "libnats.so.3", "libnats.so.4", "libnats.so", \
	}

/* Major, minor, patch. Returns whether text begins with a version. */
static inline bool brokerversion_parse(const char *text, unsigned ret[static 3])
{
	return sscanf(text, "%u.%u.%u", &ret[0], &ret[1], &ret[2]) == 3;
}

/* Whether a version is BROKER_LEAST or later; false for what is no version. */
static inline bool brokerversion_is_recent(const char *version)
{
	unsigned have[3], least[3];

	if (!brokerversion_parse(version, have) || !brokerversion_parse(BROKER_LEAST, least))
		return false;
	for (int i = 0; i < 3; i++) {
		if (have[i] != least[i])
			return have[i] > least[i];
	}
	return true;
}
