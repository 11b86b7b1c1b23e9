/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fpwire.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* Allocations left before all fail; negative: no limit. Only this test binary is wrapped. */
static int allocations_left = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool may_allocate(void)
{
	if (allocations_left < 0)
		return true;
	if (allocations_left == 0)
		return false;
	allocations_left--;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return may_allocate() ? __real_calloc(cnt, size) : NULL;
}

void *__wrap_realloc(void *p, size_t size)
{
	return may_allocate() ? __real_realloc(p, size) : NULL;
}

/* --- random hosts --- */

#define HOST_MAX 4
#define FRAMES 9

struct host {
	struct fingerprint fps[HOST_MAX];
	const struct fingerprint *list[HOST_MAX];
	size_t cnt;
};

static uint64_t rng;

/* xorshift64*: the same hosts on every machine. */
static uint64_t rnd(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * 0x2545f4914f6cdd1dULL;
}

static size_t below(size_t limit)
{
	return (size_t)(rnd() % limit);
}

/* Of any size up to the limit of times. */
static int64_t some_ns(void)
{
	return (int64_t)(rnd() >> 3 >> below(61));
}

static double some_frac(void)
{
	static const double special[] = { 0, 1, (double)NAN, 5e-324 };
	size_t pick = below(8);

	return pick < 4 ? special[pick] : (double)(rnd() >> 11) * 0x1p-53;
}

