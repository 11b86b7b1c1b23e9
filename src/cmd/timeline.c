/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker timeline: writes the flight recorders of a job as one trace for Perfetto. */
#include "report/timeline/timeline.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/jobfiles/ranknames.h"
#include "cmd/runfolder.h"
#include "cmd/storechoice.h"
#include "cmd/timeline/timeline_bins.h"
#include "cmd/timeline/timeline_files.h"
#include "cmd/timeline/timeline_output.h"
#include "cmd/timeline/timeline_report.h"
#include "cmd/timeline/timeline_traces.h"
#include "format/flightlog/flightlog.h"
#include "format/sidecar/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_S_MAX 1e6

typedef VEC(struct flightlog) log_vec;
typedef VEC(struct sidecar) sidecar_vec;

/* The input files of the picture. */
struct material {
	log_vec logs;
	sidecar_vec sides;
};

/* In the order of the words. */
enum timeline_format { FORMAT_CHROME, FORMAT_CHROME_GZ, FORMAT_BINS };

struct timeline_args {
	const char *output;
	double last_s;
	rankset_vec ranks; /* empty: all */
	bool wall_only, as_saved;
	enum timeline_format format;
	/* of a part */
	const char *report, *store;
	struct timeline_part part;
};

#define FIELD(field) OPTION_FIELD(struct timeline_args, field)

static const struct option_row rows[] = {
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  FIELD(output),
	  .help = "write the trace to FILE, compressed if that ends in .gz; - is standard output",
	  .preset = "timeline.json in OUT_DIR, or in the current folder for files" },
	{ .name = "last",
	  .argument = "SECONDS",
	  FIELD(last_s),
	  .high = LAST_S_MAX,
	  .expected = "seconds, 0 for all",
	  .help = "show this time before the last record of all ranks; 0: everything",
	  .preset = "10" },
	{ .name = "ranks",
	  .argument = "SET",
	  FIELD(ranks),
	  .set = cmd_set_ranks,
	  .help = "show only these ranks, for example 0-3,7" },
	{ .name = "no-align",
	  FIELD(wall_only),
	  .help = "use the wall clocks of the hosts unchanged; by default clocks are aligned so "
		  "that a collective ends on all its ranks together" },
	{ .name = "format",
	  .words = "chrome|chrome-gz|bins",
	  FIELD(format),
	  .help = "chrome: a trace for Perfetto; chrome-gz: the same, compressed; bins: a part of "
		  "it in bounded size, as JSON, which `perftracker serve` draws",
	  .preset = "chrome" },
	{ .name = "report",
	  .argument = "REPORT",
	  FIELD(report),
	  .help = "show the window of this report of OUT_DIR, from what is kept of it, and mark what "
		  "its findings name; a file, or JOB/NUMBER of the store" },
	{ .name = "from",
	  .argument = "SECONDS",
	  FIELD(part.from_s),
	  .high = LAST_S_MAX,
	  .help = "with --format bins: the part begins so long after the first record" },
	{ .name = "to",
	  .argument = "SECONDS",
	  FIELD(part.to_s),
	  .high = LAST_S_MAX,
	  .help = "with --format bins: the part ends so long after the first record",
	  .preset = "the window of the report, else the last 10" },
	{ .name = "columns",
	  .argument = "N",
	  FIELD(part.columns),
	  .low = 1,
	  .high = TIMEBINS_COLUMNS_MAX,
	  .help = "with --format bins: divide the part into N equal times",
	  .preset = "200" },
	{ .name = "as-saved", FIELD(as_saved), .help = "ask no job that runs for newer records" },
	STORE_CHOICE_ROW(struct timeline_args, store),
};

/* --- logs --- */

static bool is_wanted(const rankset_vec *ranks, int rank)
{
	for (size_t i = 0; i < ranks->cnt; i++) {
		if (ranks->data[i] == rank)
			return true;
	}
	return ranks->cnt == 0;
}

static void logs_done(log_vec *logs)
{
	vec_foreach(log, logs)
		flightlog_done(log);
	vec_done(logs);
}

