/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pythonrange.h"
#include "doctor/check.h"
#include "doctor/child.h"
#include "doctor/secrets.h"

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

/* --- secrets.h --- */

static const char *masked(const char *value)
{
	static char text[256];

	mask_value(value, text, sizeof(text));
	return text;
}

static void paths_are_shown_as_they_are(void **state _unused_)
{
	static const char *const values[] = {
		"/opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/libToolsInjection64.so",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2:/opt/lib/libfoo.so",
		"libnccl-profiler-inspector.so",
		"1",
		"none",
		"",
		"/home/monkey/site-packages/nvidia/cuda_cupti/lib",
		"/opt/my-key-ring/half_precision_kernels/libhf_compat.so",
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_string_equal(masked(values[i]), values[i]);
}

static void tokens_are_masked_wherever_they_stand(void **state _unused_)
{
	/* Invented, each in the format of its kind. */
	static const struct {
		const char *value, *secret;
	} cases[] = {
		{ "hf_AbCdEfGhIjKlMnOp", "AbCdEf" },
		{ "/opt/lib.so:sk-proj-abcdefgh", "proj-abc" },
		{ "token=swordfish", "swordfish" },
		{ "--password=swordfish,verbose", "swordfish" },
		{ "WANDB_API_KEY=12345", "12345" },
		{ "Authorization: Bearer abcdefg", "abcdefg" },
		{ "https://user:swordfish@host/x", "swordfish" },
		{ "http://host/?access_token=abc", "=abc" },
		{ "0a1b2c3d4e5f60718293a4b5c6d7e8f9", "3d4e5f" },
		{ "/run/0a1b2c3d4e5f60718293a4b5c6d7e8f9/x.so", "3d4e5f" },
		{ "eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", "hbGciOi" },
		{ "secret: 'swordfish'", "swordfish" },
		{ "pass=hunter2 x=1", "hunter2" },
		{ "a=1 pw=letmein", "letmein" },
		{ "https://host/blob?sv=2024&sig=Zm9vYmFy", "Zm9v" },
		{ "https://host/?X-Amz-Signature=12ab", "12ab" },
		{ "SESSION=abcd", "abcd" },
		{ "Cookie: abcd", "abcd" },
		{ "/opt/x-ghp_AbCdEfGhIjKlMnOp", "AbCdEf" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_null(strstr(masked(cases[i].value), cases[i].secret));
		assert_non_null(strstr(masked(cases[i].value), "***"));
	}
}

static void a_long_value_is_cut(void **state _unused_)
{
	char value[8192];

	memset(value, '/', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	assert_int_equal(strlen(masked(value)), MASK_SHOWN_MAX);
	assert_string_equal(masked(value) + MASK_SHOWN_MAX - 3, "...");
}

/* --- child.h --- */

static unsigned wrong_kills;

/* Replaces libc's kill(): the pid of a reaped child may belong to another process. */
int kill(pid_t pid, int number)
{
	const id_t child = (id_t)(pid < 0 ? -pid : pid);

	wrong_kills += waitid(P_PID, child, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) != 0;
	return (int)syscall(SYS_kill, pid, number);
}

static void say(const void *arg, int fd)
{
	dprintf(fd, "%s", (const char *)arg);
}

static void hang(const void *arg, int fd)
{
	say(arg, fd);
	for (;;)
		(void)pause();
}

static void crash(const void *arg, int fd)
{
	say(arg, fd);
	(void)signal(SIGSEGV, SIG_DFL); /* keeps a sanitizer from printing a report */
	(void)raise(SIGSEGV);
}

/* Leaves a process behind that keeps the pipe open. */
static void abandon(const void *arg, int fd)
{
	say(arg, fd);
	if (fork() == 0)
		hang("", fd);
}

static void what_a_child_says_arrives_however_it_ends(void **state _unused_)
{
	static const struct {
		void (*work)(const void *, int);
		int limit_ms;
		const char *end;
	} cases[] = { { say, 60000, "" },
		      { abandon, 60000, "" },
		      { crash, 60000, "crashed (signal 11)" },
		      { hang, 1000, "did not answer in time" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64], end_text[64];
		struct child_end end;

		assert_int_equal(child_call(cases[i].work, "hello", cases[i].limit_ms, text,
					    sizeof(text), &end),
				 0);
		child_end_text(&end, end_text, sizeof(end_text));
		assert_string_equal(text, "hello");
		assert_string_equal(end_text, cases[i].end);
		assert_int_equal(wrong_kills, 0);
	}
}

static void too_much_output_is_cut(void **state _unused_)
{
	char text[8];
	struct child_end end;

	assert_int_equal(child_call(say, "0123456789", 60000, text, sizeof(text), &end), 0);
	assert_string_equal(text, "0123456");
}

static void a_missing_program_is_reported(void **state _unused_)
{
	char path[] = "/nonexistent/python", text[256];
	char *argv[] = { path, NULL }, *environment[] = { NULL };
	struct child_end end;

	assert_int_equal(child_run(argv, environment, 60000, text, sizeof(text), &end), 0);
	assert_int_equal(end.status, 127);
	assert_non_null(strstr(text, "/nonexistent/python"));
}

/* --- facts --- */

static void a_fact_is_a_whole_line(void **state _unused_)
{
	char value[16];

	assert_true(facts_get("ab=1\na=2 \nb=\n", "a", value, sizeof(value)));
	assert_string_equal(value, "2");
	assert_true(facts_get("ab=1\na=2\nb=\n", "b", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(facts_get("ab=1\n", "b", value, sizeof(value)));
	assert_false(facts_get("", "b", value, sizeof(value)));
	assert_true(facts_get("a=0123456789abcdefghi", "a", value, sizeof(value)));
	assert_string_equal(value, "0123456789abcde");
}

/* --- fixture trees --- */

struct tree {
	char root[64];
};

static int make_tree(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (tree == NULL)
		return -1;
	(void)snprintf(tree->root, sizeof(tree->root), "/tmp/doctor-test-XXXXXX");
	*state = tree;
	return mkdtemp(tree->root) != NULL ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st _unused_, int type _unused_,
			struct FTW *at _unused_)
{
	return remove(path);
}

static int remove_tree(void **state)
{
	struct tree *tree = *state;
	int ret = nftw(tree->root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);

	free(tree);
	return ret;
}

static void put(const struct tree *tree, const char *path, const char *text, mode_t mode)
{
	char full[512];
	FILE *file;

	(void)snprintf(full, sizeof(full), "%s%s", tree->root, path);
	for (char *c = strchr(full + strlen(tree->root) + 1, '/'); c != NULL;
	     c = strchr(c + 1, '/')) {
		*c = '\0';
		(void)mkdir(full, 0755);
		*c = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(full, mode), 0);
}

/* The result of one check on a tree. */
static struct doctor_result look(const struct tree *tree,
				 void (*check)(const struct doctor *, struct doctor_result *),
				 char *const *environment)
{
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	struct doctor_result ret = { .state = DOCTOR_NOT_TRIED };

	assert_non_null(doctor);
	doctor->setup = (struct doctor_setup){ .root = tree->root, .environment = environment };
	check(doctor, &ret);
	free(doctor);
	return ret;
}

static void the_smallest_limit_on_the_way_up_counts(void **state)
{
	const struct tree *tree = *state;
	struct doctor_result ret;

	put(tree, "/proc/self/cgroup", "0::/kube/pod7/main\n", 0644);
	put(tree, "/sys/fs/cgroup/kube/pod7/main/cpu.max", "max 100000\n", 0644);
	put(tree, "/sys/fs/cgroup/kube/pod7/cpu.max", "250000 100000\n", 0644);
	put(tree, "/sys/fs/cgroup/kube/pod7/cpu.stat", "usage_usec 1\nnr_throttled 12\n", 0644);
	put(tree, "/sys/fs/cgroup/kube/cpu.max", "800000 100000\n", 0644);
	put(tree, "/sys/fs/cgroup/kube/pod7/memory.max", "1073741824\n", 0644);
	ret = look(tree, check_cpu_limit, NULL);
	assert_int_equal(ret.state, DOCTOR_LIMITED);
	assert_string_equal(ret.found, "2.50 CPUs by its cgroup; throttled in 12 periods so far");
	ret = look(tree, check_memory_limit, NULL);
	assert_int_equal(ret.state, DOCTOR_LIMITED);
	assert_string_equal(ret.found, "1024 MiB by its cgroup");
}

static void the_old_hierarchy_is_read_too(void **state)
{
	const struct tree *tree = *state;
	struct doctor_result ret;

	put(tree, "/proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/\n0::/\n", 0644);
	put(tree, "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n", 0644);
	put(tree, "/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n", 0644);
	put(tree, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", 0644);
	ret = look(tree, check_cpu_limit, NULL);
	assert_int_equal(ret.state, DOCTOR_OK);
	assert_string_equal(ret.found, "0.50 CPUs by its cgroup; throttled in 0 periods so far");
	ret = look(tree, check_memory_limit, NULL);
	assert_string_equal(ret.found, "no limit");
}

static void counters_need_privilege_unless_configured_otherwise(void **state)
{
	const struct tree *tree = *state;

	assert_int_equal(look(tree, check_gpu_counters, NULL).state, DOCTOR_ABSENT);
	put(tree, "/proc/driver/nvidia/version", "NVRM version: x  580.95.05  Tue\n", 0644);
	put(tree, "/proc/driver/nvidia/params", "Mobile: 1\nRmProfilingAdminOnly: 1\n", 0644);
	assert_int_equal(look(tree, check_gpu_counters, NULL).state, DOCTOR_LIMITED);
	put(tree, "/proc/self/status", "Name:\tx\nCapEff:\t0000000000200000\n", 0644);
	assert_int_equal(look(tree, check_gpu_counters, NULL).state, DOCTOR_OK);
	put(tree, "/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n", 0644);
	put(tree, "/proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n", 0644);
	assert_int_equal(look(tree, check_gpu_counters, NULL).state, DOCTOR_OK);
}

static void a_listener_on_the_port_of_dcgm_is_seen(void **state)
{
	static const char header[] = "  sl  local_address rem_address   st tx_queue rx_queue\n";
	const struct tree *tree = *state;
	char table[256];

	assert_int_equal(look(tree, check_dcgm, NULL).state, DOCTOR_OK);
	(void)snprintf(table, sizeof(table), "%s   0: 0100007F:15B3 00000000:0000 01 0:0\n",
		       header);
	put(tree, "/proc/net/tcp", table, 0644);
	assert_int_equal(look(tree, check_dcgm, NULL).state, DOCTOR_OK);
	(void)snprintf(table, sizeof(table), "%s   0: 0100007F:15B3 00000000:0000 0A 0:0\n",
		       header);
	put(tree, "/proc/net/tcp", table, 0644);
	assert_int_equal(look(tree, check_dcgm, NULL).state, DOCTOR_LIMITED);
}

static void another_profiler_is_named_and_its_command_line_is_not(void **state)
{
	static const char stat[] = "71 (nsys) S 1 71 71 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 "
				   "0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0\n";
	const struct tree *tree = *state;
	struct doctor_result ret;

	put(tree, "/proc/71/stat", stat, 0644);
	put(tree, "/proc/71/cmdline", "nsys\0--token\0swordfish", 0644);
	ret = look(tree, check_profilers, NULL);
	assert_int_equal(ret.state, DOCTOR_LIMITED);
	assert_string_equal(ret.found, "nsys (pid 71) holds CUPTI of the profiled process");
}

static void only_known_variables_are_shown(void **state)
{
	char injection[] = "CUDA_INJECTION64_PATH=/opt/nsys/lib.so";
	char secret[] = "HF_TOKEN=swordfish", prefix[] = "CUDA_INJECTION64_PATH_2=x";
	char *environment[] = { prefix, secret, injection, NULL };
	struct doctor_result ret = look(*state, check_injection, environment);

	assert_int_equal(ret.state, DOCTOR_LIMITED);
	assert_string_equal(ret.found, "CUDA_INJECTION64_PATH=/opt/nsys/lib.so");
}

static void what_is_preloaded_counts_by_the_names_of_files(void **state)
{
	static char cases[][64] = {
		"LD_PRELOAD=/opt/x/libcupti.so.12:/lib/libx.so",
		"LD_PRELOAD=libx.so libasan.so.8",
		"LD_AUDIT=/opt/darshan/lib/libdarshan.so",
		"LD_PRELOAD=/home/hasan/libx.so:/opt/nsys/liby.so",
		"LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64",
		"LD_LIBRARY_PATH=/home/hasan/lib",
		"LD_PRELOAD=/usr/lib/libjemalloc.so.2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *environment[] = { cases[i], NULL };
		struct doctor_result ret = look(*state, check_preload, environment);

		assert_string_equal(ret.found, cases[i]);
		assert_int_equal(ret.state, i < 3 ? DOCTOR_LIMITED : DOCTOR_OK);
	}
}

static void the_program_of_dcgm_that_runs_is_named(void **state)
{
	const struct tree *tree = *state;

	put(tree, "/proc/71/stat",
	    "71 (dcgm-exporter) S 1 71 71 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 "
	    "0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0\n",
	    0644);
	assert_string_equal(look(tree, check_dcgm, NULL).found, "dcgm-exporter runs");
}

/* --- a Python that isn't one --- */

static struct doctor_result find_result(const struct doctor_result *results, size_t cnt,
					const char *id)
{
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(results[i].id, id) == 0)
			return results[i];
	}
	fail_msg("no check %s", id);
	return results[0];
}

static void a_python_that_hangs_or_fails_is_reported_and_killed(void **state)
{
	static const struct {
		int limit_ms;
		const char *script;
		const char *agent; /* the check's result */
	} cases[] = {
		{ 1000,
		  "#!/bin/sh\n[ \"$1\" = -c ] && echo version=3.11.2 && "
		  "echo implementation=cpython && exit\nexec sleep 1000\n",
		  "Python did not answer in time" },
		{ 60000,
		  "#!/bin/sh\n[ \"$1\" = -c ] && echo version=3.11.2 && "
		  "echo implementation=cpython && exit\necho Trace >&2\necho 'No: way' >&2\nexit 3\n",
		  "Python exit status 3: No: way" },
	};
	const struct tree *tree = *state;
	char python[128], path[] = "PATH=/usr/bin:/bin";
	char *environment[] = { path, NULL };
	struct doctor_result results[DOCTOR_CHECKS_MAX];
	struct doctor_setup setup = { .environment = environment,
				      .python = python,
				      .agent = "/nonexistent/agent.so",
				      .package = tree->root };

	(void)snprintf(python, sizeof(python), "%s/python", tree->root);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t cnt;

		put(tree, "/python", cases[i].script, 0755);
		setup.python_ms = cases[i].limit_ms;
		cnt = doctor_run(&setup, results);
		assert_int_equal(find_result(results, cnt, "python").state, DOCTOR_OK);
		assert_int_equal(find_result(results, cnt, "agent").state, DOCTOR_FAILED);
		assert_string_equal(find_result(results, cnt, "agent").found, cases[i].agent);
		assert_true(doctor_is_unfit(results, cnt));
	}
}

static void a_python_of_another_kind_is_refused(void **state)
{
	static const struct {
		const char *says, *found;
	} cases[] = {
		{ "version=3.7.9\nimplementation=cpython", "3.7.9 (older than 3.8)" },
		{ "version=3.10.1\nimplementation=pypy", "3.10.1 (not CPython)" },
		{ "version=3.99.1\nimplementation=cpython",
		  "3.99.1 (newer than " PYTHON_TEXT(PYTHON_NEWEST) ")" },
		{ "version=3.13.1\nimplementation=cpython\nfree_threaded=1",
		  "3.13.1 (free-threaded)" },
		{ "what?", "does not start," },
	};
	const struct tree *tree = *state;
	char python[128], script[256], path[] = "PATH=/usr/bin:/bin";
	char *environment[] = { path, NULL };
	struct doctor_result results[DOCTOR_CHECKS_MAX];
	const struct doctor_setup setup = { .environment = environment, .python = python };

	(void)snprintf(python, sizeof(python), "%s/python", tree->root);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct doctor_result ret;
		size_t cnt;

		(void)snprintf(script, sizeof(script), "#!/bin/sh\necho '%s'\n", cases[i].says);
		put(tree, "/python", script, 0755);
		cnt = doctor_run(&setup, results);
		ret = find_result(results, cnt, "python");
		assert_int_equal(ret.state, DOCTOR_FAILED);
		assert_memory_equal(ret.found, cases[i].found, strlen(cases[i].found));
	}
}

static void every_check_has_an_id_of_its_own_and_says_something(void **state)
{
	struct doctor_result results[DOCTOR_CHECKS_MAX];
	const struct tree *tree = *state;
	char *environment[] = { NULL };
	size_t cnt = doctor_run(
		&(struct doctor_setup){ .root = tree->root, .environment = environment }, results);

	assert_true(cnt > 30);
	for (size_t i = 0; i < cnt; i++) {
		assert_true(results[i].found[0] != '\0');
		assert_true(strlen(results[i].id) <= 14);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(results[i].id, results[j].id);
	}
}

int main(void)
{
#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_shown_as_they_are),
		cmocka_unit_test(tokens_are_masked_wherever_they_stand),
		cmocka_unit_test(a_long_value_is_cut),
		cmocka_unit_test(what_a_child_says_arrives_however_it_ends),
		cmocka_unit_test(too_much_output_is_cut),
		cmocka_unit_test(a_missing_program_is_reported),
		cmocka_unit_test(a_fact_is_a_whole_line),
		TREE_TEST(the_smallest_limit_on_the_way_up_counts),
		TREE_TEST(the_old_hierarchy_is_read_too),
		TREE_TEST(counters_need_privilege_unless_configured_otherwise),
		TREE_TEST(a_listener_on_the_port_of_dcgm_is_seen),
		TREE_TEST(the_program_of_dcgm_that_runs_is_named),
		TREE_TEST(what_is_preloaded_counts_by_the_names_of_files),
		TREE_TEST(another_profiler_is_named_and_its_command_line_is_not),
		TREE_TEST(only_known_variables_are_shown),
		TREE_TEST(a_python_that_hangs_or_fails_is_reported_and_killed),
		TREE_TEST(a_python_of_another_kind_is_refused),
		TREE_TEST(every_check_has_an_id_of_its_own_and_says_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
