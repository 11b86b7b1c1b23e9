/* SPDX-License-Identifier: Apache-2.0 */
#include "format/sidecar/sidecar.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define MS NSEC_PER_MSEC

/* The wall clock is 1000 ms ahead of the monotonic one. */
static struct sidecar example(void)
{
	struct sidecar s = { .header = { .pid = 70,
					 .tid = 71,
					 .rank = 2,
					 .mono_ns = 100 * MS,
					 .wall_ns = 1100 * MS,
					 .start_ns = 100 * MS,
					 .end_ns = 200 * MS,
					 .host = "node1" } };
	struct sidecar_thief hog = { .pid = 9, .cpu_frac = 0.5, .comm = "hog", .cpus = "0-1" };

	assert_int_equal(vec_push(&s.threads, (struct sidecar_thread){ 71, "python" }), 0);
	for (int i = 0; i < 3; i++) {
		uint64_t used = (uint64_t)(i * 5 * MS);

		assert_int_equal(
			vec_push(&s.samples, (struct sidecar_sample){ (110 + 10 * i) * MS, used,
								      used / 5, 71, 0 }),
			0);
		assert_int_equal(
			vec_push(&s.process_samples,
				 (struct sidecar_process){ (110 + 10 * i) * MS, 2 * used, 2, 0 }),
			0);
	}
	assert_int_equal(vec_push(&s.collections, (struct sidecar_gc){ 130 * MS, 7 * MS, 2, 0 }),
			 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			vec_push(&s.iterations, (struct sidecar_iteration){ (uint64_t)(40 + i),
									    (110 + 20 * i) * MS }),
			0);
	assert_int_equal(vec_push(&s.thieves, hog), 0);
	hog.cpu_frac = 0.9;
	hog.pid = 10;
	(void)snprintf(hog.command, sizeof(hog.command), "stress --cpu 1");
	assert_int_equal(vec_push(&s.thieves, hog), 0);
	return s;
}

/* A trace of two nested Python frames on tid 71: the first is the parent of the second. */
static void example_trace(struct trace *trace)
{
	uint32_t name;

	assert_int_equal(trace_init(trace), 0);
	name = strtab_intern(&trace->strings, "frame", 5);
	assert_int_equal(
		vec_reserve_bytes((void **)&trace->lanes, &trace->lane_cap, 1, sizeof(struct lane)),
		0);
	trace->lanes[trace->lane_cnt++] = (struct lane){ 70, 71, 0, LANE_THREAD };
	assert_int_equal(vec_reserve_bytes((void **)&trace->events, &trace->event_cap, 2,
					   sizeof(struct event)),
			 0);
	trace->events[0] =
		(struct event){ 1115 * MS, 90 * MS, name, EVENT_NONE, 0, 0, KIND_PYTHON, 0 };
	trace->events[1] = (struct event){ 1140 * MS, 10 * MS, name, 0, 0, 0, KIND_PYTHON, 0 };
	trace->event_cnt = 2;
}

static const struct track *find_track(const struct trace *trace, enum resource resource)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		if (trace->tracks[i].resource == resource)
			return &trace->tracks[i];
	}
	fail_msg("no track of %s", resource_name(resource));
	return NULL;
}

/* Five samples 10 ms apart: the worker sent tx[i] bytes since the previous one, a card nic[i]. */
static struct sidecar traffic(const uint64_t tx[5], const uint64_t nic[5], double nic_rate)
{
	struct sidecar s = example();
	struct sidecar_network network = { .peak_bytes_per_sec = 100e6 };
	struct sidecar_socket socket = { 0 };
	struct sidecar_nic_sample wire = { .tx_bytes = 1000 };

	for (int i = 0; i < 5; i++) {
		socket.time_ns = wire.time_ns = (110 + 10 * i) * MS;
		socket.tx_bytes += tx[i];
		wire.tx_bytes += nic[i];
		network.host_tx_bytes += i > 0 ? tx[i] : 0;
		assert_int_equal(vec_push(&s.socket_samples, socket), 0);
		wire.nic = 0; /* an idle card has samples, too */
		assert_int_equal(vec_push(&s.nic_samples,
					  (struct sidecar_nic_sample){ .time_ns = wire.time_ns }),
				 0);
		wire.nic = 1;
		assert_int_equal(vec_push(&s.nic_samples, wire), 0);
	}
	assert_int_equal(vec_push(&s.nics, (struct sidecar_nic){ 1e9, 0, "idle" }), 0);
	assert_int_equal(vec_push(&s.nics, (struct sidecar_nic){ nic_rate, 0, "eth0" }), 0);
	assert_int_equal(vec_push(&s.networks, network), 0);
	return s;
}

