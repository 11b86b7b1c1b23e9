/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test_alloc.h"
#include "format/fingerprint/fpshare.h"
#include "format/fingerprint/test_fpfile.h"
#include "format/fingerprint/test_fpvalues.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* --- random fingerprints --- */

static int64_t some_ns(void)
{
	return (int64_t)(rnd() % (uint64_t)(INT64_MAX / 4));
}

static void fill_functions(struct fingerprint *fp)
{
	fp->frame_cnt = below(6);
	fp->frames = arena_calloc(&fp->arena, fp->frame_cnt + 1, sizeof(*fp->frames));
	for (size_t i = 0; i < fp->frame_cnt; i++)
		fp->frames[i] = (struct fp_frame){
			.key = { rnd(), rnd() },
			.parent = i == 0 || below(3) == 0 ? FRAME_NONE : (uint32_t)below(i),
			.kind = (uint8_t)below(KIND_CNT),
			.name = some_text(fp),
		};
	fp->function_cnt = below(6);
	fp->functions = arena_calloc(&fp->arena, fp->function_cnt + 1, sizeof(*fp->functions));
	for (size_t i = 0; i < fp->function_cnt; i++)
		fp->functions[i] = (struct fp_function){
			.frame = fp->frame_cnt == 0 ? FRAME_NONE : (uint32_t)below(fp->frame_cnt),
			.class = (uint8_t)below(CLASS_CNT),
			.resource = (uint8_t)below(RESOURCE_CNT + 1),
			.beta_frac = (double)below(1000) / 1000,
			.mu_frac = some_frac(),
			.sigma_frac = some_frac(),
			.executions = rnd(),
			.total_ns = some_ns(),
			.critical_ns = some_ns(),
			.share_ns = some_ns(),
			.thread_ns = some_ns(),
			.elements = -1,
			.bytes = (double)below(1u << 30),
			.spread_ns = (double)below(1u << 20),
			.launched_by = some_text(fp),
		};
}

static void fill_collectives(struct fingerprint *fp)
{
	fp->share_cnt = below(5);
	fp->shares = arena_calloc(&fp->arena, fp->share_cnt + 1, sizeof(*fp->shares));
	for (size_t i = 0; i < fp->share_cnt; i++) {
		fp->shares[i].function = fp->function_cnt == 0 || below(4) == 0
						 ? FRAME_NONE
						 : (uint32_t)below(fp->function_cnt);
		fp->shares[i].ns = some_ns();
	}
	fp->collective_cnt = below(4);
	fp->collectives =
		arena_calloc(&fp->arena, fp->collective_cnt + 1, sizeof(*fp->collectives));
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		struct fp_collective *c = &fp->collectives[i];

		*c = (struct fp_collective){
			.group = rnd(),
			.name = rnd(),
			.seq = (int64_t)rnd(),
			.start_ns = -some_ns(),
			.dur_ns = some_ns(),
			.critical_ns = some_ns(),
			.bytes = (int64_t)rnd(),
			.group_size = (int32_t)below(9),
			.group_known = below(2) != 0,
			.lead_ns = some_ns(),
			.host_ns = some_ns(),
			.host_gated = below(2) != 0,
		};
		c->lead_first = (uint32_t)below(fp->share_cnt + 1);
		c->lead_cnt = (uint32_t)below(fp->share_cnt + 1 - c->lead_first);
		c->host_first = (uint32_t)below(fp->share_cnt + 1);
		c->host_cnt = (uint32_t)below(fp->share_cnt + 1 - c->host_first);
	}
}

