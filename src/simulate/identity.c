/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/identity.h"

#include "simulate/random.h"

#include <stdio.h>

#define EPOCH_NS (1700000000LL * NSEC_PER_SEC) /* start time of simulated jobs */
#define DRIFT 20e-6			       /* deviation of the clocks' rates */

void identity_host(const struct simulation *sim, int rank, char ret[static 16])
{
	(void)snprintf(ret, 16, "host-%04d", layout_host(&sim->layout, rank));
}

void identity_group(const struct meeting_id *id, char ret[static 16])
{
	(void)snprintf(ret, 16, "%u", id->group.index * GROUP_KIND_CNT + (uint32_t)id->kind + 1);
}

int64_t identity_wall_ns(const struct simulation *sim, int rank, int64_t time_ns)
{
	uint64_t seed = sim->options.seed, host = (uint64_t)layout_host(&sim->layout, rank);
	double offset = random_gauss(random_at(seed, RANDOM_CLOCK, host, 0, 0));
	double drift = random_gauss(random_at(seed, RANDOM_CLOCK, host, 1, 0));

	return EPOCH_NS + time_ns + (int64_t)(sim->options.skew_ms * 1e6 * offset) +
	       (int64_t)((double)time_ns * DRIFT * drift);
}
