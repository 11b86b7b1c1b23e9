/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's declarations of NCCL's interface against NCCL's own, when a plugin's headers
 * (nccl/profiler.h, as in its ext-profiler) are on the include path; and checks that need no
 * headers.
 */
#include "agent/nccl/abi_calls.h"

#include <stddef.h>

#if __has_include(<nccl/profiler.h>)
#include <nccl/profiler.h>

#define SAME(version, kind, theirs, ours, member)                                           \
	_Static_assert(offsetof(ncclProfilerEventDescr_v##version##_t, kind.theirs) ==      \
			       offsetof(struct ours, member),                               \
		       "version " #version ": " #theirs);                                   \
	_Static_assert(sizeof(((ncclProfilerEventDescr_v##version##_t *)0)->kind.theirs) == \
			       sizeof(((struct ours *)0)->member),                          \
		       "version " #version ": " #theirs)

#define SAME_HEAD(version)                                                           \
	_Static_assert(offsetof(ncclProfilerEventDescr_v##version##_t, parentObj) == \
			       offsetof(struct nccl_descr, parent),                  \
		       "parent");                                                    \
	SAME(version, proxyOp, pid, nccl_proxy_op, pid);                             \
	SAME(version, proxyOp, channelId, nccl_proxy_op, channel);                   \
	SAME(version, proxyOp, peer, nccl_proxy_op, peer);                           \
	SAME(version, proxyOp, isSend, nccl_proxy_op, is_send)

SAME_HEAD(1);
SAME_HEAD(2);
SAME_HEAD(3);
SAME_HEAD(4);
SAME_HEAD(5);
SAME_HEAD(6);

/* Of all versions; channels is nMaxChannels before version 4. */
#define SAME_COLL(version, ours)                       \
	SAME(version, coll, seqNumber, ours, seq);     \
	SAME(version, coll, func, ours, func);         \
	SAME(version, coll, count, ours, cnt);         \
	SAME(version, coll, root, ours, root);         \
	SAME(version, coll, datatype, ours, datatype); \
	SAME(version, coll, algo, ours, algorithm);    \
	SAME(version, coll, proto, ours, protocol)
#define SAME_P2P(version, ours)                       \
	SAME(version, p2p, func, ours, func);         \
	SAME(version, p2p, datatype, ours, datatype); \
	SAME(version, p2p, count, ours, cnt);         \
	SAME(version, p2p, peer, ours, peer)
#define SAME_COMM(version, coll_struct, p2p_struct)               \
	SAME(version, coll, name, coll_struct, comm_name);        \
	SAME(version, coll, commHash, coll_struct, comm_hash);    \
	SAME(version, coll, nMaxChannels, coll_struct, channels); \
	SAME(version, p2p, name, p2p_struct, comm_name);          \
	SAME(version, p2p, commHash, p2p_struct, comm_hash)
#define SAME_LATER(version)                                     \
	SAME(version, coll, nChannels, nccl_coll_v4, channels); \
	SAME(version, p2p, nChannels, nccl_p2p_v4, channels)
#define SAME_API(version)                                               \
	SAME(version, coll, parentGroup, nccl_coll_v4, parent_group);   \
	SAME(version, p2p, parentGroup, nccl_p2p_v4, parent_group);     \
	SAME(version, collApi, graphCaptured, nccl_coll_api, captured); \
	SAME(version, p2pApi, graphCaptured, nccl_p2p_api, captured);   \
	SAME(version, kernelLaunch, stream, nccl_kernel_launch, stream)

SAME_COLL(1, nccl_coll_v1);
SAME_COLL(2, nccl_coll_v2);
SAME_COLL(3, nccl_coll_v3);
SAME_COLL(4, nccl_coll_v4);
SAME_COLL(5, nccl_coll_v4);
SAME_COLL(6, nccl_coll_v4);
SAME_P2P(1, nccl_p2p_v1);
SAME_P2P(2, nccl_p2p_v2);
SAME_P2P(3, nccl_p2p_v2);
SAME_P2P(4, nccl_p2p_v4);
SAME_P2P(5, nccl_p2p_v4);
SAME_P2P(6, nccl_p2p_v4);
SAME_COMM(1, nccl_coll_v1, nccl_p2p_v1);
SAME_COMM(2, nccl_coll_v2, nccl_p2p_v2);
SAME_COMM(3, nccl_coll_v3, nccl_p2p_v2);
SAME_LATER(4);
SAME_LATER(5);
SAME_LATER(6);
SAME_API(5);
SAME_API(6);
#ifdef PROFILER_V7_H_
SAME_HEAD(7);
SAME_COLL(7, nccl_coll_v4);
SAME_P2P(7, nccl_p2p_v4);
SAME_LATER(7);
SAME_API(7);
_Static_assert(sizeof(ncclProfiler_v7_t) == sizeof(struct nccl_table_v5), "the table");
#endif

_Static_assert(offsetof(ncclProfilerEventStateArgs_v4_t, proxyStep.transSize) ==
			       offsetof(struct nccl_state_args, bytes) &&
		       offsetof(ncclProfilerEventStateArgs_v5_t, proxyStep.transSize) ==
			       offsetof(struct nccl_state_args, bytes),
	       "bytes of a transfer");
_Static_assert(sizeof(ncclProfiler_v1_t) == sizeof(struct nccl_table_v1), "the table");
_Static_assert(sizeof(ncclProfiler_v4_t) == sizeof(struct nccl_table_v4), "the table");
_Static_assert(sizeof(ncclProfiler_v6_t) == sizeof(struct nccl_table_v5), "the table");
_Static_assert(offsetof(ncclProfiler_v5_t, startEvent) == offsetof(struct nccl_table_v5, start) &&
		       offsetof(ncclProfiler_v5_t, stopEvent) ==
			       offsetof(struct nccl_table_v5, stop) &&
		       offsetof(ncclProfiler_v5_t, recordEventState) ==
			       offsetof(struct nccl_table_v5, state) &&
		       offsetof(ncclProfiler_v5_t, finalize) ==
			       offsetof(struct nccl_table_v5, finalize),
	       "the table");
_Static_assert(NCCL_PROXY_STEP == (int)ncclProfileProxyStep &&
		       NCCL_P2P_API == (int)ncclProfileP2pApi &&
		       NCCL_KERNEL_LAUNCH == (int)ncclProfileKernelLaunch &&
		       NCCL_COLL_API == (int)ncclProfileCollApi &&
		       NCCL_COLL == (int)ncclProfileColl && NCCL_P2P == (int)ncclProfileP2p &&
		       NCCL_PROXY_OP == (int)ncclProfileProxyOp &&
		       NCCL_GROUP == (int)ncclProfileGroup,
	       "events");
_Static_assert(NCCL_SEND_GPU_WAIT == (int)ncclProfilerProxyStepSendGPUWait &&
		       NCCL_SEND_PEER_WAIT == (int)ncclProfilerProxyStepSendPeerWait_v4 &&
		       NCCL_SEND_WIRE_WAIT == (int)ncclProfilerProxyStepSendWait &&
		       NCCL_RECV_WIRE_WAIT == (int)ncclProfilerProxyStepRecvWait &&
		       NCCL_RECV_FLUSH_WAIT == (int)ncclProfilerProxyStepRecvFlushWait &&
		       NCCL_RECV_GPU_WAIT == (int)ncclProfilerProxyStepRecvGPUWait,
	       "states");
#endif

/* As the headers of NCCL 2.32 lay them out on 64-bit Linux. */
_Static_assert(offsetof(struct nccl_proxy_op, pid) == 24, "begins behind the head");
_Static_assert(offsetof(struct nccl_coll_v1, channels) == 104, "version 1");
_Static_assert(offsetof(struct nccl_coll_v2, protocol) == 120, "version 2");
_Static_assert(offsetof(struct nccl_coll_v3, protocol) == 112, "version 3");
_Static_assert(offsetof(struct nccl_coll_v4, parent_group) == 104, "versions 4 to 6");
_Static_assert(offsetof(struct nccl_p2p_v1, peer) == 72, "version 1");
_Static_assert(offsetof(struct nccl_p2p_v2, peer) == 72, "versions 2 and 3");
_Static_assert(offsetof(struct nccl_p2p_v4, parent_group) == 64, "versions 4 to 6");
_Static_assert(offsetof(struct nccl_coll_api, captured) == 64, "from version 5");
_Static_assert(offsetof(struct nccl_p2p_api, captured) == 56, "from version 5");
_Static_assert(offsetof(struct nccl_kernel_launch, stream) == 24, "from version 5");

int main(void)
{
	return 0; /* that it compiles is the test */
}