static void fill_uses(struct fingerprint *fp)
{
	fp->usage = (struct fp_usage){ .known = below(2) != 0,
				       .busy_ns = some_ns(),
				       .comm_alone_ns = some_ns(),
				       .launch_delay_ns = -1,
				       .kernel_cnt = rnd(),
				       .blocking_cnt = rnd() };
	fp->total_cnt = below(3);
	fp->totals = arena_calloc(&fp->arena, fp->total_cnt + 1, sizeof(*fp->totals));
	for (size_t i = 0; i < fp->total_cnt; i++)
		fp->totals[i] = (struct fp_total){ .name = some_text(fp),
						   .kind = KIND_RUNTIME,
						   .class = CLASS_MEMORY,
						   .cnt = rnd(),
						   .total_ns = some_ns(),
						   .idle_ns = some_ns(),
						   .bytes = -1 };
	fp->use_cnt = below(2) != 0 ? fp->iteration_cnt : 0;
	fp->uses = arena_calloc(&fp->arena, fp->use_cnt + 1, sizeof(*fp->uses));
	for (size_t i = 0; i < fp->use_cnt; i++)
		fp->uses[i] = (struct fp_iteration_use){ .busy_ns = some_ns(),
							 .alloc_ns = some_ns(),
							 .launch_loss_ns = some_ns() };
	fp->operation_cnt = below(3);
	fp->operations = arena_calloc(&fp->arena, fp->operation_cnt + 1, sizeof(char *));
	for (size_t i = 0; i < fp->operation_cnt; i++)
		fp->operations[i] = some_text(fp);
	for (size_t i = 0; i < fp->collective_cnt; i++)
		fp->collectives[i].operation = (uint32_t)below(fp->operation_cnt + 1);
}

static void fill_stalls(struct fingerprint *fp)
{
	struct fp_stalls *stalls = &fp->stalls;

	stalls->known = below(2) != 0;
	stalls->cnt = rnd();
	stalls->switch_cnt = rnd();
	stalls->median_ns = some_ns();
	stalls->iteration_cnt = below(2) != 0 ? fp->iteration_cnt : 0;
	stalls->iteration_ns =
		arena_calloc(&fp->arena, stalls->iteration_cnt + 1, sizeof(*stalls->iteration_ns));
	for (size_t i = 0; i < stalls->iteration_cnt; i++)
		stalls->iteration_ns[i] = some_ns();
	stalls->name_cnt = below(3);
	stalls->names = arena_calloc(&fp->arena, stalls->name_cnt + 1, sizeof(*stalls->names));
	for (size_t i = 0; i < stalls->name_cnt; i++)
		stalls->names[i] = (struct fp_stall_name){ some_text(fp), rnd(), some_ns() };
	for (size_t i = 0; i < fp->function_cnt; i++)
		fp->functions[i].stall_ns = some_ns();
}

static void fill_flows(struct fingerprint *fp)
{
	struct fp_flows *flows = &fp->flows;

	flows->cnt = below(3);
	flows->list = arena_calloc(&fp->arena, flows->cnt + 1, sizeof(*flows->list));
	for (size_t i = 0; i < flows->cnt; i++)
		flows->list[i] = (struct fp_flow){ .local = some_text(fp),
						   .remote = some_text(fp),
						   .card = some_text(fp),
						   .tx_bytes = rnd(),
						   .retransmitted_bytes = rnd(),
						   .busy_ns = some_ns(),
						   .limited_ns = some_ns(),
						   .rtt_ns = some_ns(),
						   .socket_cnt = (uint32_t)below(9) };
	flows->rest_bytes = rnd();
}

static void random_fingerprint(uint64_t seed, struct fingerprint *fp)
{
	rng = seed * 0x9e3779b97f4a7c15ULL + 1;
	fingerprint_init(fp);
	fp->job_id = some_text(fp);
	fp->host = some_text(fp);
	fp->source = some_text(fp);
	fp->device_name = some_text(fp);
	fp->rank = (int)below(5000) - 1;
	fp->world_size = (int)below(5000) - 1;
	fp->pid = (int64_t)rnd();
	fp->window_start_wall_ns = (int64_t)rnd();
	fp->window_ns = 1 + some_ns();
	fp->has_device = below(2) != 0;
	fp->iterations_known = below(2) != 0;
	fp->iterations_by = fp->iterations_known ? 1 + below(ITERATIONS_BY_CNT - 1) : 0;
	for (int i = 0; i < CLASS_CNT; i++)
		fp->class_ns[i] = some_ns();
	fp->rest_ns = some_ns();
	fp->resources = (uint32_t)rnd();
	fp->drops.bad_utf8 = rnd();
	fp->event_cnt = rnd();
	fill_functions(fp);
	fill_collectives(fp);
	fp->iteration_cnt = below(4);
	fp->iterations = arena_calloc(&fp->arena, fp->iteration_cnt + 1, sizeof(*fp->iterations));
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		fp->iterations[i] = (struct fp_iteration){ (int64_t)rnd(), some_ns(), some_ns() };
	fp->host_stats.cpu_frac = 0.25;
	fp->host_stats.other_name = some_text(fp);
	fp->host_stats.thief = some_text(fp);
	fp->host_stats.psi_cpu_frac = 0.5;
	fp->host_stats.psi_io_frac = 0.25;
	fp->absence_cnt = below(3);
	fp->absences = arena_calloc(&fp->arena, fp->absence_cnt + 1, sizeof(*fp->absences));
	for (size_t i = 0; i < fp->absence_cnt; i++)
		fp->absences[i] = (struct fp_absence){ (int32_t)below(9) - 1, some_text(fp) };
	fill_uses(fp);
	fill_stalls(fp);
	fill_flows(fp);
}

