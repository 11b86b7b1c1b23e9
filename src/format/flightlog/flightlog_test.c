/* SPDX-License-Identifier: Apache-2.0 */
#include "format/flightlog/flightlog.h"

#include "base/test_alloc.h"
#include "format/flightlog/flightlog_file.h"
#include "format/flightlog/flightlog_parts.h"
#include "format/flightlog/test_records.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define MS NSEC_PER_MSEC

/* A writer and a reader of one recorder. */
struct pair {
	struct test_recorder recorder;
	struct flight *writer;
	const struct flight *reader;
	struct flightlog log;
};

static int open_pair(void **state)
{
	static struct pair pair;

	pair.recorder = recorder_open();
	pair.writer = pair.recorder.flight;
	assert_int_equal(flight_map(pair.recorder.fd, &pair.reader, NULL), 0);
	flightlog_init(&pair.log);
	*state = &pair;
	return 0;
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	flightlog_done(&pair->log);
	flight_unmap(pair->reader);
	recorder_close(&pair->recorder);
	return 0;
}

static void take(struct pair *pair)
{
	assert_int_equal(flightlog_take(&pair->log, pair->reader, true), 0);
}

/* One of everything. */
static void write_example(struct flight *f)
{
	uint32_t frame = recorder_frame(f, "train.py", "main", 7);
	uint32_t outer = recorder_node(f, 0, frame), inner, lane;

	inner = recorder_node(f, outer, recorder_frame(f, "net.py", "forward", 21));
	lane = recorder_lane(f, 71, "python");
	(void)snprintf(f->sources[FLIGHT_SOURCE_GIL].why, 16, "no symbol");
	f->sources[FLIGHT_SOURCE_GIL].state = FLIGHT_ABSENT;
	f->drops.late = 2;
	recorder_mark(f, MARK_DATALOADER, 1001 * MS, 0);
	recorder_sample(f, 71, 1002 * MS, inner, FLIGHT_SAMPLE_WINDOW);
	recorder_operator(f, lane, "aten::mm", 1003 * MS, 1004 * MS);
	recorder_push(f, lane, false,
		      (struct ring_record){ .time_ns = 1005 * MS,
					    .value = MS,
					    .kind = FLIGHT_COLLECTIVE,
					    .extra = recorder_string(f, "gloo:all_reduce") });
}

/* The invariants that every reader of a log relies on. */
static void check_records(const struct flightlog *log, const record_vec *records,
			  enum flight_ring ring)
{
	vec_foreach(record, records)
		assert_true(flightlog_record_ok(log, ring, record));
}

static void check_log(const struct flightlog *log)
{
	char valid[3 * FLIGHT_STRING_MAX + 1];

	for (size_t i = 0; i < log->strings.cnt; i++) {
		const char *text = log->strings.data[i];

		assert_int_equal(flightlog_text(valid, sizeof(valid), text, strlen(text)),
				 strlen(text));
		assert_string_equal(valid, text);
	}
	vec_foreach(frame, &log->frames)
		assert_true(frame->file < log->strings.cnt && frame->name < log->strings.cnt);
	for (uint32_t i = 0; i < log->nodes.cnt; i++) {
		assert_true(i == 0 ? log->nodes.data[i].parent == 0
				   : log->nodes.data[i].parent < i);
		assert_true(log->nodes.data[i].frame < log->frames.cnt);
	}
	check_records(log, &log->marks, FLIGHT_RING_MARKS);
	check_records(log, &log->samples, FLIGHT_RING_SAMPLES);
	vec_foreach(lane, &log->lanes) {
		check_records(log, &lane->records, FLIGHT_RING_LANE);
		check_records(log, &lane->window, FLIGHT_RING_LANE);
	}
	assert_true(log->mono_ns >= 0 && log->wall_ns <= FLIGHT_TIME_MAX_NS);
}

