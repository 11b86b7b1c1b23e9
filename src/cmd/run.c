/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker run: watches a job while it runs, and reports when it becomes slow or stuck. */
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options/settings.h"
#include "format/shared/block.h"
#include "live/run/commandline.h"
#include "live/run/jobname.h"
#include "live/run/options.h"
#include "live/run/runlog.h"
#include "live/run/supervise.h"
#include "live/ui/uiserver.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_args {
	struct run_options options;
	enum output_format format; /* text or JSON */
	unsigned int report_to;	   /* 0: stderr, 1: stdout */
	unsigned int log_format;   /* enum runlog_format */
	unsigned int color;	   /* enum output_color */
	const char *job_name;	   /* NULL: from the command */
	const char *config;
	const char *hub; /* NULL: as the launcher says */
	bool show_settings;
};

static int set_metrics(void *address, const char *text, struct err *err)
{
	struct err why = { "" };

	if (netaddress_parse(text, (struct netaddress *)address, &why) < 0)
		return err_set(err, EINVAL, "--metrics: %s", why.text);
	return 0;
}

static int set_ui(void *address, const char *text, struct err *err)
{
	struct err why = { "" };

	if (netaddress_parse_any(text, (struct netaddress *)address, &why) < 0)
		return err_set(err, EINVAL, "--ui: %s", why.text);
	return 0;
}

/* A folder that does not exist is accepted: another container may create it later. */
static int set_gpu_samples(void *from, const char *text, struct err *err)
{
	struct stat about;

	if (!PT_WITH_GPU_COUNTERS && strcmp(text, "none") != 0)
		return err_set(err, ENOTSUP,
			       "--gpu-samples: not part of this build (-Dgpu_counters=false)");
	if (strcmp(text, "own") != 0 && strcmp(text, "none") != 0 && stat(text, &about) == 0 &&
	    !S_ISDIR(about.st_mode))
		return -EINVAL;
	*(const char **)from = text;
	return 0;
}

#define FIELD(field) OPTION_FIELD(struct run_args, options.field)

