/* SPDX-License-Identifier: Apache-2.0 */
#include "center/wire/test_fphost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
	assert_near(b->gpu_throttled_frac, a->gpu_throttled_frac, HALF, 0);
	assert_near(b->gpu_clock_frac, a->gpu_clock_frac, HALF, 0);
	assert_near((double)b->gc_ns, (double)a->gc_ns, HALF, 0);
	assert_int_equal(a->gc_cnt, b->gc_cnt);
	assert_string_equal(a->other_name, b->other_name);
	assert_string_equal(a->thief != NULL ? a->thief : "", b->thief);
	assert_string_equal(a->awaited != NULL ? a->awaited : "", b->awaited);
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
	assert_int_equal(a->iterations_by, b->iterations_by);
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

/* --- messages --- */

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

static void errors_stay_within_the_stated_bounds(void **state)
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

static void names_are_sent_on_request(void **state)
{
	struct host host;
	struct fpwire m = { 0 }, question = { 0 }, reply = { 0 };
	struct fpnames with_names = { 0 }, names = { 0 };
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

		decode(&n, &with, &with_names);
		assert_same(bytes_of(&n, i, &with_names), bytes_of(&m, i, &names));
		fpwire_done(&n);
	}
	str_done(&with);
	str_done(&without);
	str_done(&ask);
	str_done(&answer);
	fpnames_done(&names);
	fpnames_done(&with_names);
	fpwire_done(&m);
	fpwire_done(&question);
	fpwire_done(&reply);
	host_done(&host);
}

static void workers_are_asked_for_by_rank(void **state)
{
	static const int ranks[] = { 7, 8, 900000, 3, INT32_MAX };
	struct fpwire m = { 0 };
	struct str ask = { 0 };

	(void)state;
	assert_int_equal(fpwire_ask_workers(42, FPWIRE_LEADS, ranks, ARRAY_SIZE(ranks), &ask), 0);
	decode(&m, &ask, NULL);
	assert_int_equal(m.type, FPWIRE_ASK);
	assert_int_equal(m.profile, 42);
	assert_int_equal(m.detail, FPWIRE_LEADS);
	assert_int_equal(m.asked.cnt, 0);
	assert_int_equal(m.ranks.cnt, ARRAY_SIZE(ranks));
	assert_memory_equal(m.ranks.data, ranks, sizeof(ranks));
	str_done(&ask);
	fpwire_done(&m);
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

/* Collects what was sent. */
struct sent_parts {
	struct fpwire messages[16];
	size_t cnt, limit;
};

static int take_part(void *arg, const void *data, size_t len)
{
	struct sent_parts *parts = arg;
	struct str message = { .data = (char *)(uintptr_t)data, .len = len };

	assert_true(len <= parts->limit);
	assert_true(parts->cnt < ARRAY_SIZE(parts->messages));
	decode(&parts->messages[parts->cnt++], &message, NULL);
	return 0;
}

/* With a limit that is so much of the whole. Returns what fpwire_encode_parts() does. */
static int send_parts(const struct host *host, double share, struct sent_parts *ret)
{
	struct str whole = encode(host, &nameless);
	struct err err;

	*ret = (struct sent_parts){ .limit = (size_t)((double)whole.len * share) };
	str_done(&whole);
	return fpwire_encode_parts(host->list, host->cnt, &nameless, ret->limit, take_part, ret,
				   &err);
}

static void parts_done(struct sent_parts *parts)
{
	for (size_t i = 0; i < parts->cnt; i++)
		fpwire_done(&parts->messages[i]);
}

static void long_messages_are_sent_in_parts(void **state)
{
	struct host host;
	struct sent_parts parts;
	size_t workers = 0;

	(void)state;
	host_init(&host, 4);
	assert_true(host.cnt > 1);
	assert_int_equal(send_parts(&host, 1, &parts), 0);
	assert_int_equal(parts.cnt, 1);
	parts_done(&parts);
	assert_int_equal(send_parts(&host, 0.7, &parts), 0);
	assert_true(parts.cnt > 1);
	for (size_t i = 0; i < parts.cnt; i++) {
		vec_foreach(x, &parts.messages[i].workers)
			assert_int_equal(x->fp.rank, host.fps[workers++].rank);
	}
	assert_int_equal(workers, host.cnt);
	parts_done(&parts);
	assert_int_equal(send_parts(&host, 0, &parts), -EMSGSIZE);
	assert_int_equal(parts.cnt, 0);
	host_done(&host);
}

static void a_worker_too_large_says_less_of_collectives(void **state)
{
	struct host host;
	struct sent_parts parts;
	double last = FPWIRE_LEADS;

	(void)state;
	host_init(&host, 5);
	host.cnt = 1;
	host.fps[0].function_cnt = 0;
	host.fps[0].collective_cnt = 200;
	host.fps[0].collective_dropped = 0;
	host.fps[0].share_cnt = 0;
	host.fps[0].collectives =
		arena_calloc(&host.fps[0].arena, 200, sizeof(struct fp_collective));
	for (double share = 1; send_parts(&host, share, &parts) == 0; share *= 0.95) {
		const struct fpwire *m = &parts.messages[0];
		const struct fingerprint *fp = &m->workers.data[0].fp;

		assert_true(m->detail <= last);
		last = m->detail;
		if (m->detail != FPWIRE_FUNCTIONS)
			assert_int_equal(fp->collective_cnt + fp->collective_dropped, 200);
		parts_done(&parts);
	}
	assert_int_equal(last, FPWIRE_FUNCTIONS);
	host.cnt = HOST_MAX;
	host_done(&host);
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
	struct str message, answer = { 0 };
	struct err err;
	struct fingerprint fp;
	char text[FPNAMES_TEXT_MAX + 100];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	host_init(&host, 5);
	make_short(&host.fps[0]);
	host.fps[0].frames[0].name = host.fps[0].source = text;
	message = encode(&host, &nameless);
	assert_int_equal(fpwire_encode_names(host.list, host.cnt, NULL, 0, &answer, &err), 0);
	decode(&m, &answer, &names);
	decode(&m, &message, &names);
	assert_int_equal(names.unknown_cnt, 0);
	fp = rebuild(&m, 0, &names);
	assert_int_equal(strlen(fp.frames[0].name), FPNAMES_TEXT_MAX);
	assert_int_equal(strlen(fp.source), FPNAMES_TEXT_MAX);
	fingerprint_done(&fp);
	str_done(&message);
	str_done(&answer);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_stay_within_the_stated_bounds),
		cmocka_unit_test(same_fingerprints_make_the_same_bytes),
		cmocka_unit_test(names_are_sent_on_request),
		cmocka_unit_test(workers_are_asked_for_by_rank),
		cmocka_unit_test(the_order_of_arrival_changes_nothing),
		cmocka_unit_test(a_used_message_decodes_like_a_new_one),
		cmocka_unit_test(functions_that_differ_in_numbers_alone_are_kept_apart),
		cmocka_unit_test(functions_beyond_the_limit_are_in_the_rest),
		cmocka_unit_test(short_shares_are_joined),
		cmocka_unit_test(less_detail_says_less_of_collectives),
		cmocka_unit_test(long_messages_are_sent_in_parts),
		cmocka_unit_test(a_worker_too_large_says_less_of_collectives),
		cmocka_unit_test(what_did_not_overlap_does_not_overlap_afterwards),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(an_empty_message_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
