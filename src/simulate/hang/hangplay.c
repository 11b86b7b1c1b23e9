/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank has launched and finished when nothing goes on any more. */
#include "simulate/hang/hangjob_parts.h"
#include "simulate/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t hangplay_random(const struct hangjob *job, uint64_t what, uint64_t limit)
{
	return random_at(job->options.seed, RANDOM_CHOICE, what, (uint64_t)job->kind,
			 (uint64_t)job->worker_cnt) %
	       limit;
}

int hangplay_group_size(const struct hangjob *job, enum group_kind group)
{
	switch (group) {
	case GROUP_TP:
		return job->tp;
	case GROUP_DP:
		return job->worker_cnt / job->tp;
	case GROUP_DEFAULT:
	case GROUP_CNT:
	default:
		return job->worker_cnt;
	}
}

int hangplay_member(const struct hangjob *job, enum group_kind group, int rank, int index)
{
	switch (group) {
	case GROUP_TP:
		return rank / job->tp * job->tp + index;
	case GROUP_DP:
		return rank % job->tp + index * job->tp;
	case GROUP_DEFAULT:
	case GROUP_CNT:
	default:
		return index;
	}
}

/* Whether the host of the rank does not come to this operation. */
static bool stops_at(const struct hangjob *job, int rank, size_t op)
{
	const bool hosts =
		job->kind <= KIND_LOOP || job->kind == KIND_CHECKPOINT || job->kind == KIND_COMPILE;

	if (job->kind == KIND_GOES_ON)
		return op == job->fault_op +
				     hangplay_random(job, 1000 + (uint64_t)rank, job->ops.cnt / 2);
	return hosts && rank == job->at && op == job->fault_op;
}

static struct hang_op op_of(const struct hangjob *job, int rank, size_t index, bool *ret_faulty)
{
	struct hang_op op = job->ops.data[index % job->ops.cnt];

	*ret_faulty = index == job->fault_op;
	if (!*ret_faulty || rank != job->at)
		return op;
	if (job->kind == KIND_OPERATION)
		op.name = strcmp(op.name, "broadcast") == 0 ? "all_reduce" : "broadcast";
	if (job->kind == KIND_SIZE)
		op.elements += (uint32_t)hangplay_group_size(job, op.group);
	return op;
}

/* Launches what the host comes to. Returns 1: it did something; 0; -ENOMEM. */
static int advance_host(struct hangjob *job, int rank)
{
	struct hang_worker *w = &job->workers[rank];
	const size_t before = w->op;

	while (w->op < job->end) {
		struct hang_launch launch;
		const bool begins = w->op % job->ops.cnt == 0;

		w->place = begins || !job->blocking ? PLACE_SYNC : PLACE_COLLECTIVE;
		if ((begins || job->blocking) && w->done < w->launches.cnt)
			break;
		if (stops_at(job, rank, w->op)) {
			w->place = job->kind == KIND_GOES_ON ? PLACE_WORKS : PLACE_FAULT;
			break;
		}
		launch.op = op_of(job, rank, w->op++, &launch.faulty);
		if (launch.faulty && rank == job->at && job->kind == KIND_SKIPPED)
			continue;
		launch.seq = ++w->seq[launch.op.group];
		if (vec_push(&w->launches, launch) < 0)
			return -ENOMEM;
	}
	return w->op != before;
}

static bool is_in_group(const struct hangjob *job, enum group_kind group, int rank, int of)
{
	return hangplay_member(job, group, rank, 0) == hangplay_member(job, group, of, 0);
}

/* A kernel before the collective does not end, or nothing passes the network. */
static bool is_held(const struct hangjob *job, int rank, const struct hang_launch *launch)
{
	if (!launch->faulty)
		return false;
	if (job->kind == KIND_KERNEL)
		return rank == job->at;
	return job->kind == KIND_ALIKE && is_in_group(job, launch->op.group, rank, job->at);
}

bool hangplay_has_started(const struct hangjob *job, int rank, size_t index)
{
	const struct hang_worker *w = &job->workers[rank];

	if (index != w->done)
		return index < w->done;
	return job->kind != KIND_KERNEL || !is_held(job, rank, &w->launches.data[index]);
}

static bool is_at(const struct hangjob *job, int rank, const struct hang_launch *launch)
{
	const struct hang_worker *w = &job->workers[rank];
	const struct hang_launch *head;

	if (w->frozen || w->done == w->launches.cnt)
		return false;
	head = &w->launches.data[w->done];
	if (is_held(job, rank, head))
		return false;
	return head->op.group == launch->op.group && head->seq == launch->seq &&
	       strcmp(head->op.name, launch->op.name) == 0 &&
	       head->op.elements == launch->op.elements;
}

/* Ends the collective at which the rank's device is, if all members are there. */
static bool advance_device(struct hangjob *job, int rank)
{
	const struct hang_worker *w = &job->workers[rank];
	struct hang_launch launch;
	int size;

	if (w->done == w->launches.cnt || w->frozen)
		return false;
	launch = w->launches.data[w->done];
	size = hangplay_group_size(job, launch.op.group);
	for (int i = 0; i < size; i++)
		if (!is_at(job, hangplay_member(job, launch.op.group, rank, i), &launch))
			return false;
	for (int i = 0; i < size; i++) {
		const int member = hangplay_member(job, launch.op.group, rank, i);
		struct hang_worker *of = &job->workers[member];

		if (member == job->at && launch.faulty && job->kind == KIND_UNFINISHED)
			of->frozen = true;
		else
			of->done++;
	}
	return true;
}

int hangplay_run(struct hangjob *job)
{
	bool moves = true;

	while (moves) {
		moves = false;
		for (int rank = 0; rank < job->worker_cnt; rank++) {
			const int moved = advance_host(job, rank);

			if (moved < 0)
				return moved;
			moves |= moved > 0;
		}
		for (int rank = 0; rank < job->worker_cnt; rank++)
			while (advance_device(job, rank))
				moves = true;
	}
	return 0;
}
