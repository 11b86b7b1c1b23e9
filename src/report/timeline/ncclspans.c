/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as NCCL reported them, beside those of PyTorch, and its work on the network.
 * They end when a rank has queued them, independently of other ranks, so they are used
 * neither to align clocks nor to find late ranks.
 */
#include "report/timeline/timeline_parts.h"

#include <errno.h>
#include <inttypes.h>

/* --- reading --- */

/* What follows records[0], of these kinds in this order. */
static bool followed_by(const struct ring_record *records, size_t cnt, const uint16_t *kinds,
			size_t kind_cnt)
{
	if (cnt <= kind_cnt)
		return false;
	for (size_t i = 0; i < kind_cnt; i++) {
		if (records[i + 1].kind != kinds[i])
			return false;
	}
	return true;
}

static bool has_how(const struct ring_record *records, size_t cnt)
{
	static const uint16_t kinds[] = { FLIGHT_COLLECTIVE_ARGS, FLIGHT_COLLECTIVE_GROUP,
					  FLIGHT_COLLECTIVE_HOW };

	return followed_by(records, cnt, kinds, ARRAY_SIZE(kinds));
}

static void read_how(const struct ring_record *how, struct nccl_slice *ret)
{
	ret->datatype = (uint32_t)((uint64_t)how->value >> 32);
	ret->algorithm = (uint32_t)how->value;
	ret->protocol = (uint32_t)(how->extra >> 32);
	ret->channels = how->detail >> 8;
	ret->captured = (how->detail & FLIGHT_HOW_CAPTURED) != 0;
	if ((how->detail & FLIGHT_HOW_MANY) != 0)
		ret->call_cnt = (uint32_t)how->extra;
	else if ((how->detail & FLIGHT_HOW_PEER) != 0)
		ret->peer = (uint32_t)how->extra;
}

static void read_waits(const struct ring_record *send, const struct ring_record *recv,
		       struct nccl_slice *ret)
{
	ret->has_waits = true;
	ret->waits_us[NCCL_WAIT_SEND_GPU] = flight_us_first((uint64_t)send->value);
	ret->waits_us[NCCL_WAIT_SEND_PEER] = flight_us_second((uint64_t)send->value);
	ret->waits_us[NCCL_WAIT_SEND_WIRE] = flight_us_first(send->extra);
	ret->waits_us[NCCL_WAIT_RECV_WIRE] = flight_us_first((uint64_t)recv->value);
	ret->waits_us[NCCL_WAIT_RECV_FLUSH] = flight_us_second((uint64_t)recv->value);
	ret->waits_us[NCCL_WAIT_RECV_GPU] = flight_us_first(recv->extra);
}

static enum slice_kind kind_of(uint16_t kind)
{
	switch (kind) {
	case FLIGHT_NETWORK:
		return SLICE_NETWORK;
	case FLIGHT_COLLECTIVE_DONE:
		return SLICE_NCCL_TIMED;
	default:
		return SLICE_NCCL;
	}
}

struct nccl_slice timeline_read_nccl(const struct ring_record *records, size_t cnt)
{
	static const uint16_t about[] = { FLIGHT_COLLECTIVE_ARGS, FLIGHT_COLLECTIVE_GROUP };
	static const uint16_t whole[] = { FLIGHT_COLLECTIVE_ARGS, FLIGHT_COLLECTIVE_GROUP,
					  FLIGHT_NETWORK_SEND, FLIGHT_NETWORK_RECV };
	struct nccl_slice ret = { .comm = { .start_ns = records[0].time_ns,
					    .dur_ns = records[0].value,
					    .bytes = -1,
					    .seq = -1,
					    .name = (uint32_t)records[0].extra },
				  .kind = kind_of(records[0].kind),
				  .peer = -1 };

