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
	case GROUP_PP:
		return job->pp;
	case GROUP_DP:
		return job->worker_cnt / (job->tp * job->pp);
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
	case GROUP_PP:
		return rank / job->pp * job->pp + index;
	case GROUP_DP:
		return rank % (job->tp * job->pp) + index * job->tp * job->pp;
	case GROUP_DEFAULT:
	case GROUP_CNT:
	default:
		return index;
	}
}

bool hangplay_takes_part(const struct hangjob *job, int rank, const struct hang_op *op)
{
	return op->group != GROUP_PP || rank % job->pp == op->from || rank % job->pp == op->to;
}

/* Whether the host of the rank does not come to this operation. */
static bool stops_at(const struct hangjob *job, int rank, size_t op)
{
	if (job->kind == KIND_GOES_ON || job->kind == KIND_FLOWS)
		return op == job->fault_op +
				     hangplay_random(job, 1000 + (uint64_t)rank, job->ops.cnt / 2);
	return hangjob_has(job, HALTS) && rank == job->at && op == job->fault_op;
}

/* Sender and receiver call one operation by two names. */
static void name_side(struct hang_op *op, bool sends)
{
	const bool forward = op->from < op->to;

	op->name = sends ? "send" : "recv";
	if (sends) {
		op->function = forward ? "send_forward" : "send_backward";
		op->line = forward ? 41 : 47;
	} else {
		op->function = forward ? "recv_forward" : "recv_backward";
		op->line = forward ? 44 : 50;
	}
}

static struct hang_op op_of(const struct hangjob *job, int rank, size_t index, bool *ret_faulty)
{
	struct hang_op op = job->ops.data[index % job->ops.cnt];

	*ret_faulty = index == job->fault_op;
	if (op.group == GROUP_PP)
		name_side(&op, rank % job->pp == op.from);
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
			w->place = hangjob_has(job, HALTS) ? PLACE_FAULT : PLACE_WORKS;
			break;
		}
		launch.index = w->op;
		launch.op = op_of(job, rank, w->op++, &launch.faulty);
		if (!hangplay_takes_part(job, rank, &launch.op))
			continue;
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
	return (job->kind == KIND_ALIKE || job->kind == KIND_TRANSFER) &&
	       is_in_group(job, launch->op.group, rank, job->at);
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
	if (head->op.group == GROUP_PP && launch->op.group == GROUP_PP)
		return head->index == launch->index;
	return head->op.group == launch->op.group && head->seq == launch->seq &&
	       strcmp(head->op.name, launch->op.name) == 0 &&
	       head->op.elements == launch->op.elements;
}

/* Whether what the rank is to receive is on its way. */
static bool has_left(const struct hangjob *job, int rank, const struct hang_launch *launch)
{
	const int from = hangplay_member(job, GROUP_PP, rank, launch->op.from);
	const struct hang_worker *w = &job->workers[from];

	for (size_t i = w->done; i > 0; i--)
		if (w->launches.data[i - 1].index == launch->index)
			return true;
	return false;
}

/* What is sent before its receiver is there ends on one side at a time. */
static bool advance_eagerly(struct hangjob *job, int rank, const struct hang_launch *launch)
{
	if (is_held(job, rank, launch))
		return false;
	if (rank % job->pp != launch->op.from && !has_left(job, rank, launch))
		return false;
	job->workers[rank].done++;
	return true;
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
	if (launch.op.group == GROUP_PP && job->eager)
		return advance_eagerly(job, rank, &launch);
	for (int i = 0; i < size; i++) {
		const int member = hangplay_member(job, launch.op.group, rank, i);

		if (hangplay_takes_part(job, member, &launch.op) && !is_at(job, member, &launch))
			return false;
	}
	for (int i = 0; i < size; i++) {
		const int member = hangplay_member(job, launch.op.group, rank, i);
		struct hang_worker *of = &job->workers[member];

		if (!hangplay_takes_part(job, member, &launch.op))
			continue;
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
