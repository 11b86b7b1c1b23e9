/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker run: watches a job while it runs, and reports when it becomes slow or stuck. */
#include "base/err.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "format/shared/block.h"
#include "live/run/options.h"
#include "live/run/supervise.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"usage: perftracker run [options] [--] COMMAND [ARGUMENT...]\n"
	"\n"
	"Runs COMMAND unchanged and watches every PyTorch training process it starts.\n"
	"When the job becomes slow, all of them are profiled at the same step for a few\n"
	"iterations, and the report names the function on the rank that is to blame.\n"
	"Output, signals and exit status are the command's own.\n"
	"\n"
	"  perftracker run -- torchrun --nproc-per-node 4 train.py\n"
	"  perftracker run --out /tmp/pt --keep-traces -- python -m mypackage.train\n"
	"  perftracker run --slowdown 10 --window 5 -- python train.py\n"
	"While it runs, from another terminal:\n"
	"  perftracker status            what each rank does\n"
	"  perftracker profile           a profile now, slow or not\n"
	"\n"
	"  --out DIR          reports; DIR/fingerprints of each profile; DIR/flight, what each\n"
	"                     process recorded last, for perftracker timeline [perftracker-out]\n"
	"  --keep-traces      keep the traces of each profile there, too (large)\n"
	"  --format text|json how reports are printed [text]\n"
	"  --report-to stderr|stdout\n"
	"                     where they are printed [stderr: stdout is the command's]\n"
	"  --quiet            print abnormal reports only\n"
	"\n"
	"When to look:\n"
	"  --slowdown PCT     an iteration is slow from so much over its baseline [5]\n"
	"  --recent N         iterations that are averaged, 5 to 256 [50]\n"
	"  --learn M          identical iterations before watching begins [10]\n"
	"  --blocked X        stuck after X times the mean iteration without any [5]\n"
	"  --min-gap SEC      time between two profiles [60]\n"
	"How to look:\n"
	"  --window SEC       wished length of a profile [20]\n"
	"  --steps N          iterations of a profile at most, 5 or more [16]\n"
	"  --source auto|agent|torch\n"
	"                     who records: our own collectors, which cost little and stop\n"
	"                     nothing; torch.profiler; auto takes the first that can, on a\n"
	"                     GPU torch.profiler [auto]\n"
	"  --exact            trace every Python call instead of sampling stacks (costs more)\n"
	"  --no-audit         don't measure our own cost in slices of iterations with and\n"
	"                     without the collectors\n"
	"  --budget-always PCT, --budget-window PCT\n"
	"                     what may be recorded between and in windows; what costs\n"
	"                     more is left out, and the report says so [0.5 and 3]\n"
	"  --metrics [ADDR:]PORT\n"
	"                     serve /metrics for Prometheus there; without ADDR on 127.0.0.1,\n"
	"                     that is to this machine alone; port 0: any that is free, which\n"
	"                     OUT/metrics.json and a line of the log tell [not served]\n"
	"  --metrics-compat xpu_timer\n"
	"                     also the names of xpu_timer's metrics, XPU_TIMER_*\n"
	"  --gpu-samples own|none|DIR\n"
	"                     hardware counters of GPUs at kHz in windows: by a sampler of our own,\n"
	"                     which may pause DCGM's profiling on the host meanwhile; not at all;\n"
	"                     or from DIR, where 'perftracker gpu-sampler' of a privileged container\n"
	"                     puts them [none: what NVML and GPM tell]\n"
	"  --gpu-calls        with --source agent: preload the agent, so that it counts and\n"
	"                     times calls of cuBLAS, of launches and of old NCCL; no card has\n"
	"                     shown yet that it is safe [not seen]\n"
	"  --min-gain PCT     leave out findings that would gain less [1]\n"
	"  --jobs N           traces summarized at once [1 for each 2 CPUs]\n"
	"  -h, --help         this text\n";

