/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A double of the part of libcupti that plans counters. Its chips are rules:
 *   EASY    all fit
 *   OLD     "realtime" cycles and memory as "dramc" take two passes each
 *   SMALL   six metrics fit
 *   WAYS    does not know pcie__read_bytes nor pcie__write_bytes
 *   EMPTY   nothing fits
 *   BROKEN  gives no plan
 *   TU102, GA100  as EASY
 * Any other is refused (27). Calls with an older struct, or for a plan before the metrics,
 * are refused, too (1).
 */
#include "host/counters/pmsampling_abi.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INVALID 1
#define NOT_SUPPORTED 27
#define CONFIG_BYTES 64
#define SMALL_CNT 6

struct pm_host {
	const char *chip;
	size_t cnt, passes;
};

static const char *const chips[] = { "EASY",  "OLD",	"SMALL", "WAYS",
				     "EMPTY", "BROKEN", "TU102", "GA100" };
static int hosts;

/* Host objects that were opened and not closed. */
EXPORT int double_pm_hosts(void);
int double_pm_hosts(void)
{
	return hosts;
}

#define CALL(name, type)                  \
	EXPORT int name(struct type *in); \
	int name(struct type *in)

CALL(cuptiProfilerHostGetSupportedChips, pm_host_chips)
{
	if (in->size != sizeof(*in))
		return INVALID;
	in->names = chips;
	in->cnt = ARRAY_SIZE(chips);
	return PM_OK;
}

CALL(cuptiProfilerHostInitialize, pm_host_open)
{
	if (in->size != PM_SIZE(pm_host_open, host) || in->profiler != PM_SAMPLING_PROFILER)
		return INVALID;
	in->set = NULL; /* as CUDA 13.2's does, beyond the size */
	for (size_t i = 0; i < ARRAY_SIZE(chips); i++) {
		if (strcmp(in->chip, chips[i]) != 0)
			continue;
		in->host = calloc(1, sizeof(*in->host));
		in->host->chip = chips[i];
		in->host->passes = 1;
		hosts++;
		return PM_OK;
	}
	return NOT_SUPPORTED;
}

CALL(cuptiProfilerHostDeinitialize, pm_host_close)
{
	if (in->size != sizeof(*in))
		return INVALID;
	free(in->host);
	hosts--;
	return PM_OK;
}

static size_t passes_for(const char *chip, const char *name)
{
	bool hard = strstr(name, "realtime") != NULL || strncmp(name, "dramc__", 7) == 0;

	return strcmp(chip, "EMPTY") == 0 || (strcmp(chip, "OLD") == 0 && hard) ? 2 : 1;
}

CALL(cuptiProfilerHostConfigAddMetrics, pm_host_add)
{
	struct pm_host *host = in->host;

	if (in->size != sizeof(*in) || in->cnt == 0)
		return INVALID;
	for (size_t i = 0; i < in->cnt; i++) {
		if (strcmp(host->chip, "WAYS") == 0 && strstr(in->names[i], "_bytes.") != NULL &&
		    strncmp(in->names[i], "pcie__", 6) == 0)
			return INVALID;
		host->passes = MAX(host->passes, passes_for(host->chip, in->names[i]));
	}
	host->cnt += in->cnt;
	if (strcmp(host->chip, "SMALL") == 0 && host->cnt > SMALL_CNT)
		host->passes = 2;
	return PM_OK;
}

CALL(cuptiProfilerHostGetConfigImageSize, pm_config_size)
{
	if (in->size != sizeof(*in) || in->host->cnt == 0)
		return INVALID;
	in->bytes = CONFIG_BYTES;
	return PM_OK;
}

CALL(cuptiProfilerHostGetConfigImage, pm_config_get)
{
	if (in->size != sizeof(*in) || in->bytes < CONFIG_BYTES ||
	    strcmp(in->host->chip, "BROKEN") == 0)
		return INVALID;
	memset(in->config, 0, in->bytes);
	in->config[0] = (uint8_t)in->host->passes;
	return PM_OK;
}

#ifndef PM_DOUBLE_OLD
CALL(cuptiProfilerHostGetNumOfPasses, pm_config_passes)
{
	if (in->size != sizeof(*in) || in->bytes < CONFIG_BYTES)
		return INVALID;
	in->cnt = in->config[0];
	return PM_OK;
}
#endif
