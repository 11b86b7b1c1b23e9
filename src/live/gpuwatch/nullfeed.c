/* SPDX-License-Identifier: Apache-2.0 */
/* Built in place of gpuwatch_feed.c and gpuwatch_sampler.c by -Dgpu_counters=false: no samples. */
#include "live/gpuwatch/gpuwatch_feed.h"
#include "live/gpuwatch/gpuwatch_sampler.h"

#include <errno.h>

void gpufeed_init(const struct gpufeed_setup *setup, struct gpufeed *ret)
{
	*ret = (struct gpufeed){ .setup = *setup, .stop_fd = -1 };
}

int gpufeed_begin(_unused_ struct gpufeed *feed)
{
	return -ENOTSUP;
}

int gpufeed_read(_unused_ struct gpufeed *feed,
		 _unused_ void (*take)(void *arg, const struct sidecar *), _unused_ void *arg)
{
	return 0;
}

void gpufeed_end(_unused_ struct gpufeed *feed)
{
}

void gpufeed_mind(_unused_ struct gpufeed *feed)
{
}

void gpusampler_recover(void)
{
}