static const char *some_text(struct fingerprint *fp)
{
	char text[40];
	size_t len = below(sizeof(text));

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(1 + below(255));
	return arena_strndup(&fp->arena, text, len);
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
			.start_ns = some_ns() - some_ns(),
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
	double *fracs[] = { &fp->host_stats.cpu_frac,	    &fp->host_stats.run_delay_frac,
			    &fp->host_stats.other_cpu_frac, &fp->host_stats.thief_frac,
			    &fp->host_stats.psi_cpu_frac,   &fp->host_stats.psi_io_frac,
			    &fp->host_stats.psi_memory_frac };

	for (size_t i = 0; i < ARRAY_SIZE(fracs); i++)
		*fracs[i] = below(3) == 0 ? -1 : (double)below(4000) / 1000;
	fp->host_stats.other_name = some_text(fp);
	fp->host_stats.thief = below(2) == 0 ? NULL : some_text(fp);
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

static void host_init(struct host *host, uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ULL + 1;
	*host = (struct host){ .cnt = 1 + below(HOST_MAX) };
	for (size_t i = 0; i < host->cnt; i++) {
		fill_worker(&host->fps[i], (int)(seed * HOST_MAX + i), seed / 2);
		host->list[i] = &host->fps[i];
	}
}

static void host_done(struct host *host)
{
	for (size_t i = 0; i < host->cnt; i++)
		fingerprint_done(&host->fps[i]);
}

/* --- the way there and back --- */

static const struct fpwire_options complete = { .detail = FPWIRE_LEADS, .names = true };
static const struct fpwire_options nameless = { .detail = FPWIRE_LEADS };

static struct str encode(const struct host *host, const struct fpwire_options *options)
{
	struct str out = { 0 };
	struct err err;

	if (fpwire_encode(host->list, host->cnt, options, &out, &err) < 0)
		fail_msg("%s", err.text);
	return out;
}

static void decode(struct fpwire *m, const struct str *message, struct fpnames *names)
{
	struct err err;

	if (fpwire_decode(m, message->data, message->len, names, &err) < 0)
		fail_msg("%s", err.text);
}

static struct fingerprint rebuild(const struct fpwire *m, size_t worker,
				  const struct fpnames *names)
{
	struct fingerprint fp;

	assert_int_equal(fpwire_rebuild(m, worker, names, &fp, NULL), 0);
	return fp;
}

/* All that a rebuilt fingerprint holds, as bytes. */
static struct str bytes_of(const struct fpwire *m, size_t worker, const struct fpnames *names)
{
	struct fingerprint fp = rebuild(m, worker, names);
	const struct fingerprint *list = &fp;
	struct str out = { 0 };
	struct err err;

	for (size_t i = 0; i < fp.function_cnt; i++)
		str_printf(&out, "%u,", fp.functions[i].frame);
	for (size_t i = 0; i < fp.frame_cnt; i++)
		str_printf(&out, "%u %s,", fp.frames[i].parent, fp.frames[i].name);
	assert_int_equal(fpwire_encode(&list, 1, &complete, &out, &err), 0);
	fingerprint_done(&fp);
	return out;
}

static void assert_same(struct str a, struct str b)
{
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	str_done(&a);
	str_done(&b);
}

/* --- what may be lost --- */

static void assert_near(double found, double expected, double share, double least)
{
	if (isnan(expected) && isnan(found))
		return;
	if (!(fabs(found - expected) <= fmax(fabs(expected) * share, least)))
		fail_msg("expected %.17g, found %.17g", expected, found);
}

#define HALF (1.0 / 2048)

static void check_stack(const struct fingerprint *a, uint32_t x, const struct fingerprint *b,
			uint32_t y)
{
	while (x != FRAME_NONE && y != FRAME_NONE) {
		const struct fp_frame *f = &a->frames[x], *g = &b->frames[y];

		assert_true(funckey_equal(f->key, g->key));
		assert_int_equal(f->kind, g->kind);
		assert_string_equal(f->name, g->name);
		assert_true(g->parent == FRAME_NONE || g->parent < y);
		x = f->parent;
		y = g->parent;
	}
	assert_int_equal(x, y);
}

static uint32_t find_function(const struct fingerprint *fp, const struct fingerprint *in,
			      const struct fp_function *f)
{
	for (uint32_t i = 0; i < in->function_cnt; i++) {
		const struct fp_function *g = &in->functions[i];
		bool both = f->frame != FRAME_NONE && g->frame != FRAME_NONE;

		if (g->class == f->class && (both || f->frame == g->frame) &&
		    (!both || funckey_equal(fp->frames[f->frame].key, in->frames[g->frame].key)))
			return i;
	}
	fail_msg("a function is lost");
	return 0;
}

static void check_functions(const struct fingerprint *a, const struct fingerprint *b)
{
	assert_int_equal(a->function_cnt, b->function_cnt);
	for (size_t i = 0; i < a->function_cnt; i++) {
		const struct fp_function *f = &a->functions[i];
		const struct fp_function *g = &b->functions[find_function(a, b, f)];

		check_stack(a, f->frame, b, g->frame);
		assert_int_equal(f->resource, g->resource);
		assert_near((double)g->share_ns, (double)f->share_ns, HALF, 0);
		assert_near(g->beta_frac, f->beta_frac, 4 * HALF, 0x1p-29);
		assert_near((double)g->total_ns, (double)f->total_ns, 16 * HALF, 4);
		assert_near((double)g->thread_ns, (double)f->thread_ns, 4 * HALF, 1);
		assert_near(g->mu_frac, f->mu_frac, HALF, 0x1p-30);
		assert_near(g->sigma_frac, f->sigma_frac, HALF, 0x1p-30);
		assert_near((double)g->executions, (double)f->executions, HALF, 0);
		assert_near(g->elements, f->elements, HALF, 1.0 / 32);
		assert_near(g->bytes, f->bytes, HALF, 1.0 / 32);
		assert_near((double)g->critical_ns, g->beta_frac * (double)b->window_ns, 0, 1);
	}
	for (size_t i = 1; i < b->function_cnt; i++)
		assert_true(b->functions[i - 1].share_ns >= b->functions[i].share_ns);
}

/* The shares of a list that are in a function; those that are in none are one. */
static double in_function(const struct fingerprint *fp, uint32_t first, uint32_t cnt,
			  uint32_t function)
{
	double sum = 0;

	for (uint32_t i = first; i < first + cnt; i++)
		sum += fp->shares[i].function == function ? (double)fp->shares[i].ns : 0;
	return sum;
}

static void check_leads(const struct fingerprint *a, const struct fp_collective *c,
			const struct fingerprint *b, const struct fp_collective *d)
{
	for (uint32_t f = 0; f <= a->function_cnt; f++) {
		bool none = f == a->function_cnt;
		uint32_t from = none ? FRAME_NONE : f;
		uint32_t to = none ? FRAME_NONE : find_function(a, b, &a->functions[f]);

		/* Time that is in no function is capped where it does not fit. */
		assert_near(in_function(b, d->lead_first, d->lead_cnt, to),
			    fmin(in_function(a, c->lead_first, c->lead_cnt, from),
				 none ? 0x1p61 : (double)INFINITY),
			    HALF, 0);
		assert_near(in_function(b, d->host_first, d->host_cnt, to),
			    fmin(in_function(a, c->host_first, c->host_cnt, from),
				 none ? 0x1p61 : (double)INFINITY),
			    HALF, 0);
	}
	assert_near((double)d->lead_ns, (double)c->lead_ns, HALF, 0);
	assert_near((double)d->host_ns, (double)c->host_ns, HALF, 0);
}

static void check_collectives(const struct fingerprint *a, const struct fingerprint *b)
{
	assert_int_equal(a->collective_cnt, b->collective_cnt);
	for (size_t i = 0; i < a->collective_cnt; i++) {
		const struct fp_collective *c = &a->collectives[i], *d = &b->collectives[i];

		assert_int_equal(c->group, d->group);
		assert_int_equal(c->name, d->name);
		assert_int_equal(c->seq, d->seq);
		assert_int_equal(c->bytes, d->bytes);
		assert_int_equal(c->group_size, d->group_size);
		assert_int_equal(c->group_known, d->group_known);
		assert_int_equal(c->host_gated, d->host_gated);
		assert_in_range(c->start_ns - d->start_ns, 0, 999);
		assert_in_range(c->start_ns + c->dur_ns - d->start_ns - d->dur_ns, 0, 999);
		assert_near((double)d->critical_ns, (double)c->critical_ns, HALF, 1000);
		check_leads(a, c, b, d);
	}
}

static void check_iterations(const struct fingerprint *a, const struct fingerprint *b)
{
	double mean = 0;

	assert_int_equal(a->iteration_cnt, b->iteration_cnt);
	for (size_t i = 0; i < a->iteration_cnt; i++)
		mean += (double)a->iterations[i].dur_ns / (double)a->iteration_cnt;
	for (size_t i = 0; i < a->iteration_cnt; i++) {
		const struct fp_iteration *s = &a->iterations[i], *t = &b->iterations[i];

		assert_int_equal(s->number, t->number);
		assert_near((double)t->start_ns, (double)s->start_ns, 0x1p-52, mean / 4096);
		assert_near((double)(t->start_ns + t->dur_ns), (double)(s->start_ns + s->dur_ns),
			    0x1p-52, mean / 4096);
	}
}

static void check_host(const struct fp_host *a, const struct fp_host *b)
{
	assert_near(b->cpu_frac, a->cpu_frac, HALF, 0);
	assert_near(b->run_delay_frac, a->run_delay_frac, HALF, 0);
	assert_near(b->other_cpu_frac, a->other_cpu_frac, HALF, 0);
	assert_near(b->thief_frac, a->thief_frac, HALF, 0);
	assert_near(b->psi_cpu_frac, a->psi_cpu_frac, HALF, 0);
	assert_near(b->psi_io_frac, a->psi_io_frac, HALF, 0);
	assert_near(b->psi_memory_frac, a->psi_memory_frac, HALF, 0);
	assert_near((double)b->gc_ns, (double)a->gc_ns, HALF, 0);
	assert_int_equal(a->gc_cnt, b->gc_cnt);
	assert_string_equal(a->other_name, b->other_name);
	assert_string_equal(a->thief != NULL ? a->thief : "", b->thief);
}

static void check_identity(const struct fingerprint *a, const struct fingerprint *b)
{
	int64_t classes = 0;

	assert_string_equal(a->job_id, b->job_id);
	assert_string_equal(a->host, b->host);
	assert_string_equal(a->source, b->source);
	assert_string_equal(a->device_name, b->device_name);
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->world_size, b->world_size);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->window_start_wall_ns, b->window_start_wall_ns);
	assert_int_equal(a->window_ns, b->window_ns);
	assert_int_equal(a->has_device, b->has_device);
	assert_int_equal(a->has_stacks, b->has_stacks);
	assert_int_equal(a->iterations_known, b->iterations_known);
	assert_int_equal(a->collective_dropped, b->collective_dropped);
	assert_int_equal(a->resources, b->resources);
	assert_int_equal(a->event_cnt, b->event_cnt);
	assert_memory_equal(&a->drops, &b->drops, sizeof(a->drops));
	assert_near((double)b->rest_ns, (double)a->rest_ns, HALF, 0);
	for (int c = 0; c < CLASS_CNT; c++) {
		assert_near((double)b->class_ns[c], (double)a->class_ns[c], 0, 4000);
		classes += a->class_ns[c] - b->class_ns[c];
	}
	assert_near((double)classes, 0, 0, 5000);
}

