/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load_hosts.h"

#include "model/rankset.h"
#include "read/reader.h"

#include <errno.h>
#include <string.h>

static int host_cmp(const void *a, const void *b)
{
	const struct rank_host *x = a, *y = b;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
				  : strcmp(x->host, y->host);
}

/* Sorts by rank and removes duplicates. A rank on several hosts is removed: its host is unknown. */
static void sort_hosts(struct load_hosts *hosts)
{
	size_t cnt = hosts->list.cnt, kept = 0, next;

	if (cnt > 0)
		qsort(hosts->list.data, cnt, sizeof(*hosts->list.data), host_cmp);
	for (size_t i = 0; i < cnt; i = next) {
		const struct rank_host first = hosts->list.data[i];

		for (next = i + 1; next < cnt && hosts->list.data[next].rank == first.rank;)
			next++;
		if (strcmp(first.host, hosts->list.data[next - 1].host) == 0)
			hosts->list.data[kept++] = first;
	}
	hosts->list.cnt = kept;
}

static int add_host(struct load_hosts *hosts, int rank, const char *host)
{
	char *copy = rank >= 0 ? strdup(host) : NULL;

	if (rank < 0)
		return 0;
	if (copy == NULL || vec_push(&hosts->names, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return vec_push(&hosts->list, (struct rank_host){ rank, copy });
}

static int find_host(const char *path, struct load_hosts *hosts)
{
	struct trace trace;
	int error;

	/* load_one() reports what is wrong with a trace. */
	if (reader_read_head(path, &trace) < 0)
		return 0;
	error = trace.meta.host != NULL ? add_host(hosts, trace.meta.rank, trace.meta.host) : 0;
	trace_done(&trace);
	return error;
}

int load_hosts_of_traces(const path_list *paths, struct load_hosts *ret)
{
	int error = 0;

	*ret = (struct load_hosts){ 0 };
	for (size_t i = 0; i < paths->cnt && paths->cnt > 1 && error == 0; i++)
		error = find_host(paths->data[i], ret);
	sort_hosts(ret);
	return error;
}

int load_hosts_of_sidecar(const struct sidecar *sidecar, struct load_hosts *ret)
{
	int error = 0;

	*ret = (struct load_hosts){ 0 };
	for (size_t i = 0; i < sidecar->ranks.cnt && error == 0; i++)
		error = add_host(ret, sidecar->ranks.data[i].rank, sidecar->header.host);
	sort_hosts(ret);
	ret->complete = ret->list.cnt > 0 && ret->list.cnt == sidecar->ranks.data[0].host_cnt;
	return error;
}

int load_hosts_of_set(const char *text, struct load_hosts *ret, struct err *err)
{
	rankset_vec ranks = { 0 };
	int error = rankset_parse(text, &ranks, err);

	*ret = (struct load_hosts){ .complete = true };
	for (size_t i = 0; i < ranks.cnt && error == 0; i++)
		error = vec_push(&ret->list, (struct rank_host){ ranks.data[i], "" });
	vec_done(&ranks);
	return error;
}

struct rank_hosts load_hosts_view(const struct load_hosts *hosts, const char *here)
{
	return (struct rank_hosts){ hosts->list.data, hosts->list.cnt,
				    hosts->list.cnt > 0 ? here : NULL, hosts->complete };
}

void load_hosts_done(struct load_hosts *hosts)
{
	vec_foreach(name, &hosts->names)
		free(*name);
	vec_done(&hosts->names);
	vec_done(&hosts->list);
	*hosts = (struct load_hosts){ 0 };
}
