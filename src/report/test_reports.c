/* SPDX-License-Identifier: Apache-2.0 */
#include "report/test_reports.h"

#include "report/test_pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tests run out of memory only where they mean to. */
static void *must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static void *copied(struct report *report, const void *data, size_t size)
{
	return memcpy(must(arena_alloc(&report->arena, size)), data, size);
}

static const int *rank_range(struct report *report, int first, size_t cnt, int step)
{
	int *ranks = must(arena_calloc(&report->arena, cnt, sizeof(int)));

	for (size_t i = 0; i < cnt; i++)
		ranks[i] = first + (int)i * step;
	return ranks;
}

/* Compound literals end with their block; the arena keeps copies. */
#define TEXTS(report, ...)                                     \
	copied((report), (const char *const[]){ __VA_ARGS__ }, \
	       sizeof((const char *const[]){ __VA_ARGS__ }))

static void job(struct report *report, const char *id, int workers, double iterations, double ms)
{
	report->job_id = id;
	report->reason = "";
	report->rank_source = "distributedInfo";
	report->world_size = workers;
	report->workers_expected = workers;
	report->workers_analyzed = workers;
	report->iterations = iterations;
	report->iteration_ms = ms;
}

static struct report_worker worker(struct report *report, int rank, size_t iterations, double ms,
				   const double shares[static CLASS_CNT])
{
	double *times = must(arena_calloc(&report->arena, iterations, sizeof(double)));
	struct report_worker made = { .rank = rank, .iteration_ms = times, .first_step = -1 };

	for (size_t i = 0; i < iterations; i++)
		times[i] = ms * (1.0 + 0.12 * (test_noise(0, (int)i) - 0.5) +
				 0.02 * (test_noise(rank, (int)i) - 0.5));
	made.host = must(arena_printf(&report->arena, "gpu-%03d", rank / 8));
	made.source = must(arena_printf(&report->arena, "rank%d.json.gz", rank));
	made.iteration_cnt = iterations;
	made.window_ms = ms * (double)iterations;
	memcpy(made.class_frac, shares, sizeof(made.class_frac));
	return made;
}

static void set_workers(struct report *report, int cnt, size_t iterations, double ms,
			const double shares[static CLASS_CNT])
{
	size_t size = (size_t)cnt * sizeof(struct report_worker);
	struct report_worker *workers = must(arena_alloc(&report->arena, size));

	for (int i = 0; i < cnt; i++)
		workers[i] = worker(report, i, iterations, ms, shares);
	report->workers = workers;
	report->worker_cnt = (size_t)cnt;
}

static void set_findings(struct report *report, const struct finding *findings, size_t cnt)
{
	report->findings = copied(report, findings, cnt * sizeof(*findings));
	report->finding_cnt = cnt;
	report->verdict = VERDICT_ABNORMAL;
}

static struct finding_value value(double v, double reference, enum reference_kind kind)
{
	return (struct finding_value){
		.present = true, .value = v, .reference = reference, .reference_kind = kind
	};
}

/* Points over all workers: the accused stand apart, the rest lies around the reference. */
static void set_points(struct report *report, struct finding *finding, int workers, double spread)
{
	struct finding_point *points =
		must(arena_calloc(&report->arena, (size_t)workers, sizeof(*points)));
	size_t next = 0;

	for (int i = 0; i < workers; i++) {
		bool accused = next < finding->rank_cnt && finding->ranks[next] == i;
		double beta = test_wobble(i, 7, spread);

		next += accused;
		points[i] = (struct finding_point){
			.rank = i,
			.accused = accused,
			.beta_frac =
				beta * (accused ? finding->beta.value : finding->beta.reference),
			.mu_frac = (double)NAN,
			.sigma_frac = (double)NAN,
			.time_ms = beta * (finding->time_ms_per_iteration -
					   (accused ? 0.0 : finding->delta_ms_per_iteration)),
		};
		if (finding->mu.present)
			points[i].mu_frac = MIN(
				1.0, test_wobble(i, 8, spread) *
					     (accused ? finding->mu.value : finding->mu.reference));
		if (finding->sigma.present)
			points[i].sigma_frac =
				test_wobble(i, 9, spread) *
				(accused ? finding->sigma.value : finding->sigma.reference);
	}
	finding->points = points;
	finding->point_cnt = (size_t)workers;
}