static void check_all(const struct fingerprint *a, const struct fingerprint *b)
{
	check_identity(a, b);
	check_host(&a->host_stats, &b->host_stats);
	check_functions(a, b);
	check_collectives(a, b);
	check_iterations(a, b);
}

/* --- numbers and names --- */

static void codes_keep_eleven_bits_and_the_order(void **state)
{
	uint64_t before = 0;

	(void)state;
	for (uint32_t code = 0; code <= CODE16_TOP; code++) {
		uint64_t count = code16_count((uint16_t)code);

		assert_int_equal(code16_of_count(count), code);
		assert_true(code == 0 || count > before);
		before = count;
	}
	rng = 7;
	for (int i = 0; i < 100000; i++) {
		uint64_t count = rnd() >> 2 >> below(62);

		assert_near((double)code16_count(code16_of_count(count)), (double)count, HALF, 0);
	}
	assert_int_equal(code16_of_count(UINT64_MAX), CODE16_TOP);
	assert_int_equal(code16_of_frac(1), CODE16_ONE);
	assert_int_equal(code16_of_frac(0), 0);
	assert_int_equal(code16_of_frac((double)NAN), CODE16_ABSENT);
	assert_int_equal(code16_of_frac(-1), CODE16_ABSENT);
	assert_true(isnan(code16_frac(CODE16_ABSENT)));
	assert_true(code16_frac(code16_of_frac((double)INFINITY)) >= 0x1p31);
}

