/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/threads.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void thread_sampler_open(struct thread_sampler *sampler, const char *root, uint32_t pid)
{
	*sampler = (struct thread_sampler){ .root = root, .pid = pid };
}

void thread_sampler_close(struct thread_sampler *sampler)
{
	vec_foreach(thread, &sampler->threads) {
		if (thread->fd >= 0)
			(void)close(thread->fd);
	}
	vec_done(&sampler->threads);
}

static bool is_known(const struct thread_sampler *sampler, uint32_t tid)
{
	vec_foreach(thread, &sampler->threads) {
		if (thread->tid == tid && thread->fd >= 0)
			return true;
	}
	return false;
}

/* A thread that ends before its files are opened is no error. */
static int add_thread(struct thread_sampler *sampler, uint32_t tid, struct sidecar *out)
{
	struct sidecar_thread named = { .tid = tid };
	struct sampled_thread thread = { .tid = tid };
	char path[4096], comm[64];
	int ret;

	(void)snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/task/%" PRIu32 "/schedstat",
		       sampler->root, sampler->pid, tid);
	thread.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (thread.fd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/task/%" PRIu32 "/comm", sampler->pid, tid);
	if (procfs_read(sampler->root, path, comm, sizeof(comm)) >= 0)
		(void)snprintf(named.name, sizeof(named.name), "%.*s", (int)strcspn(comm, "\n"),
			       comm);
	ret = vec_push(&sampler->threads, thread);
	if (ret < 0)
		(void)close(thread.fd);
	else
		ret = vec_push(&out->threads, named);
	return ret;
}

static int find_threads(struct thread_sampler *sampler, struct sidecar *out)
{
	uint32_t tids[THREADS_MAX];
	int cnt = procfs_list(sampler->root, sampler->pid, tids, THREADS_MAX), ret = 0;

	if (cnt < 0)
		return cnt == -ENOENT ? -ESRCH : cnt;
	for (int i = 0; i < cnt && ret == 0; i++) {
		if (is_known(sampler, tids[i]))
			continue;
		if (sampler->threads.cnt >= THREADS_MAX)
			sampler->dropped++;
		else
			ret = add_thread(sampler, tids[i], out);
	}
	return ret;
}

/* False when the thread has ended; its last counters stay valid. */
static bool read_counters(struct sampled_thread *thread, struct sidecar_sample *ret)
{
	char text[96];
	ssize_t len = pread(thread->fd, text, sizeof(text) - 1, 0);

	if (len <= 0) {
		(void)close(thread->fd);
		thread->fd = -1;
		return false;
	}
	text[len] = '\0';
	return procfs_parse_schedstat(text, &ret->cpu_ns, &ret->run_delay_ns) == 0;
}

static int record(struct thread_sampler *sampler, struct sidecar *out, struct sidecar_sample sample)
{
	if (out->samples.cnt >= THREADS_SAMPLES_MAX) {
		sampler->dropped++;
		return 0;
	}
	return vec_push(&out->samples, sample);
}

static int look_at(struct thread_sampler *sampler, struct sampled_thread *thread, int64_t now_ns,
		   struct sidecar *out)
{
	struct sidecar_sample sample = { .time_ns = now_ns, .tid = thread->tid }, still;
	int ret = 0;

	if (thread->fd < 0 || !read_counters(thread, &sample))
		return 0;
	if (thread->at.time_ns != 0 && sample.cpu_ns == thread->at.cpu_ns &&
	    sample.run_delay_ns == thread->at.run_delay_ns) {
		thread->seen_ns = now_ns;
		return 0;
	}
	still = thread->at;
	still.time_ns = thread->seen_ns;
	if (thread->at.time_ns != 0 && thread->seen_ns > thread->at.time_ns)
		ret = record(sampler, out, still);
	if (ret == 0)
		ret = record(sampler, out, sample);
	thread->at = sample;
	thread->seen_ns = now_ns;
	return ret;
}

int thread_sampler_look(struct thread_sampler *sampler, int64_t now_ns, uint32_t cpu_cnt,
			struct sidecar *out)
{
	struct sidecar_process process = { .time_ns = now_ns, .cpu_cnt = cpu_cnt };
	bool alive = false;
	int ret = 0;

	if (sampler->found_ns == 0 || now_ns - sampler->found_ns >= THREADS_FIND_NS) {
		ret = find_threads(sampler, out);
		sampler->found_ns = now_ns;
	}
	for (size_t i = 0; i < sampler->threads.cnt && ret == 0; i++) {
		struct sampled_thread *thread = &sampler->threads.data[i];

		ret = look_at(sampler, thread, now_ns, out);
		process.cpu_ns += thread->at.cpu_ns;
		alive |= thread->fd >= 0;
	}
	if (ret == 0 && !alive)
		ret = -ESRCH;
	if (ret == 0)
		ret = vec_push(&out->process_samples, process);
	return ret;
}