static bool has_track(const struct trace *trace, enum resource resource)
{
	for (size_t i = 0; i < trace->track_cnt; i++) {
		if (trace->tracks[i].resource == resource)
			return true;
	}
	return false;
}

static const uint64_t nothing[5] = { 0 };
static const uint64_t some[5] = { 9999, 1000000, 500000, 0, 250000 };

static char *temporary_path(void)
{
	static char path[] = "/tmp/sidecar_test.XXXXXX";
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/sidecar_test.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return path;
}

static size_t load(const char *path, unsigned char *data, size_t size)
{
	FILE *file = fopen(path, "rb");
	size_t len;

	assert_non_null(file);
	len = fread(data, 1, size, file);
	assert_int_equal(fclose(file), 0);
	return len;
}

static void what_is_written_is_read_back(void **state)
{
	struct sidecar s = example(), back;
	const char *path = temporary_path();
	struct err err;

	(void)state;
	assert_int_equal(sidecar_write(&s, path, &err), 0);
	assert_int_equal(sidecar_read(path, &back, &err), 0);
	assert_int_equal(back.header.rank, 2);
	assert_string_equal(back.header.host, "node1");
	assert_int_equal(back.samples.cnt, 3);
	assert_memory_equal(back.samples.data, s.samples.data, 3 * sizeof(struct sidecar_sample));
	assert_memory_equal(back.thieves.data, s.thieves.data, 2 * sizeof(struct sidecar_thief));
	assert_string_equal(back.threads.data[0].name, "python");
	assert_int_equal(unlink(path), 0);
	sidecar_done(&s);
	sidecar_done(&back);
}

static void tracks_are_shares_of_wall_time_on_the_wall_clock(void **state)
{
	struct sidecar s = example();
	const struct track *track;
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	track = find_track(&trace, RESOURCE_CPU_THREAD);
	assert_int_equal(track->cnt, 2);
	assert_int_equal(track->tid, 71);
	assert_int_equal(track->samples[0].time_ns, 1120 * MS);
	assert_true(fabs(track->samples[0].value - 0.5) < 1e-9);
	assert_true(fabs(find_track(&trace, RESOURCE_RUN_DELAY)->samples[1].value - 0.1) < 1e-9);
	assert_true(fabs(find_track(&trace, RESOURCE_CPU_PROCESS)->samples[0].value - 0.5) < 1e-9);
	sidecar_done(&s);
	trace_done(&trace);
}

static void cpu_time_beyond_an_interval_is_carried_to_the_next(void **state)
{
	struct sidecar s = example();
	struct trace trace;
	const struct track *track;

	(void)state;
	s.samples.data[1].cpu_ns = (uint64_t)(12 * MS);
	s.samples.data[2].cpu_ns = (uint64_t)(18 * MS);
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	track = find_track(&trace, RESOURCE_CPU_THREAD);
	assert_true(fabs(track->samples[0].value - 1.0) < 1e-9);
	assert_true(fabs(track->samples[1].value - 0.8) < 1e-9);
	sidecar_done(&s);
	trace_done(&trace);
}

static void collections_and_steps_join_the_events_in_order(void **state)
{
	struct sidecar s = example();
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.event_cnt, 5);
	assert_string_equal(event_name(&trace, &trace.events[0]), "ProfilerStep#40");
	assert_int_equal(trace.events[0].start_ns, 1110 * MS);
	assert_int_equal(trace.events[0].dur_ns, 20 * MS);
	assert_int_equal(trace.events[1].kind, KIND_PYTHON);
	assert_string_equal(event_name(&trace, &trace.events[2]), "ProfilerStep#41");
	assert_int_equal(trace.events[3].kind, KIND_GC);
	assert_int_equal(trace.events[3].dur_ns, 7 * MS);
	assert_int_equal(trace.events[4].kind, KIND_PYTHON);
	assert_int_equal(trace.events[4].parent, 1);
	assert_int_equal(trace.events[1].parent, EVENT_NONE);
	sidecar_done(&s);
	trace_done(&trace);
}