static void a_name_has_a_place_before_it_is_known(void **state)
{
	struct fpnames names = { 0 };
	struct funckey key = { 1, 2 };
	struct fpname_id root = fpname_id_of(fpname_none, key, KIND_PYTHON, "main", 4);
	struct fpname_id leaf = fpname_id_of(root, key, KIND_PYTHON, "leaf", 4);
	uint32_t at_leaf, at_root, found;

	(void)state;
	assert_int_equal(fpnames_place(&names, leaf, &at_leaf), 0);
	assert_int_equal(names.unknown_cnt, 1);
	assert_null(names.list.data[at_leaf].text);
	assert_int_equal(fpnames_learn(&names, FRAME_NONE, key, KIND_PYTHON, "main", 4, &at_root),
			 0);
	assert_int_equal(fpnames_learn(&names, at_root, key, KIND_PYTHON, "leaf", 4, &found), 0);
	assert_int_equal(found, at_leaf);
	assert_int_equal(names.unknown_cnt, 0);
	assert_int_equal(names.list.data[at_leaf].parent, at_root);
	assert_string_equal(names.list.data[at_leaf].text, "leaf");
	assert_int_equal(fpnames_find(&names, leaf), at_leaf);
	assert_int_equal(fpnames_place(&names, fpname_none, &found), 0);
	assert_int_equal(found, FRAME_NONE);
	fpnames_done(&names);
}

static void whatever_makes_a_frame_makes_its_id(void **state)
{
	struct funckey key = { 1, 2 }, other = { 1, 3 };
	struct fpname_id id = fpname_id_of(fpname_none, key, KIND_PYTHON, "f", 1);

	(void)state;
	assert_false(fpname_id_equal(id, fpname_id_of(id, key, KIND_PYTHON, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, other, KIND_PYTHON, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, key, KIND_GC, "f", 1)));
	assert_false(fpname_id_equal(id, fpname_id_of(fpname_none, key, KIND_PYTHON, "g", 1)));
}

static void a_dictionary_of_thousands_finds_each(void **state)
{
	struct fpnames names = { 0 };
	uint32_t place;

	(void)state;
	for (uint64_t i = 1; i < 5000; i++) {
		assert_int_equal(fpnames_place(&names, (struct fpname_id){ i, i % 7 }, &place), 0);
		assert_int_equal(place, i - 1);
	}
	for (uint64_t i = 1; i < 5000; i++)
		assert_int_equal(fpnames_find(&names, (struct fpname_id){ i, i % 7 }), i - 1);
	assert_int_equal(fpnames_find(&names, (struct fpname_id){ 1, 3 }), FRAME_NONE);
	fpnames_done(&names);
}