static const struct option_row rows[] = {
	{ .help = "Output" },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "DIR",
	  FIELD(output),
	  .help = "folder of the reports, of the fingerprints of each profile, and of the flight "
		  "recorders that `perftracker timeline` reads",
	  .preset = "perftracker-out/TIME-JOB, to which perftracker-out/latest links",
	  .more = "--out is the same. A folder that a running job uses is refused, with exit status "
		  "2. Results of an earlier run are moved to `earlier` in DIR. DIR has `report.json` and `report.html`, the newest ones and each by its number; "
		  "`fingerprints` of each profile; and in `flight` the last records of each training "
		  "process. While the job runs, `socket` in it is a link for the --socket of "
		  "other commands." },
	{ .name = "keep-traces",
	  FIELD(keep_traces),
	  .help = "keep the traces of each profile in DIR, too (large)" },
	{ .name = "format",
	  .words = "text|json",
	  OPTION_FIELD(struct run_args, format),
	  .help = "format of printed reports",
	  .preset = "text" },
	{ .name = "report-to",
	  .words = "stderr|stdout",
	  OPTION_FIELD(struct run_args, report_to),
	  .help = "stream for reports",
	  .preset = "stderr, because stdout belongs to the command" },
	{ .name = "log-format",
	  .words = "auto|people|logfmt|json",
	  OPTION_FIELD(struct run_args, log_format),
	  .help = "format of log lines on stderr; auto: people on a terminal, else logfmt",
	  .preset = "auto" },
	COLOR_ROW(struct run_args, color),
	{ .name = "job-name",
	  .argument = "NAME",
	  OPTION_FIELD(struct run_args, job_name),
	  .help = "name of the job in reports, in `perftracker status` and in the folder's name",
	  .preset = "that of the script" },
	{ .name = "quiet", .letter = 'q', FIELD(quiet), .help = "print reports of faults only" },

	{ .help = "When to profile" },
	{ .name = "slowdown",
	  .argument = "PERCENT",
	  FIELD(slowdown_frac),
	  .unit = UNIT_PERCENT,
	  .low = 0.1,
	  .high = 1000,
	  .help = "an iteration this much above its baseline is slow",
	  .preset = "5" },
	{ .name = "recent",
	  .argument = "N",
	  FIELD(recent_cnt),
	  .low = 5,
	  .high = 256,
	  .help = "iterations that are averaged, 5 to 256",
	  .preset = "50" },
	{ .name = "learn",
	  .argument = "N",
	  FIELD(learn_cnt),
	  .low = 2,
	  .high = 1000,
	  .help = "identical iterations before watching begins",
	  .preset = "10" },
	{ .name = "blocked",
	  .argument = "FACTOR",
	  FIELD(blocked_factor),
	  .low = 1,
	  .high = 1e6,
	  .help = "a rank is blocked after this many mean iterations without progress",
	  .preset = "5" },
	{ .name = "min-gap",
	  .argument = "SECONDS",
	  FIELD(min_gap_ns),
	  .unit = UNIT_SECONDS,
	  .high = 1e6,
	  .help = "minimum time between two profiles",
	  .preset = "15" },

	{ .help = "How to profile" },
	{ .name = "window",
	  .argument = "SECONDS",
	  FIELD(window_ns),
	  .unit = UNIT_SECONDS,
	  .low = 0.1,
	  .high = 600,
	  .help = "length of a profile",
	  .preset = "20" },
	{ .name = "steps",
	  .argument = "N",
	  FIELD(steps_max),
	  .low = 5,
	  .high = 100000,
	  .help = "maximum number of iterations of a profile, 5 or more",
	  .more = "Short iterations: as many as take 0.15 s, so that there are samples enough.",
	  .preset = "16" },
	{ .name = "source",
	  .words = "auto|agent|torch",
	  FIELD(source),
	  .help = "recorder of profiles: the agent's collectors, torch.profiler, or auto: "
		  "torch.profiler on a GPU, else the first that works",
	  .preset = "auto",
	  .more = "The agent's collectors have a low overhead and never stop the job; "
		  "torch.profiler stops the job while it writes its trace." },
	{ .name = "exact",
	  FIELD(exact),
	  .help = "trace every Python call instead of sampling stacks (higher overhead)" },
	{ .name = "no-audit",
	  FIELD(no_audit),
	  .help = "do not measure the collectors' overhead",
	  .more = "By default, iterations with and without the collectors are compared in a steady "
		  "job: for some seconds at first, and again from time to time." },
	{ .name = "audit-every",
	  .argument = "SECONDS",
	  FIELD(audit_every_ns),
	  .unit = UNIT_SECONDS,
	  .high = 1e6,
	  .help = "time between two measurements of the overhead of what is always on",
	  .preset = "600" },
	{ .name = "no-checkup",
	  FIELD(no_checkup),
	  .help = "do not profile a healthy job",
	  .more = "By default, a job that has been steady for 20 seconds is profiled once, and again "
		  "after 4 hours: so a job that is slow from its first step is found, too, and a later "
		  "slowdown is compared with what the job looked like before." },
	{ .name = "no-stall-window",
	  FIELD(no_stall_window),
	  .help = "do not look for what else kept the workers from running after a report",
	  .more = "By default, after a report whose cause may be another process, a lock or a limit, "
		  "`perftracker stalls` watches the workers of each host for 12 seconds, at most once a "
		  "minute, in a process of low priority; what it finds is added to the report." },
	{ .name = "budget-always",
	  .argument = "PERCENT",
	  FIELD(budget_always_frac),
	  .unit = UNIT_PERCENT,
	  .high = 1000,
	  .help = "allowed overhead between windows",
	  .preset = "0.5",
	  .more = "Collectors above the budget are switched off; every report and `perftracker "
		  "status` say so." },
	{ .name = "budget-window",
	  .argument = "PERCENT",
	  FIELD(budget_window_frac),
	  .unit = UNIT_PERCENT,
	  .high = 1000,
	  .help = "allowed overhead in windows",
	  .preset = "3" },
	{ .name = "gpu-samples",
	  .words = "own|none|DIR",
	  FIELD(gpu_samples),
	  .set = set_gpu_samples,
	  .expected = "own, none or a folder",
	  .help = "source of GPU hardware counters in windows, 10000 samples a second: a sampler "
		  "of the job, none, or DIR of a `perftracker gpu-sampler`",
	  .preset = "none",
	  .more = "`own` starts a sampler for each window, if the job may read the counters; it may "
		  "pause the profiling metrics of the host's DCGM meanwhile, and has not been "
		  "tried on real GPUs. DIR may be created later, with a warning. With `none` only "
		  "the driver's slower samples (NVML, GPM) are recorded." },
	{ .name = "gpu-calls",
	  FIELD(gpu_calls),
	  .help = "with --source agent: count and time calls of cuBLAS, of kernel launches and of "
		  "NCCL before 2.28, by preloading the agent",
	  .more = "One call in 64 is timed. This has not been shown to be safe on a real GPU; without "
		  "it no call of the job passes through the agent." },

	{ .help = "Reports and metrics" },
	{ .name = "min-gain",
	  .argument = "PERCENT",
	  FIELD(min_gain_pct),
	  .high = 100,
	  .help = "omit findings whose repair saves less of an iteration",
	  .preset = "1" },
	{ .name = "jobs",
	  .argument = "N",
	  FIELD(jobs),
	  .low = 1,
	  .high = 1024,
	  .help = "number of traces to summarize at once",
	  .preset = "1 per 2 CPUs" },
	{ .name = "metrics",
	  .argument = "[ADDR:]PORT",
	  FIELD(metrics),
	  .set = set_metrics,
	  .help = "serve /metrics for Prometheus; ADDR defaults to 127.0.0.1; port 0 is any free "
		  "one",
	  .preset = "not served",
	  .more = "The log and `metrics.json` in the folder of --out have the port. The format is "
		  "Prometheus text or OpenMetrics." },
	{ .name = "metrics-compat",
	  .words = "xpu_timer",
	  FIELD(metrics_xpu),
	  .help = "also serve the metrics under xpu_timer's names, XPU_TIMER_*" },

	{ .help = "Page" },
	{ .name = "ui",
	  .argument = "[ADDR:]PORT",
	  FIELD(ui),
	  .set = set_ui,
	  .help = "serve a page and an API of this job while it runs; ADDR defaults to 127.0.0.1; "
		  "port 0 is any free one; or unix:PATH",
	  .preset = "not served",
	  .more = "The log has the address. On 127.0.0.1 and on a Unix socket only processes of the "
		  "same user are answered; any other address needs --token-file. The page needs no "
		  "store. When the job has ended, `perftracker serve DIR` shows its reports. A port "
		  "that is in use is a warning, and the job runs without a page." },
	{ .name = "token-file",
	  .argument = "FILE",
	  FIELD(ui_token_file),
	  .help = "who may ask the page: lines \"viewer TOKEN\" or \"operator TOKEN\"",
	  .more = "As of `perftracker serve`. An operator may also ask for a profile." },
	{ .name = "ui-host",
	  .argument = "NAME",
	  FIELD(ui_host),
	  .help = "a further name of the page's server, for instance that of a proxy" },

	{ .help = "Several hosts" },
	{ .name = "hub",
	  .argument = "HOST:PORT|none",
	  OPTION_FIELD(struct run_args, hub),
	  .help = "where the hub of all hosts of the job is; none: watch this host alone",
	  .preset = "on the first host, as the launcher says: torchrun, Slurm, MPI, ...",
	  .more = "The same command is started on every host, or for every rank. The daemon of the "
		  "first one starts a nats-server as its child, which has to be on PATH, and the "
		  "report appears there. --hub is also taken where no launcher says how many hosts "
		  "there are; then the first one is that which has the address HOST." },
	{ .name = "secret-file",
	  .argument = "FILE",
	  FIELD(secret_file),
	  .help = "the secret of the job, the same on all hosts, without which no other daemon joins",
	  .preset = "$PERFTRACKER_SECRET, else one from the job's id, with a warning" },
	{ .name = "insecure", FIELD(insecure), .help = "hosts may talk without encryption" },

	{ .help = "Memory of jobs" },
	{ .name = "store",
	  .argument = "FILE|URL|none",
	  FIELD(store),
	  .help = "where the job's pace, windows, findings and reports are kept for "
		  "`perftracker jobs`, `history` and `report`",
	  .preset = "~/.local/state/perftracker/store.db",
	  .more = "A file of SQLite, or postgresql://USER@HOST/DATABASE. Pace is kept for two days "
		  "by the second, a month by the minute and two years by the hour; fingerprints and "
		  "reports for 90 days and at most 2 GB, findings for good." },

	{ .name = "webhook",
	  .argument = "FILE",
	  FIELD(webhook_path),
	  .help = "send reports of something wrong to the URLs in FILE",
	  .more = "Lines \"url URL\", each followed by lines about it: \"format\" json, slack or "
		  "alertmanager; \"token-file\" PATH for Authorization: Bearer; \"when\" bad or all. "
		  "Only its owner may be able to read FILE. The job never waits for a server; at its "
		  "end the daemon waits five seconds at most. Needs libcurl." },

	{ .help = "Settings" },
	{ .name = "config",
	  .argument = "FILE",
	  OPTION_FIELD(struct run_args, config),
	  .not_a_setting = true,
	  .help = "file of settings, lines of OPTION = VALUE with the long names of options",
	  .preset = "~/.config/perftracker/run.conf, if it exists",
	  .more = "An option without a value is set to yes or no. Lines that begin with # are "
		  "comments. Each option is also taken from the environment: PERFTRACKER_MIN_GAP "
		  "is --min-gap. The command line counts more than the environment, and that more "
		  "than the file." },
	{ .name = "show-settings",
	  OPTION_FIELD(struct run_args, show_settings),
	  .not_a_setting = true,
	  .help = "print each option, its value and where that comes from, and exit" },
};

