/* SPDX-License-Identifier: Apache-2.0 */
/* Files of older versions, made from the current format by removing later fields. */
#include "format/fingerprint/test_fpfile.h"

#include <errno.h>
#include <string.h>

/* A file of a fingerprint with this function only. */
static unsigned char *bytes_of_one(struct fp_function *function, struct fingerprint *ret,
				   size_t *ret_len)
{
	fingerprint_init(ret);
	ret->window_ns = 1000;
	ret->functions = function;
	ret->function_cnt = 1;
	return bytes_of(ret, ret_len);
}

/* The bytes after the host's numbers of a file with no frames and one function. */
#define TAIL_4 (8 + (8 + 15 * 8) + 3 * 8)

/* Without the fields of version 12: one empty list, and a number. */
#define ADDED_12 (2 * 8)

/* Without the fields of version 11: stalls of the host, two empty lists; then 8 by function. */
#define ADDED_11 (6 * 8 + 2 * 8)

/* Without the fields of version 10: how GPUs were used, three empty lists. */
#define ADDED_10 (16 * 8 + 3 * 8)

/* Without the field of version 9: the warm-up. */
#define ADDED_9 8

/* Without the field of version 8: the loader's children, here unknown. */
#define ADDED_8 8

/* Without the field of version 7: how iterations are known. */
#define ADDED_7 8

/* Without the fields of version 6: four counters at the end. */
#define ADDED_6 (4 * 8)

/* Without the fields of version 5: the list of absent GPU samples, here empty. */
#define ADDED_5 8

/* Without the fields of version 4: two GPU numbers at the end of the host's numbers. */
static size_t version_3_of(const unsigned char *data, size_t len, unsigned char *ret)
{
	const size_t added = 2 * 8;

	len -= ADDED_5 + ADDED_6 + ADDED_7 + ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12 + 8;
	memcpy(ret, data, len - TAIL_4 - added);
	memcpy(ret + len - TAIL_4 - added, data + len - TAIL_4, TAIL_4);
	ret[8] = 3;
	return len - added;
}

/* Without the fields of version 3: a spread and an empty text at the end of the function. */
static size_t version_2_of(const unsigned char *data, size_t len, unsigned char *ret)
{
	const size_t counts = 3 * 8, added = 2 * 8;

	memcpy(ret, data, len - counts - added);
	memcpy(ret + len - counts - added, data + len - counts, counts);
	ret[8] = 2;
	return len - added;
}

static void a_file_of_version_2_knows_no_spread(void **state)
{
	struct fp_function function = { .frame = FRAME_NONE,
					.resource = RESOURCE_CNT,
					.bytes = 17 };
	struct fingerprint fp, again;
	unsigned char *data, newer[4096], old[4096];
	size_t len;
	struct err err;

	(void)state;
	data = bytes_of_one(&function, &fp, &len);
	assert_true(len <= sizeof(old));
	len = version_2_of(newer, version_3_of(data, len, newer), old);
	assert_int_equal(fingerprint_read_memory(old, len, "f", &again, &err), 0);
	assert_true(again.functions[0].bytes == 17);
	assert_true(again.functions[0].spread_ns == 0);
	assert_null(again.functions[0].launched_by);
	fingerprint_done(&again);
	function.spread_ns = -1;
	free(data);
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	fingerprint_done(&fp);
}

/*
 * Without the fields of version 2: five counters of the flight recorder, then, after 64 bytes of
 * the host's other numbers, three of its pressure. `tail` bytes follow.
 */
static size_t version_1_of(const unsigned char *data, size_t len, size_t tail, unsigned char *ret)
{
	const size_t drops = 5 * 8, host = 64, pressure = 3 * 8;
	size_t cut = len - tail - pressure - host - drops;

	memcpy(ret, data, cut);
	memcpy(ret + cut, data + cut + drops, host);
	memcpy(ret + cut + host, data + len - tail, tail);
	ret[8] = 1;
	return len - drops - pressure;
}

/* Reads fp back from a file of this version with `less` bytes removed at its end (0: current). */
static void read_as(const struct fingerprint *fp, unsigned char version, size_t less,
		    struct fingerprint *ret)
{
	struct err err;
	size_t len;
	unsigned char *data = bytes_of(fp, &len);

	if (version != 0)
		data[8] = version;
	assert_int_equal(fingerprint_read_memory(data, len - less, "f", ret, &err), 0);
	free(data);
}

