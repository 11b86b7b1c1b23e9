/* SPDX-License-Identifier: Apache-2.0 */
#include "read/reader.h"

#include "base/file.h"
#include "read/common/test_events.h"
#include "read/nsys/test_nsysdb.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static char folder[] = "/tmp/reader-test-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *file_with(const char *name, const char *text)
{
	const char *path = path_of(name);

	assert_int_equal(file_replace(path, text, strlen(text), 0600), 0);
	return path;
}

static const char *export_with(const char *name, const char *sql)
{
	const char *path = path_of(name);
	size_t len;
	unsigned char *bytes = testdb_make(sql, &len);

	assert_int_equal(file_replace(path, bytes, len, 0600), 0);
	sqlite3_free(bytes);
	return path;
}

static void check_name(const char *path, const char *expected)
{
	assert_string_equal(reader_of(path)->name, expected);
}

static void check_fails(const char *path, int error, const char *expected)
{
	struct trace trace;
	struct err err = { "" };

	assert_int_equal(reader_read(path, NULL, &trace, &err), error);
	if (strstr(err.text, expected) == NULL)
		fail_msg("expected '%s' in: %s", expected, err.text);
}

static void the_first_bytes_of_a_file_choose_its_reader(void **state)
{
	(void)state;
	check_name(file_with("a.json", "PTFP...."), "fingerprint");
	check_name(file_with("b.json", "PFL1...."), "flight log");
	check_name(file_with("c.json", "PSC1...."), "sidecar");
	check_name(export_with("d.json", DB_META), "Nsight Systems export");
	check_name(file_with("e.sqlite", "{}"), "Kineto trace");
}

static void the_json_reader_reports_what_no_reader_recognizes(void **state)
{
	(void)state;
	check_name(path_of("missing"), "Kineto trace");
	check_name(folder, "Kineto trace");
	check_fails(path_of("missing"), -ENOENT, "No such file");
	check_fails(file_with("short", "PT"), -EBADMSG, "expected");
	check_fails(path_of("missing.sqlite#3"), -ENOENT, "missing.sqlite#3: No such file");
}

static void a_pipe_is_not_opened(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	check_name(path_of("pipe"), "Kineto trace");
}

static void a_report_of_nsight_is_refused_by_its_name(void **state)
{
	(void)state;
	check_name("job.nsys-rep", "Nsight Systems report");
	check_fails("job.qdrep", -EINVAL, "nsys export --type sqlite");
}

static void a_sidecar_is_no_trace(void **state)
{
	(void)state;
	check_fails(file_with("s", "PSC1...."), -EINVAL, "expected a trace, found a sidecar");
}

static void suffixes_belong_to_formats(void **state)
{
	(void)state;
	assert_string_equal(reader_of_name("rank0.json.gz")->name, "Kineto trace");
	assert_string_equal(reader_of_name("/x/rank0.sqlite")->name, "Nsight Systems export");
	assert_string_equal(reader_of_name("rank0.sqlite#12")->name, "Nsight Systems export");
	assert_null(reader_of_name("rank0.flight.sidecar"));
	assert_null(reader_of_name("rank0.nsys-rep"));
	assert_null(reader_of_name(".json"));
}

static void suffixes_are_listed_by_content(void **state)
{
	struct str traces = { 0 }, fingerprints = { 0 };

	(void)state;
	reader_list_suffixes(CONTENT_TRACE, &traces);
	reader_list_suffixes(CONTENT_FINGERPRINT, &fingerprints);
	assert_string_equal(str_borrow(&traces), "*.json, *.json.gz, *.flight, *.sqlite");
	assert_string_equal(str_borrow(&fingerprints), "*.ptfp");
	str_done(&traces);
	str_done(&fingerprints);
}

static void a_number_behind_the_path_names_a_worker(void **state)
{
	const char *path = export_with("two.sqlite", DB_META DB_STRINGS DB_KERNELS DB_CALLS);
	char name[160];
	reader_worker_vec workers;
	struct trace trace;

	(void)state;
	assert_int_equal(reader_list_workers(path, &workers), 0);
	assert_int_equal(workers.cnt, 2);
	assert_int_equal(workers.data[0], 10);
	assert_int_equal(workers.data[1], 11);
	vec_done(&workers);
	(void)snprintf(name, sizeof(name), "%s#11", path);
	assert_int_equal(reader_list_workers(name, &workers), 0);
	assert_int_equal(workers.cnt, 0);
	vec_done(&workers);
	assert_int_equal(reader_read(name, NULL, &trace, NULL), 0);
	assert_string_equal(trace.meta.source, name);
	trace_done(&trace);
	check_fails(path, -E2BIG, "expected one worker, found 2");
	(void)snprintf(name, sizeof(name), "%s#x", path);
	check_fails(name, -ENOENT, "#x: No such file");
}