/* --- messages --- */

static void what_is_lost_is_what_is_stated(void **state)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct host host;
		struct str message;

		host_init(&host, seed);
		message = encode(&host, &complete);
		decode(&m, &message, &names);
		assert_int_equal(m.workers.cnt, host.cnt);
		for (size_t i = 0; i < host.cnt; i++) {
			struct fingerprint fp = rebuild(&m, i, &names);

			check_all(&host.fps[i], &fp);
			fingerprint_done(&fp);
		}
		str_done(&message);
		host_done(&host);
	}
	assert_int_equal(names.unknown_cnt, 0);
	fpnames_done(&names);
	fpwire_done(&m);
}

static void same_fingerprints_make_the_same_bytes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct host host;

		host_init(&host, seed);
		assert_same(encode(&host, &complete), encode(&host, &complete));
		host_done(&host);
	}
}

static void names_come_when_they_are_asked_for(void **state)
{
	struct host host;
	struct fpwire m = { 0 }, question = { 0 }, reply = { 0 };
	struct fpnames told = { 0 }, names = { 0 };
	struct str with, without, ask = { 0 }, answer = { 0 };
	struct fingerprint fp;
	struct err err;
	size_t unresolved;
	int asked;

	(void)state;
	host_init(&host, 3);
	with = encode(&host, &complete);
	without = encode(&host, &nameless);
	assert_true(without.len < with.len);
	decode(&m, &without, &names);
	assert_true(names.unknown_cnt > 0);
	assert_int_equal(fpwire_rebuild(&m, 0, &names, &fp, &unresolved), 0);
	assert_true(unresolved > 0);
	assert_string_equal(fp.frames[0].name, "unresolved");
	fingerprint_done(&fp);

	asked = fpwire_ask(&names, &m, 1, &ask);
	assert_int_equal(asked, names.unknown_cnt);
	assert_int_equal(fpwire_ask(&names, &m, 1, &ask), 0);
	decode(&question, &ask, NULL);
	assert_int_equal(question.type, FPWIRE_ASK);
	assert_int_equal(question.asked.cnt, asked);
	assert_int_equal(fpwire_encode_names(host.list, host.cnt, question.asked.data,
					     question.asked.cnt, &answer, &err),
			 0);
	decode(&reply, &answer, &names);
	assert_int_equal(reply.type, FPWIRE_NAMES);
	assert_int_equal(names.unknown_cnt, 0);
	assert_int_equal(fpwire_ask(&names, &m, 9, &ask), 0);

	for (size_t i = 0; i < host.cnt; i++) {
		struct fpwire n = { 0 };

		decode(&n, &with, &told);
		assert_same(bytes_of(&n, i, &told), bytes_of(&m, i, &names));
		fpwire_done(&n);
	}
	str_done(&with);
	str_done(&without);
	str_done(&ask);
	str_done(&answer);
	fpnames_done(&names);
	fpnames_done(&told);
	fpwire_done(&m);
	fpwire_done(&question);
	fpwire_done(&reply);
	host_done(&host);
}

/* Decodes messages in an order and appends the bytes of all workers of the first. */
static struct str hear(const struct str *messages, const int *order, size_t cnt)
{
	struct fpnames names = { 0 };
	struct fpwire m = { 0 };
	struct str all = { 0 };

	for (size_t i = 0; i < cnt; i++)
		decode(&m, &messages[order[i]], &names);
	decode(&m, &messages[0], &names);
	for (size_t i = 0; i < m.workers.cnt; i++) {
		struct str one = bytes_of(&m, i, &names);

		str_append_len(&all, one.data, one.len);
		str_done(&one);
	}
	fpnames_done(&names);
	fpwire_done(&m);
	return all;
}

