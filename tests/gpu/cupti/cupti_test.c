/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUPTI back end on doubles of libcupti and libcuda, see test_cupti.h: records, other tools,
 * pools of buffers, and where the library is found. How it detaches is in cupti_detach_test.c.
 * CUPTI_REAL, where it is set, names the toolkit's own library, whose names of calls are compared.
 */
#include "agent/gpu/buffers.h"
#include "agent/gpu/cupti/cupti_abi.h"
#include "agent/gpu/cupti/cupti_calls.h"
#include "agent/gpu/cupti/cupti_layout.h"
#include "agent/gpu/cupti/cupti_records.h"
#include "test_cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void whole_window(void)
{
	begin_window();
	work(100);
	CHECK(end_window() == 0);
	check_window(100);
	CHECK(job.count("finalized") == 1 && job.count("attached") == 0);
	CHECK(job.count("enabled") == 0 && job.count("calls") == 0 && job.count("sites") == 0);
	CHECK(seen.untimed == 0 && seen.dropped == 0);
	CHECK(seen.name_calls < 10); /* of 200 kernels: by pointer */
}

static void a_window_has_what_ran_and_leaves_nothing_behind(_unused_ void **state)
{
	run_in_child(whole_window);
}

static void windows_again(void)
{
	job.set("version", 26);
	for (size_t i = 0; i < 3; i++) {
		begin_window();
		work(20);
		CHECK(end_window() == 0);
		check_window(20);
		work(20); /* between windows */
		CHECK(job.count("finalized") == (int64_t)i + 1);
	}
}

static void windows_follow_each_other(_unused_ void **state)
{
	run_in_child(windows_again);
}

static void all_layouts(void)
{
	for (int64_t version = 5; version <= 13; version++) {
		job.set("kernel", version);
		begin_window();
		work(10);
		CHECK(end_window() == 0);
		check_window(10);
	}
}

static void records_of_every_version_are_read(_unused_ void **state)
{
	run_in_child(all_layouts);
}

static void waits_alone(void)
{
	begin_window();
	job.synchronize(7);
	job.synchronize(9);
	CHECK(end_window() == 0);
	CHECK(seen.dropped == 2 && count(GPUTRACE_SYNC, "Stream Sync") == 0);
	seen.dropped = 0;
	begin_window();
	job.synchronize(7); /* before anything ran: the device is known later */
	work(10);
	CHECK(end_window() == 0);
	CHECK(seen.dropped == 0 && count(GPUTRACE_SYNC, "Stream Sync") == 3);
}

static void waits_in_a_context_whose_device_is_unknown_are_counted(_unused_ void **state)
{
	run_in_child(waits_alone);
}

static uint32_t next_overhead(uint8_t *buffer, size_t valid, void **record)
{
	struct cupti_overhead *next =
		*record == NULL ? (void *)buffer : (struct cupti_overhead *)*record + 1;

	if ((uint8_t *)next >= buffer + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = next;
	return CUPTI_OK;
}

/* The numbers of cupti_activity.h. */
static void overheads(void)
{
	static const uint32_t whats[] = { 1, 1 << 16, 4 << 16, 5 << 16, 6 << 16, 8 << 16, 9 << 16 };
	static struct cupti_reader reader = { .sink = &sink, .next = next_overhead };
	struct cupti_overhead records[ARRAY_SIZE(whats)];
	void *at = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
		records[i] = (struct cupti_overhead){ .kind = CUPTI_KIND_OVERHEAD,
						      .what = whats[i],
						      .object = CUPTI_OBJECT_THREAD,
						      .tid = 5,
						      .start = 10,
						      .end = 20 };
	CHECK(cupti_reader_read(&reader, (uint8_t *)records, sizeof(records), &at, 100) ==
	      ARRAY_SIZE(whats));
	CHECK(count(GPUTRACE_OVERHEAD, "Driver Compiler") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "Buffer Flush") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "Runtime Triggered Module Loading") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "Lazy Function Loading") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "Command Buffer Full") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "UVM Activity Init") == 1);
	CHECK(count(GPUTRACE_OVERHEAD, "Unknown Overhead") == 1);
	CHECK(first(GPUTRACE_OVERHEAD, "Command Buffer Full")->id == 5);
}

static void overheads_have_their_names(_unused_ void **state)
{
	run_in_child(overheads);
}

static void no_times(void)
{
	job.set("untimed", 5);
	begin_window();
	work(100);
	CHECK(end_window() == 0);
	CHECK(seen.untimed == 20);
	CHECK(count(GPUTRACE_KERNEL, "gemm") + count(GPUTRACE_KERNEL, "_Z4reluPf") == 80);
}

static void kernels_without_times_are_counted_and_left_out(_unused_ void **state)
{
	run_in_child(no_times);
}