static void a_file_may_have_a_mark_in_its_name(void **state)
{
	const char *path = file_with("rank#1", "[]");
	struct trace trace;

	(void)state;
	assert_int_equal(reader_read(path, NULL, &trace, NULL), 0);
	assert_string_equal(trace.meta.source, path);
	trace_done(&trace);
}

static void metadata_is_read_without_the_events(void **state)
{
	static const char text[] = "{\"hostname\": \"node1\", \"distributedInfo\": {\"rank\": 3},"
				   "\"traceEvents\": [not JSON";
	const char *path = file_with("head.json", text);
	struct trace trace;

	(void)state;
	assert_int_equal(reader_read_head(path, &trace), 0);
	assert_int_equal(trace.meta.rank, 3);
	trace_done(&trace);
	assert_int_equal(reader_read_head(path_of("two.sqlite"), &trace), -ENOTSUP);
}

static int keep_log(struct fixture *x, const char *path)
{
	const struct flight *reader;
	struct flightlog log;
	int ret;

	flightlog_init(&log);
	assert_int_equal(flight_map(x->recorder.fd, &reader, NULL), 0);
	assert_int_equal(flightlog_take(&log, reader, true), 0);
	flight_unmap(reader);
	ret = flightlog_write(&log, path, NULL);
	flightlog_done(&log);
	return ret;
}

static void a_sidecar_sets_the_window_and_clock_of_a_flight_log(void **state)
{
	struct fixture *x = *state;
	const char *path = path_of("rank3.flight");
	struct sidecar sidecar = { .header = { .mono_ns = T0,
					       .wall_ns = T0 + WALL + 7 * MS,
					       .start_ns = T0,
					       .end_ns = T0 + 25 * MS,
					       .host = "node9" } };

	for (int ms = 0; ms <= 40; ms += 10)
		recorder_sample(x->f, 71, T0 + ms * MS, x->step, 0);
	assert_int_equal(keep_log(x, path), 0);
	assert_int_equal(reader_read(path, &sidecar, &x->trace, NULL), 0);
	x->made = true;
	assert_string_equal(x->trace.meta.host, "node9");
	assert_string_equal(x->trace.meta.source, path);
	assert_event(&x->trace, "train.py(9): step", 0, 7, 32);
}

static void a_flight_log_alone_has_the_window_of_its_samples(void **state)
{
	struct fixture *x = *state;
	const char *path = path_of("rank3.flight");

	for (int ms = 0; ms <= 40; ms += 10)
		recorder_sample(x->f, 71, T0 + ms * MS, x->step, 0);
	assert_int_equal(keep_log(x, path), 0);
	assert_int_equal(reader_read(path, NULL, &x->trace, NULL), 0);
	x->made = true;
	assert_event(&x->trace, "train.py(9): step", 0, 0, 40);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "a.json",	   "b.json", "c.json",	  "d.json",
					     "e.sqlite",   "short",  "pipe",	  "s",
					     "two.sqlite", "rank#1", "head.json", "rank3.flight" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlink(path_of(names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_bytes_of_a_file_choose_its_reader),
		cmocka_unit_test(the_json_reader_reports_what_no_reader_recognizes),
		cmocka_unit_test(a_pipe_is_not_opened),
		cmocka_unit_test(a_report_of_nsight_is_refused_by_its_name),
		cmocka_unit_test(a_sidecar_is_no_trace),
		cmocka_unit_test(suffixes_belong_to_formats),
		cmocka_unit_test(suffixes_are_listed_by_content),
		cmocka_unit_test(a_number_behind_the_path_names_a_worker),
		cmocka_unit_test(a_file_may_have_a_mark_in_its_name),
		cmocka_unit_test(metadata_is_read_without_the_events),
		cmocka_unit_test_setup_teardown(a_sidecar_sets_the_window_and_clock_of_a_flight_log,
						open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(a_flight_log_alone_has_the_window_of_its_samples,
						open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
