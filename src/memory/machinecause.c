/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/machinecause.h"

#include <string.h>

static const char *const causes[] = {
	"cpu-starvation", "slow-operator", "gpu-slow", "slow-link", "nvlink-fallback", "slow-copy",
};

bool machinecause_is(const char *cause)
{
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		if (strcmp(cause, causes[i]) == 0)
			return true;
	}
	return false;
}