enum {
	OPT_OUT = 256,
	OPT_KEEP,
	OPT_FORMAT,
	OPT_REPORT_TO,
	OPT_QUIET,
	OPT_SOURCE,
	OPT_EXACT,
	OPT_NO_AUDIT,
	OPT_BUDGET_ALWAYS,
	OPT_BUDGET_WINDOW,
	OPT_METRICS,
	OPT_METRICS_COMPAT,
	OPT_GPU_SAMPLES,
	OPT_GPU_CALLS,
	OPT_SLOWDOWN,
	OPT_RECENT,
	OPT_LEARN,
	OPT_BLOCKED,
	OPT_MIN_GAP,
	OPT_WINDOW,
	OPT_STEPS,
	OPT_MIN_GAIN,
	OPT_JOBS
};

static const struct option long_options[] = {
	{ "out", required_argument, NULL, OPT_OUT },
	{ "keep-traces", no_argument, NULL, OPT_KEEP },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "report-to", required_argument, NULL, OPT_REPORT_TO },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "source", required_argument, NULL, OPT_SOURCE },
	{ "exact", no_argument, NULL, OPT_EXACT },
	{ "no-audit", no_argument, NULL, OPT_NO_AUDIT },
	{ "budget-always", required_argument, NULL, OPT_BUDGET_ALWAYS },
	{ "budget-window", required_argument, NULL, OPT_BUDGET_WINDOW },
	{ "metrics", required_argument, NULL, OPT_METRICS },
	{ "metrics-compat", required_argument, NULL, OPT_METRICS_COMPAT },
	{ "gpu-samples", required_argument, NULL, OPT_GPU_SAMPLES },
	{ "gpu-calls", no_argument, NULL, OPT_GPU_CALLS },
	{ "slowdown", required_argument, NULL, OPT_SLOWDOWN },
	{ "recent", required_argument, NULL, OPT_RECENT },
	{ "learn", required_argument, NULL, OPT_LEARN },
	{ "blocked", required_argument, NULL, OPT_BLOCKED },
	{ "min-gap", required_argument, NULL, OPT_MIN_GAP },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "min-gain", required_argument, NULL, OPT_MIN_GAIN },
	{ "jobs", required_argument, NULL, OPT_JOBS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Numbers of the options that take one: range and where they go. */
struct numbers {
	double slowdown_pct, recent, learn, blocked, min_gap_s, window_s, steps, min_gain_pct, jobs;
	double budget_always_pct, budget_window_pct;
};

static const struct number_option {
	int option;
	double least, most;
	size_t off;
} number_options[] = {
	{ OPT_SLOWDOWN, 0.1, 1000, offsetof(struct numbers, slowdown_pct) },
	{ OPT_RECENT, 5, 256, offsetof(struct numbers, recent) },
	{ OPT_LEARN, 2, 1000, offsetof(struct numbers, learn) },
	{ OPT_BLOCKED, 1, 1e6, offsetof(struct numbers, blocked) },
	{ OPT_MIN_GAP, 0, 1e6, offsetof(struct numbers, min_gap_s) },
	{ OPT_WINDOW, 0.1, 600, offsetof(struct numbers, window_s) },
	{ OPT_STEPS, 5, 100000, offsetof(struct numbers, steps) },
	{ OPT_MIN_GAIN, 0, 100, offsetof(struct numbers, min_gain_pct) },
	{ OPT_JOBS, 1, 1024, offsetof(struct numbers, jobs) },
	{ OPT_BUDGET_ALWAYS, 0, 1000, offsetof(struct numbers, budget_always_pct) },
	{ OPT_BUDGET_WINDOW, 0, 1000, offsetof(struct numbers, budget_window_pct) },
};

static const char *option_name(int option)
{
	for (size_t i = 0; long_options[i].name != NULL; i++) {
		if (long_options[i].val == option)
			return long_options[i].name;
	}
	return "?";
}

static int set_number(struct numbers *numbers, int option, const char *text, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(number_options); i++) {
		const struct number_option *known = &number_options[i];
		char *end;
		double value;

		if (known->option != option)
			continue;
		value = strtod(text, &end);
		/* Written so that NAN is refused. */
		if (end == text || *end != '\0' || !(value >= known->least && value <= known->most))
			return err_set(err, EINVAL,
				       "--%s: expected a number from %g to %g, found %s",
				       option_name(option), known->least, known->most, text);
		memcpy((char *)numbers + known->off, &value, sizeof(value));
		return 0;
	}
	return err_set(err, EINVAL, "unknown option");
}

