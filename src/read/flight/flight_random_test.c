/* SPDX-License-Identifier: Apache-2.0 */
/* The flight log's reader on random logs, beside a twin that follows the words of flight.h. */
#include "read/common/test_events.h"

static uint64_t random_state;

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

struct twin {
	int64_t times[64];
	uint32_t nodes[64];
	size_t cnt;
	int64_t period_ns;
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Samples at a steady rate, some late, some missing. */
static void random_samples(struct fixture *x, struct twin *twin, uint32_t node_cnt)
{
	int64_t gaps[64], at = (int64_t)(rnd() % (10 * MS));

	twin->cnt = 8 + rnd() % 56;
	for (size_t i = 0; i < twin->cnt; i++) {
		twin->times[i] = T0 + at;
		twin->nodes[i] = 1 + (uint32_t)(rnd() % node_cnt);
		recorder_sample(x->f, 71, twin->times[i], twin->nodes[i], 0);
		gaps[i] = 10 * MS + (int64_t)(rnd() % MS);
		if (rnd() % 8 == 0)
			gaps[i] *= (int64_t)(1 + rnd() % 40);
		at += gaps[i];
	}
	qsort(gaps, twin->cnt - 1, sizeof(*gaps), by_value);
	twin->period_ns = gaps[(twin->cnt - 1) / 2];
}

/* Which node the thread was in, by the words of flight.h alone; 0: none. */
static uint32_t twin_node(const struct twin *twin, int64_t time_ns, int64_t end_ns)
{
	int64_t period_ns = twin->period_ns, reach_ns;
	size_t after = 0, nearest;

	while (after < twin->cnt && twin->times[after] <= time_ns)
		after++;
	if (after == 0 || after == twin->cnt) {
		nearest = after == 0 ? 0 : twin->cnt - 1;
		reach_ns = after == 0 ? twin->times[0] - T0 : end_ns - twin->times[nearest];
		reach_ns = reach_ns <= 2 * period_ns ? reach_ns : period_ns / 2;
	} else {
		int64_t before_ns = time_ns - twin->times[after - 1];
		int64_t gap_ns = twin->times[after] - twin->times[after - 1];

		nearest = before_ns < gap_ns / 2 ? after - 1 : after;
		reach_ns = gap_ns > 20 * period_ns ? period_ns / 2 : gap_ns;
	}
	return llabs(time_ns - twin->times[nearest]) <= reach_ns ? twin->nodes[nearest] : 0;
}

/* The innermost function at a time, as the events say. */
static const char *innermost(const struct trace *trace, int64_t wall_ns)
{
	const char *name = "";

	for (size_t i = 0; i < trace->event_cnt && trace->events[i].start_ns <= wall_ns; i++) {
		if (event_end_ns(&trace->events[i]) > wall_ns)
			name = event_name(trace, &trace->events[i]);
	}
	return name;
}

/* Random trees of functions "f<i>". Returns the number of nodes. */
static uint32_t random_nodes(struct fixture *x)
{
	for (uint32_t i = 3; i < 12; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)child(x, (uint32_t)(rnd() % i), "/job/f.py", name);
	}
	return 11;
}

static void expected_name(uint32_t node, char ret[static 64])
{
	if (node >= 3)
		(void)snprintf(ret, 64, "f.py(5): f%u", node);
	else
		(void)snprintf(ret, 64, "%s",
			       node == 0   ? ""
			       : node == 1 ? "train.py(1): <module>"
					   : "train.py(9): step");
}

static void samples_become_what_the_rules_say_at_every_moment(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct fixture *x = *state;
		struct twin twin;
		const struct trace *trace;
		int64_t length_ns;

		random_state = seed * 0x9e3779b97f4a7c15u;
		random_samples(x, &twin, random_nodes(x));
		sample_at(x, -1900, x->step); /* names the script's folder, is far outside */
		length_ns = twin.times[twin.cnt - 1] - T0 + (int64_t)(rnd() % (40 * MS));
		trace = make(x, length_ns);
		for (int i = 0; i < 300; i++) {
			int64_t at = T0 + (int64_t)(rnd() % (uint64_t)length_ns);
			char expected[64];

			expected_name(twin_node(&twin, at, T0 + length_ns), expected);
			assert_string_equal(innermost(trace, at + WALL), expected);
		}
		(void)close_fixture(state);
		(void)open_fixture(state);
	}
}

static void random_operators(struct fixture *x, int64_t from_ns, int64_t to_ns, int depth)
{
	while (to_ns - from_ns > 100 && rnd() % 8 != 0) {
		int64_t begin = from_ns + (int64_t)(rnd() % (uint64_t)(to_ns - from_ns));
		int64_t end = begin + (int64_t)(rnd() % (uint64_t)(to_ns - begin + 1));

		if (depth < 4)
			random_operators(x, begin, end, depth + 1);
		recorder_operator(x->f, x->lane, depth % 2 ? "aten::a" : "aten::b", begin, end);
		from_ns = end;
	}
}

/* Sorted, in the window, and of two events of the lane one encloses the other or they are apart. */
static void check_nesting(const struct trace *trace, int64_t length_ns, size_t *ret_crossings)
{
	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *a = &trace->events[i];

		assert_true(a->dur_ns >= 0 && a->start_ns >= T0 + WALL &&
			    event_end_ns(a) <= T0 + WALL + length_ns);
		assert_true(a->parent == EVENT_NONE || a->parent < i);
		assert_true(i == 0 || a[-1].start_ns < a->start_ns ||
			    (a[-1].start_ns == a->start_ns && a[-1].dur_ns >= a->dur_ns));
		for (size_t j = i + 1;
		     j < trace->event_cnt && trace->events[j].start_ns < event_end_ns(a); j++)
			*ret_crossings += event_end_ns(&trace->events[j]) > event_end_ns(a);
	}
}

static void functions_and_operators_nest(void **state)
{
	size_t crossings = 0, events = 0;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct fixture *x = *state;
		struct twin twin;
		int64_t length_ns;

		random_state = seed * 0x9e3779b97f4a7c15u;
		random_samples(x, &twin, random_nodes(x));
		length_ns = twin.times[twin.cnt - 1] - T0;
		random_operators(x, T0, T0 + length_ns, 0);
		check_nesting(make(x, length_ns), length_ns, &crossings);
		events += x->trace.event_cnt;
		(void)close_fixture(state);
		(void)open_fixture(state);
	}
	/* Only a random log has other functions at both ends of one operator. */
	assert_true(crossings * 10 < events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)
		WITH(samples_become_what_the_rules_say_at_every_moment),
		WITH(functions_and_operators_nest),
#undef WITH
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