static void steps_of_the_trace_itself_are_kept(void **state)
{
	struct sidecar s = example();
	struct trace trace;

	(void)state;
	example_trace(&trace);
	trace.events[0].kind = KIND_ANNOTATION;
	trace.events[0].name = strtab_intern(&trace.strings, "ProfilerStep#7", 14);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.event_cnt, 3);
	sidecar_done(&s);
	trace_done(&trace);
}

static void a_thread_unknown_to_the_trace_gets_a_lane(void **state)
{
	struct sidecar s = example();
	struct trace trace;

	(void)state;
	s.header.tid = 99;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_int_equal(trace.lane_cnt, 2);
	assert_int_equal(trace.lanes[1].tid, 99);
	assert_int_equal(trace.events[0].lane, 1);
	sidecar_done(&s);
	trace_done(&trace);
}

static void the_summary_names_the_largest_thief_first(void **state)
{
	struct sidecar s = example();
	struct sidecar_info info;
	char text[256];

	(void)state;
	sidecar_summarize(&s, &info);
	assert_int_equal(info.thief_cnt, 2);
	assert_int_equal(info.thieves[0].pid, 10);
	assert_true(info.has_thread);
	assert_true(fabs(info.cpu_frac - 0.5) < 1e-9);
	assert_true(fabs(info.run_delay_frac - 0.1) < 1e-9);
	assert_int_equal(info.gc_ns, 7 * MS);
	sidecar_thief_text(&info.thieves[0], text, sizeof(text));
	assert_string_equal(text, "pid 10 (stress --cpu 1) used 0.90 CPU on CPUs 0-1");
	info.thieves[0].process_cnt = 4;
	sidecar_thief_text(&info.thieves[0], text, sizeof(text));
	assert_string_equal(text,
			    "4 processes like pid 10 (stress --cpu 1) used 0.90 CPU on CPUs 0-1");
	sidecar_done(&s);
}

static void the_summary_says_where_those_are_that_are_waited_for(void **state)
{
	struct sidecar s = { 0 };
	struct sidecar_awaited awaited = { .frac = 0.916, .sample_cnt = 12, .place = "a.py(3): f" };
	struct sidecar_info info;
	char text[SIDECAR_AWAITED_TEXT];

	(void)state;
	sidecar_summarize(&s, &info);
	assert_int_equal(info.awaited.sample_cnt, 0);
	assert_int_equal(vec_push(&s.awaited, awaited), 0);
	sidecar_summarize(&s, &info);
	assert_int_equal(info.awaited.sample_cnt, 12);
	sidecar_awaited_text(&info.awaited, text, sizeof(text));
	assert_string_equal(text, "92 % in a.py(3): f");
	s.awaited.data[0].frac = (double)NAN;
	sidecar_summarize(&s, &info);
	assert_int_equal(info.awaited.sample_cnt, 0);
	sidecar_done(&s);
}

static void a_thief_on_the_workers_own_cpu_goes_before_a_busier_one(void **state)
{
	struct sidecar s = { 0 };
	struct sidecar_info info;

	(void)state;
	assert_int_equal(vec_push(&s.thieves, (struct sidecar_thief){ .pid = 1, .cpu_frac = 0.9 }),
			 0);
	assert_int_equal(
		vec_push(&s.thieves,
			 (struct sidecar_thief){ .pid = 2, .cpu_frac = 0.5, .overlap_frac = 1 }),
		0);
	sidecar_summarize(&s, &info);
	assert_int_equal(info.thieves[0].pid, 2);
	sidecar_done(&s);
}

static void only_the_eight_largest_thieves_are_kept(void **state)
{
	struct sidecar s = { 0 };
	struct sidecar_info info;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(vec_push(&s.thieves,
					  (struct sidecar_thief){ .pid = i, .cpu_frac = i % 10 }),
				 0);
	sidecar_summarize(&s, &info);
	assert_int_equal(info.thief_cnt, 8);
	assert_true(info.thieves[0].cpu_frac >= 9 && info.thieves[7].cpu_frac >= 6);
	sidecar_done(&s);
}

