/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python that a job would run: the interpreters found, and what the agent can do in the first.
 * perftracker/_doctor.py runs in that interpreter, loads the library as the hook does and prints
 * the results of its self-tests.
 */
#include "base/pythonrange.h"
#include "doctor/check.h"
#include "doctor/child.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASK_MS 10000

static const char other_root[] = "another root was given";

/* Runs in any Python 3, without third-party modules. */
static const char ask[] =
	"import sys\n"
	"print('version=%d.%d.%d' % sys.version_info[:3])\n"
	"print('implementation=' + sys.implementation.name)\n"
	"import sysconfig, struct\n"
	"print('free_threaded=%d' % bool(sysconfig.get_config_var('Py_GIL_DISABLED')))\n"
	"print('bits=%d' % (8 * struct.calcsize('P')))\n"
	"try:\n"
	"    from importlib import metadata\n"
	"    print('torch=' + metadata.version('torch'))\n"
	"except Exception:\n"
	"    pass\n";

/* --- the interpreters --- */

/* One program under two names counts once; in two folders it may see other packages. */
static bool is_known(const struct doctor *doctor, const char *path)
{
	char real[PATH_MAX], other[PATH_MAX];
	size_t folder = (size_t)(strrchr(path, '/') - path);

	if (realpath(path, real) == NULL)
		return true;
	for (size_t i = 0; i < doctor->python_cnt; i++) {
		const char *known = doctor->pythons[i].path;

		if ((size_t)(strrchr(known, '/') - known) == folder &&
		    strncmp(known, path, folder) == 0 && realpath(known, other) != NULL &&
		    strcmp(real, other) == 0)
			return true;
	}
	return false;
}

static void add_python(struct doctor *doctor, const char *path)
{
	struct interpreter *python = &doctor->pythons[doctor->python_cnt];

	if (doctor->python_cnt == PYTHONS_MAX || strlen(path) >= sizeof(python->path) ||
	    strchr(path, '/') == NULL || access(path, X_OK) != 0 || is_known(doctor, path))
		return;
	*python = (struct interpreter){ 0 };
	(void)snprintf(python->path, sizeof(python->path), "%s", path);
	doctor->python_cnt++;
}

/* Adds a name from each folder of PATH, as a shell finds it. */
static void add_named(struct doctor *doctor, const char *name, bool first_only)
{
	const char *at = look_env(doctor, "PATH");
	char path[PATH_MAX];

	while (at != NULL && *at != '\0') {
		size_t len = strcspn(at, ":"), before = doctor->python_cnt;
		char real[PATH_MAX];

		/* /bin is usually a link to /usr/bin. */
		(void)snprintf(path, sizeof(path), "%.*s", (int)len, at);
		if (len > 0 && realpath(path, real) != NULL) {
			(void)snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - 16, real, name);
			add_python(doctor, path);
		}
		if (first_only && doctor->python_cnt > before)
			return;
		at += len + (at[len] == ':');
	}
}

/* "python" first, as in jobs and torchrun's first line. */
static void find_pythons(struct doctor *doctor)
{
	char name[16];

	if (doctor->setup.python != NULL) {
		add_python(doctor, doctor->setup.python);
		return;
	}
	add_named(doctor, "python", true);
	add_named(doctor, "python3", false);
	for (int minor = PYTHON_NEWEST + 2; minor >= 6; minor--) {
		(void)snprintf(name, sizeof(name), "python3.%d", minor);
		add_named(doctor, name, false);
	}
}

/* Why an interpreter is unsuitable; "" if it is suitable. */
static const char *complaint(const char *facts)
{
	char text[64];
	int major, minor;

	if (!facts_get(facts, "implementation", text, sizeof(text)))
		return "does not start";
	if (strcmp(text, "cpython") != 0)
		return "not CPython";
	if (!facts_get(facts, "version", text, sizeof(text)) ||
	    sscanf(text, "%d.%d", &major, &minor) != 2 || major != 3 || minor < PYTHON_OLDEST)
		return "older than " PYTHON_TEXT(PYTHON_OLDEST);
	if (facts_get(facts, "bits", text, sizeof(text)) && strcmp(text, "64") != 0)
		return "not 64-bit";
	if (facts_get(facts, "free_threaded", text, sizeof(text)) && strcmp(text, "1") == 0)
		return "free-threaded";
	return minor > PYTHON_NEWEST ? "newer than " PYTHON_TEXT(PYTHON_NEWEST) : "";
}

static void ask_version(const struct doctor *doctor, struct interpreter *python)
{
	char *argv[] = { python->path, strdup("-c"), strdup(ask), NULL };
	char facts[2048] = "";
	struct child_end end;
	const char *why;

	if (argv[1] != NULL && argv[2] != NULL &&
	    child_run(argv, doctor->setup.environment, ASK_MS, facts, sizeof(facts), &end) < 0)
		facts[0] = '\0';
	free(argv[1]);
	free(argv[2]);
	why = complaint(facts);
	python->works = why[0] == '\0';
	if (facts_get(facts, "version", python->version, sizeof(python->version)) && !python->works)
		(void)snprintf(python->version + strlen(python->version),
			       sizeof(python->version) - strlen(python->version), " (%s)", why);
	(void)facts_get(facts, "torch", python->torch, sizeof(python->torch));
}

