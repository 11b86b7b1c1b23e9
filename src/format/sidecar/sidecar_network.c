/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the track of the host's network to a trace. */
#include "format/sidecar/sidecar_apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NIC_CNT 64 /* cards examined; a file may contain more */
/* A card with less than 1/20 of the busiest one's traffic is not in use. */
#define NIC_CARRIES_DIVISOR 20
/* From half of the TCP bytes on the cards are the limiting resource. */
#define NIC_SHARE_DIVISOR 2
#define BACKGROUND_FRAC 0.001 /* share of a link's capacity: background traffic, not collectives */
#define LATE 1.5	      /* times a link's capacity: part of the bytes came earlier */
#define SOCKET_FLOOR_BYTES 12.5e6 /* per second: the reference rate is at least this */

/* Bytes that the network cards carried in the window, and which cards are in use. */
struct nic_use {
	uint64_t first[NIC_CNT], last[NIC_CNT];
	bool seen[NIC_CNT], carries[NIC_CNT];
	uint64_t tx_bytes;    /* of the cards in use */
	double bytes_per_sec; /* sum of their links; 0: unknown for the busiest */
	double span_sec;
};

static double span_sec(int64_t first_ns, int64_t last_ns)
{
	return ((double)last_ns - (double)first_ns) / (double)NSEC_PER_SEC;
}

static void measure_nics(const struct sidecar *sidecar, struct nic_use *ret)
{
	size_t nic_cnt = MIN(sidecar->nics.cnt, (size_t)NIC_CNT), busiest = 0;

	*ret = (struct nic_use){ 0 };
	vec_foreach(sample, &sidecar->nic_samples) {
		if (sample->nic >= nic_cnt)
			continue;
		if (!ret->seen[sample->nic])
			ret->first[sample->nic] = sample->tx_bytes;
		ret->seen[sample->nic] = true;
		ret->last[sample->nic] = sample->tx_bytes;
		ret->span_sec = span_sec(sidecar->nic_samples.data[0].time_ns, sample->time_ns);
	}
	for (size_t i = 0; i < nic_cnt; i++) {
		if (sidecar_grown(ret->first[i], ret->last[i]) >
		    sidecar_grown(ret->first[busiest], ret->last[busiest]))
			busiest = i;
	}
	for (size_t i = 0; i < nic_cnt && sidecar->nics.data[busiest].bytes_per_sec > 0; i++) {
		double tx_bytes = sidecar_grown(ret->first[i], ret->last[i]);

		if (!(sidecar->nics.data[i].bytes_per_sec > 0) || tx_bytes <= 0 ||
		    tx_bytes < sidecar_grown(ret->first[busiest], ret->last[busiest]) /
				       NIC_CARRIES_DIVISOR)
			continue;
		ret->carries[i] = true;
		ret->tx_bytes += ret->last[i] - ret->first[i];
		ret->bytes_per_sec += sidecar->nics.data[i].bytes_per_sec;
	}
}

static bool nic_is_resource(const struct sidecar *sidecar, const struct nic_use *use)
{
	uint64_t tcp_bytes =
		sidecar->networks.cnt > 0 ? sidecar->networks.data[0].host_tx_bytes : 0;

	return use->bytes_per_sec > 0 && use->span_sec > 0 &&
	       use->tx_bytes >= tcp_bytes / NIC_SHARE_DIVISOR &&
	       (double)use->tx_bytes >= BACKGROUND_FRAC * use->bytes_per_sec * use->span_sec;
}

static bool socket_is_resource(const struct sidecar *sidecar)
{
	size_t cnt = sidecar->socket_samples.cnt;
	double seconds;

	if (cnt < 2 || sidecar->networks.cnt == 0)
		return false;
	seconds = span_sec(sidecar->socket_samples.data[0].time_ns,
			   sidecar->socket_samples.data[cnt - 1].time_ns);
	return (double)sidecar->networks.data[0].host_tx_bytes >=
	       BACKGROUND_FRAC * SOCKET_FLOOR_BYTES * seconds;
}

/* One more sample of a traffic counter: tx_bytes more than at the previous sample. */
static void push_traffic(const struct sidecar_header *header, struct track *track,
			 int64_t before_ns, int64_t time_ns, double tx_bytes, double bytes_per_sec,
			 double *carry)
{
	double whole_bytes = span_sec(before_ns, time_ns) * bytes_per_sec;
	int64_t wall_ns;

	if (!(whole_bytes > 0) || !sidecar_to_wall(header, time_ns, &wall_ns) ||
	    (track->cnt > 0 && track->samples[track->cnt - 1].time_ns > wall_ns))
		return;
	sidecar_push_sample(track, wall_ns, tx_bytes, whole_bytes, carry);
}

/* One sample of all cards at the same time. */
struct nic_look {
	int64_t time_ns;
	double span_sec;  /* since the previous one */
	double tx_bytes;  /* of one card, since then */
	double sum_bytes; /* of all cards in use */
};

/* Whether a sample has another time than the previous one. */
static bool is_new_look(const struct sidecar *sidecar, size_t idx)
{
	const struct sidecar_nic_sample *samples = sidecar->nic_samples.data;

	return idx > 0 && samples[idx].time_ns != samples[idx - 1].time_ns;
}