static void busy_by_name(void)
{
	job.set("busy", 1);
	CHECK(gputrace_cupti.probe(why) == 0);
	CHECK(gputrace_cupti.start(&sink, why) == -EBUSY);
	CHECK(strstr(why, "Nsight Systems") != NULL);
	job.set("busy", 2);
	CHECK(gputrace_cupti.start(&sink, why) == -EBUSY);
	CHECK(job.count("attached") == 0 && job.count("enabled") == 0 && job.count("calls") == 0);
	job.set("busy", 0); /* the other has left */
	begin_window();
	work(10);
	CHECK(end_window() == 0);
	check_window(10);
}

static void another_tool_goes_first_and_is_named(_unused_ void **state)
{
	run_in_child(busy_by_name);
}

static _Atomic size_t their_bytes;

static void their_request(uint8_t **buffer, size_t *size, size_t *record_max)
{
	*record_max = 0;
	*size = BUFFERS_BYTES;
	*buffer = calloc(1, *size);
}

static void their_complete(_unused_ void *context, _unused_ uint32_t stream,
			   _unused_ uint8_t *buffer, _unused_ size_t size, size_t valid)
{
	their_bytes += valid;
}

/* As Kineto does it: without a subscriber. */
static void register_theirs(void)
{
	void *cupti = dlopen(getenv("DOUBLE_CUPTI"), RTLD_NOW);
	uint32_t (*register_buffers)(cupti_request_fn request, cupti_complete_fn complete);

	find(cupti, "cuptiActivityRegisterCallbacks", &register_buffers);
	CHECK(register_buffers(their_request, their_complete) == 0);
}

static void taken_over(void)
{
	begin_window();
	work(10);
	register_theirs();
	work(10);
	CHECK(end_window() == -EIO);
	CHECK(strstr(why, "another tool") != NULL);
	CHECK(seen.dropped > 0 && their_bytes > 0);
	CHECK(job.count("finalized") == 0 && job.count("attached") == 0);
	CHECK(job.count("enabled") == 0 && job.count("calls") == 0);
	begin_window(); /* the other has left */
	work(10);
	CHECK(end_window() == 0);
	check_window(10);
	CHECK(job.count("finalized") == 1);
}

static void buffers_that_another_tool_took_are_missed(_unused_ void **state)
{
	run_in_child(taken_over);
}

static void refused(void)
{
	job.set("refuse", 35);
	CHECK(gputrace_cupti.probe(why) == 0);
	CHECK(gputrace_cupti.start(&sink, why) == -ENOTSUP);
	CHECK(strstr(why, "NVreg_RestrictProfilingToAdminUsers") != NULL);
	job.set("refuse", 999);
	CHECK(gputrace_cupti.start(&sink, why) == -ENOTSUP);
	CHECK(strstr(why, "999") != NULL);
	CHECK(job.count("attached") == 0);
}

static void refusals_of_the_driver_are_reported(_unused_ void **state)
{
	run_in_child(refused);
}

static void unused(void)
{
	job.context(0);
	CHECK(gputrace_cupti.probe(why) == -ENOENT);
	CHECK(strstr(why, "no CUDA context") != NULL);
	CHECK(job.count("attached") == 0);
}

static void a_process_without_a_context_is_not_attached_to(_unused_ void **state)
{
	run_in_child(unused);
}

static void graphs_of(int64_t version, bool correlated)
{
	job.set("version", version);
	for (size_t i = 0; i < 2; i++) {
		const struct gputrace_event *node;

		begin_window();
		job.graph(7, 3, 1000);
		job.synchronize(7);
		CHECK(end_window() == -EOPNOTSUPP);
		node = first(GPUTRACE_KERNEL, "_Z10graph_nodePf");
		CHECK(node->graph_node != 0);
		CHECK((node->correlation != 0) == correlated);
		CHECK(first(GPUTRACE_API, "cudaGraphLaunch")->correlation != 0);
	}
}

static void chosen_calls(void)
{
	static const uint16_t listed[] = {
#define X(domain, call, name) call,
		CUPTI_CALL_LIST(X)
#undef X
	};

	begin_window();
	CHECK(job.count("calls") == (int64_t)ARRAY_SIZE(listed));
	work(10);
	CHECK(end_window() == 0);
	CHECK(job.count("calls") == 0);
}

static void only_chosen_calls_are_recorded(_unused_ void **state)
{
	run_in_child(chosen_calls);
}

/* CUPTI numbers them wrongly from the second session on; the agent's may be the first. */
static void graphs_of_13_0(void)
{
	graphs_of(130001, false);
}

static void graphs_of_others(void)
{
	graphs_of(28, true);
	graphs_of(130101, true);
}

static void kernels_of_graphs_know_their_node(_unused_ void **state)
{
	run_in_child(graphs_of_13_0);
	run_in_child(graphs_of_others);
}

