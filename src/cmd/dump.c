/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "base/text/clean.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "read/reader.h"
#include "summarize/cct.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct dump_args {
	enum output_format format; /* text or JSON */
	bool collectives;
	int64_t top;
};

#define FIELD(field) OPTION_FIELD(struct dump_args, field)

static const struct option_row rows[] = {
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
	{ .name = "top",
	  .letter = 'n',
	  .argument = "N",
	  FIELD(top),
	  .high = INT32_MAX,
	  .expected = "a number of functions",
	  .help = "number of functions to print; 0: all",
	  .preset = "30" },
	{ .name = "collectives",
	  .letter = 'c',
	  FIELD(collectives),
	  .help = "print the collectives, too, with what led to them" },
};

static const char *name_of(const struct fingerprint *fp, uint32_t function)
{
	uint32_t frame;

	if (function == FRAME_NONE)
		return "(others)";
	frame = fp->functions[function].frame;
	return frame == FRAME_NONE ? "(outside of all functions)" : fp->frames[frame].name;
}

/* Names come from user code: control characters must not reach the terminal. */
static void print_name(const char *name)
{
	struct str clean = { 0 };

	clean_append(&clean, name);
	fputs(str_borrow(&clean), stdout);
	str_done(&clean);
}

static void print_fraction(double value)
{
	if (isnan(value))
		printf("%7s", "-");
	else
		printf("%6.2f%%", 100 * value);
}

static void print_functions(const struct fingerprint *fp, int64_t top)
{
	size_t cnt = top > 0 ? MIN((size_t)top, fp->function_cnt) : fp->function_cnt;

	printf("\n%-8s %7s %7s %7s %10s %8s  %s\n", "class", "beta", "mu", "sigma", "share ms",
	       "runs", "function");
	for (size_t i = 0; i < cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		printf("%-8s ", event_class_name((enum event_class)f->class));
		print_fraction(f->beta_frac);
		printf(" ");
		print_fraction(f->mu_frac);
		printf(" ");
		print_fraction(f->sigma_frac);
		printf(" %10.3f %8llu  ", (double)f->share_ns / 1e6,
		       (unsigned long long)f->executions);
		print_name(name_of(fp, (uint32_t)i));
		printf("\n");
	}
	if (cnt < fp->function_cnt)
		printf("... %zu more (--top 0)\n", fp->function_cnt - cnt);
}

static void print_collectives(const struct fingerprint *fp)
{
	printf("\n%12s %10s %10s %10s  %-16s %s\n", "start ms", "dur ms", "lead ms", "bytes",
	       "group", "what led to it");
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		printf("%12.3f %10.3f %10.3f %10lld  %016llx", (double)c->start_ns / 1e6,
		       (double)c->dur_ns / 1e6, (double)c->lead_ns / 1e6, (long long)c->bytes,
		       (unsigned long long)c->group);
		for (uint32_t k = 0; k < MIN(c->lead_cnt, 3u); k++) {
			const struct fp_share *s = &fp->shares[c->lead_first + k];

			printf("  %.3f ", (double)s->ns / 1e6);
			print_name(name_of(fp, s->function));
		}
		printf("\n");
	}
}

static void dump_text(const struct fingerprint *fp, const struct dump_args *a)
{
	printf("fingerprint of rank %d of %d, host %s, from %s\n", fp->rank, fp->world_size,
	       fp->host, fp->source);
	printf("window %.3f ms, %zu iteration%s%s, %llu events, device %s, stacks %s\n",
	       (double)fp->window_ns / 1e6, fp->iteration_cnt, plural(fp->iteration_cnt),
	       fp->iterations_known ? "" : " (unknown)", (unsigned long long)fp->event_cnt,
	       fp->has_device ? "yes" : "no", fp->has_stacks ? "yes" : "no");
	for (int c = CLASS_CNT - 1; c >= 0; c--)
		printf("%s %.2f%%%s", event_class_name((enum event_class)c),
		       100.0 * (double)fp->class_ns[c] / (double)fp->window_ns,
		       c > 0 ? ", " : "\n");
	print_functions(fp, a->top);
	if (a->collectives)
		print_collectives(fp);
}

