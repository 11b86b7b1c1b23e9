/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The center alone, for bench/center/run: workers of a synthetic job of 20 functions, in
 * each of which one worker of 10,000 (at least one) is slow.
 *
 *	center_bench columns WORKERS sampled|exact [FILE]
 *		from decoded columns to findings; FILE gets the columns and the accused
 *	center_bench ingest HOSTS [WHOLE_MAX]
 *		from host messages in memory, some twice and some never, to findings
 */
#include "base/clock.h"
#include "base/splitmix.h"
#include "center/columns/columns_accuse.h"
#include "center/ingest.h"
#include "format/fingerprint/funckey.h"
#include "model/code16.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define FUNCTIONS 20
#define HOST_WORKERS 8
#define ITERATIONS 20
#define WINDOW_NS (5 * NSEC_PER_SEC)

static void die(const char *what)
{
	fprintf(stderr, "center_bench: %s\n", what);
	exit(1);
}

static double since_ms(int64_t begin_ns)
{
	return (double)(clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e6;
}

static long resident_mb(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss / 1024;
}

/* --- the job --- */

/* Bell-shaped around 1. */
static double noise(uint64_t *state, double deviation)
{
	double sum = splitmix_uniform(state) + splitmix_uniform(state) + splitmix_uniform(state) +
		     splitmix_uniform(state) - 2;

	return fmax(0, 1 + deviation * sum * 1.732);
}

static enum event_class class_of(int function)
{
	static const enum event_class classes[10] = {
		CLASS_COMPUTE, CLASS_COMPUTE, CLASS_COMM,    CLASS_COMPUTE, CLASS_HOST,
		CLASS_COMPUTE, CLASS_MEMORY,  CLASS_COMPUTE, CLASS_HOST,    CLASS_COMPUTE,
	};

	return classes[function % 10];
}

/* On the host in two places only: three would be taken for the garbage collector. */
static bool is_slow(uint64_t rank, int function)
{
	return (function < 10 || class_of(function) != CLASS_HOST) &&
	       rank % 10000 == 37u * (unsigned int)function;
}

struct numbers {
	double beta, mu, sigma;
};

static void measure(int rank, struct numbers ret[FUNCTIONS])
{
	/* Seeded by rank: a worker is the same in whatever order they are made. */
	uint64_t state = (uint64_t)rank * 0x2545f4914f6cdd1dULL;

	for (int i = 0; i < FUNCTIONS; i++) {
		bool host = class_of(i) == CLASS_HOST;
		double base = host ? 0.006 : 0.3 / (i + 2);

		ret[i] = (struct numbers){ base * noise(&state, 0.02), 0.8 * noise(&state, 0.02),
					   0.1 * noise(&state, 0.2) };
		if (is_slow((uint64_t)rank, i))
			ret[i].beta = 1.5 * ret[i].beta + 0.03;
		/* Utilization of Python functions is not sampled. */
		if (host)
			ret[i].mu = ret[i].sigma = (double)NAN;
	}
}

static struct funckey name_function(int function, char name[static 64])
{
	struct str part = { 0 };
	struct funckey key;

	(void)snprintf(name, 64, "model/layer_%d.py(%d): step_%d", function / 4, 7 * function,
		       function);
	funckey_part(KIND_PYTHON, name, &part);
	key = funckey_under(NULL, str_borrow(&part));
	str_done(&part);
	return key;
}

static struct funckey keys[FUNCTIONS];
static char names[FUNCTIONS][64];

static void make_functions(struct fingerprint *fp, const struct numbers numbers[FUNCTIONS])
{
	fp->frame_cnt = fp->function_cnt = FUNCTIONS;
	fp->frames = arena_calloc(&fp->arena, FUNCTIONS, sizeof(*fp->frames));
	fp->functions = arena_calloc(&fp->arena, FUNCTIONS, sizeof(*fp->functions));
	if (fp->frames == NULL || fp->functions == NULL)
		die("out of memory");
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		fp->frames[i] = (struct fp_frame){ keys[i], FRAME_NONE, KIND_PYTHON, names[i] };
		fp->functions[i] = (struct fp_function){
			.frame = i,
			.class = (uint8_t)class_of((int)i),
			.resource = RESOURCE_SM_ACTIVE,
			.beta_frac = numbers[i].beta,
			.mu_frac = numbers[i].mu,
			.sigma_frac = numbers[i].sigma,
			.executions = ITERATIONS,
			.share_ns = (int64_t)(numbers[i].beta * (double)WINDOW_NS),
			.elements = -1,
			.bytes = -1,
		};
	}
}