/* Parses a heap block of exactly len bytes, so that ASan reports a read past the end. */
static int read_exact(const unsigned char *data, size_t len, struct err *err)
{
	unsigned char *copy = malloc(len > 0 ? len : 1);
	struct fingerprint fp;
	int error;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, data, len);
	*err = (struct err){ "" };
	error = fingerprint_read_memory(copy, len, "name", &fp, err);
	free(copy);
	if (error == 0)
		fingerprint_done(&fp);
	return error;
}

/* --- tests --- */

static void a_fingerprint_read_and_written_again_has_the_same_bytes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct fingerprint fp, again;
		unsigned char *first, *second;
		size_t first_len, second_len;
		struct err err;

		random_fingerprint(seed, &fp);
		first = bytes_of(&fp, &first_len);
		assert_int_equal(fingerprint_read_memory(first, first_len, "f", &again, &err), 0);
		second = bytes_of(&again, &second_len);
		assert_int_equal(first_len, second_len);
		assert_memory_equal(first, second, first_len);
		assert_string_equal(fp.source, again.source);
		assert_int_equal(fp.function_cnt, again.function_cnt);
		free(first);
		free(second);
		fingerprint_done(&fp);
		fingerprint_done(&again);
	}
}

/* Whatever was read before; equal trees and texts are kept once. */
static void a_fingerprint_read_with_a_share_has_the_same_bytes(void **state)
{
	struct fpshare share;
	struct fingerprint fp, again[2];
	struct err err;

	(void)state;
	assert_int_equal(fpshare_init(&share), 0);
	for (uint64_t seed = 0; seed < 30; seed++) {
		unsigned char *first, *second;
		size_t first_len, second_len;

		random_fingerprint(seed, &fp);
		first = bytes_of(&fp, &first_len);
		for (int i = 0; i < 2; i++)
			assert_int_equal(fingerprint_read_shared(first, first_len, "f", &share,
								 &again[i], &err),
					 0);
		assert_ptr_equal(again[0].frames, again[1].frames);
		assert_ptr_equal(again[0].host, again[1].host);
		assert_int_not_equal(
			fingerprint_read_shared(first, first_len / 2, "f", &share, &again[1], &err),
			0);
		second = bytes_of(&again[0], &second_len);
		assert_int_equal(first_len, second_len);
		assert_memory_equal(first, second, first_len);
		free(first);
		free(second);
		fingerprint_done(&fp);
		fingerprint_done(&again[0]);
		fingerprint_done(&again[1]);
	}
	fpshare_done(&share);
}

static void fields_come_back_as_they_were(void **state)
{
	struct fingerprint fp, again;
	struct err err;

	(void)state;
	random_fingerprint(7, &fp);
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), 0);
	assert_int_equal(fingerprint_read(path_of("f"), &again, &err), 0);
	assert_int_equal(unlink(path_of("f")), 0);
	assert_string_equal(again.job_id, fp.job_id);
	assert_int_equal(again.rank, fp.rank);
	assert_int_equal(again.window_ns, fp.window_ns);
	assert_memory_equal(again.class_ns, fp.class_ns, sizeof(fp.class_ns));
	assert_memory_equal(&again.drops, &fp.drops, sizeof(fp.drops));
	assert_true(again.host_stats.psi_cpu_frac > 0.4 && again.host_stats.psi_memory_frac < 0);
	assert_int_equal(again.collective_cnt, fp.collective_cnt);
	assert_int_equal(again.share_cnt, fp.share_cnt);
	for (size_t i = 0; i < fp.frame_cnt; i++) {
		assert_true(funckey_equal(again.frames[i].key, fp.frames[i].key));
		assert_int_equal(again.frames[i].parent, fp.frames[i].parent);
		assert_string_equal(again.frames[i].name, fp.frames[i].name);
	}
	for (size_t i = 0; i < fp.function_cnt; i++) {
		assert_memory_equal(&again.functions[i].mu_frac, &fp.functions[i].mu_frac, 8);
		assert_int_equal(again.functions[i].share_ns, fp.functions[i].share_ns);
		assert_int_equal(again.functions[i].resource, fp.functions[i].resource);
	}
	fingerprint_done(&fp);
	fingerprint_done(&again);
}