/* Warns of a folder that is not there (yet). */
static void warn_of_gpu_samples(const char *from)
{
	if (from == NULL || strcmp(from, "own") == 0 || strcmp(from, "none") == 0 ||
	    access(from, R_OK | X_OK) == 0)
		return;
	log_line(LOG_WARNING,
		 "event=no-gpu-samples dir=\"%s\" why=\"%s\" effect=\"no hardware counters of GPUs "
		 "until 'perftracker gpu-sampler' writes there\"",
		 from, strerror(errno));
}

/* Who may ask the page is known before the job starts. Returns OPTIONS_PARSED or EXIT_USAGE. */
static int check_page(struct run_options *options)
{
	struct tokens *tokens = NULL;
	struct err err = { "" };

	if (uiserver_check(&options->ui, options->ui_token_file, &err) < 0)
		return cmd_usage_error("run", "--ui: %s (--token-file FILE)", err.text);
	if (options->ui_token_file == NULL)
		return OPTIONS_PARSED;
	if (!uiserver_is_wanted(&options->ui))
		return cmd_usage_error("run", "--token-file needs --ui");
	if (tokens_read(options->ui_token_file, &tokens, &err) < 0)
		return cmd_usage_error("run", "--token-file: %s", err.text);
	options->ui_tokens = tokens; /* until the process ends */
	return OPTIONS_PARSED;
}

