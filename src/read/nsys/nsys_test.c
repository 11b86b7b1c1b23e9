/* SPDX-License-Identifier: Apache-2.0 */
#include "read/nsys/nsys.h"

#include "base/test_alloc.h"
#include "read/nsys/test_nsys.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define BASE_NS 1000000 /* DB_META */

/* One check a worker, in their order. */
typedef void look_fn(const struct trace *trace);

struct looks {
	look_fn *const *list;
	size_t cnt, done;
};

static void look(void *to, const struct trace *trace)
{
	struct looks *looks = to;

	assert_true(looks->done < looks->cnt);
	looks->list[looks->done++](trace);
}

static int read_sql(const char *sql, struct looks *looks, struct err *err)
{
	size_t len;
	unsigned char *bytes = testdb_make(sql, &len);
	int ret = nsys_read_memory(bytes, len, "x.sqlite", NULL, look, looks, err);

	sqlite3_free(bytes);
	return ret;
}

/* Reads an export whose workers are given to one look each. */
#define READ(sql, ...)                                                 \
	do {                                                           \
		look_fn *const _list[] = { __VA_ARGS__ };              \
		struct looks _looks = { _list, ARRAY_SIZE(_list), 0 }; \
		struct err _err = { "" };                              \
		int _ret = read_sql((sql), &_looks, &_err);            \
                                                                       \
		if (_ret < 0)                                          \
			print_error("%s\n", _err.text);                \
		assert_int_equal(_ret, 0);                             \
		assert_int_equal(_looks.done, _looks.cnt);             \
	} while (0)

static void check_fails(const char *sql, int error, const char *message)
{
	struct looks looks = { NULL, 0, 0 };
	struct err err = { "" };

	assert_int_equal(read_sql(sql, &looks, &err), error);
	assert_string_equal(err.text, message);
}

/* The only event of a name; NULL when there is none. */
static const struct event *find(const struct trace *trace, const char *name)
{
	const struct event *found = NULL;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		if (strcmp(event_name(trace, &trace->events[i]), name) != 0)
			continue;
		assert_null(found);
		found = &trace->events[i];
	}
	return found;
}

static const struct event *get(const struct trace *trace, const char *name, enum event_kind kind)
{
	const struct event *event = find(trace, name);

	if (event == NULL) {
		fail_msg("no event %s", name);
		abort(); /* not reached, which analyzers do not know */
	}
	assert_int_equal(event->kind, kind);
	return event;
}

static const struct track *track_of(const struct trace *trace, enum resource resource)
{
	const struct track *found = NULL;

	for (size_t i = 0; i < trace->track_cnt; i++) {
		if (trace->tracks[i].resource != resource)
			continue;
		assert_null(found);
		found = &trace->tracks[i];
	}
	return found;
}

static void check_interval(const struct event *event, int64_t start_ns, int64_t end_ns)
{
	assert_int_equal(event->start_ns - BASE_NS, start_ns);
	assert_int_equal(event_end_ns(event) - BASE_NS, end_ns);
}

static void nothing(const struct trace *trace)
{
	(void)trace;
}

/* --- workers --- */

static void look_at_a(const struct trace *trace)
{
	const struct event *kernel = get(trace, "gemm", KIND_KERNEL), *launch;
	const struct event_args *args = event_args_borrow(trace, kernel);

	check_interval(kernel, 200, 300);
	assert_int_equal(trace->lanes[kernel->lane].type, LANE_STREAM);
	assert_int_equal(trace->lanes[kernel->lane].pid, 0);
	assert_int_equal(trace->lanes[kernel->lane].tid, 7);
	assert_int_equal(args->elements, 4 * 64);
	launch = &trace->events[kernel->parent];
	check_interval(launch, 100, 120);
	assert_int_equal(trace->lanes[launch->lane].pid, 10);
	assert_int_equal(trace->lanes[launch->lane].tid, 10);
	assert_string_equal(trace->meta.host, "h1");
	assert_string_equal(trace->meta.source, "x.sqlite");
	assert_true(trace->meta.has_device);
}

static void look_at_b(const struct trace *trace)
{
	const struct event *kernel = get(trace, "gemm", KIND_KERNEL);

	check_interval(kernel, 210, 330);
	check_interval(&trace->events[kernel->parent], 101, 131);
	assert_int_equal(trace->lanes[kernel->lane].pid, 1);
	assert_int_equal(trace->event_cnt, 2);
}

