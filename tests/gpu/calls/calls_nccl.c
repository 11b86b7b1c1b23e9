/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of calls_harness, by NCCL's plugin and, before 2.28, by NCCL's own functions. */
#include "agent/nccl/abi.h"
#include "calls_harness_parts.h"
#include "nccl_double.h"

#include <unistd.h>

static bool has_done(uint64_t cnt)
{
	return cnt_of(FLIGHT_COLLECTIVE_DONE) == cnt;
}

void check_collectives(void)
{
	struct double_comm *comm = double_nccl_comm(1, 8, 3);
	struct ring_record done[4];

	CHECK(double_nccl_mask() == (NCCL_COLL | NCCL_P2P | NCCL_KERNEL_LAUNCH));
	CHECK(double_nccl_call(comm, "AllReduce", 1000, -1, queue(7), 345678) == NULL);
	CHECK(soon(has_done, 1) && newest_done(done));
	CHECK(done[0].value == 345678 && done[0].detail == 1);
	CHECK(done[1].kind == FLIGHT_COLLECTIVE_ARGS && done[1].value == 2000);
	CHECK(done[1].extra == 0);
	CHECK(done[2].kind == FLIGHT_COLLECTIVE_GROUP && done[2].value >> 32 == 8);
	CHECK(done[3].kind == FLIGHT_COLLECTIVE_HOW);
	CHECK(cnt_of(FLIGHT_COLLECTIVE) == 1);
	double_nccl_group_start(); /* as batch_isend_irecv() does it */
	for (int peer = 0; peer < 4; peer++) {
		(void)double_nccl_call(comm, "Send", 100, peer, queue(7), 0);
		(void)double_nccl_call(comm, "Recv", 300, peer, queue(7), 0);
	}
	CHECK(double_nccl_group_end(5000) == NULL);
	CHECK(soon(has_done, 2) && newest_done(done));
	CHECK(done[0].value == 5000 && done[1].value == 4 * 600);
	double_nccl_group_start(); /* collectives that were coalesced */
	for (int i = 0; i < 5; i++)
		(void)double_nccl_call(comm, "ReduceScatter", 10, -1, queue(7), 0);
	CHECK(double_nccl_group_end(7000) == NULL);
	CHECK(soon(has_done, 3) && newest_done(done));
	CHECK(done[0].detail == 5 && done[1].value == 5 * 8 * 20 && done[1].extra == 0);
	CHECK(ncclAllReduce(NULL, NULL, 10, 9, 4, comm, queue(7)) == 0); /* timed once */
	CHECK(soon(has_done, 4) && newest_done(done) && done[0].value == 1000);
	double_nccl_destroy(comm);
}

/* A graph: it has no nodes of the agent, and the replay's calls are reported without a time. */
void check_captured_collective(void)
{
	struct double_comm *comm = double_nccl_comm(1, 8, 3);
	size_t reported = cnt_of(FLIGHT_COLLECTIVE), timed = cnt_of(FLIGHT_COLLECTIVE_DONE);
	int64_t records = double_gpu_count("records");
	struct double_plan *plan;

	double_gpu_capture(queue(8), true);
	plan = double_nccl_call(comm, "AllReduce", 1000, -1, queue(8), 1000);
	double_gpu_capture(queue(8), false);
	CHECK(plan != NULL && double_gpu_count("records") == records);
	for (int i = 0; i < 3; i++)
		double_nccl_replay(plan);
	CHECK(cnt_of(FLIGHT_COLLECTIVE) == reported + 3);
	CHECK(double_nccl_call(comm, "AllReduce", 1000, -1, queue(7), 2000) == NULL);
	CHECK(soon(has_done, timed + 1));
	free(plan);
	double_nccl_destroy(comm);
	CHECK(double_gpu_fault()[0] == '\0');
}

/* Work for another process, whose handles mean nothing here (PXN). */
void check_other_process(void)
{
	struct double_comm *comm = double_nccl_comm(2, 16, 3);
	size_t network = cnt_of(FLIGHT_NETWORK), timed = cnt_of(FLIGHT_COLLECTIVE_DONE);
	void *wild = (void *)(uintptr_t)0x4000000000010001; /* as another agent's would look */

	CHECK((double_nccl_mask() & NCCL_PROXY_OP) != 0);
	CHECK(double_nccl_call(comm, "AllGather", 10, -1, queue(7), 100) == NULL);
	double_nccl_proxy_for(comm, wild, getpid() + 1);
	double_nccl_proxy_for(comm, &wild, getpid() + 1);
	double_nccl_proxy_for(comm, wild, getpid()); /* in a container of its own */
	CHECK(cnt_of(FLIGHT_NETWORK) == network + 4);
	CHECK(soon(has_done, timed + 1));
	double_nccl_destroy(comm);
}

/* NCCL reports no launches: a launch begins and ends with NCCL's own functions. */
void check_old_nccl(void)
{
	struct double_comm *comm, *other;
	struct ring_record done[4];
	int64_t records;

	check_start();
	comm = double_nccl_comm(1, 8, 3);
	other = double_nccl_comm(1, 8, 3);
	CHECK(ncclAllReduce(NULL, NULL, 1000, 9, 4, comm, queue(7)) == 0);
	CHECK(soon(has_done, 1) && newest_done(done));
	CHECK(done[0].value == 100000 && done[0].detail == 1 && done[1].value == 2000);
	CHECK(ncclGroupStart() == 0); /* as torch does around everything */
	CHECK(ncclGroupStart() == 0);
	for (int peer = 0; peer < 4; peer++) {
		CHECK(ncclSend(NULL, 100, 9, peer, comm, queue(7)) == 0);
		CHECK(ncclRecv(NULL, 300, 9, peer, comm, queue(7)) == 0);
	}
	CHECK(ncclGroupEnd() == 0 && !has_done(2));
	CHECK(ncclGroupEnd() == 0);
	CHECK(soon(has_done, 2) && newest_done(done));
	CHECK(done[0].value == 5000 && done[1].value == 4 * 600);
	records = double_gpu_count("records");
	CHECK(ncclGroupStart() == 0); /* two queues, of two communicators */
	CHECK(ncclAllReduce(NULL, NULL, 10, 9, 4, comm, queue(7)) == 0);
	CHECK(ncclAllReduce(NULL, NULL, 10, 9, 4, other, queue(8)) == 0);
	CHECK(ncclGroupEnd() == 0);
	CHECK(double_gpu_count("records") == records);
	double_gpu_capture(queue(8), true);
	CHECK(ncclAllReduce(NULL, NULL, 10, 9, 4, comm, queue(8)) == 0);
	double_gpu_capture(queue(8), false);
	CHECK(double_gpu_count("records") == records);
	CHECK(ncclAllReduce(NULL, NULL, 30, 9, 4, comm, queue(7)) == 0);
	CHECK(soon(has_done, 3) && newest_done(done) && done[0].value == 3000);
	double_nccl_destroy(comm);
	double_nccl_destroy(other);
	CHECK(ncclGroupEnd() == 0); /* one too many */
	lib.bye(NULL);
	CHECK(double_gpu_fault()[0] == '\0');
	printf("ok\n");
}