static struct finding recv_into_row(struct report *report)
{
	return (struct finding){
		.id = "PT-102",
		.cause = "slow-data-loading",
		.title = "All workers wait for input data from a socket",
		.key = "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
		.name = "dataloader.py: socket recv_into",
		.class = CLASS_HOST,
		.stack = TEXTS(report, "train.py: main", "torch/utils/data/dataloader.py: __next__",
			       "storage/client.py: read", "socket.py: readinto"),
		.stack_cnt = 4,
		.all_workers = true,
		.ranks = rank_range(report, 0, 16, 1),
		.rank_cnt = 16,
		.time_ms_per_iteration = 500.0,
		.delta_ms_per_iteration = 480.0,
		.beta = value(0.25, 0.01, REFERENCE_EXPECTED),
		.mu = value(0.98, 0.98, REFERENCE_EXPECTED),
		.sigma = value(0.01, 0.01, REFERENCE_EXPECTED),
		.expectation_distance = 0.24,
		.threshold = 0.05,
		.gain_ms_per_iteration = 480.0,
		.gain_pct = 24.0,
		.confidence = CONFIDENCE_HIGH,
		.evidence = TEXTS(
			report,
			"25 % of the window on the critical path, 1 % is expected of a host function",
			"the same on all 16 workers: no peer to compare with, the storage is shared"),
		.evidence_cnt = 2,
		.advice =
			"Read the data from faster storage, raise num_workers and prefetch_factor, "
			"or keep the next batch ready in memory.",
		.resource = "cpu_thread",
	};
}

static struct finding allreduce_row(struct report *report)
{
	return (struct finding){
		.id = "PT-202",
		.cause = "slow-link",
		.title = "The link of rank 7 is slower than those of its ring",
		.key = "1f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
		.name = "Ring Allreduce",
		.class = CLASS_COMM,
		.ranks = rank_range(report, 7, 1, 1),
		.rank_cnt = 1,
		.hosts = TEXTS(report, "gpu-000"),
		.host_cnt = 1,
		.victims = rank_range(report, 0, 7, 1),
		.victim_cnt = 7,
		.time_ms_per_iteration = 200.0,
		.beta = value(0.1, 0.1, REFERENCE_PEERS),
		.mu = value(0.37, 0.75, REFERENCE_PEERS),
		.sigma = value(0.05, 0.31, REFERENCE_PEERS),
		.differential_distance = 1.0,
		.threshold = 0.11,
		.gain_ms_per_iteration = 101.3,
		.gain_pct = 5.07,
		.confidence = CONFIDENCE_MEDIUM,
		.evidence = TEXTS(
			report,
			"37 % of PCIe Tx and steady (deviation 5 %): this link is the slow one",
			"its ring has 48 % with a deviation of 31 %: they wait for it after each chunk"),
		.evidence_cnt = 2,
		.advice =
			"Check the NIC and the bond of gpu-000: link speed, error counters, PFC pauses.",
		.resource = "pcie_tx",
	};
}

static struct finding gemm_row(struct report *report)
{
	return (struct finding){
		.id = "PT-201",
		.cause = "gpu-slow",
		.title = "The GPUs of ranks 0-3 compute slower than those of their peers",
		.key = "2f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
		.name = "CUDA GEMM",
		.class = CLASS_COMPUTE,
		.ranks = rank_range(report, 0, 4, 1),
		.rank_cnt = 4,
		.hosts = TEXTS(report, "gpu-000"),
		.host_cnt = 1,
		.victims = rank_range(report, 4, 12, 1),
		.victim_cnt = 12,
		.time_ms_per_iteration = 300.0,
		.delta_ms_per_iteration = 200.0,
		.beta = value(0.15, 0.05, REFERENCE_PEERS),
		.mu = value(0.33, 0.99, REFERENCE_PEERS),
		.sigma = value(0.05, 0.04, REFERENCE_PEERS),
		.differential_distance = 0.75,
		.threshold = 0.13,
		.gain_ms_per_iteration = 200.0,
		.gain_pct = 10.0,
		.confidence = CONFIDENCE_HIGH,
		.evidence = TEXTS(
			report, "300 ms per iteration where 12 peers need 100 ms for the same work",
			"33 % of the streaming multiprocessors active, peers 99 %"),
		.evidence_cnt = 2,
		.advice =
			"Look for throttling: nvidia-smi -q -d PERFORMANCE,TEMPERATURE on gpu-000.",
		.resource = "sm_active",
	};
}