static int by_rank(const void *a, const void *b)
{
	const struct flightlog *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Reports a file that cannot be read, and continues with the others. */
static int load_log(const char *path, const rankset_vec *ranks, log_vec *logs)
{
	struct err err = { "" };
	struct flightlog log;

	if (flightlog_read(path, &log, &err) < 0) {
		(void)fprintf(stderr, "perftracker: left out: %s\n", err.text);
		return 0;
	}
	if (log.rank < 0)
		log.rank = ranknames_of_file(path);
	if (!is_wanted(ranks, log.rank)) {
		flightlog_done(&log);
		return 0;
	}
	if (vec_push(logs, log) < 0) {
		flightlog_done(&log);
		return -ENOMEM;
	}
	return 0;
}

static int load_logs(const path_list *paths, const rankset_vec *ranks, log_vec *logs,
		     struct err *err)
{
	for (size_t i = 0; i < paths->cnt; i++) {
		if (load_log(paths->data[i], ranks, logs) < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	if (logs->cnt == 0)
		return err_set(
			err, ENOENT,
			"none of %zu file%s could be used: expected flight recorders (*.flight)%s",
			paths->cnt, plural(paths->cnt), ranks->cnt > 0 ? " of these ranks" : "");
	qsort(logs->data, logs->cnt, sizeof(*logs->data), by_rank);
	return 0;
}

/* --- sidecars --- */

static int64_t last_time(const record_vec *records)
{
	return records->cnt > 0 ? records->data[records->cnt - 1].time_ns : 0;
}

/* The wall clock at the last record of all. */
static int64_t newest_wall_ns(const log_vec *logs)
{
	int64_t newest_ns = 0;

	vec_foreach(log, logs) {
		int64_t last_ns = MAX(last_time(&log->marks), last_time(&log->samples));

		vec_foreach(lane, &log->lanes) {
			last_ns = MAX(last_ns, last_time(&lane->records));
			last_ns = MAX(last_ns, last_time(&lane->window));
		}
		newest_ns = MAX(newest_ns, last_ns + (log->wall_ns - log->mono_ns));
	}
	return newest_ns;
}

/*
 * Whether the picture may need the sidecar at path, by its header alone: a job has many windows,
 * a picture shows a few. True for an unreadable file, so that reading it reports the error.
 */
static bool is_shown(const char *path, const struct timeline_args *a, int64_t newest_ns)
{
	struct sidecar_header header = { 0 };
	const size_t len = offsetof(struct sidecar_header, sections);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	double end_ns;
	bool whole;

	if (fd < 0)
		return true;
	whole = pread(fd, &header, len, 0) == (ssize_t)len && header.magic == SIDECAR_MAGIC;
	(void)close(fd);
	end_ns = (double)header.wall_ns - (double)header.mono_ns + (double)header.end_ns;
	return !whole ||
	       (is_wanted(&a->ranks, header.rank) &&
		(a->last_s <= 0 || end_ns > (double)newest_ns - a->last_s * NSEC_PER_SEC));
}

/* Reports a sidecar that cannot be read, and continues with the others. */
static int load_sides(const path_list *paths, const struct timeline_args *a,
		      struct material *material)
{
	int64_t newest_ns = newest_wall_ns(&material->logs);

	for (size_t i = 0; i < paths->cnt; i++) {
		struct err err = { "" };
		struct sidecar side;

		if (!is_shown(paths->data[i], a, newest_ns))
			continue;
		if (sidecar_read(paths->data[i], &side, &err) < 0) {
			(void)fprintf(stderr, "perftracker: left out: %s\n", err.text);
			continue;
		}
		if (vec_push(&material->sides, side) < 0) {
			sidecar_done(&side);
			return -ENOMEM;
		}
	}
	return 0;
}

/* --- output --- */

/* What write_logs() writes. */
struct log_picture {
	const log_vec *logs;
	const struct timeline_options *options;
	struct timeline_rank *ranks;
	const struct timeline_part *part; /* NULL: the whole trace */
};

static int draw_logs(void *arg, struct slice_sink *sink, FILE *out)
{
	const struct log_picture *p = arg;
	struct timeline_options options = *p->options;

	options.sink = sink;
	options.last_ns = sink != NULL ? 0 : options.last_ns;
	return timeline_write(p->logs->data, p->logs->cnt, &options, out, p->ranks);
}

static int write_part(const struct log_picture *p, FILE *out)
{
	size_t cnt = p->logs->cnt;
	_cleanup_free_ struct timebins_rank *ranks = calloc(cnt + 1, sizeof(*ranks));
	const struct timeline_subject subject = { ranks, cnt, p->ranks, draw_logs,
						  (void *)(uintptr_t)p };

	for (size_t i = 0; i < cnt && ranks != NULL; i++)
		ranks[i] = (struct timebins_rank){ .rank = p->logs->data[i].rank,
						   .host = p->logs->data[i].host };
	return ranks != NULL ? timeline_bins_write(p->part, &subject, out) : -ENOMEM;
}

static int write_logs(void *arg, FILE *out)
{
	struct log_picture *p = arg;

	return p->part != NULL ? write_part(p, out) : draw_logs(p, NULL, out);
}

/* --- notes on standard error --- */

static void print_ranks(const log_vec *logs, const bool *which, const char *what)
{
	_cleanup_free_ int *list = calloc(logs->cnt + 1, sizeof(*list));
	struct str text = { 0 };
	size_t cnt = 0;

	for (size_t i = 0; i < logs->cnt && list != NULL; i++) {
		int rank = logs->data[i].rank;

		if (which[i] && (cnt == 0 || list[cnt - 1] != rank))
			list[cnt++] = rank;
	}
	if (cnt == 0)
		return;
	rankset_format(&text, list, cnt);
	(void)fprintf(stderr, "perftracker: rank%s %s: %s\n", plural(cnt), str_borrow(&text), what);
	str_done(&text);
}

static void print_notes(const log_vec *logs, const struct timeline_args *a,
			const struct timeline_rank *ranks)
{
	_cleanup_free_ bool *by_wall = calloc(logs->cnt + 1, sizeof(*by_wall));
	_cleanup_free_ bool *silent = calloc(logs->cnt + 1, sizeof(*silent));
	int64_t longest_ns = 0;
	char text[160];

	for (size_t i = 0; i < logs->cnt && by_wall != NULL && silent != NULL; i++) {
		by_wall[i] = !a->wall_only && ranks[i].clock.source == ALIGN_WALL_CLOCK;
		silent[i] = ranks[i].slice_cnt == 0;
		if (silent[i])
			longest_ns = MAX(longest_ns, ranks[i].last_ns);
	}
	if (by_wall == NULL || silent == NULL)
		return;
	print_ranks(
		logs, by_wall,
		"fewer than three collectives in common with others: placed by the wall clocks of "
		"their hosts");
	(void)snprintf(text, sizeof(text),
		       "nothing to show in this part; the last record is %.1f s before the end, "
		       "--last 0 shows everything",
		       (double)longest_ns / NSEC_PER_SEC);
	print_ranks(logs, silent, text);
}

/* --- all --- */

static char *output_path(const struct timeline_args *a, const char *first)
{
	char *path = NULL;
	int len;

	if (a->output != NULL)
		len = asprintf(&path, "%s", a->output);
	else
		len = asprintf(&path, "%s%stimeline.json", timeline_is_folder(first) ? first : "",
			       timeline_is_folder(first) ? "/" : "");
	return len < 0 ? NULL : path;
}

static int make_timeline(const struct timeline_args *a, const struct material *material,
			 const char *path)
{
	const log_vec *logs = &material->logs;
	struct timeline_options options = { .last_ns = (int64_t)(a->last_s * NSEC_PER_SEC),
					    .wall_only = a->wall_only,
					    .sides = material->sides.data,
					    .side_cnt = material->sides.cnt };
	_cleanup_free_ struct timeline_rank *ranks = calloc(logs->cnt + 1, sizeof(*ranks));
	struct log_picture picture = { logs, &options, ranks,
				       a->format == FORMAT_BINS ? &a->part : NULL };
	int ret =
		ranks != NULL && path != NULL
			? timeline_output(path, a->format == FORMAT_CHROME_GZ, write_logs, &picture)
			: -ENOMEM;

	if (ret < 0)
		return cmd_fail("%s: cannot write the trace: %s", path != NULL ? path : "",
				strerror(-ret));
	print_notes(logs, a, ranks);
	if (strcmp(path, "-") != 0)
		(void)printf("%s\n", path);
	return EXIT_DONE;
}

/* Reads all that words[cnt] name. Returns 0 or -errno with a line in err. */
static int load(const struct timeline_args *a, char *const *words, int cnt, struct material *ret,
		struct err *err)
{
	path_list flights = { 0 }, sidecars = { 0 };
	int error = a->as_saved ? timeline_list_flights(words, cnt, &flights, err)
				: timeline_find_flights(words, cnt, &flights, err);

	if (error == 0)
		error = load_logs(&flights, &a->ranks, &ret->logs, err);
	if (error == 0)
		error = timeline_find_sidecars(words, cnt, &flights, &sidecars);
	if (error == 0)
		error = load_sides(&sidecars, a, ret);
	path_list_done(&flights);
	path_list_done(&sidecars);
	return error;
}

static int draw_traces(const struct timeline_args *a, char **words, int cnt, const char *path)
{
	const struct timeline_request request = {
		.output = path,
		.last_s = a->last_s,
		.ranks = &a->ranks,
		.wall_only = a->wall_only,
		.compress = a->format == FORMAT_CHROME_GZ,
		.part = a->format == FORMAT_BINS ? &a->part : NULL,
	};

	return path != NULL ? timeline_traces(&request, words, cnt) : cmd_fail("out of memory");
}

/* words: those of the command line; the first names the folder of the trace. */
static int draw(const struct timeline_args *a, char **words, int cnt, struct material *material)
{
	_cleanup_free_ char *path = NULL;
	struct err err = { "" };
	char resolved[PATH_MAX], *folder = resolved;
	int ret;

	/* Several folders are those of parts of one job: only a single one is looked up. */
	if (cnt == 1 && runfolder_resolve(words[0], resolved) == resolved)
		words = &folder;
	path = output_path(a, words[0]);
	switch (timeline_material_of(words, cnt)) {
	case TIMELINE_MIXED:
		return cmd_fail("expected flight recorders or traces, found both: they have "
				"different clocks and events; give one kind at a time");
	case TIMELINE_TRACES:
		return draw_traces(a, words, cnt, path);
	case TIMELINE_RECORDERS:
		break;
	}
	ret = load(a, words, cnt, material, &err);
	if (ret == 0)
		return make_timeline(a, material, path);
	return cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-ret));
}

/* Of a report: the files of its folder that have its window. */
static int draw_report(struct timeline_args *a, char **words, int cnt, struct material *material)
{
	struct timeline_report report = { 0 };
	_cleanup_free_ char *path = NULL;
	path_list inputs = { 0 };
	struct err err = { "" };
	int status, error;

	if (cnt != 1 || !timeline_is_folder(words[0]))
		return cmd_usage_error("timeline",
				       "expected the folder of the report's run behind --report");
	error = timeline_report_read(a->store, a->report, &report, &err);
	if (error == 0)
		error = timeline_report_inputs(&report, words[0], &inputs, &err);
	a->part.findings = report.findings.data;
	a->part.finding_cnt = report.findings.cnt;
	memcpy(a->part.window_wall_ns, report.window_wall_ns, sizeof(a->part.window_wall_ns));
	if (error == 0 && a->output == NULL && asprintf(&path, "%s/timeline.json", words[0]) < 0)
		error = -ENOMEM;
	if (error == 0 && a->output == NULL)
		a->output = path;
	if (error == 0)
		status = draw(a, inputs.data, (int)inputs.cnt, material);
	else
		status = cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-error));
	path_list_done(&inputs);
	timeline_report_done(&report);
	return status;
}