/* Correlations are each process's own. */
static void each_process_with_kernels_is_a_worker(void **state)
{
	(void)state;
	READ(DB_SMALL, look_at_a, look_at_b);
}

static void look_at_copier(const struct trace *trace)
{
	get(trace, "gemm", KIND_KERNEL);
}

static void a_process_that_only_copies_is_no_worker(void **state)
{
	(void)state;
	READ(DB_SMALL
	     "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 1;"
	     "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId,"
	     " globalPid); INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2, 1, 7, " PID_B ");",
	     look_at_copier);
}

static void look_at_all(const struct trace *trace)
{
	size_t kernels = 0;

	for (size_t i = 0; i < trace->event_cnt; i++)
		kernels += trace->events[i].kind == KIND_KERNEL;
	assert_int_equal(kernels, 3);
}

static void without_process_ids_all_is_one_worker(void **state)
{
	(void)state;
	READ(DB_SMALL "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;", look_at_all);
}

/* --- names --- */

static void look_at_names(const struct trace *trace)
{
	get(trace, "cudaLaunchKernel", KIND_RUNTIME);
	get(trace, "cudaLaunchKernelExC", KIND_RUNTIME);
	get(trace, "cudaMalloc", KIND_RUNTIME);
	get(trace, "Memcpy HtoD (Pinned -> Device)", KIND_GPU_MEMOP);
	get(trace, "Memset (Device)", KIND_GPU_MEMOP);
	get(trace, "Stream Sync", KIND_SYNC);
	get(trace, "CUDA graph 3", KIND_KERNEL);
	get(trace, "aten::mm", KIND_OPERATOR);
	assert_int_equal(
		event_args_borrow(trace, find(trace, "Memcpy HtoD (Pinned -> Device)"))->bytes,
		4096);
	assert_string_equal(
		strtab_text(&trace->strings, trace->lanes[find(trace, "aten::mm")->lane].name),
		"main");
}

static void names_are_those_that_other_traces_have(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_names, nothing);
}

static void look_at_ranges(const struct trace *trace)
{
	get(trace, "AddmmBackward0", KIND_OPERATOR);
	get(trace, "mylib::op", KIND_OPERATOR);
	get(trace, "c10d::allreduce_", KIND_OPERATOR);
	get(trace, "my scope", KIND_ANNOTATION);
	get(trace, "FSDP::forward", KIND_ANNOTATION);
	get(trace, "lib::user range", KIND_ANNOTATION);
	get(trace, "Optimizer.step#Adam.step", KIND_ANNOTATION);
	get(trace, "<unnamed>", KIND_ANNOTATION);
}

static void ranges_of_operators_are_distinguished_from_scopes(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES RANGE("1", "2", "AddmmBackward0, seq = 4", TID_A)
		     RANGE("1", "2", "mylib::op, op_id = 3", TID_A)
			     RANGE("1", "2", "c10d::allreduce_", TID_A)
				     RANGE("1", "2", "my scope, op_id = 3", TID_A)
					     RANGE("1", "2", "FSDP::forward, op_id = 9", TID_A)
						     RANGE("1", "2", "lib::user range", TID_A)
							     RANGE("1", "2", "", TID_A)
								     RANGE("1", "2",
									   "Optimizer.step#Adam."
									   "step, op_id = 4",
									   TID_A),
	     look_at_ranges, nothing);
}

static void look_at_mended(const struct trace *trace)
{
	get(trace,
	    "a\xef\xbf\xbd"
	    "b",
	    KIND_ANNOTATION);
	get(trace, "<string 99>", KIND_KERNEL);
	assert_int_equal(trace->drops.bad_utf8, 1);
	assert_true(trace->drops.bad_value >= 1);
}

static void names_that_cannot_be_are_mended_and_counted(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES
	     "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, CAST(X'61ff62' AS TEXT), " TID_A
	     ", NULL, 0, NULL, NULL, NULL);"
	     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 99 WHERE start = 200;",
	     look_at_mended, nothing);
}

/* --- calls of the system --- */