static void written_records_are_taken(void **state)
{
	struct pair *pair = *state;
	const struct flightlog *log = &pair->log;

	write_example(pair->writer);
	take(pair);
	check_log(log);
	assert_int_equal(log->rank, 3);
	assert_int_equal(log->training_tid, 71);
	assert_int_equal(log->marks.cnt, 1);
	assert_int_equal(log->samples.cnt, 1);
	assert_int_equal(log->lanes.cnt, 1);
	assert_string_equal(log->lanes.data[0].name, "python");
	assert_string_equal(log->strings.data[log->lanes.data[0].window.data[0].extra], "aten::mm");
	assert_string_equal(log->strings.data[log->lanes.data[0].records.data[0].extra],
			    "gloo:all_reduce");
	assert_int_equal(log->nodes.data[2].parent, 1);
	assert_string_equal(log->strings.data[log->frames.data[2].name], "forward");
	assert_int_equal(log->sources[FLIGHT_SOURCE_GIL].state, FLIGHT_ABSENT);
	assert_string_equal(log->sources[FLIGHT_SOURCE_GIL].why, "no symbol");
	assert_int_equal(log->drops.late, 2);
	assert_int_equal(log->before.late, 2);
}

static void records_are_taken_once(void **state)
{
	struct pair *pair = *state;

	write_example(pair->writer);
	take(pair);
	take(pair);
	assert_int_equal(flightlog_record_cnt(&pair->log), 4);
	recorder_sample(pair->writer, 71, 1010 * MS, 1, 0);
	recorder_operator(pair->writer, 0, "aten::add", 1011 * MS, 1012 * MS);
	take(pair);
	assert_int_equal(flightlog_record_cnt(&pair->log), 6);
	assert_int_equal(pair->log.samples.data[1].time_ns, 1010 * MS);
	assert_int_equal(pair->log.drops.invalid + pair->log.drops.torn + pair->log.drops.overrun,
			 0);
}

static void the_rings_of_a_window_are_taken_when_asked_for(void **state)
{
	struct pair *pair = *state;

	write_example(pair->writer);
	assert_int_equal(flightlog_take(&pair->log, pair->reader, false), 0);
	assert_int_equal(pair->log.lanes.data[0].window.cnt, 0);
	assert_int_equal(pair->log.lanes.data[0].records.cnt, 1);
}

static void only_what_is_lost_after_the_first_take_is_a_loss(void **state)
{
	struct pair *pair = *state;

	recorder_node(pair->writer, 0, recorder_frame(pair->writer, "a.py", "f", 1));
	for (uint32_t i = 0; i < FLIGHT_SAMPLE_CNT + 100; i++)
		recorder_sample(pair->writer, 71, 1000 * MS + i, 1, 0);
	take(pair);
	assert_int_equal(pair->log.samples.cnt, FLIGHT_SAMPLE_CNT);
	assert_int_equal(pair->log.samples.data[0].time_ns, 1000 * MS + 100);
	assert_int_equal(pair->log.drops.overrun, 0);
	for (uint32_t i = 0; i < FLIGHT_SAMPLE_CNT + 7; i++)
		recorder_sample(pair->writer, 71, 2000 * MS + i, 1, 0);
	take(pair);
	assert_int_equal(pair->log.samples.cnt, 2 * FLIGHT_SAMPLE_CNT);
	assert_int_equal(pair->log.drops.overrun, 7);
}

/* The agent frees a closed window's pages; its positions continue. */
static void records_of_an_older_window_are_no_loss(void **state)
{
	struct pair *pair = *state;
	uint32_t lane = recorder_lane(pair->writer, 71, "python");

	for (int i = 0; i < 300; i++)
		recorder_operator(pair->writer, lane, "old", (1000 + i) * MS, (1001 + i) * MS);
	memset(pair->writer->window_records, 0, 4096);
	memset(&pair->writer->window_records[0][128], 0, (300 - 128) * sizeof(struct ring_record));
	recorder_operator(pair->writer, lane, "new", 2000 * MS, 2001 * MS);
	take(pair);
	assert_int_equal(pair->log.lanes.data[0].window.cnt, 1);
	assert_int_equal(pair->log.lanes.data[0].window.data[0].time_ns, 2000 * MS);
	assert_int_equal(pair->log.drops.torn + pair->log.drops.overrun, 0);
}