static void make_worker(struct fingerprint *fp, int rank)
{
	struct numbers numbers[FUNCTIONS];

	measure(rank, numbers);
	fingerprint_init(fp);
	fp->job_id = "pretrain";
	fp->source = fp->device_name = fp->host_stats.other_name = "";
	fp->host = arena_printf(&fp->arena, "host-%06d", rank / HOST_WORKERS);
	fp->rank = rank;
	fp->world_size = -1;
	fp->window_ns = WINDOW_NS;
	fp->has_device = fp->has_stacks = fp->iterations_known = true;
	fp->class_ns[CLASS_IDLE] = fp->window_ns;
	fp->iteration_cnt = ITERATIONS;
	fp->iterations = arena_calloc(&fp->arena, ITERATIONS, sizeof(*fp->iterations));
	if (fp->iterations == NULL || fp->host == NULL)
		die("out of memory");
	for (int i = 0; i < ITERATIONS; i++)
		fp->iterations[i] = (struct fp_iteration){ i, i * (WINDOW_NS / ITERATIONS),
							   WINDOW_NS / ITERATIONS };
	make_functions(fp, numbers);
}

/* --- columns --- */

static int fetch(_unused_ void *arg, uint64_t tag, struct fingerprint *ret)
{
	make_worker(ret, (int)tag);
	return 0;
}

static void fill_columns(struct columns *columns, int worker_cnt)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct job_frame frame = { keys[i], FRAME_NONE, KIND_PYTHON, names[i] };
		uint32_t idx;

		if (columns_frame(columns, frame, &idx) < 0 ||
		    columns_function(columns, idx, (uint8_t)class_of((int)i), &idx) < 0)
			die("out of memory");
	}
	for (int rank = 0; rank < worker_cnt; rank++) {
		struct columns_worker worker = { .rank = rank,
						 .iterations = ITERATIONS,
						 .window_ns = WINDOW_NS,
						 .host = "",
						 .tag = (uint64_t)rank };
		struct numbers numbers[FUNCTIONS];

		measure(rank, numbers);
		if (columns_worker(columns, worker) < 0)
			die("out of memory");
		for (uint32_t i = 0; i < FUNCTIONS; i++) {
			const uint16_t codes[COLUMN_CNT] = {
				code16_of_frac(numbers[i].beta), code16_of_frac(numbers[i].mu),
				code16_of_frac(numbers[i].sigma),
				code16_of_ns((int64_t)(numbers[i].beta * (double)WINDOW_NS))
			};

			if (columns_row(columns, i, codes) < 0)
				die("out of memory");
		}
	}
}

static void put(FILE *file, const void *data, size_t size, size_t cnt)
{
	if (fwrite(data, size, cnt, file) != cnt)
		die("cannot write");
}

static void put_u32(FILE *file, size_t value)
{
	uint32_t number = (uint32_t)value;

	put(file, &number, sizeof(number), 1);
}

/*
 * For the twin: workers, functions, then the sample of peers, then for each function
 * its class and columns, then accusations: class, function, workers.
 */
static void write_columns(const struct columns *columns, const struct localize_options *options,
			  const char *path)
{
	struct accuse_options how = { .min_gain_frac = options->min_gain_pct / 100,
				      .expect = expect_defaults(),
				      .differ = { options->seed, options->exact } };
	size_t cnt = columns->workers.cnt;
	uint32_t *order = calloc(cnt + 1, sizeof(*order));
	FILE *file = fopen(path, "wb");
	accusations list = { 0 };
	struct arena arena = { 0 };

	if (file == NULL || order == NULL || columns->group_first.cnt != 2)
		die("cannot write columns");
	differ_draw(order, cnt, MIN(cnt, (size_t)DIFFER_PEERS), options->seed);
	put_u32(file, cnt);
	put_u32(file, columns->functions.cnt);
	put(file, order, sizeof(*order), MIN(cnt, (size_t)DIFFER_PEERS));
	vec_foreach(f, &columns->functions) {
		put_u32(file, f->class);
		for (int c = COLUMN_BETA; c <= COLUMN_SIGMA; c++)
			put(file, columns->codes[c] + f->first, sizeof(uint16_t), f->cnt);
	}
	if (columns_accuse_difference(columns, &how, &arena, &list) < 0 ||
	    columns_accuse_expectation(columns, &how, &arena, &list) < 0)
		die("out of memory");
	vec_foreach(a, &list) {
		put_u32(file, a->witness);
		put_u32(file, a->function);
		put_u32(file, a->worker_cnt);
		put(file, a->workers, sizeof(*a->workers), a->worker_cnt);
	}
	if (fclose(file) != 0)
		die("cannot write columns");
	arena_done(&arena);
	vec_done(&list);
	free(order);
}