static void look_at_calls(const struct trace *trace)
{
	assert_null(find(trace, "ioctl"));
	check_interval(get(trace, "poll", KIND_RUNTIME), 710, 800);
	get(trace, "main", KIND_OVERHEAD);
}

static void calls_inside_of_cuda_are_its_time(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_calls, nothing);
}

/* --- iterations --- */

static void look_at_steps(const struct trace *trace)
{
	check_interval(get(trace, "ProfilerStep#5", KIND_ANNOTATION), 80, 395);
	check_interval(get(trace, "ProfilerStep#6", KIND_ANNOTATION), 395, 900);
	assert_null(find(trace, "iteration 5"));
}

static void ranges_named_after_iterations_are_steps_up_to_the_next(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_steps, nothing);
}

static void look_at_widest(const struct trace *trace)
{
	check_interval(get(trace, "ProfilerStep#0", KIND_ANNOTATION), 0, 500);
	check_interval(get(trace, "ProfilerStep#1", KIND_ANNOTATION), 500, 900);
	check_interval(get(trace, "batch #2", KIND_ANNOTATION), 30, 40);
	get(trace, "optimizer step 2", KIND_ANNOTATION);
	assert_null(find(trace, "ProfilerStep#2"));
}

static void of_several_loops_the_widest_is_the_iteration(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES RANGE("0", "400", "train_step", TID_A)
		     RANGE("500", "900", "train_step", TID_A) RANGE("10", "20", "batch 1", TID_A)
			     RANGE("30", "40", "batch 2", TID_A)
				     RANGE("50", "60", "optimizer step 2", TID_A)
					     RANGE("0", "1000", "stepper", TID_A),
	     look_at_widest, nothing);
}

static void look_at_marked(const struct trace *trace)
{
	check_interval(get(trace, "ProfilerStep#7", KIND_ANNOTATION), 0, 400);
	assert_null(find(trace, "ProfilerStep#1"));
	assert_int_equal(trace->iterations_by, ITERATIONS_UNKNOWN);
}

static void steps_that_are_marked_are_left_alone(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES RANGE("0", "400", "ProfilerStep#7, op_id = 2", TID_A)
		     RANGE("10", "20", "batch 1", TID_A) RANGE("30", "40", "batch 2", TID_A),
	     look_at_marked, nothing);
}

/* 12 rounds of 9 kernels: four layers of two, and one that comes once. */
#define REPEATS                                                                   \
	DB_SMALL "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;"                        \
		 "WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k" \
		 " WHERE i < 107) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL"         \
		 " SELECT 1000 * i, 1000 * i + 900, 0, 7, 0, " PID_A ","          \
		 " CASE WHEN i % 9 = 8 THEN 11 ELSE 1 + 7 * (i % 9 % 2) END, 1,"  \
		 " 1, 1, 1, 1, 1, 1 FROM k;"

static void look_at_repeats(const struct trace *trace)
{
	check_interval(get(trace, "ProfilerStep#0", KIND_ANNOTATION), 8000, 17000);
	check_interval(get(trace, "ProfilerStep#10", KIND_ANNOTATION), 98000, 107000);
	assert_null(find(trace, "ProfilerStep#11"));
	assert_int_equal(trace->lanes[find(trace, "ProfilerStep#0")->lane].type, LANE_THREAD);
	assert_int_equal(trace->iterations_by, ITERATIONS_REPEATS);
}

static void without_such_ranges_what_repeats_is_an_iteration(void **state)
{
	(void)state;
	READ(REPEATS, look_at_repeats);
}

/* --- NCCL --- */

static void look_at_nccl(const struct trace *trace)
{
	const struct event *kernel = get(trace, "ncclDevKernel_AllReduce_Sum_f32(x)", KIND_KERNEL);
	const struct event_args *args = event_args_borrow(trace, kernel);

	assert_string_equal(strtab_text(&trace->strings, args->group), "nccl 0000000000000405");
	assert_string_equal(strtab_text(&trace->strings, args->collective), "allreduce");
	assert_int_equal(args->bytes, 4096);
	assert_int_equal(args->group_size, 8);
	assert_int_equal(args->elements, 96);
	assert_int_equal(trace->meta.rank, 3);
	assert_int_equal(trace->meta.world_size, 8);
	assert_string_equal(trace->meta.backend, "nccl");
}

