/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and speed of fingerprints on the wire, for bench/wire/run.
 *
 *	fpwire_bench sizes FILE...	these fingerprints as the workers of one host
 *	fpwire_bench json FILE...	their frames, functions and iterations, to compare with
 *	fpwire_bench fleet HOSTS	that many hosts of 8 alike workers, from memory
 */
#include "base/clock.h"
#include "center/wire/fpwire.h"
#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FLEET_WORKERS 8
#define FLEET_FUNCTIONS 20
#define FLEET_DEPTH 4 /* callers above each function */
#define FLEET_ITERATIONS 20
#define BRIEF 20 /* functions of the short form */

static void die(const char *what)
{
	fprintf(stderr, "fpwire_bench: %s\n", what);
	exit(1);
}

static size_t encoded(const struct fingerprint *const *fps, size_t cnt,
		      struct fpwire_options options)
{
	struct str out = { 0 };
	struct err err;
	size_t len;

	if (fpwire_encode(fps, cnt, &options, &out, &err) < 0)
		die(err.text);
	len = out.len;
	str_done(&out);
	return len;
}

/* --- sizes --- */

static const struct {
	const char *name;
	struct fpwire_options options;
} forms[] = {
	{ "brief", { .detail = FPWIRE_FUNCTIONS, .function_max = BRIEF } },
	{ "brief_names", { .detail = FPWIRE_FUNCTIONS, .function_max = BRIEF, .names = true } },
	{ "all", { .detail = FPWIRE_FUNCTIONS } },
	{ "all_names", { .detail = FPWIRE_FUNCTIONS, .names = true } },
	{ "times", { .detail = FPWIRE_TIMES } },
	{ "leads", { .detail = FPWIRE_LEADS } },
};

static size_t varint(uint64_t value)
{
	size_t len = 1;

	for (; value >= 0x80; value >>= 7)
		len++;
	return len;
}

/*
 * What protocol buffers would take for functions, iterations and facts of a worker,
 * with packed arrays, times in ns, fractions as floats; without the functions' ids.
 */
static size_t protobuf_size(const struct fingerprint *fp)
{
	size_t len = 13 * 2 + 7 * 5; /* tags and lengths of 13 fields, 7 floats */

	len += varint((uint64_t)fp->rank) + varint((uint64_t)fp->world_size) +
	       varint((uint64_t)fp->pid) + varint((uint64_t)fp->window_start_wall_ns) +
	       varint((uint64_t)fp->window_ns) + varint((uint64_t)fp->rest_ns) +
	       varint(fp->event_cnt) + varint(fp->resources) +
	       varint((uint64_t)fp->host_stats.gc_ns);
	for (int c = 0; c < CLASS_CNT; c++)
		len += varint((uint64_t)fp->class_ns[c]);
	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		len += varint(i) + 2 + 5 * sizeof(float) + varint(f->executions) +
		       varint((uint64_t)f->total_ns) + varint((uint64_t)f->share_ns) +
		       varint((uint64_t)f->thread_ns);
	}
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		len += varint((uint64_t)fp->iterations[i].number) +
		       varint((uint64_t)fp->iterations[i].start_ns) +
		       varint((uint64_t)fp->iterations[i].dur_ns);
	return len;
}

/* Ids of the distinct functions of a host: 16 bytes each, and a tag and a length. */
static size_t protobuf_ids(const struct fingerprint *const *fps, size_t cnt)
{
	struct fpwire_options options = { .detail = FPWIRE_FUNCTIONS };
	struct fpwire m = { 0 };
	struct str out = { 0 };
	struct err err;
	size_t len;

	if (fpwire_encode(fps, cnt, &options, &out, &err) < 0 ||
	    fpwire_decode(&m, out.data, out.len, NULL, &err) < 0)
		die(err.text);
	len = 18 * m.entries.cnt;
	str_done(&out);
	fpwire_done(&m);
	return len;
}

