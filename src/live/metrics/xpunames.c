/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gauges of xpu_timer, for dashboards and collectors that expect them, computed as in
 * xpu_timer: latency and bandwidth of recent events, in one series per "level" of throughput,
 * so that an operation that becomes slower changes its series; a series without an event for
 * 300 s is dropped.
 * Source: DLRover's xpu_timer; docs/metrics.md, "In place of xpu_timer".
 */
#include "live/metrics/metrics_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RECENT_CNT 512u /* events that a gauge is computed from */
#define BUCKET_MAX 1024u
#define SILENT_NS (300 * NSEC_PER_SEC)
#define NIC_GBPS 400.0 /* as in xpu_timer */
#define LEVEL_CNT 20
#define SMALL_BITS 8192
#define NOT_SET "NOT_SET"

/* One series: of four or five gauges. */
struct bucket {
	bool matmul, fresh;
	char rank[12], local_rank[12], level[12], dtype[METRICS_WORD_MAX];
	const char *operation, *transport, *small; /* literals */
	uint32_t gauges[5];			   /* AVG, MAX, P99, MIN, BANDWIDTH or FLOPS */
	int64_t last_ns;
	uint64_t cnt;
	int64_t recent_ns[RECENT_CNT];
	double bus_bytes, flop; /* since the last tick, with their times */
	int64_t bus_ns, flop_ns;
};

struct metrics_xpu {
	struct metrics *metrics;
	const char *pod, *job, *ip;
	int64_t now_ns;
	VEC(struct bucket *) buckets;
};

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NOT_SET;
}

struct metrics_xpu *metrics_xpu_new(struct metrics *metrics)
{
	struct metrics_xpu *xpu = calloc(1, sizeof(*xpu));

	if (xpu == NULL)
		return NULL;
	xpu->metrics = metrics;
	xpu->pod = environment("POD_NAME");
	xpu->job = environment("ENV_ARGO_WORKFLOW_NAME");
	xpu->ip = environment("POD_IP");
	return xpu;
}

struct metrics_xpu *metrics_xpu_free(struct metrics_xpu *xpu)
{
	if (xpu == NULL)
		return NULL;
	vec_foreach(bucket, &xpu->buckets)
		free(*bucket);
	vec_done(&xpu->buckets);
	free(xpu);
	return NULL;
}

/* --- words and levels --- */

static const char *their_operation(const char *operation)
{
	static const char *const words[][2] = {
		{ "all_reduce", "AllReduce" },
		{ "all_gather", "AllGather" },
		{ "broadcast", "Broadcast" },
		{ "reduce_scatter", "ReduceScatter" },
		{ "reduce", "Reduce" },
		{ "send", "Send" },
		{ "recv", "Recv" },
		{ "send_recv", "SendRecv" },
		{ "all_to_all", "AllToAll" },
		{ "gather", "Gather" },
		{ "scatter", "Scatter" },
		{ "barrier", "Barrier" },
		{ "matmul", "Matmul" },
		{ "attention", "FA" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i][0], operation) == 0)
			return words[i][1];
	}
	return "Other";
}

/* The level of throughput, from 1; the last level includes all faster than the NIC. */
static int level_of(double bus_bytes, int64_t dur_ns)
{
	double gbps = dur_ns > 0 ? bus_bytes * 8 / (double)dur_ns : 0;
	double level = floor(gbps * LEVEL_CNT / NIC_GBPS);

	return level >= LEVEL_CNT ? LEVEL_CNT : (int)level + 1;
}

/* dtype as PerfTracker names it; copied. */
static void set_dtype(struct bucket *bucket, const char *dtype)
{
	bool known = dtype != NULL && strcmp(dtype, "unknown") != 0;

	(void)snprintf(bucket->dtype, sizeof(bucket->dtype), "%s", known ? dtype : NOT_SET);
}

/* --- buckets --- */

static void open_bucket(const struct metrics_xpu *xpu, struct bucket *bucket)
{
	static const enum metric coll[] = { METRIC_XPU_COLL_AVG, METRIC_XPU_COLL_MAX,
					    METRIC_XPU_COLL_P99, METRIC_XPU_COLL_MIN,
					    METRIC_XPU_COLL_BANDWIDTH };
	static const enum metric mm[] = { METRIC_XPU_MM_AVG, METRIC_XPU_MM_MAX, METRIC_XPU_MM_P99,
					  METRIC_XPU_MM_MIN };

	for (size_t i = 0; !bucket->matmul && i < ARRAY_SIZE(coll); i++)
		bucket->gauges[i] = metrics_series(
			xpu->metrics, coll[i],
			METRIC_VALUES(xpu->pod, xpu->job, xpu->ip, bucket->rank, bucket->local_rank,
				      bucket->dtype, bucket->operation, NOT_SET, bucket->transport,
				      bucket->level, bucket->small));
	if (bucket->matmul)
		bucket->gauges[4] = METRICS_NONE; /* until an event with known work */
	for (size_t i = 0; bucket->matmul && i < ARRAY_SIZE(mm); i++)
		bucket->gauges[i] = metrics_series(
			xpu->metrics, mm[i],
			METRIC_VALUES(xpu->pod, xpu->job, xpu->ip, bucket->rank, bucket->local_rank,
				      bucket->dtype, bucket->operation, bucket->level));
}