/* 216 bytes a kernel: 32 MiB hold 155 thousand. */
static void exhausted(int64_t version)
{
	const size_t one = 20000;

	job.set("version", version);
	job.set("repeat", (int64_t)one);
	begin_window();
	for (size_t i = 0; i < 10; i++)
		job.launch("gemm", 7, 0, 1);
	job.synchronize(7);
	CHECK(end_window() == 0);
	CHECK(count(GPUTRACE_KERNEL, "gemm") > 140000);
	CHECK(seen.dropped > 0);
	CHECK(count(GPUTRACE_KERNEL, "gemm") + seen.dropped <= 10 * one + 32);
	if (version >= CUPTI_VERSION_12_9)
		CHECK(count(GPUTRACE_KERNEL, "gemm") + seen.dropped >= 10 * one);
	job.set("repeat", 1);
	begin_window();
	work(10);
	CHECK(end_window() == 0);
	check_window(10);
}

static void exhausted_new(void)
{
	exhausted(130001);
}

static void exhausted_old(void)
{
	exhausted(26);
}

static void a_pool_that_is_empty_refuses_where_that_is_allowed(_unused_ void **state)
{
	run_in_child(exhausted_new);
}

static void an_empty_pool_discards_if_it_must_not_refuse(_unused_ void **state)
{
	run_in_child(exhausted_old);
}

static void *launch_one(_unused_ void *arg)
{
	job.launch("gemm", 7, 0, 1);
	return NULL;
}

/* Each thread keeps its buffer until the window's end. */
static void launch_from_threads(size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, launch_one, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	job.synchronize(7);
}

static void some_threads(void)
{
	begin_window();
	launch_from_threads(200);
	CHECK(end_window() == 0);
	CHECK(count(GPUTRACE_API, "cudaLaunchKernel") == 200);
	CHECK(count(GPUTRACE_KERNEL, "gemm") == 200);
	CHECK(seen.dropped == 0);
}

static void each_of_200_threads_has_room(_unused_ void **state)
{
	run_in_child(some_threads);
}

static void many_threads(int64_t version)
{
	const size_t threads = 1000;

	job.set("version", version);
	for (size_t i = 0; i < 2; i++) {
		seen.dropped = 0;
		begin_window();
		launch_from_threads(threads);
		CHECK(end_window() == 0);
		CHECK(seen.dropped > 0);
		CHECK(count(GPUTRACE_API, "cudaLaunchKernel") + count(GPUTRACE_KERNEL, "gemm") +
			      seen.dropped >=
		      2 * threads);
	}
}

static void many_threads_new(void)
{
	many_threads(130101);
}

static void many_threads_old(void)
{
	many_threads(26);
}

static void threads_beyond_the_pool_are_counted(_unused_ void **state)
{
	run_in_child(many_threads_new);
}

static void no_two_threads_discard_into_one_buffer(_unused_ void **state)
{
	run_in_child(many_threads_old);
}

/* As the agent's helper does it: draining while the job launches. */
static void *drain_on(void *arg)
{
	int *stop = arg;

	while (__atomic_load_n(stop, __ATOMIC_ACQUIRE) == 0)
		(void)gputrace_cupti.drain(512);
	return NULL;
}

static void drained_meanwhile(void)
{
	pthread_t thread;
	int stop = 0;

	job.set("repeat", 1000);
	begin_window();
	CHECK(pthread_create(&thread, NULL, drain_on, &stop) == 0);
	for (size_t i = 0; i < 400; i++)
		job.launch("gemm", 7, 100000, 1);
	job.synchronize(7);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(end_window() == 0);
	CHECK(count(GPUTRACE_KERNEL, "gemm") + seen.dropped == 400000);
	CHECK(seen.dropped == 0 || job.count("buffers") > BUFFERS_CNT);
	CHECK(job.count("buffers") > BUFFERS_CNT);
}

static void buffers_are_used_again_while_the_job_goes_on(_unused_ void **state)
{
	run_in_child(drained_meanwhile);
}