static void a_name_that_is_not_there_yet_is_read_later(void **state)
{
	struct pair *pair = *state;
	uint32_t lane = recorder_lane(pair->writer, 71, "python");

	recorder_operator(pair->writer, lane, "aten::mm", 1000 * MS, 1001 * MS);
	pair->writer->strings[1].len = 0;
	take(pair);
	assert_string_equal(pair->log.strings.data[1], "");
	pair->writer->strings[1].len = 8;
	take(pair);
	assert_string_equal(pair->log.strings.data[1], "aten::mm");
	assert_int_equal(pair->log.strings.cnt, 2);
}

static void invalid_utf8_is_replaced(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "aten::\xc3\xa9", "aten::\xc3\xa9" },
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd" },
	};
	struct pair *pair = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		(void)recorder_string(pair->writer, cases[i].from);
	take(pair);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(pair->log.strings.data[i + 1], cases[i].to);
}

static void a_record_that_makes_no_sense_is_counted(void **state)
{
	struct pair *pair = *state;
	uint32_t lane = recorder_lane(pair->writer, 71, "python");
	const struct ring_record wrong[] = {
		{ .time_ns = MS, .kind = FLIGHT_OPERATOR, .extra = 1000 },
		{ .time_ns = MS, .kind = FLIGHT_OPERATOR, .value = -1 },
		{ .time_ns = -1, .kind = FLIGHT_OPERATOR },
		{ .time_ns = INT64_MAX, .kind = FLIGHT_OPERATOR },
		{ .time_ns = MS, .kind = FLIGHT_PYTHON, .extra = 1 },
		{ .time_ns = MS, .kind = FLIGHT_SAMPLE },
		{ .time_ns = MS, .kind = FLIGHT_KIND_END },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_GROUP, .value = 99 },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_ARGS, .value = -2 },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_HOW, .value = INT64_C(99) << 32 },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_HOW, .value = 99 },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_HOW, .extra = UINT64_C(99) << 32 },
		{ .time_ns = MS, .kind = FLIGHT_NETWORK, .extra = 1000 },
		{ .time_ns = MS, .kind = FLIGHT_NETWORK_SEND, .value = -1 },
		{ .time_ns = MS, .kind = FLIGHT_NETWORK_RECV, .extra = UINT64_MAX },
		{ .time_ns = MS, .kind = FLIGHT_TIMED, .extra = 1000 },
		{ .time_ns = MS, .kind = FLIGHT_TIMED, .value = -1 },
		{ .time_ns = MS, .kind = FLIGHT_TIMED_GROUPS, .value = -1 },
		{ .time_ns = MS, .kind = FLIGHT_CALLS, .value = -1 },
		{ .time_ns = MS, .kind = FLIGHT_CALLS, .detail = FLIGHT_CALLS_CNT },
		{ .time_ns = MS, .kind = FLIGHT_COLLECTIVE_DONE, .extra = 1000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		recorder_push(pair->writer, lane, false, wrong[i]);
	recorder_sample(pair->writer, 71, MS, 5, 0);
	recorder_mark(pair->writer, 0, MS, 0);
	take(pair);
	assert_int_equal(flightlog_record_cnt(&pair->log), 0);
	assert_int_equal(pair->log.drops.invalid, ARRAY_SIZE(wrong) + 2);
}

