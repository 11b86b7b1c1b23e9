/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker prompt: a report as a question to a language model. */
#include "cmd/serve/reportinput.h"
#include "report/prompt/reportprompt.h"

#include <stdio.h>
#include <string.h>

struct prompt_options {
	const char *store, *output;
	int64_t budget;
};

#define FIELD(field) OPTION_FIELD(struct prompt_options, field)

static const struct option_row rows[] = {
	{ .name = "budget",
	  .letter = 'b',
	  .argument = "TOKENS",
	  FIELD(budget),
	  .low = REPORTPROMPT_TOKENS_MIN,
	  .high = REPORTPROMPT_TOKENS_MAX,
	  .help = "write at most so many tokens, counted as three bytes each",
	  .preset = "4000" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write to FILE",
	  .preset = "standard output" },
	STORE_CHOICE_ROW(struct prompt_options, store),
};

static int prompt_main(const struct command *command, int argc, char **argv)
{
	struct prompt_options options = { .budget = 4000 };
	struct str report = { 0 }, text = { 0 };
	struct err err = { "" };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (argc - first != 1)
		return cmd_usage_error("prompt", "expected one report: a file report.json, or "
						 "JOB/NUMBER of the store");
	ret = reportinput_read(options.store, argv[first], &report, &err);
	if (ret == 0)
		ret = reportprompt_write(argv[first], str_borrow(&report), report.len,
					 (size_t)options.budget, &text, &err);
	if (ret == 0)
		ret = output_text(&text, options.output, &err);
	str_done(&report);
	str_done(&text);
	return ret == 0 ? EXIT_DONE
			: cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-ret));
}

const struct command cmd_prompt = {
	.name = "prompt",
	.summary = "write a report as a question to a language model",
	.usage = "[OPTION]... REPORT\n",
	.about =
		"Writes what a report says so that a language model can explain it: rules, findings "
		"with numbered evidence, who waited for whom, what is not known, and the form of the "
		"answer. Names of the job's functions are fenced as data. Nothing is sent anywhere. "
		"REPORT is a file report.json, or JOB/NUMBER of the store.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker prompt perftracker-out/report.json\n"
		    "perftracker prompt 3fa9/2 --budget 2000\n",
	.run = prompt_main,
};