static void forks(void)
{
	pid_t pid;
	int status;

	begin_window();
	work(10);
	pid = fork();
	if (pid == 0) {
		gputrace_cupti.forked();
		_exit(gputrace_cupti.probe(why) == -ENOENT ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(end_window() == 0);
	check_window(10);
}

static void a_forked_child_has_no_gpu(_unused_ void **state)
{
	run_in_child(forks);
}

/* As packages of Python lay the libraries out: *names are made links to the doubles. */
static void find_beside(const char *runtime, const char *cupti)
{
	char folder[] = "/tmp/cupti_test_XXXXXX", path[2][256], command[1024];
	void *cuda = dlopen(getenv("DOUBLE_CUDA"), RTLD_NOW), *found;

	CHECK(cuda != NULL && mkdtemp(folder) != NULL);
	(void)snprintf(path[0], sizeof(path[0]), "%s/%s", folder, runtime);
	(void)snprintf(path[1], sizeof(path[1]), "%s/%s", folder, cupti);
	(void)snprintf(command, sizeof(command), "mkdir -p $(dirname %s) $(dirname %s)", path[0],
		       path[1]);
	CHECK(system(command) == 0);
	CHECK(symlink(getenv("DOUBLE_CUDART"), path[0]) == 0);
	CHECK(symlink(getenv("DOUBLE_CUPTI"), path[1]) == 0);
	find(cuda, "double_context", &job.context);
	job.context(1);
	CHECK(dlopen(path[0], RTLD_NOW) != NULL);
	CHECK(gputrace_cupti.probe(why) == 0);
	found = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(system(command) == 0);
	CHECK(found != NULL && dlsym(found, "double_count") != NULL);
	_exit(0);
}

static void of_cuda_12(void)
{
	find_beside("cuda_runtime/lib/libcudart.so.13", "cuda_cupti/lib/libcupti.so.13");
}

static void of_cuda_13(void)
{
	find_beside("cu13/lib/libcudart.so.13", "cu13/lib/libcupti.so.13");
}

static void run_without_doubles(void (*scenario)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		scenario();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void libcupti_is_found_beside_the_runtime_that_is_loaded(_unused_ void **state)
{
	run_without_doubles(of_cuda_12);
	run_without_doubles(of_cuda_13);
}

/* The example of a back end obeys the table, too. */
static void the_null_back_end_goes_the_whole_way(_unused_ void **state)
{
	assert_int_equal(gputrace_null.probe(why), -ENOENT);
	assert_int_equal(gputrace_null.start(&sink, why), 0);
	assert_string_equal(seen.device, "Null GPU");
	gputrace_null.stop();
	assert_int_equal(gputrace_null.drain(10), 0);
	assert_int_equal(gputrace_null.close(why), 0);
	gputrace_null.forked();
	assert_int_equal(gputrace_null.probe(why), -ENOTSUP);
}

/* The toolkit's library runs without a driver as far as this. */
static void numbers_of_calls_are_those_of_the_real_library(_unused_ void **state)
{
	static const struct {
		uint32_t domain, call;
		const char *name;
	} calls[] = {
#define X(domain, call, name) { CUPTI_DOMAIN_##domain, call, name },
		CUPTI_CALL_LIST(X)
#undef X
	};
	const char *path = getenv("CUPTI_REAL");
	void *library =
		path != NULL && path[0] != '\0' ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	uint32_t (*get_name)(uint32_t, uint32_t, const char **);

	if (library == NULL) {
		print_message("no libcupti of a toolkit: not compared\n");
		skip();
	}
	find(library, "cuptiGetCallbackName", &get_name);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const char *name = NULL;
		size_t len = strlen(calls[i].name);

		assert_int_equal(get_name(calls[i].domain, calls[i].call, &name), 0);
		assert_memory_equal(name, calls[i].name, len);
		assert_true(name[len] == '\0' || name[len] == '_');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_has_what_ran_and_leaves_nothing_behind),
		cmocka_unit_test(windows_follow_each_other),
		cmocka_unit_test(records_of_every_version_are_read),
		cmocka_unit_test(overheads_have_their_names),
		cmocka_unit_test(waits_in_a_context_whose_device_is_unknown_are_counted),
		cmocka_unit_test(kernels_without_times_are_counted_and_left_out),
		cmocka_unit_test(another_tool_goes_first_and_is_named),
		cmocka_unit_test(buffers_that_another_tool_took_are_missed),
		cmocka_unit_test(refusals_of_the_driver_are_reported),
		cmocka_unit_test(a_process_without_a_context_is_not_attached_to),
		cmocka_unit_test(kernels_of_graphs_know_their_node),
		cmocka_unit_test(only_chosen_calls_are_recorded),
		cmocka_unit_test(a_pool_that_is_empty_refuses_where_that_is_allowed),
		cmocka_unit_test(an_empty_pool_discards_if_it_must_not_refuse),
		cmocka_unit_test(each_of_200_threads_has_room),
		cmocka_unit_test(threads_beyond_the_pool_are_counted),
		cmocka_unit_test(no_two_threads_discard_into_one_buffer),
		cmocka_unit_test(buffers_are_used_again_while_the_job_goes_on),
		cmocka_unit_test(a_forked_child_has_no_gpu),
		cmocka_unit_test(libcupti_is_found_beside_the_runtime_that_is_loaded),
		cmocka_unit_test(the_null_back_end_goes_the_whole_way),
		cmocka_unit_test(numbers_of_calls_are_those_of_the_real_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
