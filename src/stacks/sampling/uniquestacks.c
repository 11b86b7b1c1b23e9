/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/uniquestacks.h"

#include <errno.h>
#include <xxhash.h>

int uniquestacks_init(struct uniquestacks *unique, struct region *region)
{
	*unique = (struct uniquestacks){ 0 };
	unique->stacks = region_alloc(region, UNIQUESTACKS_MAX * sizeof(*unique->stacks));
	return unique->stacks != NULL ? 0 : -ENOMEM;
}

void uniquestacks_done(struct uniquestacks *unique)
{
	vec_foreach(task, &unique->tasks)
		task_done(task);
	vec_done(&unique->tasks);
	idmap_done(&unique->by_hash);
}

static uint64_t mix(uint64_t seed, const void *data, size_t size)
{
	return size > 0 ? XXH3_64bits_withSeed(data, size, seed) : seed;
}

/* Field by field: padding has no value. */
static uint64_t hash_of(const struct task *task, uint64_t salt)
{
	uint64_t hash = mix(salt, task->codes.data, task->codes.cnt * sizeof(*task->codes.data));

	hash = mix(hash ^ task->codes.cnt, task->pcs.data, task->pcs.cnt * sizeof(*task->pcs.data));
	for (size_t i = 0; i < task->codes.cnt; i++)
		hash = mix(hash, &task->places.data[i].instr, sizeof(uint32_t));
	return hash;
}

uint32_t uniquestacks_add(struct uniquestacks *unique, struct task *task, uint64_t salt)
{
	const uint64_t hash = hash_of(task, salt);
	const uint32_t index = (uint32_t)unique->tasks.cnt;
	uint32_t found;

	if (task->codes.cnt + task->pcs.cnt == 0)
		return SAMPLED_NONE;
	found = idmap_get(&unique->by_hash, hash);
	if (found != IDMAP_NONE)
		return found;
	if (index == UNIQUESTACKS_MAX || vec_reserve(&unique->tasks, (size_t)index + 1) < 0 ||
	    idmap_set(&unique->by_hash, hash, index) < 0) {
		unique->refused++;
		return SAMPLED_NONE;
	}
	unique->tasks.data[unique->tasks.cnt++] = *task;
	/* The arrays belong to the new entry now. */
	*task = (struct task){ .thread = task->thread, .proc = task->proc };
	return index;
}

bool uniquestacks_is_named(const struct uniquestacks *unique, uint32_t index)
{
	return unique->stacks[index].frame_cnt > 0;
}

static int join(struct uniquestacks *unique, uint32_t index, struct pytarget *target,
		const struct resolver *resolver, struct region *region)
{
	struct task *task = &unique->tasks.data[index];
	struct stacks_thread thread = { .why_incomplete = "" };
	int error;

	task->thread = &thread;
	error = task_join(task, target, resolver, region);
	if (error == 0)
		unique->stacks[index] = (struct sampled_stack){ thread.frames, thread.frame_cnt };
	task->thread = NULL;
	task_done(task);
	return error;
}

int uniquestacks_name(struct uniquestacks *unique, uint32_t index, struct pytarget *target,
		      struct region *region)
{
	const struct resolver none = { .interpreter = MODULE_NONE };

	return join(unique, index, target, &none, region);
}

int uniquestacks_name_all(struct uniquestacks *unique, struct pytarget *target,
			  struct resolver *resolver, struct region *region)
{
	int error = 0;

	vec_foreach(task, &unique->tasks) {
		if (error == 0)
			error = resolver_add(resolver, task->pcs.data, task->pcs.cnt);
	}
	if (error == 0)
		error = resolver_run(resolver);
	for (uint32_t i = 0; i < unique->tasks.cnt && error == 0; i++)
		if (!uniquestacks_is_named(unique, i))
			error = join(unique, i, target, resolver, region);
	return error;
}
