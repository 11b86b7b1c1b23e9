/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker doctor: what works on this machine and what doesn't, why, and what to do. */
#include "doctor/doctor.h"

#include "cmd/cmd.h"
#include "live/run/attach.h"
#include "live/run/rundir.h"
#include "report/clean.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: perftracker doctor [--python PATH] [--format text|json] [--verbose] [--exit-code]\n"
	"\n"
	"Tells what works on this machine and what does not, why, what that costs, and what\n"
	"to do: Python and torch, the agent's self-tests, kernel, limits, GPU libraries, other\n"
	"profilers, network. Changes nothing; opens drivers in processes of their own.\n"
	"Values that look like passwords or tokens are masked.\n"
	"\n"
	"  perftracker doctor\n"
	"  perftracker doctor --python /opt/venv/bin/python --format json\n"
	"\n"
	"  --python PATH      the interpreter of the job [python, else python3, on PATH]\n"
	"  --format text|json how to print [text]\n"
	"  --verbose          advice for what is absent, too\n"
	"  --exit-code        exit with 3 when all that is needed works, but something else\n"
	"                     is limited or failed\n"
	"  --root DIR         read /proc and /sys below DIR; nothing is tried then\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 all that is needed works, 1 something needed fails, 2 usage.\n";

enum { OPT_PYTHON = 256, OPT_FORMAT, OPT_VERBOSE, OPT_EXIT_CODE, OPT_ROOT };

static const struct option long_options[] = {
	{ "python", required_argument, NULL, OPT_PYTHON },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },
	{ "exit-code", no_argument, NULL, OPT_EXIT_CODE },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	const char *python, *root;
	bool json, verbose, exit_code, help;
};

extern char **environ;

static void count_states(const struct doctor_result *results, size_t cnt,
			 size_t ret[static DOCTOR_STATE_CNT])
{
	memset(ret, 0, DOCTOR_STATE_CNT * sizeof(*ret));
	for (size_t i = 0; i < cnt; i++)
		ret[results[i].state]++;
}

/* --- text --- */

static void append_result(struct str *out, const struct doctor_result *result, bool verbose)
{
	bool advise = verbose || result->needed || result->state != DOCTOR_ABSENT;

	str_printf(out, "  %-9s  %-14s  ", doctor_state_name(result->state), result->id);
	clean_append(out, result->found);
	str_append(out, "\n");
	if (advise && result->costs[0] != '\0')
		str_printf(out, "%29scosts: %s\n", "", result->costs);
	if (advise && result->action[0] != '\0')
		str_printf(out, "%29sto do: %s\n", "", result->action);
}

static const char *verdict(const struct doctor_result *results, size_t cnt)
{
	bool tried = true, failed = false;

	for (size_t i = 0; i < cnt; i++) {
		tried &= !results[i].needed || results[i].state != DOCTOR_NOT_TRIED;
		failed |= results[i].needed && results[i].state == DOCTOR_FAILED;
	}
	if (doctor_is_unfit(results, cnt))
		return failed ? "Something that perftracker run needs fails."
			      : "Something that perftracker run needs is absent.";
	return tried ? "All that perftracker run needs works."
		     : "Nothing that perftracker run needs was seen to fail; not all was tried.";
}

static void append_sum(struct str *out, const struct doctor_result *results, size_t cnt)
{
	size_t counts[DOCTOR_STATE_CNT];
	const char *comma = "";

	count_states(results, cnt, counts);
	str_printf(out, "\n%zu checks: ", cnt);
	for (int i = 0; i < DOCTOR_STATE_CNT; i++) {
		str_printf(out, "%s%zu %s", comma, counts[i],
			   doctor_state_name((enum doctor_state)i));
		comma = ", ";
	}
	str_printf(out, ". %s\n", verdict(results, cnt));
}

static int print_text(const struct doctor_result *results, size_t cnt, bool verbose,
		      struct err *err)
{
	struct str out = { 0 };
	const char *area = "";
	int ret;

	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(area, results[i].area) != 0)
			str_printf(&out, "%s%s\n", i > 0 ? "\n" : "", results[i].area);
		area = results[i].area;
		append_result(&out, &results[i], verbose);
	}
	append_sum(&out, results, cnt);
	ret = str_error(&out) == 0 ? output_text(&out, NULL, err)
				   : err_set(err, ENOMEM, "out of memory");
	str_done(&out);
	return ret;
}

/* --- JSON --- */

static json_t *result_json(const struct doctor_result *result)
{
	struct str found = { 0 };
	json_t *row;

	clean_append(&found, result->found);
	row = json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:s}", "id", result->id, "area",
			result->area, "needed", (int)result->needed, "state",
			doctor_state_name(result->state), "found", str_borrow(&found), "costs",
			result->costs, "action", result->action);
	str_done(&found);
	return row;
}