/* Options of a part say nothing of a whole trace. */
static int check_part(const struct timeline_args *a)
{
	if (a->format != FORMAT_BINS && (a->part.from_s > 0 || a->part.to_s > 0))
		return cmd_usage_error("timeline", "expected --from and --to with --format bins "
						   "only: --last limits a trace");
	if (a->part.to_s > 0 ? a->part.to_s <= a->part.from_s : a->part.from_s > 0)
		return cmd_usage_error("timeline", "--to: expected a moment after --from");
	return OPTIONS_PARSED;
}

static int timeline_main(const struct command *command, int argc, char **argv)
{
	struct timeline_args a = { .last_s = 10, .part = { .columns = 200 } };
	int first, status = optiontable_parse(command, argc, argv, &a, &first);
	struct material material = { 0 };

	if (status == OPTIONS_PARSED && first == argc)
		status = cmd_usage_error(
			command->name, "expected the folder of a job, traces, or files (*.flight)");
	if (status == OPTIONS_PARSED)
		status = check_part(&a);
	if (status == OPTIONS_PARSED)
		status = a.report != NULL ? draw_report(&a, argv + first, argc - first, &material)
					  : draw(&a, argv + first, argc - first, &material);
	logs_done(&material.logs);
	vec_foreach(side, &material.sides)
		sidecar_done(side);
	vec_done(&material.sides);
	vec_done(&a.ranks);
	return status;
}