static void set_ring_waits(struct report *report, int workers)
{
	struct report_wait *waits =
		must(arena_calloc(&report->arena, (size_t)workers * 2, sizeof(*waits)));
	size_t cnt = 0;

	for (int i = 0; i < workers; i++) {
		if (i != 2)
			waits[cnt++] = (struct report_wait){ 2, i, 6000.0 - i, 30 };
	}
	for (int i = 0; i < workers; i++) {
		if (i != 7)
			waits[cnt++] = (struct report_wait){ 7, i, 3039.0 - i, 60 };
	}
	report->waits = waits;
	report->wait_cnt = cnt;
}

static void make_figure7(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.04, 0.3, 0.11, 0.05, 0.5 };
	struct finding rows[3];

	job(report, "text-to-video", 16, 3.0, 2000.0);
	rows[0] = recv_into_row(report);
	rows[1] = gemm_row(report);
	rows[2] = allreduce_row(report);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		set_points(report, &rows[i], 16, 0.08);
	set_workers(report, 16, 3, 2000.0, shares);
	set_ring_waits(report, 16);
	set_findings(report, rows, ARRAY_SIZE(rows));
	report->trigger = (struct report_trigger){ true, "slowdown", 1221.0, 2000.0, 4200, 0 };
	report->overhead = (struct report_overhead){ .present = true,
						     .effect = { 120, 0.08, -0.02, 0.21 },
						     .always = { 120, 0.07, -0.03, 0.2 },
						     .window = { 16, 1.2, 0.4, 1.9 },
						     .audits = { 14, 250.0, 7200.0, 0.01 } };
	report->overhead.own.rank_ns = 16 * 7200 * NSEC_PER_SEC;
	report->overhead.own.cpu_ns[OWN_THREAD_SAMPLER] = 150 * NSEC_PER_SEC;
	report->overhead.own.cpu_ns[OWN_THREAD_DAEMON] = 63 * NSEC_PER_SEC;
	report->elapsed_ms = 812.0;
}

static void make_stall(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.05, 0.1, 0.8, 0.02, 0.03 };
	static const double late[CLASS_CNT] = { 0.88, 0.06, 0.01, 0.02, 0.03 };
	struct report_worker *workers;
	struct finding row = {
		.id = "PT-101",
		.cause = "host-stall",
		.title = "Rank 2 stands still in a place that its peers pass at once",
		.key = "3f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
		.name = "idle in \"# running sparse arch\", after aten::view, before _AlltoAllSingle",
		.class = CLASS_IDLE,
		.stack = TEXTS(report, "dlrm.py: main", "dlrm.py: train_step", "dlrm.py: forward",
			       "# running sparse arch"),
		.stack_cnt = 4,
		.ranks = rank_range(report, 2, 1, 1),
		.rank_cnt = 1,
		.victims = copied(report, (const int[]){ 0, 1, 3 }, 3 * sizeof(int)),
		.victim_cnt = 3,
		.time_ms_per_iteration = 1003.2,
		.delta_ms_per_iteration = 1001.1,
		.beta = value(0.86, 0.001, REFERENCE_PEERS),
		.expectation_distance = 0.85,
		.differential_distance = 1.0,
		.threshold = 0.25,
		.gain_ms_per_iteration = 1001.0,
		.gain_pct = 88.1,
		.confidence = CONFIDENCE_HIGH,
		.evidence = TEXTS(
			report,
			"rank 2 came last to 12 of 12 collectives, by 1000.6 ms in the median",
			"before each of them it was idle for 1001 ms; its peers for 2.1 ms"),
		.evidence_cnt = 2,
		.advice =
			"Look at what the thread does here without PyTorch: a sleep, a lock, file or "
			"network I/O. Record Python stacks (with_stack=True) to see the line.",
	};

	job(report, "dlrm4_sleep_1s", 4, 3.0, 1137.0);
	set_points(report, &row, 4, 0.1);
	test_set_origin(report, NULL);
	set_workers(report, 4, 3, 1137.0, shares);
	workers = copied(report, report->workers, 4 * sizeof(*workers));
	memcpy(workers[2].class_frac, late, sizeof(late));
	report->workers = workers;
	report->waits = copied(report,
			       (const struct report_wait[]){ { 2, 0, 3003.1, 12 },
							     { 2, 1, 3001.9, 12 },
							     { 2, 3, 3000.4, 12 },
							     { 0, 1, 2.25, 3 } },
			       4 * sizeof(struct report_wait));
	report->wait_cnt = 4;
	report->absences =
		copied(report,
		       (const struct report_absence[]){
			       { "utilization samples",
				 "the traces hold no counters; mu and sigma are absent" } },
		       sizeof(struct report_absence));
	report->absence_cnt = 1;
	set_findings(report, &row, 1);
	test_set_pictures(report, "loader.py: load_batch");
}