static void print_sizes(const struct fingerprint *const *fps, size_t cnt, size_t file_bytes)
{
	size_t functions = 0, collectives = 0, iterations = 0;
	size_t protobuf = protobuf_ids(fps, cnt);

	for (size_t i = 0; i < cnt; i++) {
		functions += fps[i]->function_cnt;
		collectives += fps[i]->collective_cnt;
		iterations += fps[i]->iteration_cnt;
		protobuf += protobuf_size(fps[i]);
	}
	printf("workers=%zu functions=%zu collectives=%zu iterations=%zu file=%zu protobuf=%zu",
	       cnt, functions, collectives, iterations, file_bytes, protobuf);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		printf(" %s=%zu", forms[i].name, encoded(fps, cnt, forms[i].options));
	printf("\n");
}

/* Names and paths of this benchmark's files need no other escapes. */
static void print_text(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_json(const struct fingerprint *fp)
{
	printf("{\"rank\":%d,\"window_ns\":%lld,\"frames\":[", fp->rank, (long long)fp->window_ns);
	for (size_t i = 0; i < fp->frame_cnt; i++) {
		printf("%s{\"key\":\"%016llx%016llx\",\"parent\":%d,\"kind\":%u,\"name\":",
		       i > 0 ? "," : "", (unsigned long long)fp->frames[i].key.hi,
		       (unsigned long long)fp->frames[i].key.lo, (int)fp->frames[i].parent,
		       fp->frames[i].kind);
		print_text(fp->frames[i].name);
		printf("}");
	}
	printf("],\"functions\":[");
	for (size_t i = 0; i < fp->function_cnt; i++) {
		const struct fp_function *f = &fp->functions[i];

		printf("%s{\"frame\":%d,\"class\":%u,\"resource\":%u,\"beta\":%.6g,\"mu\":%.6g,"
		       "\"sigma\":%.6g,\"executions\":%llu,\"total_ns\":%lld,\"share_ns\":%lld,"
		       "\"thread_ns\":%lld,\"elements\":%.6g,\"bytes\":%.6g}",
		       i > 0 ? "," : "", (int)f->frame, f->class, f->resource, f->beta_frac,
		       f->mu_frac, f->sigma_frac, (unsigned long long)f->executions,
		       (long long)f->total_ns, (long long)f->share_ns, (long long)f->thread_ns,
		       f->elements, f->bytes);
	}
	printf("],\"iterations\":[");
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		printf("%s[%lld,%lld,%lld]", i > 0 ? "," : "", (long long)fp->iterations[i].number,
		       (long long)fp->iterations[i].start_ns, (long long)fp->iterations[i].dur_ns);
	printf("]}\n");
}

static void with_files(char **paths, size_t cnt, bool json)
{
	struct fingerprint *fps = calloc(cnt + 1, sizeof(*fps));
	const struct fingerprint **list = calloc(cnt + 1, sizeof(*list));
	size_t bytes = 0;
	struct err err;
	struct stat st;

	if (fps == NULL || list == NULL)
		die("out of memory");
	for (size_t i = 0; i < cnt; i++) {
		if (stat(paths[i], &st) < 0)
			die(strerror(errno));
		if (fingerprint_read(paths[i], &fps[i], &err) < 0)
			die(err.text);
		list[i] = &fps[i];
		bytes += (size_t)st.st_size;
		if (json)
			print_json(&fps[i]);
	}
	if (!json)
		print_sizes(list, cnt, bytes);
	for (size_t i = 0; i < cnt; i++)
		fingerprint_done(&fps[i]);
	free(list);
	free(fps);
}

/* --- fleet --- */

static uint64_t rng = 1;

/* xorshift64*: the same fleet on every machine. */
static double some(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return (double)(rng * 0x2545f4914f6cdd1dULL >> 11) * 0x1p-53;
}

static void fill_frames(struct fingerprint *fp)
{
	struct str part = { 0 };

	fp->frame_cnt = (size_t)FLEET_FUNCTIONS * (FLEET_DEPTH + 1);
	fp->frames = arena_calloc(&fp->arena, fp->frame_cnt, sizeof(*fp->frames));
	if (fp->frames == NULL)
		die("out of memory");
	for (uint32_t i = 0; i < fp->frame_cnt; i++) {
		bool root = i % (FLEET_DEPTH + 1) == 0;
		const char *name = arena_printf(
			&fp->arena, "megatron/core/transformer/module_%u.py(%u): forward_%u", i / 8,
			17 * i, i);

		if (name == NULL)
			die("out of memory");
		part.len = 0;
		funckey_part(KIND_PYTHON, name, &part);
		fp->frames[i] = (struct fp_frame){
			.key = funckey_under(root ? NULL : &fp->frames[i - 1].key,
					     str_borrow(&part)),
			.parent = root ? FRAME_NONE : i - 1,
			.kind = KIND_PYTHON,
			.name = name,
		};
	}
	str_done(&part);
}

static void fill_functions(struct fingerprint *fp)
{
	fp->function_cnt = FLEET_FUNCTIONS;
	fp->functions = arena_calloc(&fp->arena, fp->function_cnt, sizeof(*fp->functions));
	if (fp->functions == NULL)
		die("out of memory");
	for (uint32_t i = 0; i < FLEET_FUNCTIONS; i++) {
		double beta = 0.3 / (i + 1) * (0.9 + 0.2 * some());
		int64_t ns = (int64_t)(beta * (double)fp->window_ns);

		fp->functions[i] = (struct fp_function){
			.frame = i * (FLEET_DEPTH + 1) + FLEET_DEPTH,
			.class = i % 4 == 3 ? CLASS_HOST : CLASS_COMPUTE,
			.resource = i % 4 == 3 ? RESOURCE_CPU_THREAD : RESOURCE_SM_ACTIVE,
			.beta_frac = beta,
			.mu_frac = 0.5 + 0.4 * some(),
			.sigma_frac = 0.1 * some(),
			.executions = FLEET_ITERATIONS * (i + 1),
			.total_ns = ns,
			.critical_ns = ns,
			.share_ns = ns,
			.thread_ns = i % 4 == 3 ? ns : 0,
			.elements = 1048576.0 * (i + 1),
			.bytes = -1,
		};
	}
}

static void fill_worker(struct fingerprint *fp, int rank)
{
	int64_t iteration_ns = 250 * NSEC_PER_MSEC;

	fingerprint_init(fp);
	fp->job_id = "pretrain-1234";
	fp->host = "host-000123";
	fp->source = arena_printf(&fp->arena, "/run/perftracker/traces/%d-1.json", rank);
	fp->device_name = "NVIDIA H100 80GB HBM3";
	fp->rank = rank;
	fp->world_size = 1000000;
	fp->pid = 40000 + 13 * rank;
	fp->window_start_wall_ns = 1790000000LL * NSEC_PER_SEC + (int64_t)(1e6 * some());
	fp->window_ns = FLEET_ITERATIONS * iteration_ns + (int64_t)(1e6 * some());
	fp->has_device = fp->has_stacks = fp->iterations_known = true;
	fp->class_ns[CLASS_COMPUTE] = (int64_t)(0.7 * (double)fp->window_ns);
	fp->class_ns[CLASS_COMM] = (int64_t)(0.2 * (double)fp->window_ns);
	fp->class_ns[CLASS_IDLE] =
		fp->window_ns - fp->class_ns[CLASS_COMPUTE] - fp->class_ns[CLASS_COMM];
	fp->host_stats.cpu_frac = some();
	fp->host_stats.run_delay_frac = 0.01 * some();
	fp->host_stats.psi_cpu_frac = 0.01 * some();
	fp->event_cnt = 400000 + (uint64_t)(1e5 * some());
	fp->iteration_cnt = FLEET_ITERATIONS;
	fp->iterations = arena_calloc(&fp->arena, FLEET_ITERATIONS, sizeof(*fp->iterations));
	if (fp->source == NULL || fp->iterations == NULL)
		die("out of memory");
	for (int i = 0; i < FLEET_ITERATIONS; i++)
		fp->iterations[i] = (struct fp_iteration){ 5000 + i, i * iteration_ns,
							   iteration_ns - (int64_t)(1e6 * some()) };
	fill_frames(fp);
	fill_functions(fp);
}

/* What the center keeps of a worker's function: enough for equations 6 to 11. */
struct fleet {
	uint16_t *columns[3];
	size_t row_cnt;
};

static void keep(struct fleet *fleet, const struct fpwire *m)
{
	static const enum fpwire_column wanted[] = { FPWIRE_BETA, FPWIRE_MU, FPWIRE_SIGMA };
	size_t cnt = m->entry_of.cnt;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		memcpy(fleet->columns[i] + fleet->row_cnt, m->columns[wanted[i]].data,
		       cnt * sizeof(uint16_t));
	fleet->row_cnt += cnt;
}

static void decode_fleet(const struct str *messages, size_t message_cnt, size_t host_cnt)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct fleet fleet = { 0 };
	size_t rows = host_cnt * FLEET_WORKERS * FLEET_FUNCTIONS;
	struct err err;
	int64_t begin_ns;
	double seconds;

	for (size_t i = 0; i < ARRAY_SIZE(fleet.columns); i++) {
		fleet.columns[i] = calloc(rows, sizeof(uint16_t));
		if (fleet.columns[i] == NULL)
			die("out of memory");
	}
	begin_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < host_cnt; i++) {
		const struct str *message = &messages[i % message_cnt];

		if (fpwire_decode(&m, message->data, message->len, &names, &err) < 0)
			die(err.text);
		keep(&fleet, &m);
	}
	seconds = (double)(clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e9;
	printf("decoded_workers=%zu rows=%zu cpu_seconds=%.3f workers_per_cpu_s=%.0f names=%zu unknown=%zu\n",
	       host_cnt * FLEET_WORKERS, fleet.row_cnt, seconds,
	       (double)(host_cnt * FLEET_WORKERS) / seconds, names.list.cnt, names.unknown_cnt);
	for (size_t i = 0; i < ARRAY_SIZE(fleet.columns); i++)
		free(fleet.columns[i]);
	fpnames_done(&names);
	fpwire_done(&m);
}

