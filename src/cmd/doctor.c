/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker doctor: checks what works on this machine, and prints causes and advice. */
#include "doctor/doctor.h"

#include "base/subprocess.h"
#include "base/text/clean.h"
#include "cmd/cmd.h"
#include "live/run/attach.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	const char *python, *root;
	enum output_format format; /* text or JSON */
	bool verbose, exit_code;
};

#define FIELD(field) OPTION_FIELD(struct arguments, field)

static const struct option_row rows[] = {
	{ .name = "python",
	  .argument = "PATH",
	  FIELD(python),
	  .help = "Python interpreter of the job",
	  .preset = "python, else python3, on PATH" },
	{ .name = "format",
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text",
	  .more = "docs/doctor-schema.json describes the JSON." },
	{ .name = "verbose",
	  FIELD(verbose),
	  .help = "print costs and advice for absent items, too" },
	{ .name = "exit-code",
	  FIELD(exit_code),
	  .help = "exit with 3 when everything needed works, but something else is limited or "
		  "failed" },
	{ .name = "root",
	  .argument = "DIR",
	  FIELD(root),
	  .help = "read /proc and /sys below DIR, such as a copy from another machine; checks "
		  "that need more than files are not tried" },
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
	json_t *list = json_array(), *root;
	int failed = 0;

	for (size_t i = 0; i < cnt; i++)
		failed |= json_array_append_new(list, result_json(&results[i]));
	root = json_pack("{s:s, s:s, s:b, s:o, s:o}", "schema", "perftracker.doctor.v1", "version",
			 PT_VERSION, "fit", (int)!doctor_is_unfit(results, cnt), "counts",
			 counts_json(results, cnt), "checks", list);
	failed |= root == NULL || json_dumpf(root, stdout, JSON_INDENT(1)) < 0;
	json_decref(root);
	if (failed)
		return err_set(err, ENOMEM, "cannot print: out of memory");
	(void)putchar('\n');
	return 0;
}

/* --- the command --- */

/* Fills in the folders and programs that the checks look at, and runs the checks. */
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
		setup.python = subprocess_find(arguments->python, python, sizeof(python)) == 0
				       ? python
				       : arguments->python;
	return doctor_run(&setup, ret);
}

static int doctor_main(const struct command *command, int argc, char **argv)
{
	struct doctor_result results[DOCTOR_CHECKS_MAX];
	struct arguments arguments = { 0 };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &arguments, &first);
	size_t cnt;

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	cnt = examine(&arguments, results);
	if (cnt == 0)
		return cmd_fail("out of memory");
	if ((arguments.format == OUTPUT_JSON
		     ? print_json(results, cnt, &err)
		     : print_text(results, cnt, arguments.verbose, &err)) < 0)
		return cmd_fail("%s", err.text);
	if (doctor_is_unfit(results, cnt))
		return EXIT_FAILED;
	return arguments.exit_code && doctor_is_limited(results, cnt) ? EXIT_ABNORMAL : EXIT_DONE;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "check what works on this machine, and advise",
	.usage = "[OPTION]...\n",
	.about =
		"Prints what works on this machine and what does not, why, what that costs, and what "
		"to do: Python and torch, the self-tests of the agent, kernel, limits, GPU libraries, "
		"other profilers, network.\n"
		"Changes nothing on the machine; opens drivers in processes of their own. Values that "
		"look like passwords or tokens are masked.\n",
	OPTION_ROWS(rows),
	.notes =
		"Exit status: 0 everything needed works; 1 something needed fails; 2 usage error; 3 "
		"something else is limited or failed, with --exit-code.\n",
	.examples = "perftracker doctor\n"
		    "perftracker doctor --python /opt/venv/bin/python --format json\n",
	.run = doctor_main,
};
