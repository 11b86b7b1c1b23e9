/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/attach.h"

#include "format/shared/message.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct daemon_ready ready = { .socket = "/run/pt/socket", .trace_dir = "/run/pt" };

/* A folder serves as the package, this program as the agent. */
static int setup(void **state)
{
	(void)state;
	assert_int_equal(setenv(PT_ENV_AGENT, "/proc/self/exe", 1), 0);
	assert_int_equal(setenv(ATTACH_ENV_PYTHONPATH, "/tmp", 1), 0);
	assert_int_equal(setenv("PYTHONPATH", "/usr/lib/x", 1), 0);
	assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
	assert_int_equal(unsetenv(ATTACH_ENV_NCCL), 0);
	assert_int_equal(unsetenv(ATTACH_ENV_ROCM), 0);
	assert_int_equal(unsetenv(ATTACH_ENV_TIMES), 0);
	assert_int_equal(unsetenv("LD_PRELOAD"), 0);
	return 0;
}

static void the_job_finds_package_agent_and_socket(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	assert_string_equal(getenv("PYTHONPATH"), "/tmp:/usr/lib/x");
	assert_string_equal(getenv(PT_ENV_SOCKET), "/run/pt/socket");
	assert_string_equal(getenv(PT_ENV_DIR), "/run/pt");
	assert_int_equal(getenv(PT_ENV_AGENT)[0], '/');
}

static void attach_to_gpus_makes_the_agent_nccls_profiler_plugin(void **state)
{
	char other[PATH_MAX];
	struct err err;

	(void)state;
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	assert_null(getenv(ATTACH_ENV_NCCL));
	assert_null(getenv(ATTACH_ENV_ROCM));
	attach_to_gpus();
	assert_string_equal(getenv(ATTACH_ENV_ROCM), getenv(PT_ENV_AGENT));
	assert_string_equal(getenv(ATTACH_ENV_NCCL), getenv(PT_ENV_AGENT));
	assert_false(attach_other_plugin(other));
}

static void the_users_own_plugin_stays(void **state)
{
	char other[PATH_MAX];
	struct err err;

	(void)state;
	assert_int_equal(setenv(ATTACH_ENV_NCCL, "inspector", 1), 0);
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	attach_to_gpus();
	assert_string_equal(getenv(ATTACH_ENV_NCCL), "inspector");
	assert_true(attach_other_plugin(other));
	assert_string_equal(other, "inspector");
}

static void what_the_user_set_in_a_file_stays(void **state)
{
	char path[] = "/tmp/attach-test-XXXXXX", other[PATH_MAX];
	int fd = mkstemp(path);
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(setenv("NCCL_CONF_FILE", path, 1), 0);
	assert_int_equal(dprintf(fd, "NCCL_DEBUG=INFO\n%s=none\n", ATTACH_ENV_NCCL) > 0, 1);
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	attach_to_gpus();
	assert_null(getenv(ATTACH_ENV_NCCL));
	assert_non_null(getenv(ATTACH_ENV_ROCM));
	assert_true(attach_other_plugin(other));
	assert_memory_equal(other, "none (", 6);
	assert_int_equal(unsetenv("NCCL_CONF_FILE") | unlink(path) | close(fd), 0);
}

static void a_file_that_names_ours_is_no_other(void **state)
{
	char path[] = "/tmp/attach-test-XXXXXX", other[PATH_MAX];
	int fd = mkstemp(path);
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(setenv("NCCL_CONF_FILE", path, 1), 0);
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	assert_true(dprintf(fd, "%s=%s\n", ATTACH_ENV_NCCL, getenv(PT_ENV_AGENT)) > 0);
	attach_to_gpus();
	assert_false(attach_other_plugin(other));
	assert_int_equal(unsetenv("NCCL_CONF_FILE") | unlink(path) | close(fd), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void attach_to_gpu_calls_preloads_the_agent(void **state)
{
	char list[2 * PATH_MAX];
	struct err err;

	(void)state;
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), 0);
	attach_to_gpus(); /* alone: no LD_PRELOAD */
	assert_null(getenv("LD_PRELOAD"));
	assert_null(getenv(ATTACH_ENV_TIMES));
	attach_to_gpu_calls();
	assert_string_equal(getenv(ATTACH_ENV_TIMES), "1");
	assert_string_equal(getenv("LD_PRELOAD"), getenv(PT_ENV_AGENT));
	attach_to_gpu_calls();
	assert_string_equal(getenv("LD_PRELOAD"), getenv(PT_ENV_AGENT));
	assert_int_equal(setenv("LD_PRELOAD", "libjemalloc.so.2", 1), 0);
	attach_to_gpu_calls();
	(void)snprintf(list, sizeof(list), "libjemalloc.so.2:%s", getenv(PT_ENV_AGENT));
	assert_string_equal(getenv("LD_PRELOAD"), list);
}

static void a_path_that_cannot_be_in_the_list_is_not_loaded_first(void **state)
{
	(void)state;
	assert_int_equal(setenv(PT_ENV_AGENT, "/a b/agent.so", 1), 0);
	attach_to_gpu_calls();
	assert_null(getenv("LD_PRELOAD"));
}
#endif

static void without_an_agent_nothing_is_set(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(unsetenv(PT_ENV_AGENT), 0);
	assert_int_equal(attach_environment("/nowhere/perftracker", &ready, &err), -ENOENT);
	assert_null(getenv(ATTACH_ENV_NCCL));
	assert_string_equal(getenv("PYTHONPATH"), "/usr/lib/x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_job_finds_package_agent_and_socket, setup),
		cmocka_unit_test_setup(attach_to_gpus_makes_the_agent_nccls_profiler_plugin, setup),
		cmocka_unit_test_setup(the_users_own_plugin_stays, setup),
		cmocka_unit_test_setup(what_the_user_set_in_a_file_stays, setup),
		cmocka_unit_test_setup(a_file_that_names_ours_is_no_other, setup),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test_setup(attach_to_gpu_calls_preloads_the_agent, setup),
		cmocka_unit_test_setup(a_path_that_cannot_be_in_the_list_is_not_loaded_first,
				       setup),
#endif
		cmocka_unit_test_setup(without_an_agent_nothing_is_set, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