static void make_healthy(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.03, 0.09, 0.13, 0.05, 0.7 };

	job(report, "resnet18_ddp2", 2, 8.0, 91.7);
	report->rank_source = "file names";
	report->verdict = VERDICT_HEALTHY;
	report->reason =
		"no function differs between the 2 workers by more than 1 % of the iteration";
	report->notes = TEXTS(report, "collectives differ by at most 0.4 ms per iteration");
	report->note_cnt = 1;
	set_workers(report, 2, 8, 91.7, shares);
}

static void make_inconclusive(struct report *report)
{
	struct report_worker *workers;
	static const double shares[CLASS_CNT] = { 0.03, 0.09, 0.13, 0.05, 0.7 };

	job(report, "", 8, 1.0, 126.1);
	report->verdict = VERDICT_INCONCLUSIVE;
	report->reason =
		"only 3 of 8 workers could be read and the window holds 1 iteration; profile at "
		"least 3 iterations on all workers";
	report->workers_analyzed = 3;
	report->missing = copied(report, (const int[]){ 1, 2, 3, 5, 7 }, 5 * sizeof(int));
	report->missing_cnt = 5;
	report->failures = copied(
		report,
		(const struct report_failure[]){
			{ "traces/rank1.json.gz",
			  "byte 1048576: the compressed data ends in the middle of a block" },
			{ "traces/rank5.json", "byte 0: expected '{' or '[', found 'P'" } },
		2 * sizeof(struct report_failure));
	report->failure_cnt = 2;
	report->absences = copied(report,
				  (const struct report_absence[]){
					  { "sm_active", "not recorded" },
					  { "python stacks", "profiled without with_stack=True" } },
				  2 * sizeof(struct report_absence));
	report->absence_cnt = 2;
	report->notes = TEXTS(report, "rank0.json: 12 events of an unknown category");
	report->note_cnt = 1;
	set_workers(report, 3, 1, 126.1, shares);
	workers = copied(report, report->workers, 3 * sizeof(*workers));
	workers[1].rank = 4;
	workers[2].rank = 6;
	report->workers = workers;
}