static void every_truncation_and_flipped_byte_is_survived(void **state)
{
	struct sidecar s = traffic(some, some, 200e6), back;
	const char *path = temporary_path();
	unsigned char data[8192];
	struct trace trace;
	struct err err;
	size_t len;

	(void)state;
	assert_int_equal(sidecar_write(&s, path, &err), 0);
	len = load(path, data, sizeof(data));
	for (size_t i = 0; i < len; i++)
		assert_int_equal(sidecar_parse("cut", data, i, &back, &err), -EINVAL);
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 0xff;
		if (sidecar_parse("flipped", data, len, &back, &err) == 0) {
			struct sidecar_info info;

			example_trace(&trace);
			assert_int_equal(sidecar_apply(&back, &trace), 0);
			sidecar_summarize(&back, &info);
			trace_done(&trace);
			sidecar_done(&back);
		}
		data[i] ^= 0xff;
	}
	assert_int_equal(unlink(path), 0);
	sidecar_done(&s);
}

static void a_refused_file_is_named_with_the_offset(void **state)
{
	struct sidecar_header header = { .magic = SIDECAR_MAGIC,
					 .version = SIDECAR_VERSION,
					 .section_cnt = SIDECAR_SECTION_CNT };
	struct sidecar back;
	char place[64];
	struct err err;

	(void)state;
	(void)snprintf(place, sizeof(place), "bad.sidecar: byte %zu", sizeof(header));
	for (int i = 0; i < SIDECAR_SECTION_CNT; i++)
		header.sections[i].off = sizeof(header);
	header.sections[SIDECAR_SAMPLE].cnt = UINT64_MAX;
	assert_int_equal(sidecar_parse("bad.sidecar", &header, sizeof(header), &back, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, place));
	assert_non_null(strstr(err.text, "room for 0"));
}

/* The bytes of example() written by a writer that knows `sections` sections. */
static size_t write_with(uint32_t sections, unsigned char *data, size_t size)
{
	const size_t place = offsetof(struct sidecar_header, sections);
	const size_t full = sizeof(struct sidecar_header), entry = 16;
	size_t head = place + sections * entry, len;
	const char *path = temporary_path();
	struct sidecar s = example();
	struct sidecar_header header;
	struct err err;
	static unsigned char whole[8192];

	assert_int_equal(sidecar_write(&s, path, &err), 0);
	len = load(path, whole, sizeof(whole));
	assert_true(head + len <= size);
	memcpy(&header, whole, full);
	memset(data, 0, head);
	header.section_cnt = sections == SIDECAR_FIRST_SECTIONS ? 0 : sections;
	for (size_t i = 0; i < SIDECAR_SECTION_CNT; i++)
		header.sections[i].off = header.sections[i].off - full + head;
	memcpy(data, &header, MIN(head, full));
	memcpy(data + head, whole + full, len - full);
	assert_int_equal(unlink(path), 0);
	sidecar_done(&s);
	return head + len - full;
}

static void files_of_older_and_newer_writers_are_read(void **state)
{
	static const uint32_t counts[] = { SIDECAR_FIRST_SECTIONS, SIDECAR_FIRST_SECTIONS + 1,
					   SIDECAR_SECTION_CNT, SIDECAR_SECTION_CNT + 3 };
	unsigned char data[16384];
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		size_t len = write_with(counts[i], data, sizeof(data));
		struct sidecar back;

		assert_int_equal(sidecar_parse("f", data, len, &back, &err), 0);
		assert_int_equal(back.samples.cnt, 3);
		assert_int_equal(back.thieves.cnt, 2);
		assert_int_equal(back.networks.cnt, 0);
		sidecar_done(&back);
	}
}

static void a_number_of_sections_that_makes_no_sense_is_refused(void **state)
{
	static const uint32_t counts[] = { 1, SIDECAR_FIRST_SECTIONS - 1, SIDECAR_SECTIONS_MAX + 1,
					   UINT32_MAX };
	struct sidecar_header header = { .magic = SIDECAR_MAGIC, .version = SIDECAR_VERSION };
	struct sidecar back;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		header.section_cnt = counts[i];
		assert_int_equal(sidecar_parse("f", &header, sizeof(header), &back, &err), -EINVAL);
		assert_non_null(strstr(err.text, "sections"));
	}
	/* The additional entries are not in the file. */
	header.section_cnt = SIDECAR_SECTION_CNT + 1;
	assert_int_equal(sidecar_parse("f", &header, sizeof(header), &back, &err), -EINVAL);
}

