/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/critpath.h"

#include "summarize/test_trace.h"

#define NODES 6

/* The expected path, computed ns by ns. Times of nodes by class. */
struct twin {
	int64_t critical[NODES][CLASS_CNT], share_60[NODES][CLASS_CNT], class_ns[CLASS_CNT];
};

static const struct crit_time *time_of(const struct critpath *path, uint32_t node, uint8_t class)
{
	vec_foreach(t, &path->times) {
		if (t->node == node && t->class == class)
			return t;
	}
	return NULL;
}

static void assert_time(const struct critpath *path, uint32_t node, uint8_t class,
			int64_t critical_ns, int64_t share_ns)
{
	const struct crit_time *t = time_of(path, node, class);

	assert_non_null(t);
	assert_int_equal(t->critical_ns, critical_ns);
	assert_int_equal(t->share_ns, share_ns);
}

/* A source of stretches from an array. */
struct line_source {
	const host_segments *line;
	size_t given;
};

static int line_next(void *from, struct host_segment *ret)
{
	struct line_source *source = from;

	if (source->given == source->line->cnt)
		return 0;
	*ret = source->line->data[source->given++];
	return 1;
}

typedef VEC(struct crit_segment) crit_segments;
static crit_segments segments; /* of the last path */

static int keep_segment(void *to, const struct crit_segment *seg)
{
	return vec_push((crit_segments *)to, *seg);
}

static void find_path(struct crit_exec *execs, size_t cnt, const host_segments *host,
		      struct critpath *ret)
{
	struct line_source source = { .line = host };

	segments.cnt = 0;
	assert_int_equal(critpath_find(execs, cnt, (struct host_source){ line_next, &source },
				       (struct crit_sink){ .to = &segments, .path = keep_segment },
				       ret),
			 0);
}

/* All stretches of training, its waiting replaced by backward. */
static host_segments stood_in(const host_segments *training, const host_segments *backward)
{
	struct line_source t = { .line = training }, b = { .line = backward };
	struct stand_in stand_in = { .training = { line_next, &t }, .backward = { line_next, &b } };
	struct host_source source = stand_in_source(&stand_in);
	host_segments out = { 0 };
	struct host_segment seg;

	while (source.next(source.from, &seg) > 0)
		assert_int_equal(vec_push(&out, seg), 0);
	return out;
}

/* Shares add up to the window, and the stretches touch and cover it. */
static void assert_complete(const struct critpath *path, int64_t start_ns, int64_t end_ns)
{
	int64_t shares = 0, classes = 0, at = start_ns;

	vec_foreach(t, &path->times)
		shares += t->share_ns;
	for (int i = 0; i < CLASS_CNT; i++)
		classes += path->class_ns[i];
	assert_int_equal(shares, end_ns - start_ns);
	assert_int_equal(classes, end_ns - start_ns);
	vec_foreach(s, &segments) {
		assert_int_equal(s->start_ns, at);
		assert_true(s->end_ns > s->start_ns);
		at = s->end_ns;
	}
	assert_int_equal(at, end_ns);
}

static host_segments host_line(size_t cnt, const struct host_segment *segs)
{
	host_segments line = { 0 };

	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(vec_push(&line, segs[i]), 0);
	return line;
}

static void a_higher_class_hides_a_lower_one(void **state)
{
	struct host_segment segs[] = { { 0, 60, 5, 0, CLASS_HOST, false },
				       { 60, 100, 4, EVENT_NONE, CLASS_IDLE, true } };
	struct crit_exec execs[] = { { 10, 50, 0, 0, CLASS_COMM, 0 },
				     { 20, 40, 1, 1, CLASS_MEMORY, 0 },
				     { 25, 30, 2, 2, CLASS_COMPUTE, 0 } };
	host_segments host = host_line(2, segs);
	struct critpath path;

	(void)state;
	find_path(execs, 3, &host, &path);
	assert_complete(&path, 0, 100);
	assert_time(&path, 2, CLASS_COMPUTE, 5, 5);
	assert_time(&path, 1, CLASS_MEMORY, 15, 15);
	assert_time(&path, 0, CLASS_COMM, 20, 20);
	assert_time(&path, 5, CLASS_HOST, 20, 20);
	assert_time(&path, 4, CLASS_IDLE, 40, 40);
	assert_int_equal(execs[0].critical_ns, 20);
	assert_int_equal(execs[1].critical_ns, 15);
	assert_int_equal(execs[2].critical_ns, 5);
	critpath_done(&path);
	vec_done(&host);
}