static bool same_bucket(const struct bucket *a, const struct bucket *b)
{
	return a->matmul == b->matmul && strcmp(a->rank, b->rank) == 0 &&
	       strcmp(a->operation, b->operation) == 0 && strcmp(a->transport, b->transport) == 0 &&
	       strcmp(a->level, b->level) == 0 && strcmp(a->small, b->small) == 0 &&
	       strcmp(a->dtype, b->dtype) == 0;
}

/* NULL: out of memory, or there are too many. */
static struct bucket *find_bucket(struct metrics_xpu *xpu, const struct bucket *like)
{
	struct bucket *bucket;

	vec_foreach(known, &xpu->buckets) {
		if (same_bucket(*known, like))
			return *known;
	}
	if (xpu->buckets.cnt >= BUCKET_MAX)
		return NULL;
	bucket = malloc(sizeof(*bucket));
	if (bucket == NULL)
		return NULL;
	*bucket = *like;
	if (vec_push(&xpu->buckets, bucket) < 0) {
		free(bucket);
		return NULL;
	}
	open_bucket(xpu, bucket);
	return bucket;
}

static void note(struct metrics_xpu *xpu, struct bucket *bucket, int64_t dur_ns, double bus_bytes)
{
	bucket->recent_ns[bucket->cnt++ % RECENT_CNT] = dur_ns;
	bucket->last_ns = xpu->now_ns;
	bucket->fresh = true;
	bucket->bus_bytes += bus_bytes;
	bucket->bus_ns += dur_ns;
}

void metrics_xpu_collective(struct metrics_xpu *xpu, const struct metrics_xpu_event *event)
{
	struct bucket like = { .operation = their_operation(event->operation),
			       .transport = event->transport,
			       .small = event->bus_bytes * 8 <= SMALL_BITS ? "1" : "0" };
	struct bucket *bucket;

	memcpy(like.rank, event->worker->rank, sizeof(like.rank));
	memcpy(like.local_rank, event->worker->local_rank, sizeof(like.local_rank));
	set_dtype(&like, event->dtype);
	(void)snprintf(like.level, sizeof(like.level), "%d",
		       level_of(event->bus_bytes, event->dur_ns));
	bucket = find_bucket(xpu, &like);
	if (bucket != NULL)
		note(xpu, bucket, event->dur_ns, event->bus_bytes);
}

static struct bucket *kernel_bucket(struct metrics_xpu *xpu, const struct metrics_worker *worker,
				    const char *kind, const char *dtype)
{
	struct bucket like = { .matmul = true,
			       .operation = their_operation(kind),
			       .transport = "",
			       .small = "",
			       .level = NOT_SET };

	memcpy(like.rank, worker->rank, sizeof(like.rank));
	memcpy(like.local_rank, worker->local_rank, sizeof(like.local_rank));
	set_dtype(&like, dtype);
	return find_bucket(xpu, &like);
}

void metrics_xpu_kernel(struct metrics_xpu *xpu, const struct metrics_worker *worker,
			const char *kind, int64_t dur_ns)
{
	struct bucket *bucket;

	if (strcmp(kind, "matmul") != 0 && strcmp(kind, "attention") != 0)
		return;
	bucket = kernel_bucket(xpu, worker, kind, NULL);
	if (bucket != NULL)
		note(xpu, bucket, dur_ns, 0);
}

void metrics_xpu_matmul(struct metrics_xpu *xpu, const struct metrics_worker *worker,
			const char *dtype, int64_t dur_ns, double flop)
{
	struct bucket *bucket = kernel_bucket(xpu, worker, "matmul", dtype);

	if (bucket == NULL)
		return;
	note(xpu, bucket, dur_ns, 0);
	if (flop <= 0)
		return;
	bucket->flop += flop;
	bucket->flop_ns += dur_ns;
	if (bucket->gauges[4] == METRICS_NONE)
		bucket->gauges[4] = metrics_series(
			xpu->metrics, METRIC_XPU_MM_FLOPS,
			METRIC_VALUES(xpu->pod, xpu->job, xpu->ip, bucket->rank, bucket->local_rank,
				      bucket->dtype, bucket->operation, bucket->level));
}