static void payload_has_communicator_bytes_and_rank(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_nccl, nothing);
}

static void look_at_json(const struct trace *trace)
{
	const struct event *kernel = get(trace, "ncclDevKernel_AllReduce_Sum_f32(x)", KIND_KERNEL);
	const struct event_args *args = event_args_borrow(trace, kernel);

	assert_string_equal(strtab_text(&trace->strings, args->group), "nccl 00000000000004d2");
	assert_int_equal(args->bytes, 64);
}

static void payload_may_be_json_by_id(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES "INSERT INTO NVTX_EVENTS VALUES (340, 370, 59, NULL, " TID_A2
				", 7, 1, NULL, 13, NULL);",
	     look_at_json, nothing);
}

static void look_at_group(const struct trace *trace)
{
	const struct event *kernel = get(trace, "ncclDevKernel_AllReduce_Sum_f32(x)", KIND_KERNEL);
	const struct event_args *args = event_args_borrow(trace, kernel);

	assert_int_equal(args->bytes, 64 + 64);
	assert_int_equal(args->collective, 0);
}

static void calls_of_a_group_are_one_kernel(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES "INSERT INTO StringIds VALUES (20, 'ncclReduce');"
				"INSERT INTO NVTX_EVENTS VALUES (320, 325, 59, NULL, " TID_A2
				", 7, 1, NULL, 13, NULL), (330, 335, 59, NULL, " TID_A2
				", 20, 1, NULL, 13, NULL), (355, 380, 59, NULL, " TID_A2
				", 7, 1, NULL, 13, NULL);",
	     look_at_group, nothing);
}

/* --- metrics --- */

static void look_at_gauges(const struct trace *trace)
{
	const struct track *sm = track_of(trace, RESOURCE_SM_ACTIVE);
	const struct track *dram = track_of(trace, RESOURCE_DRAM);

	assert_non_null(sm);
	assert_int_equal(sm->device, 0);
	assert_int_equal(sm->cnt, 3);
	assert_int_equal(sm->samples[0].time_ns, BASE_NS + 250);
	assert_true(fabs(sm->samples[0].value - 0.9) < 1e-9);
	assert_true(fabs(sm->samples[1].value - 0.4) < 1e-9);
	assert_true(fabs(sm->samples[2].value - 0.5) < 1e-9); /* of GENERIC_EVENTS */
	assert_non_null(dram);
	assert_true(fabs(dram->samples[0].value - 0.55) < 1e-9);
	assert_true(fabs(track_of(trace, RESOURCE_PCIE_RX)->samples[0].value - 0.75) < 1e-9);
	assert_string_equal(trace->meta.device_name, "H100");
}

static void look_at_other_gauges(const struct trace *trace)
{
	const struct track *sm = track_of(trace, RESOURCE_SM_ACTIVE);

	assert_int_equal(sm->device, 1);
	assert_int_equal(sm->cnt, 1);
	assert_true(fabs(sm->samples[0].value - 0.1) < 1e-9);
	assert_null(track_of(trace, RESOURCE_DRAM));
}

static void metrics_of_both_layouts_are_the_worker_s_own_gpu_s(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_gauges, look_at_other_gauges);
}

static void look_at_no_gauges(const struct trace *trace)
{
	assert_null(track_of(trace, RESOURCE_SM_ACTIVE));
}

static void metrics_of_an_unidentified_gpu_are_left_out(void **state)
{
	(void)state;
	READ(DB_ALL "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0;"
		    "DROP TABLE TARGET_INFO_CUDA_DEVICE;",
	     look_at_no_gauges, look_at_no_gauges);
}

static void look_at_cpu(const struct trace *trace)
{
	const struct track *cpu = track_of(trace, RESOURCE_CPU_THREAD);

	assert_non_null(cpu);
	assert_int_equal(cpu->tid, 10);
	assert_int_equal(cpu->cnt, 3);
	assert_true(fabs(cpu->samples[0].value - 0.4) < 1e-9);
	assert_true(fabs(cpu->samples[1].value - 1.0) < 1e-9);
}

static void turns_on_the_cpu_are_its_share(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_cpu, nothing);
}

