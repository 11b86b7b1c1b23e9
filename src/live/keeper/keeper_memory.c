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

void keeper_remember(struct keeper *keeper)
{
	if (keeper == NULL)
		return;
	(void)pthread_mutex_lock(&keeper->lock);
	keeper->remembers = true;
	(void)pthread_mutex_unlock(&keeper->lock);
	keeper_event(keeper, EARLIER_MACHINE_EVENT, "%s", keeper->machine);
}

static int read_memory(struct keeper *keeper, struct keeper_memory *ret, struct err *err)
{
	const struct earlier_subject subject = { .key = keeper->key,
						 .name = keeper->name,
						 .command = keeper->command,
						 .host = keeper->host,
						 .machine = keeper->machine,
						 .started_ns = keeper->started_ns,
						 .now_ns = clock_wall_ns() };
	int r = earlier_read(keeper->store, &subject, &ret->earlier, err);

	if (r == 0)
		r = pastfindings_read(keeper->store, keeper->name, keeper->started_ns, &ret->past,
				      err);
	return r < 0 ? r : hosttally_read(keeper->store, keeper->key, &ret->hosts, err);
}

void keeper_memory_load(struct keeper *keeper)
{
	struct keeper_memory memory = { 0 };
	bool loaded = keeper->memory_loaded; /* written by this thread only */
	size_t beside = 0;
	struct err err;
	int ret = 0;

	if (keeper->store == NULL || !keeper->remembers)
		return;
	if (!loaded)
		ret = read_memory(keeper, &memory, &err);
	if (ret == 0)
		ret = read_beside(keeper, &beside, &err);
	(void)pthread_mutex_lock(&keeper->lock);
	if (ret == 0 && !loaded) {
		keeper->memory = memory;
		keeper->memory_loaded = true;
	}
	if (ret == 0)
		keeper->beside_cnt = beside;
	(void)pthread_mutex_unlock(&keeper->lock);
	if (ret < 0 && !loaded)
		keeper_memory_done(&memory);
}

void keeper_memory_done(struct keeper_memory *memory)
{
	earlier_done(&memory->earlier);
	pastfindings_done(&memory->past);
	hosttally_done(&memory->hosts);
}

const struct keeper_memory *keeper_borrow_memory(struct keeper *keeper)
{
	bool loaded;

	if (keeper == NULL)
		return NULL;
	(void)pthread_mutex_lock(&keeper->lock);
	loaded = keeper->memory_loaded;
	(void)pthread_mutex_unlock(&keeper->lock);
	return loaded ? &keeper->memory : NULL;
}

bool keeper_compare(struct keeper *keeper, uint32_t workers, struct earlier_answer *ret)
{
	const struct keeper_memory *memory = keeper_borrow_memory(keeper);
	struct runpace_sum pace;
	bool beside;

	if (memory == NULL || runpace_sum(&keeper->pace, &pace) < 0)
		return false;
	(void)pthread_mutex_lock(&keeper->lock);
	beside = keeper->beside_cnt > 0;
	(void)pthread_mutex_unlock(&keeper->lock);
	earlier_judge(&memory->earlier, workers, &pace, beside, ret);
	return true;
}
