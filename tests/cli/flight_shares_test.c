/* SPDX-License-Identifier: Apache-2.0 */
/* Random flight logs through reader and summary: whatever was recorded, shares add up. */
#include "format/flightlog/test_records.h"
#include "read/flight/flight.h"
#include "summarize/summarize.h"

#define MS NSEC_PER_MSEC
#define T0 (2000 * MS)
#define LENGTH (500 * MS)
#define THREADS 3u

static uint64_t random_state;

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int64_t random_time(void)
{
	return T0 - 20 * MS + (int64_t)(rnd() % (uint64_t)(LENGTH + 40 * MS));
}

static void add_names(struct flight *f)
{
	static const char *const files[] = { "/job/train.py", "/v/site-packages/torch/optim/sgd.py",
					     "/v/site-packages/torch/utils/data/dataloader.py",
					     "/x/perftracker/_torch.py" };
	static const char *const texts[] = { "aten::mm",  "aten::copy_",  "gloo:all_reduce",
					     "forward",	  "c10d::reduce", "Optimizer.step#SGD.step",
					     "<built-in>" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		(void)recorder_string(f, texts[i]);
	for (uint32_t i = 0; i < 40; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i % 13);
		(void)recorder_node(f, (uint32_t)(rnd() % (i + 1)),
				    recorder_frame(f, files[rnd() % 4], name, i));
	}
	for (uint32_t i = 0; i < THREADS; i++)
		(void)recorder_lane(f, 71 + i, "python");
}

/* Records of any kind in any order: overlaps that no thread could have made. */
static void add_records(struct flight *f, bool exact)
{
	static const uint16_t kinds[] = { FLIGHT_OPERATOR,   FLIGHT_OPERATOR, FLIGHT_ANNOTATION,
					  FLIGHT_COLLECTIVE, FLIGHT_PYTHON,   FLIGHT_C_CALL };
	size_t cnt = rnd() % 300;

	for (size_t i = 0; i < cnt; i++)
		recorder_push(f, (uint32_t)(rnd() % THREADS), rnd() % 2,
			      (struct ring_record){ .time_ns = random_time(),
						    .value = (int64_t)(rnd() % (uint64_t)(20 * MS)),
						    .kind = kinds[rnd() % (exact ? 6 : 4)],
						    .extra = 1 + rnd() % 7 });
	cnt = rnd() % 300;
	for (size_t i = 0; i < cnt; i++)
		recorder_sample(f, 71 + (uint32_t)(rnd() % (THREADS + 1)), random_time(),
				(uint32_t)(rnd() % 41), (uint32_t)(rnd() % 4096));
	for (size_t i = 0; i < cnt / 8; i++)
		recorder_mark(f, (enum mark)(1 + rnd() % 6), random_time(), 0);
}

static void check_shares(const struct fingerprint *fp)
{
	int64_t shares = fp->rest_ns, classes = 0;

	for (int i = 0; i < CLASS_CNT; i++)
		classes += fp->class_ns[i];
	for (size_t i = 0; i < fp->function_cnt; i++)
		shares += fp->functions[i].share_ns;
	assert_int_equal(classes, fp->window_ns);
	assert_int_equal(shares, fp->window_ns);
}

static bool run_once(struct test_recorder *r)
{
	const struct window_options window = { .last_step = -1 };
	struct summarize_options options = { .window = window };
	const struct flight *reader;
	struct flightlog log;
	struct fingerprint fp;
	struct trace trace;
	bool summarized;

	assert_int_equal(flight_map(r->fd, &reader, NULL), 0);
	flightlog_init(&log);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	assert_int_equal(flight_trace(&log, T0, T0 + LENGTH, &trace, NULL), 0);
	assert_int_equal(flight_tracks(&log, T0, T0 + LENGTH, &trace), 0);
	summarized = summarize(&trace, &options, &fp, NULL) == 0;
	if (summarized) {
		check_shares(&fp);
		fingerprint_done(&fp);
	}
	trace_done(&trace);
	flightlog_done(&log);
	flight_unmap(reader);
	return summarized;
}

static void shares_of_random_logs_add_up(void **state)
{
	size_t summarized = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct test_recorder r = recorder_open();

		random_state = seed * 0x9e3779b97f4a7c15u;
		add_names(r.flight);
		add_records(r.flight, seed % 3 == 0);
		summarized += run_once(&r);
		recorder_close(&r);
	}
	assert_true(summarized > 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(shares_of_random_logs_add_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
