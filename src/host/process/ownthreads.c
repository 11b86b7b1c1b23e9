/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/ownthreads.h"

#include "host/process/procfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIST_MAX 1024
#define FIND_FIRST_NS (1 * NSEC_PER_SEC)
#define FIND_LAST_NS (60 * NSEC_PER_SEC)

static const struct {
	const char *prefix; /* of the thread's name; the first that fits */
	enum own_thread thread;
} names[] = {
	{ "pt-sampler", OWN_THREAD_SAMPLER },	{ "pt-gpucalls", OWN_THREAD_GPU_CALLS },
	{ "pt-gpuwatch", OWN_THREAD_GPUWATCH }, { "pt-gpu", OWN_THREAD_GPU_RECORDS },
	{ "MHD-", OWN_THREAD_METRICS }, /* as libmicrohttpd names its threads */
	{ "pt-page", OWN_THREAD_METRICS },
};

void ownthreads_open(struct ownthreads *own, const char *root, uint32_t pid, enum own_thread usual)
{
	*own = (struct ownthreads){ .root = root, .pid = pid, .usual = usual };
}

static enum own_thread thread_of(const struct ownthreads *own, uint32_t tid)
{
	char path[64], comm[64];

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/comm", own->pid, tid);
	if (procfs_read(own->root, path, comm, sizeof(comm)) < 0)
		return OWN_THREAD_CNT;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(comm, names[i].prefix, strlen(names[i].prefix)) == 0)
			return names[i].thread;
	}
	return own->usual;
}

static bool is_known(const struct ownthreads *own, uint32_t tid)
{
	for (size_t i = 0; i < own->cnt; i++) {
		if (own->threads[i].tid == tid)
			return true;
	}
	return false;
}

/* A thread is named after it has begun: one that is not known as an own one is looked at again. */
static void find_threads(struct ownthreads *own)
{
	uint32_t tids[LIST_MAX];
	int cnt = procfs_list(own->root, own->pid, tids, LIST_MAX);

	for (int i = 0; i < cnt && own->cnt < OWNTHREADS_MAX; i++) {
		enum own_thread thread;

		if (is_known(own, tids[i]))
			continue;
		thread = thread_of(own, tids[i]);
		if (thread == OWN_THREAD_CNT)
			continue;
		own->threads[own->cnt].tid = tids[i];
		own->threads[own->cnt].thread = thread;
		own->threads[own->cnt++].cpu_ns = 0;
	}
}

/* Kernels without schedstat count in ticks. Returns 0 or -errno. */
static int read_cpu(const struct ownthreads *own, uint32_t tid, int64_t *ret_ns)
{
	char path[64], text[96];
	uint64_t cpu_ns, delay_ns;
	struct procfs_stat stat;
	int ret;

	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/schedstat", own->pid, tid);
	ret = procfs_read(own->root, path, text, sizeof(text));
	if (ret >= 0 && procfs_parse_schedstat(text, &cpu_ns, &delay_ns) == 0 && cpu_ns > 0) {
		*ret_ns = (int64_t)MIN(cpu_ns, (uint64_t)INT64_MAX);
		return 0;
	}
	ret = procfs_read_stat(own->root, own->pid, tid, &stat);
	if (ret < 0)
		return ret;
	*ret_ns = (int64_t)stat.ticks * PROCFS_TICK_NS;
	return 0;
}

void ownthreads_look(struct ownthreads *own, int64_t now_ns)
{
	if (now_ns >= own->find_ns) {
		find_threads(own);
		own->wait_ns = MIN(MAX(2 * own->wait_ns, FIND_FIRST_NS), FIND_LAST_NS);
		own->find_ns = now_ns + own->wait_ns;
	}
	for (size_t i = 0; i < own->cnt; i++) {
		int64_t cpu_ns;

		/* The number of a thread that ended may belong to a younger one. */
		if (read_cpu(own, own->threads[i].tid, &cpu_ns) == 0 &&
		    cpu_ns > own->threads[i].cpu_ns)
			own->threads[i].cpu_ns = cpu_ns;
	}
}

void ownthreads_add(const struct ownthreads *own, int64_t sums[static OWN_THREAD_CNT])
{
	for (size_t i = 0; i < own->cnt; i++)
		sums[own->threads[i].thread] += own->threads[i].cpu_ns;
}