static int set_choice(const char *name, const char *text, const char *no, const char *yes,
		      bool *ret, struct err *err)
{
	if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
		return err_set(err, EINVAL, "--%s: expected %s or %s, found %s", name, no, yes,
			       text);
	*ret = strcmp(text, yes) == 0;
	return 0;
}

static int set_source(const char *text, uint32_t *ret, struct err *err)
{
	static const char *const names[] = { [ORDER_SOURCE_AUTO] = "auto",
					     [ORDER_SOURCE_AGENT] = "agent",
					     [ORDER_SOURCE_TORCH] = "torch" };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return err_set(err, EINVAL, "--source: expected auto, agent or torch, found %s", text);
}

static int set_metrics(int option, const char *text, struct run_options *options, struct err *err)
{
	struct err why;

	if (option == OPT_METRICS) {
		if (http_parse_address(text, &options->metrics, &why) < 0)
			return err_set(err, EINVAL, "--metrics: %s", why.text);
		return 0;
	}
	if (strcmp(text, "xpu_timer") != 0)
		return err_set(err, EINVAL, "--metrics-compat: expected xpu_timer, found %s", text);
	options->metrics_xpu = true;
	return 0;
}

static int set_gpu_samples(const char *text, struct run_options *options, struct err *err)
{
	struct stat about;

	options->gpu_samples = text;
	if (strcmp(text, "none") == 0)
		return 0;
	if (!PT_WITH_GPU_COUNTERS)
		return err_set(err, ENOTSUP,
			       "--gpu-samples: not part of this build (-Dgpu_counters=false)");
	if (strcmp(text, "own") == 0)
		return 0;
	if (stat(text, &about) == 0 && !S_ISDIR(about.st_mode))
		return err_set(err, EINVAL,
			       "--gpu-samples: expected own, none or a folder, found %s", text);
	return 0;
}

/* The other container may make it later: that is no error. */
static void look_at_gpu_samples(const char *from)
{
	if (from == NULL || strcmp(from, "own") == 0 || strcmp(from, "none") == 0 ||
	    access(from, R_OK | X_OK) == 0)
		return;
	log_line(LOG_WARNING,
		 "event=no-gpu-samples dir=\"%s\" why=\"%s\" effect=\"no hardware counters of GPUs "
		 "until 'perftracker gpu-sampler' writes there\"",
		 from, strerror(errno));
}

/* Returns 0, 1 when help was printed, -EINVAL. */
static int parse_options(int argc, char **argv, struct run_options *options,
			 struct numbers *numbers, struct err *err)
{
	int option, ret = 0;

