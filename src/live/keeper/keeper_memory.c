/* SPDX-License-Identifier: Apache-2.0 */
/* What the store remembers of earlier runs, for the reports of this one. */
#include "base/clock.h"
#include "live/keeper/keeper_parts.h"

#include <errno.h>
#include <string.h>

void keeper_memory_add_pace(struct keeper *keeper)
{
	const struct store_pace *second = &keeper->second;

	/* No memory: the run is compared by fewer rows. */
	(void)!runpace_add(&keeper->pace, &(struct runpace_row){ .at_s = second->at_s,
								 .sum_ns = second->sum_ns,
								 .step = second->step,
								 .cnt = second->cnt });
}

/* Jobs on this machine since this one began. Of a fleet's job another machine counts: unknown. */
static int read_beside(struct keeper *keeper, size_t *ret, struct err *err)
{
	return earlier_count_beside(keeper->store, keeper->host, keeper->key, keeper->started_ns,
				    clock_wall_ns(), ret, err);
}

void keeper_memory_load(struct keeper *keeper)
{
	const struct earlier_subject subject = { .key = keeper->key,
						 .name = keeper->name,
						 .command = keeper->command,
						 .host = keeper->host,
						 .machine = keeper->machine,
						 .started_ns = keeper->started_ns,
						 .now_ns = clock_wall_ns() };
	struct earlier earlier = { .runs = { 0 } };
	bool loaded = keeper->earlier_loaded; /* written by this thread only */
	size_t beside = 0;
	struct err err;
	int ret = 0;

	if (keeper->store == NULL || keeper->brief)
		return;
	if (!loaded)
		ret = earlier_read(keeper->store, &subject, &earlier, &err);
	if (ret == 0)
		ret = read_beside(keeper, &beside, &err);
	(void)pthread_mutex_lock(&keeper->lock);
	if (ret == 0 && !loaded) {
		keeper->earlier = earlier;
		keeper->earlier_loaded = true;
	}
	if (ret == 0)
		keeper->beside_cnt = beside;
	(void)pthread_mutex_unlock(&keeper->lock);
	if (ret < 0 && !loaded)
		earlier_done(&earlier);
}

bool keeper_compare(struct keeper *keeper, uint32_t workers, struct earlier_answer *ret)
{
	struct runpace_sum pace;
	bool known;

	if (keeper == NULL || runpace_sum(&keeper->pace, &pace) < 0)
		return false;
	(void)pthread_mutex_lock(&keeper->lock);
	known = keeper->earlier_loaded;
	if (known)
		earlier_judge(&keeper->earlier, workers, &pace, keeper->beside_cnt > 0, ret);
	(void)pthread_mutex_unlock(&keeper->lock);
	return known;
}