static void the_order_of_arrival_changes_nothing(void **state)
{
	static const int orders[][6] = { { 0, 1, 2, 3, 4, 5 },
					 { 5, 4, 3, 2, 1, 0 },
					 { 3, 3, 0, 0, 5, 1 },
					 { 4, 5, 4, 5, 1, 3 } };
	struct host hosts[3];
	struct str messages[6] = { 0 };
	struct err err;

	(void)state;
	/* Two of them run one program, and spell its names in two ways. */
	for (size_t i = 0; i < 3; i++) {
		host_init(&hosts[i], 10 + i);
		messages[i] = encode(&hosts[i], &nameless);
		assert_int_equal(fpwire_encode_names(hosts[i].list, hosts[i].cnt, NULL, 0,
						     &messages[3 + i], &err),
				 0);
	}
	for (size_t i = 1; i < ARRAY_SIZE(orders); i++)
		assert_same(hear(messages, orders[0], 6), hear(messages, orders[i], 6));
	for (size_t i = 0; i < 3; i++)
		host_done(&hosts[i]);
	for (size_t i = 0; i < 6; i++)
		str_done(&messages[i]);
}

static void a_used_message_decodes_like_a_new_one(void **state)
{
	struct fpwire used = { 0 };
	struct fpnames names = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct fpwire fresh = { 0 };
		struct host host;
		struct str message;

		host_init(&host, seed);
		message = encode(&host, &complete);
		decode(&used, &message, &names);
		decode(&fresh, &message, &names);
		for (size_t i = 0; i < host.cnt; i++)
			assert_same(bytes_of(&used, i, &names), bytes_of(&fresh, i, &names));
		str_done(&message);
		host_done(&host);
		fpwire_done(&fresh);
	}
	fpnames_done(&names);
	fpwire_done(&used);
}

static void functions_that_differ_in_numbers_alone_are_kept_apart(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message;
	struct fingerprint fp;

	(void)state;
	host_init(&host, 5);
	host.cnt = 1;
	host.fps[0].function_cnt = 3;
	for (int i = 0; i < 3; i++) {
		host.fps[0].functions[i] = host.fps[0].functions[0];
		host.fps[0].functions[i].share_ns = 1000 - 100 * i;
	}
	message = encode(&host, &(struct fpwire_options){ .names = true });
	decode(&m, &message, &names);
	fp = rebuild(&m, 0, &names);
	assert_int_equal(fp.function_cnt, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fp.functions[i].share_ns, 1000 - 100 * i);
		assert_int_equal(fp.functions[i].frame, fp.functions[0].frame);
	}
	fingerprint_done(&fp);
	str_done(&message);
	host.cnt = HOST_MAX;
	host_done(&host);
	fpnames_done(&names);
	fpwire_done(&m);
}

/* A worker with two functions, the second small, and two collectives after both. */
static void make_short(struct fingerprint *fp)
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

static struct fingerprint sent(const struct fpwire_options *options)
{
	struct host host;
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message;
	struct fingerprint fp;

	host_init(&host, 5);
	make_short(&host.fps[0]);
	message = encode(&host, options);
	decode(&m, &message, &names);
	fp = rebuild(&m, 0, &names);
	str_done(&message);
	host_done(&host);
	fpnames_done(&names);
	fpwire_done(&m);
	return fp;
}

static void functions_beyond_the_limit_are_in_the_rest(void **state)
{
	struct fingerprint fp =
		sent(&(struct fpwire_options){ .detail = FPWIRE_LEADS, .function_max = 1 });

	(void)state;
	assert_int_equal(fp.function_cnt, 1);
	assert_int_equal(fp.functions[0].share_ns, 1500);
	assert_int_equal(fp.rest_ns, 27);
	assert_int_equal(fp.shares[1].function, FRAME_NONE);
	assert_int_equal(fp.shares[1].ns, 20);
	fingerprint_done(&fp);
}

static void short_shares_are_joined(void **state)
{
	struct fingerprint fp =
		sent(&(struct fpwire_options){ .detail = FPWIRE_LEADS, .lead_min_ns = 21 });

	(void)state;
	assert_int_equal(fp.function_cnt, 2);
	assert_int_equal(fp.shares[0].function, 0);
	assert_int_equal(fp.shares[1].function, FRAME_NONE);
	assert_int_equal(fp.shares[1].ns, 20);
	assert_int_equal(fp.collectives[0].lead_ns, 1520);
	fingerprint_done(&fp);
}

