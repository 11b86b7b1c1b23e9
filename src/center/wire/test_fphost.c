/* SPDX-License-Identifier: Apache-2.0 */
#include "center/wire/test_fphost.h"

#include "format/fingerprint/test_fpvalues.h"

#define FRAMES 9

const struct fpwire_options complete = { .detail = FPWIRE_LEADS, .names = true };
const struct fpwire_options nameless = { .detail = FPWIRE_LEADS };

/* Of any size up to the limit of times. */
static int64_t some_ns(void)
{
	return (int64_t)(rnd() >> 3 >> below(61));
}

/* The program that all workers run, as some of them see it. */
static void fill_frames(struct fingerprint *fp, uint64_t program)
{
	fp->frames = arena_calloc(&fp->arena, FRAMES, sizeof(*fp->frames));
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint64_t hash = (program + i + 1) * 0x9e3779b97f4a7c15ULL;

		fp->frames[i] = (struct fp_frame){
			.key = { hash, ~hash },
			.parent = i == 0 || hash % 3 == 0 ? FRAME_NONE : (uint32_t)(hash >> 8) % i,
			.kind = (uint8_t)(hash % KIND_CNT),
			.name = arena_printf(&fp->arena, "torch/nn/%u.py(%zu): call_%llx", i,
					     10 + below(2), (unsigned long long)hash % 100),
		};
	}
	fp->frame_cnt = FRAMES;
}

static double some_mean(void)
{
	return below(3) == 0 ? -1 : (double)some_ns() / 16;
}

/* Each frame and class at most once, largest share first. */
static void fill_functions(struct fingerprint *fp)
{
	int64_t share_ns = some_ns();

	fp->functions = arena_calloc(&fp->arena, FRAMES + 1, sizeof(*fp->functions));
	for (uint32_t i = 0; i <= FRAMES; i++) {
		if (below(3) == 0)
			continue;
		share_ns -= share_ns / (int64_t)(1 + below(9));
		fp->functions[fp->function_cnt++] = (struct fp_function){
			.frame = i < FRAMES ? i : FRAME_NONE,
			.class = (uint8_t)below(CLASS_CNT),
			.resource = (uint8_t)below(RESOURCE_CNT + 1),
			.beta_frac = (double)below(1000) / 1000,
			.mu_frac = some_frac(),
			.sigma_frac = some_frac(),
			.executions = rnd() >> 2 >> below(62),
			.total_ns = below(2) == 0 ? share_ns : some_ns(),
			.share_ns = share_ns,
			.thread_ns = below(2) == 0 ? 0 : share_ns,
			.elements = some_mean(),
			.bytes = some_mean(),
		};
	}
}

static void fill_shares(struct fingerprint *fp)
{
	fp->share_cnt = below(12);
	fp->shares = arena_calloc(&fp->arena, fp->share_cnt + 1, sizeof(*fp->shares));
	for (size_t i = 0; i < fp->share_cnt; i++)
		fp->shares[i] = (struct fp_share){
			fp->function_cnt == 0 || below(4) == 0 ? FRAME_NONE
							       : (uint32_t)below(fp->function_cnt),
			some_ns(),
		};
}

static void fill_collectives(struct fingerprint *fp)
{
	fp->collective_cnt = below(8);
	fp->collectives =
		arena_calloc(&fp->arena, fp->collective_cnt + 1, sizeof(*fp->collectives));
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		struct fp_collective *c = &fp->collectives[i];

		*c = (struct fp_collective){
			.group = 1000 + below(2),
			.name = below(3),
			.seq = below(3) == 0 ? -1 : (int64_t)(100 + i),
			.start_ns = below(2) == 0 ? some_ns() : -some_ns(),
			.dur_ns = some_ns(),
			.bytes = below(2) == 0 ? -1 : some_ns(),
			.group_size = (int32_t)below(9),
			.group_known = below(2) == 0,
			.lead_ns = some_ns(),
			.lead_first = (uint32_t)below(fp->share_cnt + 1),
			.host_ns = some_ns(),
			.host_first = (uint32_t)below(fp->share_cnt + 1),
			.host_gated = below(2) == 0,
		};
		c->critical_ns = below(2) == 0 ? c->dur_ns : some_ns();
		c->lead_cnt = (uint32_t)below(fp->share_cnt + 1 - c->lead_first);
		c->host_cnt = (uint32_t)below(fp->share_cnt + 1 - c->host_first);
	}
}

static void fill_iterations(struct fingerprint *fp)
{
	int64_t start_ns = -some_ns() / 8, number = (int64_t)below(3) - 1;

	fp->iteration_cnt = below(5);
	fp->iterations = arena_calloc(&fp->arena, fp->iteration_cnt + 1, sizeof(*fp->iterations));
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		fp->iterations[i] = (struct fp_iteration){ number, start_ns, some_ns() / 8 };
		start_ns += fp->iterations[i].dur_ns + (int64_t)below(50000);
		number += below(5) != 0;
	}
}