static json_t *number_or_null(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *function_json(const struct fingerprint *fp, const struct fp_function *f)
{
	char key[33] = "";
	json_t *stack = json_array();

	for (uint32_t i = f->frame; i != FRAME_NONE; i = fp->frames[i].parent)
		(void)json_array_insert_new(stack, 0, json_string(fp->frames[i].name));
	if (f->frame != FRAME_NONE)
		funckey_hex(fp->frames[f->frame].key, key);
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:I, s:I, s:I}", "key", key, "stack",
			 stack, "class", event_class_name((enum event_class)f->class), "beta",
			 json_real(f->beta_frac), "mu", number_or_null(f->mu_frac), "sigma",
			 number_or_null(f->sigma_frac), "executions", (json_int_t)f->executions,
			 "critical_ns", (json_int_t)f->critical_ns, "share_ns",
			 (json_int_t)f->share_ns);
}

static json_t *usage_json(const struct fp_usage *use)
{
	if (!use->known)
		return json_null();
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"busy_ns", (json_int_t)use->busy_ns, "compute_ns", (json_int_t)use->compute_ns,
		"memory_ns", (json_int_t)use->memory_ns, "comm_ns", (json_int_t)use->comm_ns,
		"memory_alone_ns", (json_int_t)use->memory_alone_ns, "comm_alone_ns",
		(json_int_t)use->comm_alone_ns, "starved_ns", (json_int_t)use->starved_ns,
		"sync_loss_ns", (json_int_t)use->sync_loss_ns, "launch_loss_ns",
		(json_int_t)use->launch_loss_ns, "launch_delay_ns",
		(json_int_t)use->launch_delay_ns, "waits", (json_int_t)use->sync_cnt, "kernels",
		(json_int_t)use->kernel_cnt, "short_kernels", (json_int_t)use->short_cnt,
		"launched_kernels", (json_int_t)use->launched_cnt, "blocking_launches",
		(json_int_t)use->blocking_cnt);
}

static json_t *totals_json(const struct fingerprint *fp)
{
	json_t *totals = json_array();

	for (size_t i = 0; i < fp->total_cnt; i++) {
		const struct fp_total *t = &fp->totals[i];

		(void)json_array_append_new(
			totals,
			json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", t->name,
				  "kind", event_kind_name((enum event_kind)t->kind), "class",
				  event_class_name((enum event_class)t->class), "count",
				  (json_int_t)t->cnt, "total_ns", (json_int_t)t->total_ns,
				  "longest_ns", (json_int_t)t->longest_ns, "idle_ns",
				  (json_int_t)t->idle_ns, "bytes", (json_int_t)t->bytes));
	}
	return totals;
}

static json_t *iterations_json(const struct fingerprint *fp)
{
	json_t *list = json_array();

	for (size_t i = 0; i < fp->use_cnt; i++)
		(void)json_array_append_new(
			list, json_pack("{s:I, s:I, s:I}", "start_ns",
					(json_int_t)fp->iterations[i].start_ns, "busy_ns",
					(json_int_t)fp->uses[i].busy_ns, "alloc_ns",
					(json_int_t)fp->uses[i].alloc_ns));
	return list;
}

static json_t *stalls_json(const struct fp_stalls *stalls)
{
	json_t *names = json_object(), *iterations = json_array();

	for (size_t i = 0; i < stalls->name_cnt; i++)
		(void)json_object_set_new(names, stalls->names[i].name,
					  json_integer((json_int_t)stalls->names[i].cnt));
	for (size_t i = 0; i < stalls->iteration_cnt; i++)
		(void)json_array_append_new(iterations,
					    json_integer((json_int_t)stalls->iteration_ns[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "count", (json_int_t)stalls->cnt,
			 "inside_operators", (json_int_t)stalls->inside_cnt, "switch_intervals",
			 (json_int_t)stalls->switch_cnt, "median_ns", (json_int_t)stalls->median_ns,
			 "longest_ns", (json_int_t)stalls->longest_ns, "by_iteration_ns",
			 iterations, "operators", names);
}

static json_t *flows_json(const struct fp_flows *flows)
{
	json_t *list = json_array();

	for (size_t i = 0; i < flows->cnt; i++) {
		const struct fp_flow *f = &flows->list[i];

		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "local",
					f->local, "remote", f->remote, "card", f->card,
					"sent_bytes", (json_int_t)f->tx_bytes,
					"retransmitted_bytes", (json_int_t)f->retransmitted_bytes,
					"busy_ns", (json_int_t)f->busy_ns, "receiver_limited_ns",
					(json_int_t)f->limited_ns, "rtt_ns", (json_int_t)f->rtt_ns,
					"sockets", (json_int_t)f->socket_cnt));
	}
	return list;
}