static void less_detail_says_less_of_collectives(void **state)
{
	struct fingerprint fp = sent(&(struct fpwire_options){ .detail = FPWIRE_FUNCTIONS });

	(void)state;
	assert_int_equal(fp.collective_cnt, 0);
	assert_int_equal(fp.collective_dropped, 1);
	fingerprint_done(&fp);
	fp = sent(&(struct fpwire_options){ .detail = FPWIRE_TIMES, .collective_max = 1 });
	assert_int_equal(fp.collective_cnt, 1);
	assert_int_equal(fp.collective_dropped, 2);
	assert_int_equal(fp.collectives[0].seq, 1);
	assert_int_equal(fp.collectives[0].start_ns, 2000);
	assert_int_equal(fp.collectives[0].lead_cnt, 0);
	assert_int_equal(fp.share_cnt, 0);
	fingerprint_done(&fp);
}

static void what_did_not_overlap_does_not_overlap_afterwards(void **state)
{
	struct fingerprint fp;
	struct host host;
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message;

	(void)state;
	host_init(&host, 5);
	make_short(&host.fps[0]);
	host.fps[0].collectives[0].start_ns = -1500;
	host.fps[0].collectives[0].dur_ns = 3999;
	host.fps[0].collectives[1].start_ns = 2499;
	message = encode(&host, &complete);
	decode(&m, &message, &names);
	fp = rebuild(&m, 0, &names);
	assert_true(fp.collectives[0].start_ns + fp.collectives[0].dur_ns <=
		    fp.collectives[1].start_ns);
	assert_int_equal(fp.collectives[0].start_ns, -2000);
	fingerprint_done(&fp);
	str_done(&message);
	host_done(&host);
	fpnames_done(&names);
	fpwire_done(&m);
}

static void long_names_are_cut(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message;
	struct fingerprint fp;
	char text[FPNAMES_TEXT_MAX + 100];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	host_init(&host, 5);
	make_short(&host.fps[0]);
	host.fps[0].frames[0].name = host.fps[0].source = text;
	message = encode(&host, &complete);
	decode(&m, &message, &names);
	fp = rebuild(&m, 0, &names);
	assert_int_equal(strlen(fp.frames[0].name), FPNAMES_TEXT_MAX);
	assert_int_equal(strlen(fp.source), FPNAMES_TEXT_MAX);
	fingerprint_done(&fp);
	str_done(&message);
	host_done(&host);
	fpnames_done(&names);
	fpwire_done(&m);
}

static void an_empty_message_is_one(void **state)
{
	struct host host = { .cnt = 0 };
	struct fpwire m = { 0 };
	struct str message = encode(&host, &complete);

	(void)state;
	decode(&m, &message, NULL);
	assert_int_equal(m.workers.cnt, 0);
	str_done(&message);
	fpwire_done(&m);
}

/* --- bad input --- */

static void a_fingerprint_that_lies_is_refused(void **state)
{
	struct host host;
	struct str out = { 0 };
	struct err err;

	(void)state;
	host_init(&host, 5);
	make_short(&host.fps[0]);
	host.fps[0].shares[1].function = 2;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	assert_string_equal(err.text, "fingerprint of rank 20: a share without a function");
	host.fps[0].shares[1].function = 1;
	host.fps[0].frames[0].parent = 0;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	host.fps[0].frames[0].parent = FRAME_NONE;
	host.fps[0].collectives[1].lead_cnt = 3;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	assert_int_equal(out.len, 0);
	assert_int_equal(fpwire_encode(host.list, FPWIRE_WORKER_MAX + 1, &complete, &out, &err),
			 -EINVAL);
	str_done(&out);
	host_done(&host);
}

static void every_truncation_and_every_flipped_bit_is_noticed(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct str message;
	struct err err;

	(void)state;
	host_init(&host, 4);
	message = encode(&host, &complete);
	for (size_t len = 0; len < message.len; len++) {
		char *exact = malloc(len + 1); /* so that the sanitizer sees an overrun */

		assert_non_null(exact);
		memcpy(exact + 1, message.data, len);
		assert_int_equal(fpwire_decode(&m, exact + 1, len, NULL, &err), -EINVAL);
		assert_int_equal(m.workers.cnt, 0);
		free(exact);
	}
	for (size_t bit = 0; bit < 8 * message.len; bit++) {
		message.data[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "message:", 8), 0);
		message.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	str_done(&message);
	host_done(&host);
	fpwire_done(&m);
}

static void seal(struct str *message)
{
	uint64_t hash = htole64(XXH3_64bits(message->data, message->len - sizeof(hash)));

	memcpy(message->data + message->len - sizeof(hash), &hash, sizeof(hash));
}