static int check_webhook(struct run_options *options)
{
	struct webhookfile *file = NULL;
	struct err err = { "" };

	if (options->webhook_path == NULL)
		return OPTIONS_PARSED;
	if (webhookfile_read(options->webhook_path, &file, &err) < 0)
		return cmd_usage_error("run", "--webhook: %s", err.text);
	options->webhook = file; /* until the process ends */
	return OPTIONS_PARSED;
}

/* Options that exclude or need each other. Returns OPTIONS_PARSED or EXIT_USAGE. */
static int check_options(const struct run_options *options)
{
	const char *complaint = NULL;

	if (options->metrics_xpu && options->metrics.host[0] == '\0')
		complaint = "--metrics-compat needs --metrics";
	else if (options->gpu_calls && !PT_WITH_GPU_CALLS)
		complaint = "--gpu-calls: not part of this build (-Dgpu_calls=false)";
	else if (options->gpu_calls && options->source != ORDER_SOURCE_AGENT)
		complaint = "--gpu-calls needs --source agent";
	else if (options->exact && options->source == ORDER_SOURCE_TORCH)
		complaint = "--exact does not work with --source torch";
	return complaint != NULL ? cmd_usage_error("run", "%s", complaint) : OPTIONS_PARSED;
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

/* Returns 0, or -EINVAL for what is neither an address nor "none". */
static int find_place(const char *hub, char **words, struct member *ret)
{
	if (hub != NULL && strcmp(hub, "none") == 0) {
		*ret = (struct member){ .members = 1, .launcher = "" };
		return 0;
	}
	member_find(words, from_environment, ret);
	return hub != NULL ? member_set_hub(ret, hub) : 0;
}

/* words: the command of the job. Returns an exit status. */
static int run_job(const struct run_args *a, char **words)
{
	struct run_options options = a->options;
	char program[PATH_MAX], job[JOBNAME_BYTES];
	struct str line = { 0 };
	int status;
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[len > 0 ? len : 0] = '\0';
	if (a->job_name != NULL)
		jobname_clean(a->job_name, job);
	else
		jobname_of_command(words, job);
	options.program = program;
	options.job_name = job;
	commandline_append(&line, words);
	options.command = str_borrow(&line);
	options.json = a->format == OUTPUT_JSON;
	options.report_to_stdout = a->report_to == 1;
	options.color_always = a->color == COLOR_ALWAYS;
	options.color = output_is_colored(a->color, STDERR_FILENO) ||
			output_is_colored(a->color, STDOUT_FILENO);
	runlog_open((enum runlog_format)a->log_format, isatty(STDERR_FILENO) == 1,
		    output_is_colored(a->color, STDERR_FILENO));
	if (find_place(a->hub, words, &options.member) < 0) {
		str_done(&line);
		return cmd_usage_error("run", "--hub: expected HOST:PORT or none, found %s",
				       a->hub);
	}
	warn_of_gpu_samples(options.gpu_samples);
	status = supervise(&options, words);
	str_done(&line);
	return status;
}

static int show_settings(const struct command *command, const struct settings *settings)
{
	struct str text = { 0 };
	struct err err = { "" };
	int ret;

	settings_describe(command, settings, &text);
	ret = str_error(&text) < 0 ? err_set(&err, ENOMEM, "out of memory")
				   : output_text(&text, NULL, &err);
	str_done(&text);
	return ret < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

static int run_main(const struct command *command, int argc, char **argv)
{
	struct run_args a = { .options = run_options_preset() };
	struct settings settings = { .contents = NULL };
	int first, status = settings_parse(command, argc, argv, &settings, &a, &first);

	if (status == OPTIONS_PARSED && a.show_settings)
		status = show_settings(command, &settings);
	if (status == OPTIONS_PARSED)
		status = check_options(&a.options);
	if (status == OPTIONS_PARSED)
		status = check_page(&a.options);
	if (status == OPTIONS_PARSED)
		status = check_webhook(&a.options);
	if (status == OPTIONS_PARSED && first >= argc)
		status = cmd_usage_error(command->name, "expected the command to run");
	if (status == OPTIONS_PARSED)
		status = run_job(&a, argv + first);
	settings_done(&settings);
	return status;
}

const struct command cmd_run = {
	.name = "run",
	.summary = "start a job, watch it, and report when it becomes slow",
	.usage = "[OPTION]... [--] COMMAND [ARGUMENT]...\n",
	.about =
		"Runs COMMAND unchanged and watches every PyTorch training process it starts. When "
		"the job becomes slow or stuck, all ranks are profiled at the same step for a few "
		"iterations, and the report names the function and the rank that cause it.\n"
		"Output, signals and exit status are those of COMMAND.\n"
		"Iterations are seen by calls of torch's DataLoader and optimizers. A loop without "
		"them calls `perftracker.step()` at the end of each iteration, after `import "
		"perftracker`.\n"
		"While the job runs, `perftracker status` in another terminal shows the state of each "
		"rank, and `perftracker profile` profiles at once, slow or not.\n",
	OPTION_ROWS(rows),
	.order = ORDER_BEFORE,
	.examples = "perftracker run -- torchrun --nproc-per-node 4 train.py\n"
		    "perftracker run -o /tmp/pt --keep-traces -- python -m mypackage.train\n"
		    "perftracker run --slowdown 10 --window 5 -- python train.py\n",
	.run = run_main,
};