static void a_file_of_version_4_has_no_absent_samples(void **state)
{
	struct fp_absence absence = { 3, "no permission" };
	struct fingerprint fp, again;
	struct err err;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.absences = &absence;
	fp.absence_cnt = 1;
	read_as(&fp, 0, 0, &again);
	assert_int_equal(again.absence_cnt, 1);
	assert_int_equal(again.absences[0].gpu, 3);
	assert_string_equal(again.absences[0].why, "no permission");
	fingerprint_done(&again);
	fp.absence_cnt = 0;
	read_as(&fp, 4,
		ADDED_5 + ADDED_6 + ADDED_7 + ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12,
		&again);
	assert_int_equal(again.absence_cnt, 0);
	fingerprint_done(&again);
	fp.absence_cnt = 1;
	absence.gpu = -2;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	fingerprint_done(&fp);
}

static void a_file_of_version_5_has_one_counter_of_full_tables(void **state)
{
	struct fingerprint fp, again;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.drops.flight_tables = 5;
	fp.drops.flight_names = 6;
	fp.drops.flight_threads = 7;
	read_as(&fp, 0, 0, &again);
	assert_memory_equal(&again.drops, &fp.drops, sizeof(fp.drops));
	fingerprint_done(&again);
	read_as(&fp, 5, ADDED_6 + ADDED_7 + ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12,
		&again);
	assert_int_equal(again.drops.flight_tables, 5);
	assert_int_equal(again.drops.flight_names + again.drops.flight_threads, 0);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void a_file_of_version_6_has_annotated_iterations_if_any(void **state)
{
	struct fingerprint fp, again;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.iterations_known = true;
	fp.iterations_by = ITERATIONS_MARKS;
	read_as(&fp, 0, 0, &again);
	assert_int_equal(again.iterations_by, ITERATIONS_MARKS);
	fingerprint_done(&again);
	read_as(&fp, 6, ADDED_7 + ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12, &again);
	assert_int_equal(again.iterations_by, ITERATIONS_ANNOTATION);
	fingerprint_done(&again);
	fp.iterations_known = false;
	read_as(&fp, 6, ADDED_7 + ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12, &again);
	assert_int_equal(again.iterations_by, ITERATIONS_UNKNOWN);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void a_file_of_version_7_knows_nothing_of_loaders_children(void **state)
{
	struct fingerprint fp, again;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.host_stats.awaited = "92 % in train.py(8): collate";
	read_as(&fp, 0, 0, &again);
	assert_string_equal(again.host_stats.awaited, fp.host_stats.awaited);
	fingerprint_done(&again);
	fp.host_stats.awaited = NULL;
	read_as(&fp, 7, ADDED_8 + ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12, &again);
	assert_null(again.host_stats.awaited);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void a_file_of_version_8_knows_no_warmup(void **state)
{
	struct fingerprint fp, again;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.warmup_ns = 2500;
	read_as(&fp, 0, 0, &again);
	assert_int_equal(again.warmup_ns, 2500);
	fingerprint_done(&again);
	read_as(&fp, 8, ADDED_9 + ADDED_10 + ADDED_11 + ADDED_12, &again);
	assert_int_equal(again.warmup_ns, 0);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void a_file_of_version_9_knows_no_use_of_gpus(void **state)
{
	struct fingerprint fp, again;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.usage.known = true;
	fp.usage.busy_ns = 300;
	read_as(&fp, 0, 0, &again);
	assert_true(again.usage.known);
	assert_int_equal(again.usage.busy_ns, 300);
	fingerprint_done(&again);
	read_as(&fp, 9, ADDED_10 + ADDED_11 + ADDED_12, &again);
	assert_false(again.usage.known);
	assert_int_equal(again.usage.busy_ns, 0);
	assert_int_equal(again.usage.launch_delay_ns, -1);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void a_file_of_version_10_knows_no_stalls(void **state)
{
	struct fp_function function = { .frame = FRAME_NONE,
					.resource = RESOURCE_CNT,
					.stall_ns = 700 };
	struct fingerprint fp, again;
	size_t len;

	(void)state;
	free(bytes_of_one(&function, &fp, &len));
	fp.stalls.known = true;
	fp.stalls.cnt = 3;
	read_as(&fp, 0, 0, &again);
	assert_true(again.stalls.known);
	assert_int_equal(again.stalls.cnt, 3);
	assert_int_equal(again.functions[0].stall_ns, 700);
	fingerprint_done(&again);
	read_as(&fp, 10, ADDED_11 + ADDED_12 + 8, &again);
	assert_false(again.stalls.known);
	assert_int_equal(again.stalls.cnt, 0);
	assert_int_equal(again.functions[0].stall_ns, 0);
	fingerprint_done(&again);
	fingerprint_done(&fp);
}

static void stalls_are_of_each_iteration_or_of_none(void **state)
{
	int64_t stalls_ns[] = { 5, 0 };
	struct fp_iteration iterations[2] = { { 0 } };
	struct fingerprint fp, again;
	struct err err;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.iterations = iterations;
	fp.iteration_cnt = 2;
	fp.stalls.iteration_ns = stalls_ns;
	fp.stalls.iteration_cnt = 2;
	read_as(&fp, 0, 0, &again);
	assert_int_equal(again.stalls.iteration_ns[0], 5);
	fingerprint_done(&again);
	fp.stalls.iteration_cnt = 1;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	fingerprint_done(&fp);
}

static void a_collective_names_an_operation_of_the_list(void **state)
{
	const char *operations[] = { "all_reduce" };
	struct fp_collective collective = { .operation = 1 };
	struct fingerprint fp, again;
	struct err err;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1000;
	fp.collectives = &collective;
	fp.collective_cnt = 1;
	fp.operations = operations;
	fp.operation_cnt = 1;
	read_as(&fp, 0, 0, &again);
	assert_int_equal(again.collectives[0].operation, 1);
	assert_string_equal(again.operations[0], "all_reduce");
	fingerprint_done(&again);
	collective.operation = 2;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	fingerprint_done(&fp);
}

static void a_file_of_version_3_knows_no_gpu(void **state)
{
	struct fp_function function = { .frame = FRAME_NONE, .resource = RESOURCE_CNT };
	struct fingerprint fp, again;
	unsigned char *data, old[4096];
	struct err err;
	size_t len;

	(void)state;
	data = bytes_of_one(&function, &fp, &len);
	free(data);
	fp.host_stats.gpu_throttled_frac = 0.5;
	fp.host_stats.psi_memory_frac = 0.25;
	data = bytes_of(&fp, &len);
	assert_true(len <= sizeof(old));
	assert_int_equal(fingerprint_read_memory(data, len, "f", &again, &err), 0);
	assert_true(again.host_stats.gpu_throttled_frac == 0.5);
	assert_true(again.host_stats.gpu_clock_frac == -1);
	fingerprint_done(&again);
	len = version_3_of(data, len, old);
	assert_int_equal(fingerprint_read_memory(old, len, "f", &again, &err), 0);
	assert_true(again.host_stats.gpu_throttled_frac == -1);
	assert_true(again.host_stats.psi_memory_frac == 0.25);
	assert_int_equal(again.function_cnt, 1);
	fingerprint_done(&again);
	free(data);
	fingerprint_done(&fp);
}

static void a_file_of_version_1_has_no_pressure_and_its_own_absent_resource(void **state)
{
	struct fp_function function = { .frame = FRAME_NONE, .resource = RESOURCE_CNT };
	size_t tail = 8 + (8 + 13 * 8) + 3 * 8, len; /* no frames, one function, nothing else */
	struct fingerprint fp, again;
	unsigned char *data, newest[4096], newer[4096], old[4096];
	struct err err;

	(void)state;
	data = bytes_of_one(&function, &fp, &len);
	assert_true(len <= sizeof(old));
	len = version_2_of(newest, version_3_of(data, len, newest), newer);
	len = version_1_of(newer, len, tail, old);
	old[len - tail + 8 + 8 + 2 * 8] = 9; /* the value that version 1 wrote for absent */
	assert_int_equal(fingerprint_read_memory(old, len, "f", &again, &err), 0);
	assert_int_equal(again.function_cnt, 1);
	assert_int_equal(again.functions[0].resource, RESOURCE_CNT);
	assert_true(again.host_stats.psi_cpu_frac < 0);
	fingerprint_done(&again);
	free(data);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_version_2_knows_no_spread),
		cmocka_unit_test(a_file_of_version_4_has_no_absent_samples),
		cmocka_unit_test(a_file_of_version_5_has_one_counter_of_full_tables),
		cmocka_unit_test(a_file_of_version_8_knows_no_warmup),
		cmocka_unit_test(a_file_of_version_10_knows_no_stalls),
		cmocka_unit_test(stalls_are_of_each_iteration_or_of_none),
		cmocka_unit_test(a_file_of_version_9_knows_no_use_of_gpus),
		cmocka_unit_test(a_collective_names_an_operation_of_the_list),
		cmocka_unit_test(a_file_of_version_7_knows_nothing_of_loaders_children),
		cmocka_unit_test(a_file_of_version_6_has_annotated_iterations_if_any),
		cmocka_unit_test(a_file_of_version_3_knows_no_gpu),
		cmocka_unit_test(a_file_of_version_1_has_no_pressure_and_its_own_absent_resource),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
