/* SPDX-License-Identifier: Apache-2.0 */
#include "read/common/metric.h"

#include <string.h>
#include <strings.h>

/* All words must be in the name; the first line that fits decides. */
struct pattern {
	const char *words[3];
	enum resource resource;
};

static const struct pattern patterns[] = {
	{ { "sm__cycles_active", "pct" }, RESOURCE_SM_ACTIVE },
	{ { "sm active" }, RESOURCE_SM_ACTIVE },
	{ { "sms active" }, RESOURCE_SM_ACTIVE },
	{ { "dram__", "pct" }, RESOURCE_DRAM },
	{ { "dram", "bandwidth" }, RESOURCE_DRAM },
	{ { "vram", "bandwidth" }, RESOURCE_DRAM },
	{ { "nvltx__", "pct" }, RESOURCE_NVLINK_TX },
	{ { "nvlink", "tx" }, RESOURCE_NVLINK_TX },
	{ { "nvlink", "transmit" }, RESOURCE_NVLINK_TX },
	{ { "pcie__write", "pct" }, RESOURCE_PCIE_TX },
	{ { "pcie", "tx" }, RESOURCE_PCIE_TX },
	{ { "pcie", "transmit" }, RESOURCE_PCIE_TX },
	{ { "pcie__read", "pct" }, RESOURCE_PCIE_RX },
	{ { "pcie", "rx" }, RESOURCE_PCIE_RX },
	{ { "pcie", "receive" }, RESOURCE_PCIE_RX },
};

static bool fits(const struct pattern *pattern, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(pattern->words) && pattern->words[i] != NULL; i++) {
		if (strcasestr(name, pattern->words[i]) == NULL)
			return false;
	}
	return true;
}

struct metric metric_find(const char *name)
{
	for (unsigned int i = 0; i < RESOURCE_CNT; i++) {
		if (strcmp(name, resource_name((enum resource)i)) == 0)
			return (struct metric){ (enum resource)i, 1.0 };
	}
	/* A rate in bytes has no known peak. */
	if (strcasestr(name, "bytes") != NULL && strcasestr(name, "pct") == NULL)
		return (struct metric){ RESOURCE_OTHER, 1.0 };
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		if (fits(&patterns[i], name))
			return (struct metric){ patterns[i].resource, 0.01 };
	}
	return (struct metric){ RESOURCE_OTHER, 1.0 };
}
