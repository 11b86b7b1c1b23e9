/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/launch.h"

#include "agent/nccl/handles.h"

#include <string.h>

#define LAUNCH_CNT 256u

/* By one thread. */
struct launch {
	uint64_t timer;
	nccl_handle comm; /* 0: from the calls reported during the launch */
	nccl_handle first_comm;
	bool ended, mixed;
	uint32_t call_cnt;
	struct ring_record records[LAUNCH_RECORDS]; /* of its first call; bytes of all */
};

static struct launch launches[LAUNCH_CNT];
static struct handle_pool_slot slots[LAUNCH_CNT];
static struct handle_pool pool = { .slots = slots, .cnt = LAUNCH_CNT, .tag = 7 };

/* This thread's latest launch, until its calls were reported. */
static __thread nccl_handle current __attribute__((tls_model("initial-exec")));

/* NULL: none, or it was reclaimed. */
static struct launch *find_current(void)
{
	return handle_pool_is_held(&pool, current) ? &launches[handle_pool_idx(current)] : NULL;
}

/*
 * Claims the timer with the launch's records; without any if its calls are unknown or belong to
 * several communicators.
 */
static void leave(const struct nccl_timing *timing)
{
	struct launch *launch = find_current();

	if (launch == NULL)
		return;
	timing->claim(launch->timer, launch->records,
		      launch->call_cnt > 0 && !launch->mixed ? LAUNCH_RECORDS : 0);
	(void)handle_pool_drop(&pool, current);
	current = 0;
}

nccl_handle launch_start(const struct nccl_timing *timing, nccl_handle comm, void *queue)
{
	uint64_t timer;

	leave(timing); /* its calls were not reported */
	timer = timing->begin(queue);
	if (timer == 0)
		return 0;
	current = handle_pool_take(&pool, comm);
	if (current != 0) {
		launches[handle_pool_idx(current)] =
			(struct launch){ .timer = timer, .comm = comm };
	} else {
		timing->end(timer);
		timing->claim(timer, NULL, 0);
	}
	return current;
}

bool launch_stop(const struct nccl_timing *timing, nccl_handle handle)
{
	struct launch *launch;

	if (!handle_pool_owns(&pool, handle))
		return false;
	launch = handle == current ? find_current() : NULL;
	if (launch != NULL && !launch->ended) {
		timing->end(launch->timer);
		launch->ended = true;
	}
	return true;
}

void launch_finish(const struct nccl_timing *timing, nccl_handle handle)
{
	if (launch_stop(timing, handle) && handle == current)
		leave(timing);
}

/* Whether a call of comm that is reported now belongs to the launch. */
static bool has_call(const struct launch *launch, nccl_handle comm)
{
	if (launch->comm == 0)
		return !launch->ended;
	return launch->ended && launch->comm == comm;
}

void launch_add(nccl_handle comm, const struct ring_record records[static LAUNCH_RECORDS])
{
	struct launch *launch = find_current();
	struct ring_record *args, *group;

	if (launch == NULL || !has_call(launch, comm))
		return;
	if (launch->call_cnt == 0)
		launch->first_comm = comm;
	launch->mixed = launch->mixed || comm != launch->first_comm;
	args = &launch->records[1];
	group = &launch->records[2];
	if (launch->call_cnt++ == 0) {
		memcpy(launch->records, records, sizeof(launch->records));
		launch->records[0].kind = FLIGHT_COLLECTIVE_DONE;
	} else if (args->value < 0 || records[1].value < 0 || group->extra != records[2].extra ||
		   __builtin_add_overflow(args->value, records[1].value, &args->value)) {
		args->value = -1;
	}
	launch->records[0].detail = (uint16_t)MIN(launch->call_cnt, (uint32_t)UINT16_MAX);
}

void launch_end_group(const struct nccl_timing *timing)
{
	const struct launch *launch = find_current();

	if (launch != NULL && launch->ended && launch->call_cnt > 0)
		leave(timing);
}

void launch_reclaim(nccl_handle comm)
{
	handle_pool_reclaim(&pool, comm);
}
