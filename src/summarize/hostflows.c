/* SPDX-License-Identifier: Apache-2.0 */
/* To whom a worker sent, and how fast: from the records of its sidecar. */
#include "summarize/pass.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define LONGEST_NS ((uint64_t)INT64_MAX / 4) /* what a fingerprint holds */

static int larger_first(const void *a, const void *b)
{
	const struct sidecar_flow *const *x = a, *const *y = b;

	if ((*x)->tx_bytes != (*y)->tx_bytes)
		return (*x)->tx_bytes < (*y)->tx_bytes ? 1 : -1;
	return memcmp(*x, *y, sizeof(**x));
}

static const char *address_text(struct fingerprint *fp, const unsigned char address[16])
{
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr in6;

	memcpy(&in6, address, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6))
		(void)inet_ntop(AF_INET, address + 12, text, sizeof(text));
	else
		(void)inet_ntop(AF_INET6, &in6, text, sizeof(text));
	return arena_strdup(&fp->arena, text);
}

static int copy_flow(const struct sidecar_flow *flow, struct fingerprint *fp, struct fp_flow *ret)
{
	*ret = (struct fp_flow){ .local = address_text(fp, flow->local),
				 .remote = address_text(fp, flow->remote),
				 .tx_bytes = flow->tx_bytes,
				 .retransmitted_bytes = flow->retransmitted_bytes,
				 .busy_ns = (int64_t)MIN(flow->busy_ns, LONGEST_NS),
				 .limited_ns = (int64_t)MIN(flow->limited_ns, flow->busy_ns),
				 .rtt_ns = (int64_t)flow->rtt_us * NSEC_PER_USEC,
				 .socket_cnt = flow->socket_cnt };
	ret->limited_ns = MIN(ret->limited_ns, ret->busy_ns);
	ret->card = arena_strndup(&fp->arena, flow->card, strnlen(flow->card, sizeof(flow->card)));
	return ret->local != NULL && ret->remote != NULL && ret->card != NULL ? 0 : -ENOMEM;
}

int hostflows_add(const struct sidecar_info *info, struct fingerprint *fp)
{
	_cleanup_free_ const struct sidecar_flow **sorted =
		calloc(info->flow_cnt + 1, sizeof(*sorted));
	static const unsigned char nowhere[16];
	size_t cnt = 0;

	fp->flows.list = arena_calloc(&fp->arena, MIN(info->flow_cnt, FP_FLOWS_MAX) + 1,
				      sizeof(*fp->flows.list));
	if (sorted == NULL || fp->flows.list == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < info->flow_cnt; i++) {
		if (memcmp(info->flows[i].remote, nowhere, sizeof(nowhere)) != 0)
			sorted[cnt++] = &info->flows[i];
		else
			fp->flows.rest_bytes += info->flows[i].tx_bytes;
	}
	qsort(sorted, cnt, sizeof(*sorted), larger_first);
	for (size_t i = 0; i < cnt; i++) {
		if (fp->flows.cnt >= FP_FLOWS_MAX)
			fp->flows.rest_bytes += sorted[i]->tx_bytes;
		else if (copy_flow(sorted[i], fp, &fp->flows.list[fp->flows.cnt++]) < 0)
			return -ENOMEM;
	}
	return 0;
}
