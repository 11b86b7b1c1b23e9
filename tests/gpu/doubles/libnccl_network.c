/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads by which NCCL's double drives the network: of a test's communicator one for each
 * operation, which does nothing; of a job's one that works for all its calls in their order, as long
 * as the kernels that wait for the data.
 */
#include "agent/nccl/abi.h"
#include "double.h"
#include "libnccl_parts.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_CNT 1024

struct transfer {
	struct double_comm *comm;
	void *parent;
	int pid;
	size_t bytes;
	uint64_t turn;
};

struct network {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct transfer queue[QUEUE_CNT];
	uint64_t added, done;
};

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static void *start_op(const struct transfer *what, bool is_send)
{
	struct nccl_proxy_op descr = { .head = { NCCL_PROXY_OP, what->parent, what->comm->rank },
				       .pid = what->pid,
				       .is_send = is_send };

	return nccl_double_start(what->comm, &descr, NCCL_PROXY_OP);
}

static void *start_step(const struct transfer *what, void *op)
{
	struct nccl_descr descr = { NCCL_PROXY_STEP, op, what->comm->rank };

	return op != NULL ? nccl_double_start(what->comm, &descr, NCCL_PROXY_STEP) : NULL;
}

/* --- of tests --- */

static void *touch(void *what)
{
	nccl_double_stop(start_op(what, true));
	return NULL;
}

static void touch_network(struct transfer *what)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, touch, what) == 0)
		(void)pthread_join(thread, NULL);
}

/* --- of jobs --- */

static void end_send(void *step, int64_t at_ns)
{
	sleep_until(at_ns);
	nccl_double_stop(step);
}

static void end_receive(void *step, int64_t at_ns, size_t bytes)
{
	sleep_until(at_ns);
	nccl_double_state(step, NCCL_RECV_FLUSH_WAIT, bytes);
	nccl_double_state(step, NCCL_RECV_GPU_WAIT, 0);
	nccl_double_stop(step);
}

/* Sends at the rate of this rank's link; receives at that of the previous rank's link. */
static void move(const struct transfer *what)
{
	struct double_comm *comm = what->comm;
	struct double_group group = { comm->id, (uint32_t)comm->rank, (uint32_t)comm->rank_cnt };
	void *send_op = start_op(what, true), *receive_op = start_op(what, false);
	void *send = start_step(what, send_op), *receive = start_step(what, receive_op);
	struct double_met met;

	nccl_double_state(send, NCCL_SEND_GPU_WAIT, 0);
	nccl_double_state(receive, NCCL_RECV_WIRE_WAIT, 0);
	double_meet(&group, what->turn, &met);
	sleep_until(met.last_ns);
	nccl_double_state(send, NCCL_SEND_WIRE_WAIT, what->bytes);
	if (met.own_ns <= met.before_ns)
		end_send(send, met.last_ns + met.own_ns);
	end_receive(receive, met.last_ns + met.before_ns, what->bytes);
	if (met.own_ns > met.before_ns)
		end_send(send, met.last_ns + met.own_ns);
	sleep_until(met.last_ns + met.ns);
	nccl_double_stop(send_op);
	nccl_double_stop(receive_op);
}

static void *drive(void *arg)
{
	struct network *network = arg;

	for (;;) {
		struct transfer next;

		pthread_mutex_lock(&network->lock);
		while (network->added == network->done)
			pthread_cond_wait(&network->changed, &network->lock);
		next = network->queue[network->done++ % QUEUE_CNT];
		pthread_mutex_unlock(&network->lock);
		move(&next);
	}
	return NULL;
}

static struct network *open_network(void)
{
	struct network *network = calloc(1, sizeof(*network));
	pthread_t thread;

	pthread_mutex_init(&network->lock, NULL);
	pthread_cond_init(&network->changed, NULL);
	(void)pthread_create(&thread, NULL, drive, network);
	return network;
}

void nccl_double_network(struct double_comm *comm, void *parent, int pid, size_t bytes)
{
	struct transfer what = { comm, parent, pid, bytes, 0 };
	struct network *network;

	if (comm->node_cnt <= 1)
		return;
	if (comm->slowdown == 0) {
		touch_network(&what);
		return;
	}
	if (comm->network == NULL)
		comm->network = open_network();
	network = comm->network;
	pthread_mutex_lock(&network->lock);
	what.turn = network->added;
	network->queue[network->added++ % QUEUE_CNT] = what;
	pthread_cond_broadcast(&network->changed);
	pthread_mutex_unlock(&network->lock);
}