/* --- the agent's self-tests there --- */

static size_t count(char *const *list)
{
	size_t cnt = 0;

	while (list[cnt] != NULL)
		cnt++;
	return cnt;
}

/*
 * The environment of a job: the package before the folders of PYTHONPATH. Without a job's socket,
 * so that the hook stays off, and without variables that load a profiler. NULL: out of memory. The
 * result is freed as a block, its strings with free_environment().
 */
static char **job_environment(const struct doctor *doctor)
{
	static const char *const dropped[] = { "PYTHONPATH=", "PERFTRACKER_", "CUDA_INJECTION64_",
					       "NVTX_INJECTION64_" };
	const char *old = look_env(doctor, "PYTHONPATH");
	char **list = calloc(count(doctor->setup.environment) + 3, sizeof(*list));
	size_t cnt = 0;

	if (list == NULL)
		return NULL;
	for (char *const *at = doctor->setup.environment; *at != NULL; at++) {
		bool drop = false;

		for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
			drop |= strncmp(*at, dropped[i], strlen(dropped[i])) == 0;
		if (!drop && (list[cnt] = strdup(*at)) != NULL)
			cnt++;
	}
	if (asprintf(&list[cnt], "PYTHONPATH=%s%s%s", doctor->setup.package, old != NULL ? ":" : "",
		     old != NULL ? old : "") >= 0)
		cnt++;
	if (asprintf(&list[cnt], "PERFTRACKER_AGENT=%s", doctor->setup.agent) < 0)
		list[cnt] = NULL;
	return list;
}

static void free_environment(char **list)
{
	for (char **at = list; at != NULL && *at != NULL; at++)
		free(*at);
	free(list);
}