static void look_at_nic(const struct trace *trace)
{
	const struct track *nic = track_of(trace, RESOURCE_OTHER);

	assert_non_null(nic);
	assert_string_equal(strtab_text(&trace->strings, nic->name), "mlx5_0.IB: Bytes sent");
	assert_true(fabs(nic->samples[0].value - 12345) < 1e-9);
}

static void bytes_of_network_cards_are_no_share(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_nic, look_at_nic);
}

/* --- samples --- */

static size_t count(const struct trace *trace, const char *name, enum event_kind kind)
{
	size_t cnt = 0;

	for (size_t i = 0; i < trace->event_cnt; i++)
		cnt += trace->events[i].kind == kind &&
		       strcmp(event_name(trace, &trace->events[i]), name) == 0;
	return cnt;
}

static void look_at_stacks(const struct trace *trace)
{
	const struct event *load = get(trace, "/a/train.py(0): load", KIND_PYTHON);
	const struct event *train = &trace->events[load->parent];

	check_interval(load, 1100, 1200);
	check_interval(train, 1000, 1400); /* a period of 100, and nothing after 1200 */
	assert_string_equal(event_name(trace, train), "/a/train.py(0): train");
	assert_int_equal(count(trace, "/a/train.py(0): train", KIND_PYTHON), 2);
	assert_int_equal(count(trace, "ioctl", KIND_PYTHON), 0);
	assert_true(trace->meta.sampled && trace->meta.has_stacks);
}

static void look_at_no_stacks(const struct trace *trace)
{
	assert_false(trace->meta.has_stacks);
}

static void samples_of_python_are_stacks(void **state)
{
	(void)state;
	READ(DB_ALL, look_at_stacks, look_at_no_stacks);
}

/* --- what is wrong --- */

static void look_at_drops(const struct trace *trace)
{
	assert_int_equal(trace->drops.negative_dur, 1);
	assert_int_equal(trace->drops.bad_event, 2);
	assert_int_equal(trace->drops.unmatched_begin, 1);
	assert_int_equal(trace->drops.no_interval, 1);
	check_interval(get(trace, "gemm", KIND_KERNEL), 200, 200);
}

static void invalid_values_are_counted(void **state)
{
	(void)state;
	READ(DB_SMALL DB_RANGES
	     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 100 WHERE start = 200;"
	     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x' WHERE start = 400;"
	     "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = NULL WHERE start = 600;"
	     "INSERT INTO NVTX_EVENTS VALUES (1, NULL, 59, 'open', " TID_A
	     ", NULL, 0, NULL, NULL, NULL), (1, NULL, 34, 'mark', " TID_A
	     ", NULL, 0, NULL, NULL, NULL);",
	     look_at_drops, nothing);
}

static void a_missing_column_is_named(void **state)
{
	(void)state;
	check_fails(
		DB_SMALL "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN end TO stop;",
		-EINVAL,
		"x.sqlite: table CUPTI_ACTIVITY_KIND_KERNEL: expected a column end, found none");
}

static void other_databases_are_refused(void **state)
{
	(void)state;
	check_fails("CREATE TABLE t (a);", -EINVAL,
		    "x.sqlite: expected an export of Nsight Systems (tables META_DATA_EXPORT and "
		    "StringIds), found a database without them");
	check_fails(DB_META DB_STRINGS, -EINVAL,
		    "x.sqlite: expected work on a device or ranges (CUPTI_ACTIVITY_KIND_KERNEL, "
		    "NVTX_EVENTS), found none");
}

/* Its rows would never end. */
static void a_view_is_no_table(void **state)
{
	(void)state;
	check_fails(DB_META DB_STRINGS
		    "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS "
		    "(SELECT 1 UNION ALL SELECT start + 1 FROM r) SELECT start, start AS end, "
		    "0 AS deviceId, 0 AS streamId, 0 AS globalPid FROM r;",
		    -EINVAL,
		    "x.sqlite: expected work on a device or ranges (CUPTI_ACTIVITY_KIND_KERNEL, "
		    "NVTX_EVENTS), found none");
}

static void other_files_than_databases_are_refused(void **state)
{
	struct err err = { "" };
	char text[4096] = "no database";

	(void)state;
	assert_int_equal(nsys_read_memory(text, sizeof(text), "x", NULL, look, NULL, &err),
			 -EINVAL);
	assert_string_equal(err.text, "x: expected an SQLite database, found none");
}