static json_t *counts_json(const struct doctor_result *results, size_t cnt)
{
	size_t counts[DOCTOR_STATE_CNT];
	json_t *row = json_object();

	count_states(results, cnt, counts);
	for (int i = 0; i < DOCTOR_STATE_CNT; i++)
		(void)json_object_set_new(row, doctor_state_name((enum doctor_state)i),
					  json_integer((json_int_t)counts[i]));
	return row;
}

static int print_json(const struct doctor_result *results, size_t cnt, struct err *err)
{
	json_t *rows = json_array(), *root;
	int failed = 0;

	for (size_t i = 0; i < cnt; i++)
		failed |= json_array_append_new(rows, result_json(&results[i]));
	root = json_pack("{s:s, s:s, s:b, s:o, s:o}", "schema", "perftracker.doctor.v1", "version",
			 PT_VERSION, "fit", (int)!doctor_is_unfit(results, cnt), "counts",
			 counts_json(results, cnt), "checks", rows);
	failed |= root == NULL || json_dumpf(root, stdout, JSON_INDENT(1)) < 0;
	json_decref(root);
	if (failed)
		return err_set(err, ENOMEM, "cannot print: out of memory");
	(void)putchar('\n');
	return 0;
}

/* --- the command --- */

/* Returns 0, or EXIT_USAGE when it has complained. */
static int parse_arguments(int argc, char **argv, struct arguments *ret)
{
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (option == 'h')
			ret->help = true;
		else if (option == OPT_PYTHON)
			ret->python = optarg;
		else if (option == OPT_ROOT)
			ret->root = optarg;
		else if (option == OPT_VERBOSE)
			ret->verbose = true;
		else if (option == OPT_EXIT_CODE)
			ret->exit_code = true;
		else if (option != OPT_FORMAT)
			return cmd_try_help("doctor");
		else if (strcmp(optarg, "text") != 0 && strcmp(optarg, "json") != 0)
			return cmd_bad_value("doctor", "format", "text or json");
		else
			ret->json = strcmp(optarg, "json") == 0;
	}
	return optind == argc ? 0 : cmd_usage_error("doctor", "unexpected '%s'", argv[optind]);
}

/* A name without a folder is looked for on PATH by doctor itself; execve() wants a path. */
static int find_program(const char *name, char *ret, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/') != NULL)
		return (size_t)snprintf(ret, size, "%s", name) < size ? 0 : -ENAMETOOLONG;
	for (const char *at = path; at != NULL && *at != '\0';) {
		size_t len = strcspn(at, ":");

		if ((size_t)snprintf(ret, size, "%.*s/%s", (int)len, at, name) < size &&
		    access(ret, X_OK) == 0)
			return 0;
		at += len + (at[len] == ':');
	}
	return -ENOENT;
}

/* The checks know folders and programs only by what they are told here. */
static size_t examine(const struct arguments *arguments, struct doctor_result *ret)
{
	char agent[PATH_MAX], package[PATH_MAX], program[PATH_MAX], python[PATH_MAX], socket[128];
	struct err package_err = { "" }, socket_err = { "" };
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct doctor_setup setup = { .root = arguments->root, .environment = environ };

	program[len > 0 ? len : 0] = '\0';
	if (attach_find(program, agent, package, &package_err) == 0) {
		setup.agent = agent;
		setup.package = package;
	}
	setup.package_why = package_err.text;
	if (arguments->root == NULL && rundir_socket(socket, sizeof(socket), &socket_err) < 0)
		setup.socket_why = socket_err.text;
	if (arguments->python != NULL)
		setup.python = find_program(arguments->python, python, sizeof(python)) == 0
				       ? python
				       : arguments->python;
	return doctor_run(&setup, ret);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_result results[DOCTOR_CHECKS_MAX];
	struct arguments arguments = { 0 };
	struct err err = { "" };
	int status = parse_arguments(argc, argv, &arguments);
	size_t cnt;

	if (status != 0)
		return status;
	if (arguments.help) {
		(void)fputs(help, stdout);
		return EXIT_DONE;
	}
	cnt = examine(&arguments, results);
	if (cnt == 0)
		return cmd_fail("out of memory");
	if ((arguments.json ? print_json(results, cnt, &err)
			    : print_text(results, cnt, arguments.verbose, &err)) < 0)
		return cmd_fail("%s", err.text);
	if (doctor_is_unfit(results, cnt))
		return EXIT_FAILED;
	return arguments.exit_code && doctor_is_limited(results, cnt) ? EXIT_ABNORMAL : EXIT_DONE;
}