/* --- gauges --- */

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void publish(const struct metrics_xpu *xpu, struct bucket *bucket)
{
	size_t cnt = (size_t)MIN(bucket->cnt, (uint64_t)RECENT_CNT);
	size_t p99 = (cnt * 99 + 99) / 100 - 1; /* at least 99 of 100 are not above it */
	int64_t sorted_ns[RECENT_CNT];
	double sum_ns = 0, values[4];

	memcpy(sorted_ns, bucket->recent_ns, cnt * sizeof(*sorted_ns));
	qsort(sorted_ns, cnt, sizeof(*sorted_ns), by_value);
	for (size_t i = 0; i < cnt; i++)
		sum_ns += (double)sorted_ns[i];
	values[0] = sum_ns / (double)cnt;
	values[1] = (double)sorted_ns[cnt - 1];
	values[2] = (double)sorted_ns[p99];
	values[3] = (double)sorted_ns[0];
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		metrics_set(xpu->metrics, bucket->gauges[i], values[i] / NSEC_PER_USEC);
	if (!bucket->matmul)
		metrics_set(xpu->metrics, bucket->gauges[4],
			    bucket->bus_ns > 0 ? bucket->bus_bytes * 8 / (double)bucket->bus_ns
					       : 0);
	if (bucket->flop_ns > 0)
		metrics_set(xpu->metrics, bucket->gauges[4],
			    bucket->flop / (double)bucket->flop_ns / 1e3);
	bucket->fresh = false;
	bucket->bus_bytes = bucket->flop = 0;
	bucket->bus_ns = bucket->flop_ns = 0;
}

static void drop(const struct metrics_xpu *xpu, struct bucket *bucket)
{
	for (size_t i = 0; i < ARRAY_SIZE(bucket->gauges); i++)
		metrics_drop(xpu->metrics, bucket->gauges[i]);
	free(bucket);
}

void metrics_xpu_tick(struct metrics_xpu *xpu, int64_t now_ns)
{
	xpu->now_ns = now_ns;
	for (size_t i = 0; i < xpu->buckets.cnt;) {
		struct bucket *bucket = xpu->buckets.data[i];

		if (bucket->fresh)
			publish(xpu, bucket);
		if (now_ns - bucket->last_ns <= SILENT_NS) {
			i++;
			continue;
		}
		drop(xpu, bucket);
		xpu->buckets.data[i] = xpu->buckets.data[--xpu->buckets.cnt];
	}
}

/* --- memory --- */

static const struct {
	const char *what, *operation, *kind;
} memory[METRICS_XPU_MEMORY_CNT] = {
	{ "HtoH", "cudaMemcpyAsync", "H2H" },	    { "HtoD", "cudaMemcpyAsync", "H2D" },
	{ "DtoH", "cudaMemcpyAsync", "D2H" },	    { "DtoD", "cudaMemcpyAsync", "D2D" },
	{ "cudaMalloc", "cudaMalloc", "" },	    { "cudaFree", "cudaFree", "" },
	{ "cudaFreeAsync", "cudaFreeAsync", "" },   { "cudaHostAlloc", "cudaHostAlloc", "" },
	{ "cudaMallocHost", "cudaMallocHost", "" },
};

void metrics_xpu_memory(struct metrics_worker *worker, const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		worker->memory_cnt[i] += strcmp(memory[i].what, what) == 0;
}

static void set_memory(struct metrics_xpu *xpu, const struct metrics_worker *worker)
{
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++) {
		if (worker->memory_cnt[i] > 0)
			metrics_set(
				xpu->metrics,
				metrics_series(xpu->metrics, METRIC_XPU_MEMORY,
					       METRIC_VALUES(xpu->pod, xpu->job, xpu->ip,
							     worker->rank, worker->local_rank,
							     memory[i].operation, memory[i].kind)),
				(double)worker->memory_cnt[i]);
	}
}

void metrics_xpu_state(struct metrics_xpu *xpu, const struct metrics_worker *worker, uint32_t phase)
{
	const struct {
		enum metric metric;
		double value;
	} gauges[] = {
		{ METRIC_XPU_HANG, phase == PHASE_BLOCKED },
		{ METRIC_XPU_START_DUMP, phase == PHASE_PROFILING },
		{ METRIC_XPU_END_DUMP, worker->had_window && phase != PHASE_PROFILING },
		{ METRIC_XPU_POOL_QUEUE, 0 },
		{ METRIC_XPU_WORK_QUEUE, 0 },
		{ METRIC_XPU_GC, (double)worker->gc_cnt },
		{ METRIC_XPU_LOADER, (double)worker->loader_cnt },
	};

	for (size_t i = 0; i < ARRAY_SIZE(gauges); i++)
		metrics_set(xpu->metrics,
			    metrics_series(xpu->metrics, gauges[i].metric,
					   METRIC_VALUES(xpu->pod, xpu->job, xpu->ip, worker->rank,
							 worker->local_rank)),
			    gauges[i].value);
	set_memory(xpu, worker);
}