static void bench_columns(int worker_cnt, bool exact, const char *path)
{
	struct localize_options options = localize_defaults();
	struct columns columns = { 0 };
	struct report report;
	struct err err = { "" };
	int64_t begin_ns;
	double join_ms, all_ms;

	options.exact = exact;
	fill_columns(&columns, worker_cnt);
	begin_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (columns_join(&columns) < 0)
		die("out of memory");
	join_ms = since_ms(begin_ns);
	if (columns_localize(&columns, &options, fetch, NULL, &report, &err) < 0)
		die(err.text);
	all_ms = since_ms(begin_ns);
	printf("workers=%d ms=%.3f join_ms=%.3f resident_mb=%ld findings=%zu\n", worker_cnt, all_ms,
	       join_ms, resident_mb(), report.finding_cnt);
	if (path != NULL)
		write_columns(&columns, &options, path);
	report_done(&report);
	columns_done(&columns);
}

/* --- messages --- */

static struct str *write_messages(size_t host_cnt)
{
	struct str *messages = calloc(host_cnt + 1, sizeof(*messages));
	struct fpwire_options options = { .detail = FPWIRE_FUNCTIONS };
	struct fingerprint fps[HOST_WORKERS];
	const struct fingerprint *list[HOST_WORKERS];
	struct err err = { "" };

	if (messages == NULL)
		die("out of memory");
	for (size_t host = 0; host < host_cnt; host++) {
		for (int i = 0; i < HOST_WORKERS; i++) {
			make_worker(&fps[i], (int)host * HOST_WORKERS + i);
			list[i] = &fps[i];
		}
		options.names = host % 1000 == 0;
		if (fpwire_encode(list, HOST_WORKERS, &options, &messages[host], &err) < 0)
			die(err.text);
		for (int i = 0; i < HOST_WORKERS; i++)
			fingerprint_done(&fps[i]);
	}
	return messages;
}

/* One message in 1000 never comes, one in 50 twice; the order is that of a stride. */
static void deliver(struct ingest *ingest, const struct str *messages, size_t host_cnt)
{
	struct err err = { "" };

	for (size_t i = 0; i < host_cnt; i++) {
		size_t host = i * 7919 % host_cnt;

		for (int copy = 0; copy < (host % 50 == 1 ? 2 : 1) && host % 1000 != 999; copy++) {
			if (ingest_add(ingest, messages[host].data, messages[host].len, &err) < 0)
				die(err.text);
		}
	}
}

static void bench_ingest(size_t host_cnt, size_t whole_max)
{
	struct localize_options options = localize_defaults();
	struct str *messages = write_messages(host_cnt);
	struct ingest_counts counts;
	struct ingest *ingest;
	struct report report;
	struct err err = { "" };
	long before_mb = resident_mb();
	int64_t begin_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	double add_ms;

	if (ingest_open(0, &ingest) < 0)
		die("out of memory");
	deliver(ingest, messages, host_cnt);
	add_ms = since_ms(begin_ns);
	if (ingest_localize(ingest, &options, whole_max, &report, &err) < 0)
		die(err.text);
	counts = ingest_counts(ingest);
	printf("hosts=%zu ms=%.1f add_ms=%.1f messages_mb=%ld resident_mb=%ld findings=%zu "
	       "messages=%llu repeated=%llu missing=%zu\n",
	       host_cnt, since_ms(begin_ns), add_ms, before_mb, resident_mb(), report.finding_cnt,
	       (unsigned long long)counts.messages, (unsigned long long)counts.repeated,
	       report.missing_cnt);
	report_done(&report);
	ingest_close(ingest);
	for (size_t i = 0; i < host_cnt; i++)
		str_done(&messages[i]);
	free(messages);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < FUNCTIONS; i++)
		keys[i] = name_function(i, names[i]);
	if (argc >= 4 && strcmp(argv[1], "columns") == 0)
		bench_columns(atoi(argv[2]), strcmp(argv[3], "exact") == 0,
			      argc > 4 ? argv[4] : NULL);
	else if (argc >= 3 && strcmp(argv[1], "ingest") == 0)
		bench_ingest(strtoul(argv[2], NULL, 10),
			     argc > 3 ? strtoul(argv[3], NULL, 10) : INGEST_WHOLE_MAX);
	else
		die("usage: center_bench columns WORKERS sampled|exact [FILE] | "
		    "ingest HOSTS [WHOLE_MAX]");
	return 0;
}