static void fill_host(struct fingerprint *fp)
{
	double *fracs[] = { &fp->host_stats.cpu_frac,	     &fp->host_stats.run_delay_frac,
			    &fp->host_stats.other_cpu_frac,  &fp->host_stats.thief_frac,
			    &fp->host_stats.psi_cpu_frac,    &fp->host_stats.psi_io_frac,
			    &fp->host_stats.psi_memory_frac, &fp->host_stats.gpu_throttled_frac,
			    &fp->host_stats.gpu_clock_frac };

	for (size_t i = 0; i < ARRAY_SIZE(fracs); i++)
		*fracs[i] = below(3) == 0 ? -1 : (double)below(4000) / 1000;
	fp->host_stats.other_name = some_text(fp);
	fp->host_stats.thief = below(2) == 0 ? NULL : some_text(fp);
	fp->host_stats.awaited = below(2) == 0 ? NULL : some_text(fp);
	fp->host_stats.gc_ns = some_ns();
	fp->host_stats.gc_cnt = (int64_t)below(1000);
}

static void fill_classes(struct fingerprint *fp)
{
	int64_t rest = fp->window_ns;

	for (int c = CLASS_IDLE + 1; c < CLASS_CNT; c++) {
		fp->class_ns[c] = (int64_t)(rnd() % (uint64_t)rest);
		rest -= fp->class_ns[c];
		rest += rest == 0;
	}
	fp->class_ns[CLASS_IDLE] = fp->window_ns;
	for (int c = CLASS_IDLE + 1; c < CLASS_CNT; c++)
		fp->class_ns[CLASS_IDLE] =
			MAX(fp->class_ns[CLASS_IDLE] - fp->class_ns[c], (int64_t)0);
}

static void fill_worker(struct fingerprint *fp, int rank, uint64_t program)
{
	uint64_t *drops = (uint64_t *)&fp->drops;

	fingerprint_init(fp);
	fp->job_id = some_text(fp);
	fp->host = "host-1";
	fp->source = arena_printf(&fp->arena, "traces/%d.json", rank);
	fp->device_name = some_text(fp);
	fp->rank = rank;
	fp->world_size = (int)below(100) - 1;
	fp->pid = (int64_t)rnd();
	fp->window_start_wall_ns = (int64_t)rnd();
	fp->window_ns = 1 + some_ns();
	fp->has_device = below(2) == 0;
	fp->has_stacks = below(2) == 0;
	fp->iterations_known = below(2) == 0;
	fp->iterations_by = fp->iterations_known ? 1 + below(ITERATIONS_BY_CNT - 1) : 0;
	fp->rest_ns = some_ns();
	fp->collective_dropped = below(2) == 0 ? 0 : rnd() / 2;
	fp->resources = (uint32_t)rnd();
	fp->event_cnt = rnd();
	drops[below(sizeof(fp->drops) / sizeof(*drops))] = rnd();
	fill_classes(fp);
	fill_host(fp);
	fill_frames(fp, program);
	fill_functions(fp);
	fill_shares(fp);
	fill_collectives(fp);
	fill_iterations(fp);
}

void host_init(struct host *host, uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ULL + 1;
	*host = (struct host){ .cnt = 1 + below(HOST_MAX) };
	for (size_t i = 0; i < host->cnt; i++) {
		fill_worker(&host->fps[i], (int)(seed * HOST_MAX + i), seed / 2);
		host->list[i] = &host->fps[i];
	}
	host->rng = rng;
}

void host_done(struct host *host)
{
	for (size_t i = 0; i < host->cnt; i++)
		fingerprint_done(&host->fps[i]);
}

void make_short(struct fingerprint *fp)
{
	fp->function_cnt = 2;
	for (uint32_t i = 0; i < 2; i++)
		fp->functions[i] = (struct fp_function){ .frame = i,
							 .class = CLASS_HOST,
							 .resource = RESOURCE_CNT,
							 .share_ns = i == 0 ? 1500 : 20,
							 .elements = -1,
							 .bytes = -1 };
	fp->rest_ns = 7;
	fp->collective_cnt = 2;
	fp->collective_dropped = 1;
	fp->shares = arena_calloc(&fp->arena, 2, sizeof(*fp->shares));
	fp->collectives = arena_calloc(&fp->arena, 2, sizeof(*fp->collectives));
	fp->shares[0] = (struct fp_share){ 0, 1500 };
	fp->shares[1] = (struct fp_share){ 1, 20 };
	fp->share_cnt = 2;
	for (int i = 0; i < 2; i++)
		fp->collectives[i] = (struct fp_collective){
			.seq = i, .start_ns = 2000 * i, .bytes = -1, .lead_ns = 1520, .lead_cnt = 2
		};
}

struct str encode(const struct host *host, const struct fpwire_options *options)
{
	struct str out = { 0 };
	struct err err;

	if (fpwire_encode(host->list, host->cnt, options, &out, &err) < 0)
		fail_msg("%s", err.text);
	return out;
}

void decode(struct fpwire *m, const struct str *message, struct fpnames *names)
{
	struct err err;

	if (fpwire_decode(m, message->data, message->len, names, &err) < 0)
		fail_msg("%s", err.text);
}

struct fingerprint rebuild(const struct fpwire *m, size_t worker, const struct fpnames *names)
{
	struct fingerprint fp;

	assert_int_equal(fpwire_rebuild(m, worker, names, &fp, NULL), 0);
	return fp;
}