/* The last line that is not a fact: the error of a traceback. */
static void find_error_line(const char *text, char *ret, size_t size)
{
	ret[0] = '\0';
	while (*text != '\0') {
		size_t len = strcspn(text, "\n"), word = strcspn(text, "= \n");

		if (len > 0 && (word == len || text[word] != '='))
			(void)snprintf(ret, size, "%.*s", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void record_end(struct doctor *doctor, const struct child_end *end)
{
	char how[64], said[160];

	child_end_text(end, how, sizeof(how));
	if (how[0] == '\0')
		return;
	find_error_line(doctor->python, said, sizeof(said));
	(void)snprintf(doctor->python_why, sizeof(doctor->python_why), "Python %s%s%s", how,
		       said[0] != '\0' ? ": " : "", said);
}

static void examine(struct doctor *doctor)
{
	char script[PATH_MAX];
	char *argv[] = { doctor->pythons[0].path, script, NULL };
	int limit_ms = doctor->setup.python_ms != 0 ? doctor->setup.python_ms : DOCTOR_PYTHON_MS;
	char **environment = job_environment(doctor);
	struct child_end end;

	(void)snprintf(script, sizeof(script), "%s/perftracker/_doctor.py", doctor->setup.package);
	if (environment == NULL || child_run(argv, environment, limit_ms, doctor->python,
					     sizeof(doctor->python), &end) < 0)
		(void)snprintf(doctor->python_why, sizeof(doctor->python_why),
			       "the child process could not be started");
	else
		record_end(doctor, &end);
	free_environment(environment);
}

void python_examine(struct doctor *doctor)
{
	if (!doctor->here) {
		(void)snprintf(doctor->python_why, sizeof(doctor->python_why), "%s", other_root);
		return;
	}
	find_pythons(doctor);
	for (size_t i = 0; i < doctor->python_cnt; i++)
		ask_version(doctor, &doctor->pythons[i]);
	if (doctor->python_cnt > 0 && doctor->setup.agent != NULL && doctor->setup.package != NULL)
		examine(doctor);
}

/* --- checks --- */

/* Sets the result and returns true if no Python was examined. */
static bool no_python_examined(const struct doctor *doctor, struct doctor_result *ret)
{
	if (!doctor->here)
		check_set(ret, DOCTOR_NOT_TRIED, "%s", other_root);
	else if (doctor->python_cnt == 0)
		check_set(ret, DOCTOR_NOT_TRIED, "no Python was found");
	return !doctor->here || doctor->python_cnt == 0;
}

void check_python(const struct doctor *doctor, struct doctor_result *ret)
{
	const struct interpreter *python = &doctor->pythons[0];

	if (doctor->here && doctor->python_cnt == 0)
		check_set(ret, DOCTOR_ABSENT, "%s",
			  doctor->setup.python != NULL ? "it cannot be executed"
						       : "no python or python3 on PATH");
	else if (!no_python_examined(doctor, ret))
		check_set(ret, python->works ? DOCTOR_OK : DOCTOR_FAILED, "%s at %s",
			  python->version[0] != '\0' ? python->version : "does not start,",
			  python->path);
}

/* Skips names that start nothing (shims of version managers). */
void check_pythons(const struct doctor *doctor, struct doctor_result *ret)
{
	size_t len = 0;

	if (no_python_examined(doctor, ret))
		return;
	check_set(ret, DOCTOR_OK, "no other");
	for (size_t i = 1; i < doctor->python_cnt && len < sizeof(ret->found); i++) {
		const struct interpreter *python = &doctor->pythons[i];

		if (python->version[0] == '\0')
			continue;
		len += (size_t)snprintf(ret->found + len, sizeof(ret->found) - len, "%s%s %s%s%s",
					len > 0 ? "; " : "", python->path, python->version,
					python->torch[0] != '\0' ? ", torch " : "", python->torch);
	}
}

void check_torch(const struct doctor *doctor, struct doctor_result *ret)
{
	const struct interpreter *python = &doctor->pythons[0];
	char version[64], error[256], cuda[64] = "";

	if (no_python_examined(doctor, ret))
		return;
	if (facts_get(doctor->python, "torch_error", error, sizeof(error)))
		check_set(ret, DOCTOR_FAILED, "import torch: %s", error);
	else if (facts_get(doctor->python, "torch", version, sizeof(version)))
		check_set(ret, DOCTOR_OK, "%s%s%s", version,
			  facts_get(doctor->python, "torch_device", cuda, sizeof(cuda)) ? ", for "
											: "",
			  cuda);
	else if (python->torch[0] == '\0')
		check_set(ret, DOCTOR_ABSENT, "none in %s", python->path);
	else
		check_set(ret, DOCTOR_FAILED, "%s, but: %s", python->torch,
			  doctor->python_why[0] != '\0' ? doctor->python_why : "not examined");
}

void check_attach(const struct doctor *doctor, struct doctor_result *ret)
{
	const char *autoload = look_env(doctor, "TORCH_DEVICE_BACKEND_AUTOLOAD");
	char version[64];
	int major, minor;

	if (autoload != NULL && strcmp(autoload, "0") == 0)
		check_set(ret, DOCTOR_LIMITED, "TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns it off");
	else if (no_python_examined(doctor, ret))
		return;
	else if (!facts_get(doctor->python, "torch", version, sizeof(version)) ||
		 sscanf(version, "%d.%d", &major, &minor) != 2)
		check_set(ret, DOCTOR_NOT_TRIED, "torch was not imported");
	else if (major < 2 || (major == 2 && minor < 5))
		check_set(ret, DOCTOR_LIMITED, "torch %d.%d is older than 2.5", major, minor);
	else
		check_set(ret, DOCTOR_OK, "torch %d.%d loads the hook at import", major, minor);
}

void check_agent(const struct doctor *doctor, struct doctor_result *ret)
{
	char error[256];

	if (doctor->setup.agent == NULL || doctor->setup.package == NULL)
		check_set(ret, DOCTOR_FAILED, "%s",
			  doctor->setup.package_why != NULL ? doctor->setup.package_why
							    : "it was not found");
	else if (no_python_examined(doctor, ret))
		return;
	else if (facts_get(doctor->python, "agent_error", error, sizeof(error)))
		check_set(ret, DOCTOR_FAILED, "%s", error);
	else if (facts_get(doctor->python, "agent", error, sizeof(error)))
		check_set(ret, DOCTOR_OK, "%s loads, connects and starts its helper thread",
			  doctor->setup.agent);
	else
		check_set(ret, DOCTOR_FAILED, "%s",
			  doctor->python_why[0] != '\0' ? doctor->python_why : "no output");
}

/* A source of the agent: its self-test returns "" when it passed. */
static void check_source(const struct doctor *doctor, const char *key, const char *works,
			 struct doctor_result *ret)
{
	char why[256];

	if (no_python_examined(doctor, ret))
		return;
	if (!facts_get(doctor->python, key, why, sizeof(why)))
		check_set(ret, DOCTOR_NOT_TRIED, "the agent failed before this test");
	else if (why[0] != '\0')
		check_set(ret, DOCTOR_LIMITED, "%s", why);
	else
		check_set(ret, DOCTOR_OK, "%s", works);
}

void check_stacks(const struct doctor *doctor, struct doctor_result *ret)
{
	check_source(doctor, "stacks", "offsets are known; the self-test read the right stack",
		     ret);
}

void check_operators(const struct doctor *doctor, struct doctor_result *ret)
{
	char version[8];

	if (doctor->python_cnt > 0 && !facts_get(doctor->python, "torch", version, sizeof(version)))
		check_set(ret, DOCTOR_NOT_TRIED, "torch was not imported");
	else
		check_source(doctor, "operators", "torch's hook works", ret);
}