static int dump_json(const struct fingerprint *fp)
{
	json_t *functions = json_array(), *classes = json_object(), *root;
	int status = EXIT_DONE;

	for (size_t i = 0; i < fp->function_cnt; i++)
		(void)json_array_append_new(functions, function_json(fp, &fp->functions[i]));
	for (int c = 0; c < CLASS_CNT; c++)
		(void)json_object_set_new(classes, event_class_name((enum event_class)c),
					  json_integer((json_int_t)fp->class_ns[c]));
	root = json_pack("{s:s, s:i, s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}",
			 "schema", "perftracker.fingerprint.v1", "rank", fp->rank, "world_size",
			 fp->world_size, "host", fp->host, "source", fp->source, "window_start_ns",
			 (json_int_t)fp->window_start_wall_ns, "window_ns",
			 (json_int_t)fp->window_ns, "iterations", (json_int_t)fp->iteration_cnt,
			 "collectives", (json_int_t)fp->collective_cnt, "class_ns", classes,
			 "rest_ns", (json_int_t)fp->rest_ns, "functions", functions, "usage",
			 usage_json(&fp->usage), "totals", totals_json(fp), "iteration_use",
			 iterations_json(fp), "stalls",
			 fp->stalls.known ? stalls_json(&fp->stalls) : json_null(), "flows",
			 flows_json(&fp->flows));
	if (root == NULL || json_dumpf(root, stdout, JSON_INDENT(1)) < 0)
		status = cmd_fail("cannot print: out of memory, or a name that is not UTF-8");
	else
		putchar('\n');
	json_decref(root);
	return status;
}

/* Prints a fingerprint, or the one of a trace. */
static int dump_fingerprint(const char *path, const struct dump_args *a)
{
	const struct summarize_options whole = { .window = { .last_step = -1 } };
	struct fingerprint fp;
	struct err err = { "" };
	int status = EXIT_DONE;

	if (load_one(path, NULL, &whole, &fp, &err) < 0)
		return cmd_fail("%s", err.text);
	if (a->format == OUTPUT_JSON)
		status = dump_json(&fp);
	else
		dump_text(&fp, a);
	fingerprint_done(&fp);
	return status;
}

static int dump_main(const struct command *command, int argc, char **argv)
{
	struct dump_args a = { .top = 30 };
	enum reader_content content;
	int first, status = optiontable_parse(command, argc, argv, &a, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 1)
		return cmd_usage_error(command->name, "expected one file, found %d", argc - first);
	content = reader_of(argv[first])->content;
	if (content == CONTENT_SIDECAR)
		return dump_sidecar(argv[first], a.format == OUTPUT_JSON);
	if (content == CONTENT_FLIGHT_LOG)
		return dump_flight(argv[first], a.format == OUTPUT_JSON);
	return dump_fingerprint(argv[first], &a);
}

const struct command cmd_dump = {
	.name = "dump",
	.summary = "print any file that PerfTracker writes",
	.usage = "[OPTION]... FILE\n",
	.about =
		"Prints a fingerprint (*.ptfp), the daemon's records of a worker, its host and its "
		"GPUs (*.sidecar), a worker's own records (*.flight), or the fingerprint of a "
		"trace.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker dump --top 10 out/fingerprints/1/rank0.ptfp\n",
	.run = dump_main,
};