static void a_stack_that_is_its_own_caller_becomes_empty(void **state)
{
	struct pair *pair = *state;
	uint32_t frame = recorder_frame(pair->writer, "a.py", "f", 1);

	(void)recorder_node(pair->writer, 1, frame);
	(void)recorder_node(pair->writer, 7, frame);
	(void)recorder_node(pair->writer, 0, 9);
	take(pair);
	check_log(&pair->log);
	assert_int_equal(pair->log.nodes.cnt, 4);
	assert_int_equal(pair->log.drops.invalid, 3);
}

static void records_beyond_the_limit_are_counted(void **state)
{
	struct pair *pair = *state;

	pair->log.record_max = 10;
	for (int i = 0; i < 30; i++)
		recorder_sample(pair->writer, 71, i * MS, 0, 0);
	take(pair);
	recorder_sample(pair->writer, 71, 40 * MS, 0, 0);
	take(pair);
	assert_int_equal(pair->log.samples.cnt, 10);
	assert_int_equal(pair->log.drops.limit, 21);
}

/* --- a hostile recorder --- */

static uint64_t random_state;

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Writes random words at random places of everything but the large rings. */
static void scribble(struct flight *f, size_t words)
{
	size_t room = offsetof(struct flight, window_records) / sizeof(uint64_t);
	size_t head = offsetof(struct flight, strings) - offsetof(struct flight, layout_bytes);

	for (size_t i = 0; i < words; i++) {
		size_t at = rnd() % room * sizeof(uint64_t);
		uint64_t word = rnd() % 4 == 0 ? rnd() : rnd() % 70000;

		/* Counts and heads are few: half of all words go there. */
		if (i % 2 == 0)
			at = (offsetof(struct flight, layout_bytes) + rnd() % head) & ~7u;
		if (i % 16 == 1)
			at = offsetof(struct flight, lanes) + rnd() % (sizeof(f->lanes) & ~7u);
		memcpy((char *)f + (at & ~(size_t)7), &word, sizeof(word));
	}
}

static void random_bytes_never_make_a_wrong_log(void **state)
{
	struct pair *pair = *state;

	write_example(pair->writer);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		random_state = seed * 0x9e3779b97f4a7c15u;
		flightlog_done(&pair->log);
		flightlog_init(&pair->log);
		pair->log.record_max = 200000;
		for (int i = 0; i < 4; i++) {
			scribble(pair->writer, 20000);
			take(pair);
		}
		check_log(&pair->log);
	}
}

struct scribbler {
	struct flight *flight;
	atomic_bool stop;
};

static void *scribble_on(void *arg)
{
	struct scribbler *s = arg;

	while (!atomic_load(&s->stop))
		scribble(s->flight, 5000);
	return NULL;
}

static void a_recorder_that_changes_while_it_is_read_never_makes_a_wrong_log(void **state)
{
	struct pair *pair = *state;
	struct scribbler s = { .flight = pair->writer };
	pthread_t thread;

	random_state = 99;
	write_example(pair->writer);
	pair->log.record_max = 200000;
	assert_int_equal(pthread_create(&thread, NULL, scribble_on, &s), 0);
	for (int i = 0; i < 20; i++)
		take(pair);
	atomic_store(&s.stop, true);
	(void)pthread_join(thread, NULL);
	check_log(&pair->log);
}

#define RACE_CNT 300000u

static void *write_samples(void *arg)
{
	struct flight *f = arg;

	for (uint32_t i = 0; i < RACE_CNT; i++)
		recorder_sample(f, 71, i, 0, i & 15);
	return NULL;
}

static void a_reader_beside_the_writer_gets_each_record_once_or_counts_it(void **state)
{
	struct pair *pair = *state;
	const struct flightlog *log = &pair->log;
	pthread_t thread;

	take(pair);
	assert_int_equal(pthread_create(&thread, NULL, write_samples, pair->writer), 0);
	while (atomic_load(&pair->writer->sample_head) < RACE_CNT)
		take(pair);
	(void)pthread_join(thread, NULL);
	take(pair);
	assert_int_equal(log->samples.cnt + log->drops.overrun + log->drops.torn, RACE_CNT);
	assert_int_equal(log->drops.invalid, 0);
	for (size_t i = 0; i < log->samples.cnt; i++) {
		const struct ring_record *r = &log->samples.data[i];

		assert_int_equal(r->time_ns & 15, r->detail);
		assert_true(i == 0 || r[-1].time_ns < r->time_ns);
	}
}

