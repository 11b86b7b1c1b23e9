/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker dump FILE.sidecar`: what the daemon saw of a worker during a window. */
#include "cmd/cmd.h"
#include "format/sidecar.h"

#include <jansson.h>
#include <stdio.h>

static void print_thieves(const struct sidecar_info *info)
{
	char text[512];

	for (size_t i = 0; i < info->thief_cnt; i++) {
		sidecar_thief_text(&info->thieves[i], text, sizeof(text));
		printf("neighbour: %s\n", text);
	}
}

static void print_text(const struct sidecar *s, const struct sidecar_info *info)
{
	printf("sidecar of rank %d, pid %u, training thread %u, host %s\n", info->rank, info->pid,
	       info->tid, s->header.host);
	printf("window %.3f ms, %zu threads, %zu samples, %zu iteration bounds\n",
	       (double)info->window_ns / 1e6, s->threads.cnt, s->samples.cnt, s->iterations.cnt);
	if (info->has_thread)
		printf("training thread: %.1f %% on a CPU, %.1f %% runnable without one\n",
		       100 * info->cpu_frac, 100 * info->run_delay_frac);
	else
		printf("training thread: not sampled\n");
	printf("garbage collections: %llu, %.3f ms\n", (unsigned long long)info->gc_cnt,
	       (double)info->gc_ns / 1e6);
	print_thieves(info);
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

static int print_json(const struct sidecar *s, const struct sidecar_info *info)
{
	json_t *root = json_pack(
		"{s:s, s:i, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o}", "schema",
		"perftracker.sidecar.v1", "rank", info->rank, "pid", (json_int_t)info->pid,
		"training_tid", (json_int_t)info->tid, "host", s->header.host, "window_ns",
		(json_int_t)info->window_ns, "threads", (json_int_t)s->threads.cnt, "samples",
		(json_int_t)s->samples.cnt, "iterations", (json_int_t)s->iterations.cnt, "cpu",
		info->has_thread ? json_real(info->cpu_frac) : json_null(), "run_delay",
		info->has_thread ? json_real(info->run_delay_frac) : json_null(), "collections",
		(json_int_t)info->gc_cnt, "collections_ns", (json_int_t)info->gc_ns, "neighbours",
		thieves_json(info));
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