static void tcp_is_a_share_of_the_peak_when_no_card_carries_it(void **state)
{
	struct sidecar s = traffic(some, nothing, 1e9);
	const struct track *track;
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_false(has_track(&trace, RESOURCE_NIC_TX));
	track = find_track(&trace, RESOURCE_SOCKET_TX);
	assert_int_equal(track->cnt, 4);
	assert_int_equal(track->samples[0].time_ns, 1120 * MS);
	assert_true(fabs(track->samples[0].value - 1) < 1e-9);
	assert_true(fabs(track->samples[1].value - 0.5) < 1e-9);
	assert_true(fabs(track->samples[2].value) < 1e-9);
	assert_true(fabs(track->samples[3].value - 0.25) < 1e-9);
	sidecar_done(&s);
	trace_done(&trace);
}

static void a_card_that_carries_the_traffic_is_the_resource(void **state)
{
	struct sidecar s = traffic(some, some, 200e6);
	const struct track *track;
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_false(has_track(&trace, RESOURCE_SOCKET_TX));
	track = find_track(&trace, RESOURCE_NIC_TX);
	assert_int_equal(track->cnt, 4);
	assert_int_equal(track->samples[3].time_ns, 1150 * MS);
	assert_true(fabs(track->samples[0].value - 0.5) < 1e-9);
	assert_true(fabs(track->samples[3].value - 0.125) < 1e-9);
	sidecar_done(&s);
	trace_done(&trace);
}

/* Forty samples, 10 ms apart, of a card of 100 MB/s whose counter is updated at every fifth. */
static void renewed_late(uint64_t bytes_per_renewal, struct sidecar *ret)
{
	struct sidecar_nic_sample wire = { .nic = 0 };

	*ret = example();
	assert_int_equal(vec_push(&ret->nics, (struct sidecar_nic){ 100e6, 0, "eth0" }), 0);
	for (int i = 0; i <= 40; i++) {
		wire.time_ns = (110 + 10 * i) * MS;
		wire.tx_bytes += i > 0 && i % 5 == 0 ? bytes_per_renewal : 0;
		assert_int_equal(vec_push(&ret->nic_samples, wire), 0);
	}
}

static void bytes_of_a_counter_that_is_renewed_late_came_before(void **state)
{
	/* Fewer bytes than the link carries between two samples may have come in one burst. */
	static const struct {
		uint64_t bytes;
		double at_renewal, else_frac;
	} cases[] = { { 2500000, 0.5, 0.5 }, { 500000, 0.5, 0 } };

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		const struct track *track;
		struct trace trace;
		struct sidecar s;

		renewed_late(cases[c].bytes, &s);
		example_trace(&trace);
		assert_int_equal(sidecar_apply(&s, &trace), 0);
		track = find_track(&trace, RESOURCE_NIC_TX);
		assert_int_equal(track->cnt, 40);
		for (size_t i = 0; i < track->cnt; i++) {
			double wanted = i % 5 == 4 ? cases[c].at_renewal : cases[c].else_frac;

			assert_true(fabs(track->samples[i].value - wanted) < 1e-9);
		}
		sidecar_done(&s);
		trace_done(&trace);
	}
}

static void a_card_of_unknown_speed_is_no_scale(void **state)
{
	struct sidecar s = traffic(some, some, 0);
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_false(has_track(&trace, RESOURCE_NIC_TX));
	assert_true(has_track(&trace, RESOURCE_SOCKET_TX));
	sidecar_done(&s);
	trace_done(&trace);
}

static void chatter_is_no_resource(void **state)
{
	static const uint64_t few[5] = { 0, 20, 30, 0, 10 };
	struct sidecar s = traffic(few, few, 1e9);
	struct trace trace;

	(void)state;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	assert_false(has_track(&trace, RESOURCE_NIC_TX));
	assert_false(has_track(&trace, RESOURCE_SOCKET_TX));
	sidecar_done(&s);
	trace_done(&trace);
}

static void a_host_without_a_peak_has_a_floor(void **state)
{
	struct sidecar s = traffic(some, nothing, 0);
	struct trace trace;

	(void)state;
	s.networks.data[0].peak_bytes_per_sec = 0;
	example_trace(&trace);
	assert_int_equal(sidecar_apply(&s, &trace), 0);
	/* 1 MB in 10 ms at 12.5 MB/s: full, and the excess is carried to the end. */
	for (int i = 0; i < 4; i++)
		assert_true(find_track(&trace, RESOURCE_SOCKET_TX)->samples[i].value >= 1);
	sidecar_done(&s);
	trace_done(&trace);
}