const struct command cmd_timeline = {
	.name = "timeline",
	.summary = "show the last seconds of all ranks in one picture",
	.usage = "[OPTION]... OUT_DIR|TRACE|FILE.flight...\n",
	.about =
		"Shows the last seconds of all ranks in one picture: which rank did what, which rank "
		"came last to a collective, where a job hangs, what a rank did before it died.\n"
		"Every training process records its iterations, Python stacks ten times a second and "
		"collectives, and during a profile operators and GPU work. The records of a profile "
		"are dropped after its report, unless `perftracker run --keep-traces` keeps them in "
		"OUT_DIR/traces, with the counters of the hosts' hardware.\n"
		"Writes OUT_DIR/timeline.json (Chrome's trace event format) and prints its path. Open "
		"it in https://ui.perfetto.dev (the file stays in the browser) or, without a network, "
		"in the Performance panel of Chrome's developer tools. OUT_DIR is the folder of "
		"`perftracker run --output`, or the word latest; a job that still runs is asked for its newest records "
		"first.\n"
		"TRACE is a trace of torch.profiler or an SQLite export of Nsight Systems, one file per "
		"rank, or a folder of them, as for `perftracker analyze`: all ranks on one clock, and "
		"what analyze finds marked. The track `findings` on top of a culprit shows where the "
		"named function ran or the thread was idle, and since when the others waited.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker timeline latest\n"
		    "perftracker timeline --last 60 --ranks 0,5 -o hang.json out\n"
		    "perftracker timeline --last 0 -o kernels.json out/traces\n"
		    "perftracker timeline -o all-ranks.json.gz rank*.pt.trace.json.gz\n",
	.run = timeline_main,
};
