/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker verify-fix: did a repair bring what a finding promised? */
#include "cmd/serve/reportinput.h"
#include "repair/repair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct verify_options {
	const char *store, *finding, *output;
	enum output_format format; /* text or JSON */
};

#define FIELD(field) OPTION_FIELD(struct verify_options, field)

static const struct option_row rows[] = {
	{ .name = "finding",
	  .argument = "FINDING",
	  FIELD(finding),
	  .help = "the finding that was repaired: F2, or an id such as PT-103",
	  .preset = "F1, the first of BEFORE" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE",
	  .preset = "standard output" },
	STORE_CHOICE_ROW(struct verify_options, store),
};

static int read_side(const struct verify_options *options, const char *word, json_t **ret,
		     struct err *err)
{
	struct str text = { 0 };
	json_error_t wrong;
	int r = reportinput_read(options->store, word, &text, err);

	if (r == 0) {
		*ret = json_loadb(str_borrow(&text), text.len, 0, &wrong);
		if (*ret == NULL)
			r = err_set(err, EINVAL, "%s byte %d: expected a report in JSON: %s", word,
				    wrong.position, wrong.text);
	}
	str_done(&text);
	return r;
}

static int exit_of(enum repair_verdict verdict)
{
	if (verdict == REPAIR_UNDECIDED)
		return EXIT_UNDECIDED;
	return verdict == REPAIR_FIXED ? EXIT_DONE : EXIT_ABNORMAL;
}

static int verify(const struct verify_options *options, char **words, int *ret_status,
		  struct err *err)
{
	json_t *roots[2] = { NULL, NULL };
	struct repair repair = { .judged = 0 };
	struct str out = { 0 };
	int r = read_side(options, words[0], &roots[0], err);

	if (r == 0)
		r = read_side(options, words[1], &roots[1], err);
	if (r == 0) {
		struct repair_side before = { .name = words[0], .root = roots[0] };
		struct repair_side after = { .name = words[1], .root = roots[1] };

		r = repair_judge(&before, &after, options->finding, &repair, err);
	}
	if (r == 0)
		r = options->format == OUTPUT_JSON ? repair_json(&repair, &out)
						   : repair_text(&repair, &out);
	if (r == 0)
		r = output_text(&out, options->output, err);
	*ret_status = exit_of(repair.verdict);
	repair_done(&repair);
	str_done(&out);
	json_decref(roots[0]);
	json_decref(roots[1]);
	return r;
}

static int verify_main(const struct command *command, int argc, char **argv)
{
	struct verify_options options = { .store = NULL };
	struct err err = { "" };
	int first, r, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 2)
		return cmd_usage_error(
			"verify-fix", "expected two reports, before and after the repair, found %d",
			argc - first);
	r = verify(&options, argv + first, &status, &err);
	return r == 0 ? status : cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-r));
}

const struct command cmd_verify_fix = {
	.name = "verify-fix",
	.summary = "compare two reports: did a repair bring what was promised",
	.usage = "[OPTION]... BEFORE AFTER\n",
	.about =
		"Compares a report of a job before a repair with one after it: whether the finding is "
		"gone, smaller, or still there, and whether the milliseconds that it promised came "
		"back, beyond what two runs differ by chance. Where the reports cannot tell, because "
		"of another job, too few iterations, or missing ranks, it says so.\n"
		"BEFORE and AFTER are files report.json, folders of reports of which the newest "
		"counts, or JOB/NUMBER of the store.\n",
	OPTION_ROWS(rows),
	.notes =
		"Exit status: 0 fixed; 1 an input could not be used; 2 usage error; 3 not fixed, only "
		"partly, or gone without a gain; 4 undecided.\n",
	.examples = "perftracker verify-fix before.json after.json\n"
		    "perftracker verify-fix 3fa9/2 71c0/1 --finding PT-103\n"
		    "perftracker verify-fix old-out/ new-out/ --format json | jq .verdict\n",
	.run = verify_main,
};