	optind = 1;
	opterr = 0;
	while (ret == 0 && (option = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		if (option == 'h') {
			(void)fputs(help, stdout);
			return 1;
		}
		if (option == '?')
			ret = err_set(err, EINVAL, "%s: unknown option or missing value",
				      argv[optind - 1]);
		else if (optarg != NULL && strcmp(optarg, "--") == 0) /* meant to end them */
			ret = err_set(err, EINVAL, "--%s: missing value", option_name(option));
		else if (option == OPT_OUT)
			options->out_dir = optarg;
		else if (option == OPT_GPU_SAMPLES)
			ret = set_gpu_samples(optarg, options, err);
		else if (option == OPT_GPU_CALLS)
			options->gpu_calls = true;
		else if (option == OPT_KEEP)
			options->keep_traces = true;
		else if (option == OPT_QUIET)
			options->quiet = true;
		else if (option == OPT_EXACT)
			options->exact = true;
		else if (option == OPT_NO_AUDIT)
			options->no_audit = true;
		else if (option == OPT_SOURCE)
			ret = set_source(optarg, &options->source, err);
		else if (option == OPT_FORMAT)
			ret = set_choice("format", optarg, "text", "json", &options->json, err);
		else if (option == OPT_REPORT_TO)
			ret = set_choice("report-to", optarg, "stderr", "stdout",
					 &options->report_to_stdout, err);
		else if (option == OPT_METRICS || option == OPT_METRICS_COMPAT)
			ret = set_metrics(option, optarg, options, err);
		else
			ret = set_number(numbers, option, optarg, err);
	}
	if (ret == 0 && options->metrics_xpu && options->metrics.host[0] == '\0')
		ret = err_set(err, EINVAL, "--metrics-compat needs --metrics");
	if (ret == 0 && options->gpu_calls && !PT_WITH_GPU_CALLS)
		ret = err_set(err, ENOTSUP,
			      "--gpu-calls: not part of this build (-Dgpu_calls=false)");
	if (ret == 0 && options->gpu_calls && options->source != ORDER_SOURCE_AGENT)
		ret = err_set(err, EINVAL, "--gpu-calls needs --source agent");
	if (ret == 0 && options->exact && options->source == ORDER_SOURCE_TORCH)
		ret = err_set(err, EINVAL, "--exact is not of --source torch");
	if (ret == 0 && optind >= argc)
		ret = err_set(err, EINVAL, "no command given");
	return ret;
}

static void take_numbers(const struct numbers *numbers, struct run_options *options)
{
	options->slowdown_frac = numbers->slowdown_pct / 100;
	options->recent_cnt = (uint32_t)numbers->recent;
	options->learn_cnt = (uint32_t)numbers->learn;
	options->blocked_factor = numbers->blocked;
	options->min_gap_ns = (int64_t)(numbers->min_gap_s * NSEC_PER_SEC);
	options->window_ns = (int64_t)(numbers->window_s * NSEC_PER_SEC);
	options->steps_max = (uint64_t)numbers->steps;
	options->min_gain_pct = numbers->min_gain_pct;
	options->jobs = (unsigned)numbers->jobs;
	options->budget_always_frac = numbers->budget_always_pct / 100;
	options->budget_window_frac = numbers->budget_window_pct / 100;
}

/* The job may change its directory, the daemon's paths may not follow it. */
static int make_absolute(const char *path, char *ret, size_t size)
{
	char here[PATH_MAX];
	int len;

	if (path[0] == '/')
		len = snprintf(ret, size, "%s", path);
	else if (getcwd(here, sizeof(here)) == NULL)
		return -errno;
	else
		len = snprintf(ret, size, "%s/%s", here, path);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static void look_at_terminal(struct run_options *options)
{
	const char *no_color = getenv("NO_COLOR");

	options->terminal = isatty(STDERR_FILENO) == 1;
	options->color = no_color == NULL || no_color[0] == '\0';
}

int cmd_run(int argc, char **argv)
{
	static const struct numbers defaults = { .slowdown_pct = 5,
						 .recent = 50,
						 .learn = 10,
						 .blocked = 5,
						 .min_gap_s = 60,
						 .window_s = 20,
						 .steps = 16,
						 .min_gain_pct = -1,
						 .budget_always_pct = 0.5,
						 .budget_window_pct = 3 };
	struct run_options options = { .out_dir = "perftracker-out" };
	struct numbers numbers = defaults;
	char out_dir[PATH_MAX], program[PATH_MAX];
	struct err err = { "" };
	ssize_t len;
	int ret;

	numbers.jobs = fmax(1, floor((double)sysconf(_SC_NPROCESSORS_ONLN) / 2));
	ret = parse_options(argc, argv, &options, &numbers, &err);
	if (ret > 0)
		return 0;
	if (ret < 0) {
		(void)fprintf(stderr, "perftracker run: %s; see perftracker run --help\n",
			      err.text);
		return EXIT_USAGE;
	}
	take_numbers(&numbers, &options);
	len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[len > 0 ? len : 0] = '\0';
	ret = make_absolute(options.out_dir, out_dir, sizeof(out_dir));
	if (ret < 0) {
		(void)fprintf(stderr, "perftracker run: --out %s: %s\n", options.out_dir,
			      strerror(-ret));
		return EXIT_USAGE;
	}
	options.program = program;
	options.out_dir = out_dir;
	look_at_terminal(&options);
	look_at_gpu_samples(options.gpu_samples);
	return supervise(&options, argv + optind);
}