static void functions_of_one_class_share_the_time(void **state)
{
	struct host_segment seg = { 0, 11, 4, EVENT_NONE, CLASS_IDLE, true };
	struct crit_exec execs[] = { { 0, 11, 0, 0, CLASS_COMPUTE, 0 },
				     { 0, 11, 1, 1, CLASS_COMPUTE, 0 } };
	host_segments host = host_line(1, &seg);
	struct critpath path;

	(void)state;
	find_path(execs, 2, &host, &path);
	assert_complete(&path, 0, 11);
	/* 11 is odd: the last execution gets the remainder. */
	assert_time(&path, 0, CLASS_COMPUTE, 11, 5);
	assert_time(&path, 1, CLASS_COMPUTE, 11, 6);
	critpath_done(&path);
	vec_done(&host);
}

static void a_function_that_runs_twice_at_once_is_critical_once(void **state)
{
	struct host_segment seg = { 0, 20, 4, EVENT_NONE, CLASS_IDLE, true };
	struct crit_exec execs[] = { { 0, 10, 0, 0, CLASS_COMPUTE, 0 },
				     { 5, 20, 0, 1, CLASS_COMPUTE, 0 } };
	host_segments host = host_line(1, &seg);
	struct critpath path;

	(void)state;
	find_path(execs, 2, &host, &path);
	assert_complete(&path, 0, 20);
	assert_time(&path, 0, CLASS_COMPUTE, 20, 20);
	assert_int_equal(execs[0].critical_ns, 10);
	assert_int_equal(execs[1].critical_ns, 15);
	critpath_done(&path);
	vec_done(&host);
}

static void a_computing_thread_hides_communication_on_others(void **state)
{
	struct host_segment segs[] = { { 0, 50, 5, 0, CLASS_COMPUTE, false },
				       { 50, 100, 4, 1, CLASS_HOST, false } };
	struct crit_exec exec = { 20, 80, 0, 2, CLASS_COMM, 0 };
	host_segments host = host_line(2, segs);
	struct critpath path;

	(void)state;
	find_path(&exec, 1, &host, &path);
	assert_complete(&path, 0, 100);
	assert_time(&path, 5, CLASS_COMPUTE, 50, 50);
	assert_time(&path, 0, CLASS_COMM, 30, 30);
	assert_time(&path, 4, CLASS_HOST, 20, 20);
	critpath_done(&path);
	vec_done(&host);
}

/* Samples every ns: the holder, and a 60th of it for each function that shares it. */
static void sample(const struct crit_exec *execs, size_t cnt, const host_segments *host,
		   struct twin *twin)
{
	memset(twin, 0, sizeof(*twin));
	vec_foreach(h, host) {
		for (int64_t t = h->start_ns; t < h->end_ns; t++) {
			bool seen[NODES] = { false };
			uint8_t class = h->class;
			int64_t running = 0;

			for (size_t i = 0; i < cnt; i++) {
				if (execs[i].start_ns <= t && t < execs[i].end_ns)
					class = MAX(class, execs[i].class);
			}
			for (size_t i = 0; i < cnt; i++)
				running += execs[i].start_ns <= t && t < execs[i].end_ns &&
					   execs[i].class == class;
			twin->class_ns[class]++;
			if (running == 0) {
				twin->critical[h->node][class]++;
				twin->share_60[h->node][class] += 60;
			}
			for (size_t i = 0; i < cnt; i++) {
				if (execs[i].start_ns > t || t >= execs[i].end_ns ||
				    execs[i].class != class)
					continue;
				twin->share_60[execs[i].node][class] += 60 / running;
				twin->critical[execs[i].node][class] += !seen[execs[i].node];
				seen[execs[i].node] = true;
			}
		}
	}
}