/* --- mapping --- */

/* A memory file with the header of a recorder. */
static int make_file(size_t size, uint32_t layout_bytes)
{
	struct test_recorder r = recorder_open();
	int fd = memfd_create("flightlog_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t len = offsetof(struct flight, strings);

	assert_true(fd >= 0);
	r.flight->layout_bytes = layout_bytes;
	assert_int_equal(pwrite(fd, r.flight, len, 0), len);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	recorder_close(&r);
	return fd;
}

static void refused(size_t size, int seals, uint32_t layout_bytes, const char *why)
{
	int fd = make_file(size, layout_bytes);
	const struct flight *flight = NULL;
	struct err err = { "" };

	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	assert_true(flight_map(fd, &flight, &err) < 0);
	assert_null(flight);
	assert_non_null(strstr(err.text, why));
	(void)close(fd);
}

static void a_recorder_that_could_be_taken_away_is_refused(void **state)
{
	(void)state;
	refused(sizeof(struct flight), 0, sizeof(struct flight), "F_SEAL_SHRINK");
	refused(4096, F_SEAL_SHRINK, sizeof(struct flight), "found 4096");
	refused(sizeof(struct flight), F_SEAL_SHRINK, 12345, "found 12345");
}

/* --- files --- */

static char folder[] = "/tmp/flightlog_test.XXXXXX", path[64];

static int make_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/a.flight", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(folder);
}

static void same_records(const record_vec *a, const record_vec *b)
{
	assert_int_equal(a->cnt, b->cnt);
	if (a->cnt > 0)
		assert_memory_equal(a->data, b->data, a->cnt * sizeof(*a->data));
}