/* Returns the number of distinct times. */
static size_t find_looks(const struct sidecar *sidecar, struct nic_look *looks)
{
	const struct sidecar_nic_sample *samples = sidecar->nic_samples.data;
	size_t cnt = 1;

	looks[0].time_ns = samples[0].time_ns;
	for (size_t i = 1; i < sidecar->nic_samples.cnt; i++) {
		double span = span_sec(samples[i - 1].time_ns, samples[i].time_ns);

		if (is_new_look(sidecar, i))
			looks[cnt++] = (struct nic_look){ .time_ns = samples[i].time_ns,
							  .span_sec = span > 0 ? span : 0 };
	}
	return cnt;
}

static void read_card(const struct sidecar *sidecar, size_t card, uint64_t first_bytes,
		      struct nic_look *looks, size_t cnt)
{
	struct nic_look *look = looks;
	uint64_t at = first_bytes;

	for (size_t i = 0; i < cnt; i++)
		looks[i].tx_bytes = 0;
	for (size_t i = 0; i < sidecar->nic_samples.cnt; i++) {
		const struct sidecar_nic_sample *s = &sidecar->nic_samples.data[i];

		look += is_new_look(sidecar, i);
		if (s->nic != card)
			continue;
		look->tx_bytes += sidecar_grown(at, s->tx_bytes);
		at = s->tx_bytes;
	}
}

/*
 * The period, in samples, at which a driver updates a card's counter: the fewest samples between
 * two changes. 1: at each. Distant changes may also be short bursts, so the result is 1 unless one
 * change exceeds what the link can have carried since the previous sample.
 */
static size_t renewal_looks(const struct nic_look *looks, size_t cnt, double bytes_per_sec)
{
	size_t last = 0, fewest = cnt;
	bool came_before = false;

	for (size_t i = 1; i < cnt; i++) {
		if (!(looks[i].tx_bytes > 0))
			continue;
		came_before |= looks[i].tx_bytes > LATE * looks[i].span_sec * bytes_per_sec;
		if (last > 0)
			fewest = MIN(fewest, i - last);
		last = i;
	}
	return came_before && fewest < cnt ? fewest : 1;
}

/* Distributes the bytes of an update evenly over the samples since the previous update. */
static void spread_back(struct nic_look *looks, size_t cnt, size_t renewal)
{
	size_t behind_last = 1;

	for (size_t i = 1; i < cnt && renewal > 1; i++) {
		/* An update falls between two samples: it may include one more. */
		size_t begin = MAX(behind_last, i > renewal ? i - renewal : 1);
		double bytes = looks[i].tx_bytes, span = 0;

		if (!(bytes > 0))
			continue;
		for (size_t k = begin; k <= i; k++)
			span += looks[k].span_sec;
		for (size_t k = begin; k <= i && span > 0; k++)
			looks[k].tx_bytes = bytes * looks[k].span_sec / span;
		behind_last = i + 1;
	}
}

static int apply_nics(const struct sidecar *sidecar, const struct nic_use *use, struct trace *trace)
{
	_cleanup_free_ struct nic_look *looks = calloc(sidecar->nic_samples.cnt, sizeof(*looks));
	struct track *track;
	double carry = 0;
	size_t cnt;

	if (looks == NULL)
		return -ENOMEM;
	cnt = find_looks(sidecar, looks);
	track = sidecar_add_track(trace, RESOURCE_NIC_TX, -1, cnt);
	if (track == NULL)
		return -ENOMEM;
	for (size_t card = 0; card < NIC_CNT; card++) {
		if (!use->carries[card])
			continue;
		read_card(sidecar, card, use->first[card], looks, cnt);
		spread_back(looks, cnt,
			    renewal_looks(looks, cnt, sidecar->nics.data[card].bytes_per_sec));
		for (size_t i = 0; i < cnt; i++)
			looks[i].sum_bytes += looks[i].tx_bytes;
	}
	for (size_t i = 1; i < cnt; i++)
		push_traffic(&sidecar->header, track, looks[i - 1].time_ns, looks[i].time_ns,
			     looks[i].sum_bytes, use->bytes_per_sec, &carry);
	return 0;
}

static int apply_sockets(const struct sidecar *sidecar, struct trace *trace)
{
	double peak = sidecar->networks.data[0].peak_bytes_per_sec, carry = 0;
	struct track *track =
		sidecar_add_track(trace, RESOURCE_SOCKET_TX, -1, sidecar->socket_samples.cnt);

	if (track == NULL)
		return -ENOMEM;
	if (!(peak > SOCKET_FLOOR_BYTES))
		peak = SOCKET_FLOOR_BYTES;
	for (size_t i = 1; i < sidecar->socket_samples.cnt; i++) {
		const struct sidecar_socket *b = &sidecar->socket_samples.data[i], *a = b - 1;

		push_traffic(&sidecar->header, track, a->time_ns, b->time_ns,
			     sidecar_grown(a->tx_bytes, b->tx_bytes), peak, &carry);
	}
	return 0;
}

int sidecar_apply_network(const struct sidecar *sidecar, struct trace *trace)
{
	struct nic_use use;

	measure_nics(sidecar, &use);
	if (nic_is_resource(sidecar, &use))
		return apply_nics(sidecar, &use, trace);
	return socket_is_resource(sidecar) ? apply_sockets(sidecar, trace) : 0;
}