static void make_blocked(struct report *report)
{
	struct finding row = {
		.id = "PT-906",
		.cause = "collective-not-entered",
		.title =
			"Rank 3 has not come back from a collective for 61 s; 7 others wait for it",
		.key = "4f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e",
		.name = "checkpoint.py: save",
		.class = CLASS_HOST,
		.stack = TEXTS(report, "train.py: main", "checkpoint.py: save", "fsync"),
		.stack_cnt = 3,
		.ranks = rank_range(report, 3, 1, 1),
		.rank_cnt = 1,
		.victims = copied(report, (const int[]){ 0, 1, 2, 4, 5, 6, 7 }, 7 * sizeof(int)),
		.victim_cnt = 7,
		.time_ms_per_iteration = (double)NAN,
		.delta_ms_per_iteration = (double)NAN,
		.gain_ms_per_iteration = (double)NAN,
		.gain_pct = (double)NAN,
		.expectation_distance = (double)NAN,
		.differential_distance = (double)NAN,
		.threshold = (double)NAN,
		.confidence = CONFIDENCE_HIGH,
		.evidence =
			TEXTS(report,
			      "7 ranks stand in all_reduce number 4711, rank 3 has not entered it"),
		.evidence_cnt = 1,
		.advice =
			"See where rank 3 stands: its stack is above. A file system that does not "
			"answer blocks fsync; check the mount.",
	};

	job(report, "llm-70b", 8, 0.0, (double)NAN);
	set_findings(report, &row, 1);
	test_set_hang_stacks(report);
	report->trigger = (struct report_trigger){ true, "blocked", 812.0, (double)NAN, 9001, 0 };
	report->overhead = (struct report_overhead){ .present = true,
						     .torch = true,
						     .effect = { 1240, 0.7, 0.6, 0.8 },
						     .always = { 1240, 0.7, 0.6, 0.8 },
						     .less_samples = true,
						     .no_operators = true,
						     .only_marks = true };
}

static void make_slow(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.05, 0.8, 0.05, 0.0, 0.1 };

	job(report, "resnet18_ddp2", 2, 16.0, 33.9);
	report->verdict = VERDICT_SLOW;
	report->reason = "9.8 -> 33.8 ms since step 650 (3.4x)";
	report->trigger = (struct report_trigger){ true, "slowdown", 9.8, 33.8, 700, 650 };
	report->loop = (struct report_loop){ "5 x (loader, optimizer 1), optimizer 2", 12, 1, 2 };
	report->shares = copied(
		report,
		(const struct report_share[]){
			{ "loader.py: collate", "loader.py: __next__", 1, CLASS_HOST, 0.71, 24.07 },
			{ "ampere_sgemm_128x64_tn", "aten::linear", 12, CLASS_COMPUTE, 0.1, 3.39 },
			{ "outside of all functions", "", 1, CLASS_IDLE, 0.05, 1.7 } },
		3 * sizeof(struct report_share));
	report->share_cnt = 3;
	test_set_origin(report, "torchrun --nproc-per-node 2 train.py --hf-token ***");
	test_set_pace(report);
	set_workers(report, 2, 16, 33.9, shares);
}

static void make_failed(struct report *report)
{
	job(report, "live", 4, 60.0, 9.8);
	report->verdict = VERDICT_FAILED;
	report->reason = "(exit 1) after 60 steps; rank 2 (pid 77) was the first to end";
}

static void make_throttled(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.02, 0.05, 0.23, 0.05, 0.65 };
	struct finding rows[2];

	job(report, "text-to-picture", 3000, 20.0, 9000.0);
	rows[0] = gemm_row(report);
	rows[0].ranks = rank_range(report, 5, 300, 9);
	rows[0].rank_cnt = 300;
	rows[0].title = "300 GPUs compute slower than those of their peers";
	rows[0].victims = rank_range(report, 0, 5, 1);
	rows[0].victim_cnt = 5;
	rows[1] = allreduce_row(report);
	rows[1].ranks = rank_range(report, 2000, 3, 16);
	rows[1].rank_cnt = 3;
	rows[1].title = "3 workers send over PCIe what their peers send over NVLink";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		set_points(report, &rows[i], 3000, 0.3);
	set_workers(report, 3000, 20, 9000.0, shares);
	set_ring_waits(report, 3000);
	set_findings(report, rows, ARRAY_SIZE(rows));
}