static void pressure_is_the_share_between_first_and_last_look(void **state)
{
	struct sidecar s = example();
	struct sidecar_info info;

	(void)state;
	sidecar_summarize(&s, &info);
	assert_true(info.psi_cpu_frac < 0 && !info.has_sockets);
	for (int i = 0; i < 3; i++)
		assert_int_equal(vec_push(&s.pressures,
					  (struct sidecar_pressure){
						  (100 + 100 * i) * MS,
						  { (uint64_t)(50000 * i), (uint64_t)(900000 * i),
						    SIDECAR_PRESSURE_UNKNOWN } }),
				 0);
	sidecar_summarize(&s, &info);
	assert_true(fabs(info.psi_cpu_frac - 0.5) < 1e-9);
	assert_true(fabs(info.psi_io_frac - 1) < 1e-9);
	assert_true(info.psi_memory_frac < 0);
	sidecar_done(&s);
}

static void a_missing_file_is_an_error_with_its_name(void **state)
{
	struct sidecar back;
	struct err err;

	(void)state;
	assert_int_equal(sidecar_read("/nonexistent/x.sidecar", &back, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.sidecar"));
}

static void any_failed_allocation_is_reported_and_leaks_nothing(void **state)
{
	struct sidecar s = traffic(some, nothing, 0);
	int ret = -ENOMEM;

	(void)state;
	for (int budget = 0; ret != 0; budget++) {
		struct trace trace;

		assert_true(budget < 100);
		example_trace(&trace);
		allocations_left = budget;
		ret = sidecar_apply(&s, &trace);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
		trace_done(&trace);
	}
	sidecar_done(&s);
}

static void ranks_of_the_host_are_written_and_read_back(void **state _unused_)
{
	struct sidecar side = example(), read;
	FILE *file = tmpfile();

	assert_non_null(file);
	for (int32_t rank = 4; rank < 6; rank++)
		assert_int_equal(vec_push(&side.ranks, (struct sidecar_rank){ .rank = rank }), 0);
	assert_int_equal(sidecar_write_fd(&side, fileno(file)), 0);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
	assert_int_equal(sidecar_read_fd("memory", fileno(file), &read, NULL), 0);
	assert_int_equal(read.ranks.cnt, 2);
	assert_int_equal(read.ranks.data[1].rank, 5);
	assert_int_equal(fclose(file), 0);
	sidecar_done(&side);
	sidecar_done(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(tracks_are_shares_of_wall_time_on_the_wall_clock),
		cmocka_unit_test(cpu_time_beyond_an_interval_is_carried_to_the_next),
		cmocka_unit_test(collections_and_steps_join_the_events_in_order),
		cmocka_unit_test(steps_of_the_trace_itself_are_kept),
		cmocka_unit_test(a_thread_unknown_to_the_trace_gets_a_lane),
		cmocka_unit_test(the_summary_names_the_largest_thief_first),
		cmocka_unit_test(the_summary_says_where_those_are_that_are_waited_for),
		cmocka_unit_test(a_thief_on_the_workers_own_cpu_goes_before_a_busier_one),
		cmocka_unit_test(only_the_eight_largest_thieves_are_kept),
		cmocka_unit_test(every_truncation_and_flipped_byte_is_survived),
		cmocka_unit_test(a_refused_file_is_named_with_the_offset),
		cmocka_unit_test(ranks_of_the_host_are_written_and_read_back),
		cmocka_unit_test(files_of_older_and_newer_writers_are_read),
		cmocka_unit_test(a_number_of_sections_that_makes_no_sense_is_refused),
		cmocka_unit_test(tcp_is_a_share_of_the_peak_when_no_card_carries_it),
		cmocka_unit_test(a_card_that_carries_the_traffic_is_the_resource),
		cmocka_unit_test(bytes_of_a_counter_that_is_renewed_late_came_before),
		cmocka_unit_test(a_card_of_unknown_speed_is_no_scale),
		cmocka_unit_test(chatter_is_no_resource),
		cmocka_unit_test(a_host_without_a_peak_has_a_floor),
		cmocka_unit_test(pressure_is_the_share_between_first_and_last_look),
		cmocka_unit_test(a_missing_file_is_an_error_with_its_name),
		cmocka_unit_test(any_failed_allocation_is_reported_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