/* Enough different messages to defeat caches and branch predictors. */
#define FLEET_MESSAGES 1024

static void fleet(size_t host_cnt)
{
	struct fpwire_options options = { .detail = FPWIRE_FUNCTIONS };
	struct str *messages = calloc(FLEET_MESSAGES, sizeof(*messages));
	size_t cnt = MIN(host_cnt, (size_t)FLEET_MESSAGES), bytes = 0;
	struct fingerprint fps[FLEET_WORKERS];
	const struct fingerprint *list[FLEET_WORKERS];
	struct err err;

	if (messages == NULL)
		die("out of memory");
	for (size_t i = 0; i < cnt; i++) {
		for (int k = 0; k < FLEET_WORKERS; k++) {
			fill_worker(&fps[k], (int)i * FLEET_WORKERS + k);
			list[k] = &fps[k];
		}
		if (i == 0)
			print_sizes(list, FLEET_WORKERS, 0);
		options.names = i == 0;
		if (fpwire_encode(list, FLEET_WORKERS, &options, &messages[i], &err) < 0)
			die(err.text);
		bytes += messages[i].len;
		for (int k = 0; k < FLEET_WORKERS; k++)
			fingerprint_done(&fps[k]);
	}
	printf("bytes_per_worker=%.0f\n", (double)bytes / (double)(cnt * FLEET_WORKERS));
	decode_fleet(messages, cnt, host_cnt);
	for (size_t i = 0; i < cnt; i++)
		str_done(&messages[i]);
	free(messages);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && (strcmp(argv[1], "sizes") == 0 || strcmp(argv[1], "json") == 0))
		with_files(argv + 2, (size_t)argc - 2, strcmp(argv[1], "json") == 0);
	else if (argc == 3 && strcmp(argv[1], "fleet") == 0)
		fleet((size_t)strtoul(argv[2], NULL, 10));
	else
		die("usage: fpwire_bench sizes|json FILE... | fleet HOSTS");
	return 0;
}
