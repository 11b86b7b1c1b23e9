/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subcommands share: exit statuses, reading inputs, writing reports.
 * One command, one file; main.c holds the table.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"
#include "model/comparison.h"
#include "model/rankset.h"
#include "model/report.h"

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_ABNORMAL = 3, /* with --exit-code only */
};

int cmd_analyze(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_summarize(int argc, char **argv);
int cmd_localize(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_gpu_sampler(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_simulate(int argc, char **argv);

/* "perftracker COMMAND: message" and where to read on, on stderr. Returns EXIT_USAGE. */
int cmd_usage_error(const char *command, const char *fmt, ...) _printf_(2, 3);

/*
 * The same for the value of an option, which getopt_long() has just left in optarg: what
 * was expected of it. Returns EXIT_USAGE.
 */
int cmd_bad_value(const char *command, const char *option, const char *expected);

/* Where to read on, after getopt_long() has said what is wrong. Returns EXIT_USAGE. */
int cmd_try_help(const char *command);

/* "perftracker: message" on stderr. Returns EXIT_FAILED. */
int cmd_fail(const char *fmt, ...) _printf_(1, 2);

/* Print a sidecar (dump_sidecar.c), a flight log (dump_flight.c). Return an exit status. */
int dump_sidecar(const char *path, bool json);
int dump_flight(const char *path, bool json);

/* --- numbers of options --- */

/* Parses a whole text as a number in low..high. Returns 0 or -EINVAL. */
_must_check_ int cmd_parse_double(const char *text, double low, double high, double *ret);
_must_check_ int cmd_parse_int(const char *text, int64_t low, int64_t high, int64_t *ret);

/* Parses "4" or "4-6" as a range of steps. Returns 0 or -EINVAL. */
_must_check_ int cmd_parse_steps(const char *text, int64_t *ret_first, int64_t *ret_last);

/* --- inputs (inputs.c) --- */

typedef VEC(char *) path_list;

/*
 * Turns files and folders into a list of files: a folder contributes, sorted by name, the
 * files with a suffix of a format in read/reader.c; a file of several workers contributes
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

/* The rank in a file name ("rank3.json", "worker-12.pt.trace.json.gz"); -1 if there is none. */
int inputs_rank_of_name(const char *path);

/*
 * Gives every fingerprint a rank: its own if all have distinct ones, else from the file
 * names, else by order. Returns where the ranks come from, for the report.
 */
const char *inputs_assign_ranks(struct fingerprint *const *fps, size_t cnt);

/* --- output (output.c) --- */

enum output_format { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_HTML };

/* "text", "json" or "html". Returns 0 or -EINVAL. */
_must_check_ int output_format_parse(const char *text, enum output_format *ret);

/*
 * Writes the report to path, or to standard output when path is NULL or "-".
 * Colors and width follow the terminal. Returns 0 or -errno with a line in err.
 */
_must_check_ int output_report(const struct report *report, enum output_format format,
			       const char *path, struct err *err);

/* The same for a comparison; verbose: all that the text would leave out. */
_must_check_ int output_comparison(const struct comparison *comparison, enum output_format format,
				   bool verbose, const char *path, struct err *err);

/* Writes text to path (through a temporary file) or standard output. 0 or -errno. */
_must_check_ int output_text(const struct str *text, const char *path, struct err *err);
