/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker dump FILE.sidecar`: what the daemon sampled of a worker during a window. */
#include "base/str.h"
#include "cmd/cmd.h"
#include "format/sidecar/sidecar.h"
#include "model/gpumetric.h"

#include <jansson.h>
#include <stdio.h>

static void print_thieves(const struct sidecar_info *info)
{
	char text[512];

	for (size_t i = 0; i < info->thief_cnt; i++) {
		sidecar_thief_text(&info->thieves[i], text, sizeof(text));
		printf("neighbor: %s\n", text);
	}
}

static void print_awaited(const struct sidecar_info *info)
{
	char text[SIDECAR_AWAITED_TEXT];

	if (info->awaited.sample_cnt == 0)
		return;
	sidecar_awaited_text(&info->awaited, text, sizeof(text));
	printf("waits for %s: %s (%u sample%s)\n", awaited_name((enum awaited_by)info->awaited.by),
	       text, info->awaited.sample_cnt, plural(info->awaited.sample_cnt));
}

#define MEGA 1e6

static void print_network(const struct sidecar *s, const struct sidecar_info *info)
{
	double seconds = (double)info->window_ns / (double)NSEC_PER_SEC;

	vec_foreach(network, &s->networks) {
		if (network->why[0] != '\0')
			printf("TCP: not sampled: %s\n", network->why);
		else
			printf("TCP: host's workers sent %.3f MB, highest rate of one %.1f MB/s\n",
			       (double)network->host_tx_bytes / MEGA,
			       network->peak_bytes_per_sec / MEGA);
	}
	if (info->has_sockets)
		printf("TCP of the worker: %.3f MB sent, %.3f MB received, %.1f samples a second\n",
		       (double)info->tx_bytes / MEGA, (double)info->rx_bytes / MEGA,
		       seconds > 0 ? (double)s->socket_samples.cnt / seconds : 0);
	vec_foreach(nic, &s->nics) {
		if (nic->bytes_per_sec > 0)
			printf("network card: %s, %.0f Mbit/s\n", nic->name,
			       nic->bytes_per_sec * 8 / MEGA);
		else
			printf("network card: %s, speed unknown\n", nic->name);
	}
}

static const char *nic_counter_help(uint32_t counter)
{
	static const char *const help[] = {
#define X(id, file, folder, what) what,
		SIDECAR_NIC_COUNTER_LIST(X)
#undef X
	};

	return counter < ARRAY_SIZE(help) ? help[counter] : "of an unknown counter";
}

static const char *nic_counter_name(uint32_t counter)
{
	static const char *const names[] = {
#define X(id, file, folder, what) file,
		SIDECAR_NIC_COUNTER_LIST(X)
#undef X
	};

	return counter < ARRAY_SIZE(names) ? names[counter] : "unknown";
}

static void print_nic_counters(const struct sidecar *s)
{
	vec_foreach(count, &s->nic_counters) {
		if (count->nic < s->nics.cnt)
			printf("network card: %s, %llu %s (%s)\n", s->nics.data[count->nic].name,
			       (unsigned long long)count->grown, nic_counter_help(count->counter),
			       nic_counter_name(count->counter));
	}
}

static void print_pressure(const struct sidecar_info *info)
{
	const struct {
		const char *name;
		double frac;
	} kinds[] = { { "CPU", info->psi_cpu_frac },
		      { "I/O", info->psi_io_frac },
		      { "memory", info->psi_memory_frac } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].frac >= 0)
			printf("%s pressure of the host: %.1f %% (some)\n", kinds[i].name,
			       100 * kinds[i].frac);
	}
}

/* The increase of a counter, or the mean of a gauge. */
static double gpu_value(uint32_t metric, const struct sidecar_gpu_sum *sum)
{
	return gpu_metric_is_counter(metric) ? sum->last - sum->first : sum->mean;
}

static void print_gpu(const struct sidecar *s, uint32_t idx)
{
	const struct sidecar_gpu *gpu = &s->gpus.data[idx];

	if (gpu->index == SIDECAR_GPU_NONE) {
		printf("GPU: not sampled: %s\n", gpu->why);
		return;
	}
	printf("GPU %u: %s%s%s%s%s\n", gpu->index, gpu->name,
	       (gpu->flags & SIDECAR_GPU_BY_RANK) != 0 ? ", taken by local rank" : "",
	       (gpu->flags & SIDECAR_GPU_LOST) != 0 ? ", lost" : "",
	       gpu->why[0] != '\0' ? "; not all is sampled: " : "", gpu->why);
	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		struct sidecar_gpu_sum sum;

		sidecar_sum_gpu(s, idx, metric, &sum);
		if (sum.cnt > 0)
			printf("  %-18s %14.6g %s (%llu sample%s)\n", gpu_metric_name(metric),
			       gpu_value(metric, &sum), gpu_metric_unit(metric),
			       (unsigned long long)sum.cnt, plural(sum.cnt));
	}
}

static void print_text(const struct sidecar *s, const struct sidecar_info *info)
{
	printf("sidecar of rank %d, pid %u, training thread %u, host %s\n", info->rank, info->pid,
	       info->tid, s->header.host);
	printf("window %.3f ms, %zu thread%s, %zu sample%s, %zu iteration bound%s\n",
	       (double)info->window_ns / 1e6, s->threads.cnt, plural(s->threads.cnt),
	       s->samples.cnt, plural(s->samples.cnt), s->iterations.cnt,
	       plural(s->iterations.cnt));
	if (info->has_thread)
		printf("training thread: %.1f %% on a CPU, %.1f %% runnable without one\n",
		       100 * info->cpu_frac, 100 * info->run_delay_frac);
	else
		printf("training thread: not sampled\n");
	printf("garbage collections: %llu, %.3f ms\n", (unsigned long long)info->gc_cnt,
	       (double)info->gc_ns / 1e6);
	print_thieves(info);
	print_awaited(info);
	print_network(s, info);
	print_nic_counters(s);
	print_pressure(info);
	for (uint32_t i = 0; i < MIN(s->gpus.cnt, (size_t)SIDECAR_GPUS_MAX); i++)
		print_gpu(s, i);
}

static json_t *thieves_json(const struct sidecar_info *info)
{
	json_t *list = json_array();
	char text[512];

	for (size_t i = 0; i < info->thief_cnt; i++) {
		const struct sidecar_thief *t = &info->thieves[i];

		sidecar_thief_text(t, text, sizeof(text));
		(void)json_array_append_new(
			list, json_pack("{s:I, s:I, s:f, s:f, s:s}", "pid", (json_int_t)t->pid,
					"processes", (json_int_t)t->process_cnt, "cpu", t->cpu_frac,
					"overlap", t->overlap_frac, "text", text));
	}
	return list;
}

static json_t *nic_counters_json(const struct sidecar *s, uint32_t nic)
{
	json_t *counters = json_object();

	vec_foreach(count, &s->nic_counters) {
		if (count->nic == nic && count->counter < SIDECAR_NIC_COUNTER_CNT)
			(void)json_object_set_new(counters, nic_counter_name(count->counter),
						  json_integer((json_int_t)count->grown));
	}
	return counters;
}

static json_t *network_json(const struct sidecar *s, const struct sidecar_info *info)
{
	const struct sidecar_network *network = s->networks.cnt > 0 ? s->networks.data : NULL;
	json_t *cards = json_array();

	for (uint32_t i = 0; i < s->nics.cnt; i++)
		(void)json_array_append_new(cards, json_pack("{s:s, s:f, s:o}", "name",
							     s->nics.data[i].name, "bytes_per_sec",
							     s->nics.data[i].bytes_per_sec,
							     "counters", nic_counters_json(s, i)));
	return json_pack("{s:I, s:I, s:I, s:I, s:f, s:s, s:o}", "samples",
			 (json_int_t)s->socket_samples.cnt, "tx_bytes", (json_int_t)info->tx_bytes,
			 "rx_bytes", (json_int_t)info->rx_bytes, "host_tx_bytes",
			 (json_int_t)(network != NULL ? network->host_tx_bytes : 0),
			 "peak_bytes_per_sec", network != NULL ? network->peak_bytes_per_sec : 0.0,
			 "why", network != NULL ? network->why : "not sampled", "cards", cards);
}

static json_t *gpu_json(const struct sidecar *s, uint32_t idx)
{
	const struct sidecar_gpu *gpu = &s->gpus.data[idx];
	json_t *metrics = json_object();

	for (uint32_t metric = 0; metric < GPU_METRIC_CNT; metric++) {
		struct sidecar_gpu_sum sum;

		sidecar_sum_gpu(s, idx, metric, &sum);
		if (sum.cnt > 0)
			(void)json_object_set_new(metrics, gpu_metric_name(metric),
						  json_pack("{s:s, s:I, s:f, s:f, s:f}", "unit",
							    gpu_metric_unit(metric), "samples",
							    (json_int_t)sum.cnt, "first", sum.first,
							    "last", sum.last, "mean", sum.mean));
	}
	return json_pack("{s:o, s:s, s:s, s:b, s:b, s:o}", "index",
			 gpu->index != SIDECAR_GPU_NONE ? json_integer(gpu->index) : json_null(),
			 "name", gpu->name, "why", gpu->why, "by_rank",
			 (int)((gpu->flags & SIDECAR_GPU_BY_RANK) != 0), "lost",
			 (int)((gpu->flags & SIDECAR_GPU_LOST) != 0), "metrics", metrics);
}

static json_t *gpus_json(const struct sidecar *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < MIN(s->gpus.cnt, (size_t)SIDECAR_GPUS_MAX); i++)
		(void)json_array_append_new(list, gpu_json(s, i));
	return list;
}

static json_t *frac_json(double frac)
{
	return frac >= 0 ? json_real(frac) : json_null();
}

static json_t *pressure_json(const struct sidecar_info *info)
{
	return json_pack("{s:o, s:o, s:o}", "cpu", frac_json(info->psi_cpu_frac), "io",
			 frac_json(info->psi_io_frac), "memory", frac_json(info->psi_memory_frac));
}

static int print_json(const struct sidecar *s, const struct sidecar_info *info)
{
	json_t *root = json_pack(
		"{s:s, s:i, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}",
		"schema", "perftracker.sidecar.v1", "rank", info->rank, "pid",
		(json_int_t)info->pid, "training_tid", (json_int_t)info->tid, "host",
		s->header.host, "window_ns", (json_int_t)info->window_ns, "threads",
		(json_int_t)s->threads.cnt, "samples", (json_int_t)s->samples.cnt, "iterations",
		(json_int_t)s->iterations.cnt, "cpu",
		info->has_thread ? json_real(info->cpu_frac) : json_null(), "run_delay",
		info->has_thread ? json_real(info->run_delay_frac) : json_null(), "collections",
		(json_int_t)info->gc_cnt, "collections_ns", (json_int_t)info->gc_ns, "neighbors",
		thieves_json(info), "network", network_json(s, info), "pressure",
		pressure_json(info), "gpus", gpus_json(s));
	int failed = root == NULL || json_dumpf(root, stdout, JSON_INDENT(1)) < 0;

	json_decref(root);
	if (failed)
		return cmd_fail("cannot print: out of memory, or a name that is not UTF-8");
	putchar('\n');
	return EXIT_DONE;
}

int dump_sidecar(const char *path, bool json)
{
	struct sidecar sidecar = { 0 };
	struct sidecar_info info;
	struct err err = { "" };
	int status = EXIT_DONE;

	if (sidecar_read(path, &sidecar, &err) < 0)
		return cmd_fail("%s", err.text);
	sidecar_summarize(&sidecar, &info);
	if (json)
		status = print_json(&sidecar, &info);
	else
		print_text(&sidecar, &info);
	sidecar_done(&sidecar);
	return status;
}
