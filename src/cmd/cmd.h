/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the commands: exit statuses, errors, input files, reports. Each command is one
 * file with a struct command (optiontable.h); main.c lists them.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "cmd/options/optiontable.h"
#include "format/fingerprint/fingerprint.h"
#include "model/comparison.h"
#include "model/rankset.h"
#include "model/report.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_ABNORMAL = 3,  /* with --exit-code only: abnormal, slow, failed, stuck */
	EXIT_UNDECIDED = 4, /* with --exit-code only: inconclusive, incomplete */
};

extern const struct command cmd_attach, cmd_run, cmd_profile, cmd_status, cmd_accept, cmd_timeline,
	cmd_analyze, cmd_diff;
extern const struct command cmd_summarize, cmd_localize, cmd_simulate, cmd_dump, cmd_doctor;
extern const struct command cmd_gpu_sampler, cmd_hosts, cmd_prune, cmd_jobs, cmd_history,
	cmd_report, cmd_stacks, cmd_stalls, cmd_roofline, cmd_flame, cmd_replay;
extern const struct command cmd_hostd, cmd_hub, cmd_serve, cmd_prompt, cmd_mcp, cmd_verify_fix;

/* Prints "perftracker COMMAND: message" and a hint to --help on stderr. Returns EXIT_USAGE. */
int cmd_usage_error(const char *command, const char *fmt, ...) _printf_(2, 3);

/* Prints "perftracker: message" on stderr. Returns EXIT_FAILED. */
int cmd_fail(const char *fmt, ...) _printf_(1, 2);

/* Print a sidecar (dump_sidecar.c), a flight log (dump_flight.c). Return an exit status. */
int dump_sidecar(const char *path, bool json);
int dump_flight(const char *path, bool json);

/* --- numbers of options --- */

/* Parses a whole text as a number in low..high. Returns 0 or -EINVAL. */
_must_check_ int cmd_parse_double(const char *text, double low, double high, double *ret);
_must_check_ int cmd_parse_int(const char *text, int64_t low, int64_t high, int64_t *ret);

/*
 * Setters of options (see struct option_row): "4" or "4-6" into a struct window_options,
 * "0-3,7" into a rankset_vec.
 */
_must_check_ int cmd_set_steps(void *window, const char *text, struct err *err);
_must_check_ int cmd_set_ranks(void *ranks, const char *text, struct err *err);
#define STEPS_EXPECTED "a step or a range such as 4-6"

/* --- inputs (inputs.c) --- */

typedef VEC(char *) path_list;

/*
 * Turns files and folders into a list of files: the folder of a run stands for its latest profile
 * (runfolder.h), any other folder contributes, sorted by path, the files in it and in its folders
 * with a suffix of a format in read/reader.c; a file of several workers contributes
 * "FILE#WORKER" for each. Ends with inputs_check_families(). Returns 0 or -errno with a line
 * in err; the caller frees out with path_list_done() in either case.
 */
_must_check_ int inputs_expand(char *const *paths, size_t cnt, path_list *out, struct err *err);
void path_list_done(path_list *list);

/*
 * Refuses traces that are not comparable: of a format with a family beside others, in one
 * list or in both (more may be NULL). Returns 0, or -EINVAL with a line in err.
 */
_must_check_ int inputs_check_families(const path_list *paths, const path_list *more,
				       struct err *err);

/* --- output (output.c) --- */

/* In the order of the words "text|json|html". */
enum output_format { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_HTML };

/* In the order of the words of COLOR_ROW. */
enum output_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

#define COLOR_ROW(owner, field)                                                            \
	{                                                                                  \
		.name = "color", .words = "auto|always|never", OPTION_FIELD(owner, field), \
		.help = "color texts; auto: on a terminal, unless NO_COLOR is set",        \
		.preset = "auto"                                                           \
	}

/* Whether what is written to fd is to be colored. */
bool output_is_colored(unsigned int color, int fd);

/* How a report is printed. path NULL or "-": on standard output. */
struct output_how {
	enum output_format format;
	bool verbose;	    /* the text shortens no list */
	unsigned int color; /* enum output_color */
	const char *path;
};

/* Prints the report; its width follows the terminal. Returns 0 or -errno with a line in err. */
_must_check_ int output_report(const struct report *report, const struct output_how *how,
			       struct err *err);

/* The same for a comparison. */
_must_check_ int output_comparison(const struct comparison *comparison,
				   const struct output_how *how, struct err *err);

/* Writes text to path (through a temporary file) or standard output. 0 or -errno. */
_must_check_ int output_text(const struct str *text, const char *path, struct err *err);