static void every_shorter_file_is_refused(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct fingerprint fp;
		unsigned char *data;
		size_t len;
		struct err err;

		random_fingerprint(seed, &fp);
		data = bytes_of(&fp, &len);
		for (size_t cut = 0; cut < len; cut++) {
			assert_int_equal(read_exact(data, cut, &err), -EINVAL);
			assert_memory_equal(err.text, "name:", 5);
		}
		free(data);
		fingerprint_done(&fp);
	}
}

static void a_longer_file_is_refused(void **state)
{
	struct fingerprint fp;
	unsigned char *data, *longer;
	size_t len;
	struct err err;

	(void)state;
	random_fingerprint(3, &fp);
	data = bytes_of(&fp, &len);
	longer = calloc(len + 1, 1);
	assert_non_null(longer);
	memcpy(longer, data, len);
	assert_int_equal(read_exact(longer, len + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "end of the file"));
	free(longer);
	free(data);
	fingerprint_done(&fp);
}

static void every_damaged_byte_gives_an_error_or_a_fingerprint(void **state)
{
	static const unsigned char damage[] = { 0x01, 0x80, 0xff };
	size_t refused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct fingerprint fp;
		unsigned char *data;
		size_t len;
		struct err err;

		random_fingerprint(seed, &fp);
		data = bytes_of(&fp, &len);
		for (size_t i = 0; i < len * ARRAY_SIZE(damage); i++) {
			unsigned char flip = damage[i % ARRAY_SIZE(damage)];
			int error;

			data[i / ARRAY_SIZE(damage)] ^= flip;
			error = read_exact(data, len, &err);
			data[i / ARRAY_SIZE(damage)] ^= flip;
			assert_true(error == 0 || error == -EINVAL);
			refused += error != 0;
		}
		free(data);
		fingerprint_done(&fp);
	}
	assert_true(refused > 1000);
}

static void huge_counts_are_refused_before_memory_is_taken(void **state)
{
	struct fingerprint fp;
	unsigned char *data;
	size_t len;
	struct err err;

	(void)state;
	random_fingerprint(2, &fp);
	data = bytes_of(&fp, &len);
	/* Any eight aligned bytes may be a count or a length. */
	for (size_t i = 0; i + 8 <= len; i++) {
		unsigned char *copy = malloc(len);
		static const uint64_t huge[] = { UINT64_MAX, UINT64_MAX / 104, 1u << 30 };

		assert_non_null(copy);
		for (size_t h = 0; h < ARRAY_SIZE(huge); h++) {
			memcpy(copy, data, len);
			memcpy(copy + i, &huge[h], 8);
			assert_int_not_equal(read_exact(copy, len, &err), -ENOMEM);
		}
		free(copy);
	}
	free(data);
	fingerprint_done(&fp);
}

static void a_foreign_file_is_named_with_the_place(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(read_exact((const unsigned char *)"{\"traceEvents\": []}", 19, &err),
			 -EINVAL);
	assert_memory_equal(err.text, "name: expected a fingerprint file", 33);
	assert_int_equal(read_exact((const unsigned char *)"", 0, &err), -EINVAL);
	assert_memory_equal(err.text, "name: byte 0:", 13);
}