static void a_file_gives_back_the_log(void **state)
{
	struct pair *pair = *state;
	struct flightlog *log = &pair->log, again;
	struct stat st;

	write_example(pair->writer);
	take(pair);
	(void)snprintf(log->host, sizeof(log->host), "node7");
	log->drops.invalid = 5;
	assert_int_equal(flightlog_write(log, path, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(flightlog_read(path, &again, NULL), 0);
	check_log(&again);
	assert_int_equal(again.rank, 3);
	assert_int_equal(again.wall_ns, log->wall_ns);
	assert_string_equal(again.host, "node7");
	assert_memory_equal(&again.drops, &log->drops, sizeof(log->drops));
	assert_memory_equal(&again.before, &log->before, sizeof(log->before));
	assert_memory_equal(again.sources, log->sources, sizeof(log->sources));
	assert_int_equal(again.strings.cnt, log->strings.cnt);
	for (size_t i = 0; i < log->strings.cnt; i++)
		assert_string_equal(again.strings.data[i], log->strings.data[i]);
	assert_memory_equal(again.frames.data, log->frames.data,
			    log->frames.cnt * sizeof(*log->frames.data));
	assert_memory_equal(again.nodes.data, log->nodes.data,
			    log->nodes.cnt * sizeof(*log->nodes.data));
	same_records(&again.marks, &log->marks);
	same_records(&again.samples, &log->samples);
	same_records(&again.lanes.data[0].records, &log->lanes.data[0].records);
	same_records(&again.lanes.data[0].window, &log->lanes.data[0].window);
	assert_string_equal(again.lanes.data[0].name, "python");
	flightlog_done(&again);
}

/* The file of the example as bytes. */
static size_t file_bytes(struct pair *pair, unsigned char *ret, size_t size)
{
	FILE *file;
	size_t len;

	write_example(pair->writer);
	take(pair);
	assert_int_equal(flightlog_write(&pair->log, path, NULL), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	len = fread(ret, 1, size, file);
	assert_true(len > 0 && len < size);
	(void)fclose(file);
	return len;
}

static void a_file_cut_anywhere_is_refused_with_its_name(void **state)
{
	static unsigned char data[1 << 16];
	size_t len = file_bytes(*state, data, sizeof(data));
	struct flightlog log;
	struct err err;

	assert_int_equal(flightlog_parse("f", data, len, &log, &err), 0);
	flightlog_done(&log);
	for (size_t cut = 0; cut < len; cut++) {
		/* ASan reports reads past a buffer of exactly this size. */
		unsigned char *copy = malloc(cut + 1);

		assert_non_null(copy);
		memcpy(copy, data, cut);
		err.text[0] = '\0';
		assert_int_equal(flightlog_parse("f", copy, cut, &log, &err), -EINVAL);
		assert_memory_equal(err.text, "f:", 2);
		free(copy);
	}
}

static void a_file_with_any_byte_changed_is_refused_or_right(void **state)
{
	static unsigned char data[1 << 16];
	size_t len = file_bytes(*state, data, sizeof(data));
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	size_t refused_cnt = 0;
	struct flightlog log;

	for (size_t i = 0; i < len * ARRAY_SIZE(flips); i++) {
		size_t at = i / ARRAY_SIZE(flips);

		data[at] ^= flips[i % ARRAY_SIZE(flips)];
		if (flightlog_parse("f", data, len, &log, NULL) == 0) {
			check_log(&log);
			flightlog_done(&log);
		} else {
			refused_cnt++;
		}
		data[at] ^= flips[i % ARRAY_SIZE(flips)];
	}
	assert_true(refused_cnt > 100);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct pair *pair = *state;
	struct flightlog log;
	int failed = 0, ret = -ENOMEM;

	write_example(pair->writer);
	for (int left = 0; ret != 0; left++) {
		flightlog_init(&log);
		allocations_left = left;
		ret = flightlog_take(&log, pair->reader, true);
		if (ret == 0)
			ret = flightlog_write(&log, path, NULL);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		failed += ret != 0;
		flightlog_done(&log);
	}
	ret = -ENOMEM;
	for (int left = 0; ret != 0; left++) {
		allocations_left = left;
		ret = flightlog_read(path, &log, NULL);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		failed += ret != 0;
	}
	flightlog_done(&log);
	assert_true(failed > 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)
		WITH_PAIR(written_records_are_taken),
		WITH_PAIR(records_are_taken_once),
		WITH_PAIR(the_rings_of_a_window_are_taken_when_asked_for),
		WITH_PAIR(only_what_is_lost_after_the_first_take_is_a_loss),
		WITH_PAIR(records_of_an_older_window_are_no_loss),
		WITH_PAIR(a_name_that_is_not_there_yet_is_read_later),
		WITH_PAIR(invalid_utf8_is_replaced),
		WITH_PAIR(a_record_that_makes_no_sense_is_counted),
		WITH_PAIR(a_stack_that_is_its_own_caller_becomes_empty),
		WITH_PAIR(records_beyond_the_limit_are_counted),
		WITH_PAIR(random_bytes_never_make_a_wrong_log),
		WITH_PAIR(a_recorder_that_changes_while_it_is_read_never_makes_a_wrong_log),
		WITH_PAIR(a_reader_beside_the_writer_gets_each_record_once_or_counts_it),
		cmocka_unit_test(a_recorder_that_could_be_taken_away_is_refused),
		WITH_PAIR(a_file_gives_back_the_log),
		WITH_PAIR(a_file_cut_anywhere_is_refused_with_its_name),
		WITH_PAIR(a_file_with_any_byte_changed_is_refused_or_right),
		WITH_PAIR(every_failing_allocation_is_reported),
#undef WITH_PAIR
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