	if (followed_by(records, cnt, about, ARRAY_SIZE(about)))
		ret.comm = timeline_read_comm(records, cnt);
	if (ret.kind == SLICE_NETWORK)
		ret.op_cnt = records[0].detail;
	else if (has_how(records, cnt))
		read_how(&records[3], &ret);
	if (ret.kind == SLICE_NCCL_TIMED)
		ret.merged_cnt = records[0].detail;
	if (ret.kind == SLICE_NETWORK && followed_by(records, cnt, whole, ARRAY_SIZE(whole)))
		read_waits(&records[3], &records[4], &ret);
	return ret;
}

int timeline_collect_nccl(struct rank_view *view)
{
	vec_foreach(lane, &view->log->lanes) {
		const record_vec *records = &lane->records;

		for (size_t i = 0; i < records->cnt; i++) {
			const struct ring_record *at = &records->data[i];

			if ((at->kind == FLIGHT_NETWORK || at->kind == FLIGHT_COLLECTIVE_DONE ||
			     flight_is_nccl(at, records->cnt - i)) &&
			    vec_push(&view->nccl, timeline_read_nccl(at, records->cnt - i)) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

int timeline_nccl(const struct rank_view *view, enum slice_kind kind, slice_vec *ret)
{
	for (size_t i = 0; i < view->nccl.cnt; i++) {
		const struct nccl_slice *at = &view->nccl.data[i];
		struct slice slice = { .start_ns = at->comm.start_ns,
				       .end_ns = at->comm.start_ns + at->comm.dur_ns,
				       .number = (int64_t)i,
				       .cpu_ns = -1,
				       .what = at->comm.name,
				       .kind = (uint8_t)kind };

		if (at->kind == kind && vec_push(ret, slice) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- writing --- */

static void put_how(struct place *to, const struct nccl_slice *nccl, bool *first)
{
	const char *const *strings = to->view->log->strings.data;
	struct writer *w = to->writer;

	if (nccl->datatype != 0)
		writer_string(w, first, "datatype", strings[nccl->datatype]);
	if (nccl->algorithm != 0)
		writer_string(w, first, "algorithm", strings[nccl->algorithm]);
	if (nccl->protocol != 0)
		writer_string(w, first, "protocol", strings[nccl->protocol]);
	if (nccl->channels > 0)
		writer_number(w, first, "channels", nccl->channels);
	if (nccl->peer >= 0)
		writer_number(w, first, "peer", nccl->peer);
	if (nccl->call_cnt > 0)
		writer_number(w, first, "sends_and_receives", nccl->call_cnt);
	if (nccl->merged_cnt > 1)
		writer_number(w, first, "ran_as_one", nccl->merged_cnt);
	if (nccl->captured)
		writer_string(w, first, "queued", "into a graph");
}

static void put_network(struct place *to, const struct nccl_slice *nccl, bool *first)
{
	static const char *const waits[NCCL_WAIT_CNT] = {
		[NCCL_WAIT_SEND_GPU] = "send_waits_for_gpu_us",
		[NCCL_WAIT_SEND_PEER] = "send_waits_for_peer_us",
		[NCCL_WAIT_SEND_WIRE] = "send_on_the_wire_us",
		[NCCL_WAIT_RECV_WIRE] = "recv_waits_for_peer_or_wire_us",
		[NCCL_WAIT_RECV_FLUSH] = "recv_flush_us",
		[NCCL_WAIT_RECV_GPU] = "recv_waits_for_gpu_us",
	};

	writer_number(to->writer, first, "network_operations", nccl->op_cnt);
	for (size_t i = 0; i < NCCL_WAIT_CNT && nccl->has_waits; i++)
		writer_number(to->writer, first, waits[i], nccl->waits_us[i]);
}

void timeline_put_nccl(struct place *to, const struct nccl_slice *nccl, bool *first)
{
	if (nccl->kind == SLICE_NETWORK)
		put_network(to, nccl, first);
	else
		put_how(to, nccl, first);
}