static void make_many(struct report *report)
{
	static const double shares[CLASS_CNT] = { 0.02, 0.05, 0.23, 0.05, 0.65 };
	struct finding rows[12];

	job(report, "many", 32, 10.0, 800.0);
	for (int i = 0; i < 12; i++) {
		rows[i] = gemm_row(report);
		rows[i].id = "PT-302";
		rows[i].cause = "unexplained-difference";
		rows[i].title = "This function takes longer here than on the peers";
		rows[i].name = must(arena_printf(
			&report->arena,
			"ampere_bf16_s16816gemm_bf16_%dx128_ldg8_f2f_stages_64x%d_tn", 64 + i, i));
		rows[i].ranks = rank_range(report, i, (size_t)(1 + i % 4), 2);
		rows[i].rank_cnt = (size_t)(1 + i % 4);
		rows[i].confidence = CONFIDENCE_LOW;
		rows[i].time_ms_per_iteration = 90.0 - 6.0 * i;
		rows[i].delta_ms_per_iteration = 70.0 - 5.5 * i;
		rows[i].gain_ms_per_iteration = 70.0 - 5.5 * i;
		rows[i].gain_pct = rows[i].gain_ms_per_iteration / 8.0;
		set_points(report, &rows[i], 32, 0.2);
	}
	set_workers(report, 32, 10, 800.0, shares);
	set_findings(report, rows, ARRAY_SIZE(rows));
}

void sample_make_named(const char *text, struct report *ret)
{
	static const double shares[CLASS_CNT] = { 0.2, 0.2, 0.2, 0.2, 0.2 };
	struct finding row;
	struct report_worker *workers;

	*ret = (struct report){ 0 };
	arena_init(&ret->arena);
	job(ret, text, 2, 2.0, 100.0);
	ret->reason = ret->rank_source = text;
	row = gemm_row(ret);
	row.title = row.name = row.advice = row.resource = text;
	row.stack = row.hosts = row.evidence = TEXTS(ret, text, text);
	row.stack_cnt = row.host_cnt = row.evidence_cnt = 2;
	row.ranks = rank_range(ret, 0, 1, 1);
	row.rank_cnt = 1;
	row.victims = rank_range(ret, 1, 1, 1);
	row.victim_cnt = 1;
	set_points(ret, &row, 2, 0.2);
	set_workers(ret, 2, 2, 100.0, shares);
	workers = copied(ret, ret->workers, 2 * sizeof(*workers));
	workers[0].host = workers[0].source = workers[1].host = workers[1].source = text;
	ret->workers = workers;
	ret->waits = copied(ret, (const struct report_wait[]){ { 0, 1, 5.0, 1 } },
			    sizeof(struct report_wait));
	ret->wait_cnt = 1;
	ret->notes = TEXTS(ret, text);
	ret->note_cnt = 1;
	ret->absences = copied(ret, (const struct report_absence[]){ { text, text } },
			       sizeof(struct report_absence));
	ret->absence_cnt = 1;
	ret->failures = copied(ret, (const struct report_failure[]){ { text, text } },
			       sizeof(struct report_failure));
	ret->failure_cnt = 1;
	ret->trigger = (struct report_trigger){ true, "request", 50.0, 100.0, 7, 0 };
	set_findings(ret, &row, 1);
	test_set_named(ret, text);
}

static void make_hostile(struct report *report)
{
	sample_make_named("<script>alert('x')</script> \"a\" ]]> \x1b[31mred \xe2\x80\xae"
			  "gnp \xff",
			  report);
}

#define ALL "txt verbose.txt json html"

const struct sample_report sample_reports[] = {
	{ "figure7", make_figure7, ALL },
	{ "stall", make_stall, ALL },
	{ "healthy", make_healthy, ALL },
	{ "inconclusive", make_inconclusive, ALL },
	{ "blocked", make_blocked, ALL },
	{ "hostile", make_hostile, ALL },
	{ "slow", make_slow, ALL },
	{ "failed", make_failed, "txt json html" },
	{ "many", make_many, "txt verbose.txt json" },
	{ "throttled", make_throttled, "txt" },
	{ 0 },
};

void sample_make(const char *name, struct report *ret)
{
	for (const struct sample_report *s = sample_reports; s->name != NULL; s++) {
		if (strcmp(s->name, name) == 0) {
			*ret = (struct report){ 0 };
			arena_init(&ret->arena);
			s->make(ret);
			return;
		}
	}
	abort();
}