static void half_a_database_is_damaged(void **state)
{
	struct looks looks = { NULL, 0, 0 };
	struct err err = { "" };
	size_t len;
	unsigned char *bytes = testdb_make(REPEATS, &len);

	(void)state;
	assert_int_equal(nsys_read_memory(bytes, len / 2, "x", NULL, look, &looks, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "expected an intact database, found: "));
	sqlite3_free(bytes);
}

static void more_processes_than_a_host_has_are_refused(void **state)
{
	(void)state;
	check_fails(REPEATS "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = (rowid << 24);"
			    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT a.start, a.end, 0, 7, 0,"
			    " ((a.rowid * 200 + b.rowid) << 24), 1, 1, 1, 1, 1, 1, 1, 1"
			    " FROM CUPTI_ACTIVITY_KIND_KERNEL a, CUPTI_ACTIVITY_KIND_KERNEL b;",
		    -EFBIG,
		    "x.sqlite: table CUPTI_ACTIVITY_KIND_KERNEL: expected at most 512 processes, "
		    "found more");
}

static void a_limit_on_memory_is_kept(void **state)
{
	const struct nsys_options options = { .max_memory_bytes = 100 };
	struct looks looks = { NULL, 0, 0 };
	struct err err = { "" };
	size_t len;
	unsigned char *bytes = testdb_make(REPEATS, &len);

	(void)state;
	assert_int_equal(nsys_read_memory(bytes, len, "x", &options, look, &looks, &err), -EFBIG);
	assert_string_equal(err.text,
			    "x: expected events and names of at most 100 bytes, found more");
	sqlite3_free(bytes);
}

static void ignore(void *to, const struct trace *trace)
{
	(void)to;
	(void)trace;
}

static void every_failing_allocation_is_an_error(void **state)
{
	size_t len;
	unsigned char *bytes = testdb_make(DB_ALL, &len);
	int ret = -ENOMEM;

	(void)state;
	for (long n = 0; ret == -ENOMEM; n++) {
		struct err err = { "" };

		allocations_left = n;
		ret = nsys_read_memory(bytes, len, "x", NULL, ignore, NULL, &err);
		allocations_left = -1;
		assert_true(ret == 0 || strcmp(err.text, "x: out of memory") == 0);
	}
	assert_int_equal(ret, 0);
	sqlite3_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_process_with_kernels_is_a_worker),
		cmocka_unit_test(a_process_that_only_copies_is_no_worker),
		cmocka_unit_test(without_process_ids_all_is_one_worker),
		cmocka_unit_test(names_are_those_that_other_traces_have),
		cmocka_unit_test(ranges_of_operators_are_distinguished_from_scopes),
		cmocka_unit_test(names_that_cannot_be_are_mended_and_counted),
		cmocka_unit_test(calls_inside_of_cuda_are_its_time),
		cmocka_unit_test(ranges_named_after_iterations_are_steps_up_to_the_next),
		cmocka_unit_test(of_several_loops_the_widest_is_the_iteration),
		cmocka_unit_test(steps_that_are_marked_are_left_alone),
		cmocka_unit_test(without_such_ranges_what_repeats_is_an_iteration),
		cmocka_unit_test(payload_has_communicator_bytes_and_rank),
		cmocka_unit_test(payload_may_be_json_by_id),
		cmocka_unit_test(calls_of_a_group_are_one_kernel),
		cmocka_unit_test(metrics_of_both_layouts_are_the_worker_s_own_gpu_s),
		cmocka_unit_test(metrics_of_an_unidentified_gpu_are_left_out),
		cmocka_unit_test(turns_on_the_cpu_are_its_share),
		cmocka_unit_test(bytes_of_network_cards_are_no_share),
		cmocka_unit_test(samples_of_python_are_stacks),
		cmocka_unit_test(invalid_values_are_counted),
		cmocka_unit_test(a_missing_column_is_named),
		cmocka_unit_test(other_databases_are_refused),
		cmocka_unit_test(a_view_is_no_table),
		cmocka_unit_test(other_files_than_databases_are_refused),
		cmocka_unit_test(half_a_database_is_damaged),
		cmocka_unit_test(more_processes_than_a_host_has_are_refused),
		cmocka_unit_test(a_limit_on_memory_is_kept),
		cmocka_unit_test(every_failing_allocation_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