static void another_version_is_refused_by_its_number(void **state)
{
	struct fingerprint fp;
	unsigned char *data;
	size_t len;
	struct err err;

	(void)state;
	random_fingerprint(1, &fp);
	data = bytes_of(&fp, &len);
	data[8] = 13;
	assert_int_equal(read_exact(data, len, &err), -EINVAL);
	assert_memory_equal(err.text, "name: byte 8: expected version 1 to 12, found 13", 48);
	free(data);
	fingerprint_done(&fp);
}

static void a_caller_behind_its_frame_is_refused(void **state)
{
	struct fingerprint fp;
	struct fp_frame frames[2] = { { .parent = 1, .name = "a" }, { .parent = 0, .name = "b" } };
	struct err err;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1;
	fp.frames = frames;
	fp.frame_cnt = 2;
	/* The writer applies the reader's checks: it never writes an invalid file. */
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	assert_int_equal(access(path_of("f"), F_OK), -1);
	assert_int_equal(access(path_of("f.tmp"), F_OK), -1);
	fingerprint_done(&fp);
}

static void a_share_of_the_window_that_is_no_number_is_refused(void **state)
{
	struct fingerprint fp;
	struct fp_function f = { .frame = FRAME_NONE,
				 .mu_frac = (double)NAN,
				 .sigma_frac = (double)NAN };
	struct err err;

	(void)state;
	fingerprint_init(&fp);
	fp.window_ns = 1;
	fp.functions = &f;
	fp.function_cnt = 1;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), 0);
	assert_int_equal(unlink(path_of("f")), 0);
	f.beta_frac = (double)NAN;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	f.beta_frac = 0;
	f.mu_frac = 1.5;
	assert_int_equal(fingerprint_write(&fp, path_of("f"), &err), -EINVAL);
	fingerprint_done(&fp);
}

static void a_missing_file_a_folder_and_a_pipe_are_errors(void **state)
{
	struct fingerprint fp;
	struct err err;

	(void)state;
	assert_int_equal(fingerprint_read(path_of("none"), &fp, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none"));
	assert_int_equal(fingerprint_read(folder, &fp, &err), -EINVAL);
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	assert_int_equal(fingerprint_read(path_of("pipe"), &fp, &err), -EINVAL);
	assert_int_equal(unlink(path_of("pipe")), 0);
}

static void a_folder_that_is_not_there_cannot_be_written_to(void **state)
{
	struct fingerprint fp;
	struct err err;

	(void)state;
	random_fingerprint(1, &fp);
	assert_int_equal(fingerprint_write(&fp, path_of("no/f"), &err), -ENOENT);
	assert_non_null(strstr(err.text, "cannot write"));
	fingerprint_done(&fp);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct fingerprint fp, again;
	unsigned char *data;
	struct err err;
	size_t len;
	int n, error = -ENOMEM;

	(void)state;
	random_fingerprint(4, &fp);
	data = bytes_of(&fp, &len);
	for (n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = fingerprint_read_memory(data, len, "f", &again, &err);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_true(n > 1);
	fingerprint_done(&again);
	error = -ENOMEM;
	for (n = 0; error == -ENOMEM; n++) {
		allocations_left = n;
		error = fingerprint_write(&fp, "/dev/null/none", &err);
		allocations_left = -1;
	}
	assert_int_equal(error, -ENOTDIR);
	assert_true(n > 2);
	free(data);
	fingerprint_done(&fp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fingerprint_read_and_written_again_has_the_same_bytes),
		cmocka_unit_test(a_fingerprint_read_with_a_share_has_the_same_bytes),
		cmocka_unit_test(fields_come_back_as_they_were),
		cmocka_unit_test(every_shorter_file_is_refused),
		cmocka_unit_test(a_longer_file_is_refused),
		cmocka_unit_test(every_damaged_byte_gives_an_error_or_a_fingerprint),
		cmocka_unit_test(huge_counts_are_refused_before_memory_is_taken),
		cmocka_unit_test(a_foreign_file_is_named_with_the_place),
		cmocka_unit_test(another_version_is_refused_by_its_number),
		cmocka_unit_test(a_caller_behind_its_frame_is_refused),
		cmocka_unit_test(a_share_of_the_window_that_is_no_number_is_refused),
		cmocka_unit_test(a_missing_file_a_folder_and_a_pipe_are_errors),
		cmocka_unit_test(a_folder_that_is_not_there_cannot_be_written_to),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