static int exec_cmp(const void *a, const void *b)
{
	const struct crit_exec *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static size_t random_execs(uint64_t *r, int64_t length, struct crit_exec *execs)
{
	size_t cnt = (size_t)test_below(r, 7);

	for (size_t i = 0; i < cnt; i++) {
		int64_t start = test_below(r, length), end = start + test_below(r, 30);

		execs[i] = (struct crit_exec){ start,
					       MIN(end, length),
					       (uint32_t)test_below(r, NODES),
					       (uint32_t)i,
					       (uint8_t)(CLASS_COMM + test_below(r, 3)),
					       0 };
	}
	qsort(execs, cnt, sizeof(*execs), exec_cmp);
	return cnt;
}

static host_segments random_host(uint64_t *r, int64_t length)
{
	host_segments host = { 0 };

	for (int64_t at = 0; at < length;) {
		int64_t end = MIN(at + 1 + test_below(r, 20), length);
		struct host_segment seg = { at,
					    end,
					    (uint32_t)test_below(r, NODES),
					    0,
					    (uint8_t)test_below(r, CLASS_CNT),
					    test_below(r, 2) != 0 };

		assert_int_equal(vec_push(&host, seg), 0);
		at = end;
	}
	return host;
}

static void the_path_agrees_with_looking_at_every_nanosecond(void **state)
{
	uint64_t r = 7;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		int64_t length = 1 + test_below(&r, 80);
		struct crit_exec execs[8];
		size_t cnt = random_execs(&r, length, execs);
		host_segments host = random_host(&r, length);
		struct critpath path;
		struct twin twin;

		sample(execs, cnt, &host, &twin);
		find_path(execs, cnt, &host, &path);
		assert_complete(&path, 0, length);
		assert_memory_equal(path.class_ns, twin.class_ns, sizeof(twin.class_ns));
		for (uint32_t node = 0; node < NODES; node++) {
			for (int c = 0; c < CLASS_CNT; c++) {
				const struct crit_time *t = time_of(&path, node, (uint8_t)c);
				int64_t critical = t != NULL ? t->critical_ns : 0;
				int64_t share = t != NULL ? t->share_ns : 0;
				int64_t off = share * 60 - twin.share_60[node][c];

				assert_int_equal(critical, twin.critical[node][c]);
				/* Each of at most 20 stretches is rounded by less than 6 ns. */
				assert_true(off < 60 * 120 && off > -60 * 120);
			}
		}
		critpath_done(&path);
		vec_done(&host);
	}
}

static void the_autograd_thread_replaces_a_waiting_training_thread(void **state)
{
	struct host_segment training[] = { { 0, 10, 1, 0, CLASS_HOST, false },
					   { 10, 50, 2, 1, CLASS_HOST, true },
					   { 50, 60, 3, 2, CLASS_HOST, false } };
	struct host_segment backward[] = { { 0, 5, 9, EVENT_NONE, CLASS_IDLE, true },
					   { 5, 20, 7, 3, CLASS_COMPUTE, false },
					   { 20, 30, 9, EVENT_NONE, CLASS_IDLE, true },
					   { 30, 60, 8, 4, CLASS_HOST, false } };
	const struct host_segment want[] = { { 0, 10, 1, 0, CLASS_HOST, false },
					     { 10, 20, 7, 3, CLASS_COMPUTE, false },
					     { 20, 30, 2, 1, CLASS_HOST, true },
					     { 30, 50, 8, 4, CLASS_HOST, false },
					     { 50, 60, 3, 2, CLASS_HOST, false } };
	host_segments t = host_line(3, training), b = host_line(4, backward);
	host_segments out = stood_in(&t, &b);

	(void)state;
	assert_int_equal(out.cnt, ARRAY_SIZE(want));
	for (size_t i = 0; i < out.cnt; i++) {
		assert_int_equal(out.data[i].start_ns, want[i].start_ns);
		assert_int_equal(out.data[i].end_ns, want[i].end_ns);
		assert_int_equal(out.data[i].node, want[i].node);
		assert_int_equal(out.data[i].class, want[i].class);
	}
	vec_done(&t);
	vec_done(&b);
	vec_done(&out);
}

static void the_stand_in_covers_what_training_covered(void **state)
{
	uint64_t r = 99;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		int64_t length = 1 + test_below(&r, 200), at = 0;
		host_segments t = random_host(&r, length), b = random_host(&r, length);
		host_segments out;

		if (test_below(&r, 4) == 0)
			b.cnt = (size_t)test_below(&r, (int64_t)b.cnt + 1);
		out = stood_in(&t, &b);
		vec_foreach(s, &out) {
			assert_int_equal(s->start_ns, at);
			assert_true(s->end_ns > s->start_ns);
			at = s->end_ns;
		}
		assert_int_equal(at, length);
		vec_done(&t);
		vec_done(&b);
		vec_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_higher_class_hides_a_lower_one),
		cmocka_unit_test(functions_of_one_class_share_the_time),
		cmocka_unit_test(a_function_that_runs_twice_at_once_is_critical_once),
		cmocka_unit_test(a_computing_thread_hides_communication_on_others),
		cmocka_unit_test(the_path_agrees_with_looking_at_every_nanosecond),
		cmocka_unit_test(the_autograd_thread_replaces_a_waiting_training_thread),
		cmocka_unit_test(the_stand_in_covers_what_training_covered),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	vec_done(&segments);
	return failed;
}
