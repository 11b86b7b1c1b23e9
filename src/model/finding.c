/* SPDX-License-Identifier: Apache-2.0 */
#include "model/finding.h"

const char *confidence_name(enum confidence confidence)
{
	static const char *const names[] = { "low", "medium", "high" };

	return (unsigned int)confidence < ARRAY_SIZE(names) ? names[confidence] : "unknown";
}

const char *reference_name(enum reference_kind kind)
{
	static const char *const names[] = {
		[REFERENCE_PEERS] = "peers",
		[REFERENCE_EXPECTED] = "expected",
		[REFERENCE_PAST] = "before",
	};

	return names[kind];
}