static void a_well_sealed_lie_is_an_error_or_a_fingerprint(void **state)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct err err;
	size_t refused = 0, taken = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct host host;
		struct str message;

		host_init(&host, seed);
		message = encode(&host, &complete);
		for (int k = 0; k < 100; k++) {
			size_t at = below(message.len - sizeof(uint64_t));
			char before = message.data[at];
			int ret;

			message.data[at] = (char)rnd();
			seal(&message);
			ret = fpwire_decode(&m, message.data, message.len, &names, &err);
			assert_true(ret == 0 || ret == -EINVAL);
			for (size_t i = 0; ret == 0 && i < m.workers.cnt; i++) {
				struct fingerprint fp = rebuild(&m, i, &names);

				fingerprint_done(&fp);
			}
			refused += ret < 0;
			taken += ret == 0;
			message.data[at] = before;
		}
		str_done(&message);
		host_done(&host);
	}
	assert_true(refused > 100 && taken > 100);
	fpnames_done(&names);
	fpwire_done(&m);
}

static void other_versions_and_types_are_refused(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct str message;
	struct err err;

	(void)state;
	host_init(&host, 5);
	message = encode(&host, &complete);
	message.data[4] = FPWIRE_VERSION + 1;
	seal(&message);
	assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "message:4: expected version 1, found 2"));
	message.data[4] = FPWIRE_VERSION;
	message.data[5] = 9;
	seal(&message);
	assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
	str_done(&message);
	host_done(&host);
	fpwire_done(&m);
}

static int use_everything(const struct host *host)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message = { 0 }, other = { 0 };
	struct fingerprint fp;
	struct err err;
	int ret = fpwire_encode(host->list, host->cnt, &nameless, &message, &err);

	if (ret == 0)
		ret = fpwire_decode(&m, message.data, message.len, &names, &err);
	if (ret == 0)
		ret = fpwire_ask(&names, &m, 1, &other);
	other.len = 0;
	if (ret > 0)
		ret = fpwire_encode_names(host->list, host->cnt, NULL, 0, &other, &err);
	str_done(&message);
	if (ret == 0)
		ret = fpwire_encode(host->list, host->cnt, &complete, &message, &err);
	if (ret == 0)
		ret = fpwire_decode(&m, message.data, message.len, &names, &err);
	if (ret == 0)
		ret = fpwire_rebuild(&m, 0, &names, &fp, NULL);
	if (ret == 0)
		fingerprint_done(&fp);
	str_done(&message);
	str_done(&other);
	fpnames_done(&names);
	fpwire_done(&m);
	return ret;
}

static void each_allocation_may_fail(void **state)
{
	struct host host;
	int ret = -ENOMEM;

	(void)state;
	host_init(&host, 3);
	for (int limit = 0; ret < 0 && limit < 5000; limit++) {
		allocations_left = limit;
		ret = use_everything(&host);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	}
	assert_int_equal(ret, 0);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_keep_eleven_bits_and_the_order),
		cmocka_unit_test(a_name_has_a_place_before_it_is_known),
		cmocka_unit_test(whatever_makes_a_frame_makes_its_id),
		cmocka_unit_test(a_dictionary_of_thousands_finds_each),
		cmocka_unit_test(what_is_lost_is_what_is_stated),
		cmocka_unit_test(same_fingerprints_make_the_same_bytes),
		cmocka_unit_test(names_come_when_they_are_asked_for),
		cmocka_unit_test(the_order_of_arrival_changes_nothing),
		cmocka_unit_test(a_used_message_decodes_like_a_new_one),
		cmocka_unit_test(functions_that_differ_in_numbers_alone_are_kept_apart),
		cmocka_unit_test(functions_beyond_the_limit_are_in_the_rest),
		cmocka_unit_test(short_shares_are_joined),
		cmocka_unit_test(less_detail_says_less_of_collectives),
		cmocka_unit_test(what_did_not_overlap_does_not_overlap_afterwards),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(an_empty_message_is_one),
		cmocka_unit_test(a_fingerprint_that_lies_is_refused),
		cmocka_unit_test(every_truncation_and_every_flipped_bit_is_noticed),
		cmocka_unit_test(a_well_sealed_lie_is_an_error_or_a_fingerprint),
		cmocka_unit_test(other_versions_and_types_are_refused),
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
