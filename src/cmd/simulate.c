/* SPDX-License-Identifier: Apache-2.0 */
/* `perftracker simulate`: jobs whose truth is known. */
#include "simulate/simulate.h"

#include "base/file.h"
#include "cmd/cmd.h"
#include "format/sidecar/sidecar_file.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
	"Usage: perftracker simulate --scenario NAME [OPTION]... -o DIR\n"
	"       perftracker simulate --list [--format json]\n"
	"\n"
	"Makes the traces or fingerprints of a job that never ran, one file a rank, with\n"
	"faults of your choice, and DIR/truth.json, which says what a report should find.\n"
	"\n"
	"  -s, --scenario NAME   what happens, or several joined by '+'; --list shows the names\n"
	"  -o, --output DIR      folder to write to, made when it is not there\n"
	"      --workers N       ranks (default: as the scenario has)\n"
	"      --seed N          of everything random (default 1)\n"
	"      --strength X      scales the faults (default 1: as the source reports)\n"
	"      --level LEVEL     events (default; traces, at most 64 ranks) or fingerprints\n"
	"      --iterations N    in the window (default 5)\n"
	"      --onset N         first iteration with the faults (default 0)\n"
	"      --tensor N        ranks of a tensor-parallel group\n"
	"      --pipeline N      pipeline stages\n"
	"      --expert N        ranks of an expert-parallel group\n"
	"      --host-workers N  ranks of a host\n"
	"      --skew MS         deviation of the hosts' clocks (default 15)\n"
	"      --counters LIST   of the traces, for example sm_active,pcie_tx; none; all\n"
	"                        (default)\n"
	"      --list            print the scenarios\n"
	"  -f, --format FORMAT   of --list: text (default) or json\n"
	"  -h, --help            show this help\n"
	"\n"
	"The same options give the same bytes.\n"
	"\n"
	"Examples:\n"
	"  perftracker simulate --scenario nic-bond -o job && perftracker analyze job\n"
	"  perftracker simulate -s C1 --level fingerprints -o job && perftracker localize job\n";

struct command {
	struct simulate_options simulate;
	const char *output;
	bool list, json;
};

enum {
	OPT_WORKERS = 256,
	OPT_SEED,
	OPT_STRENGTH,
	OPT_LEVEL,
	OPT_ITERATIONS,
	OPT_ONSET,
	OPT_TENSOR,
	OPT_PIPELINE,
	OPT_EXPERT,
	OPT_HOST_WORKERS,
	OPT_SKEW,
	OPT_COUNTERS,
	OPT_LIST,
};

static const struct option long_options[] = {
	{ "scenario", required_argument, NULL, 's' },
	{ "output", required_argument, NULL, 'o' },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "strength", required_argument, NULL, OPT_STRENGTH },
	{ "level", required_argument, NULL, OPT_LEVEL },
	{ "iterations", required_argument, NULL, OPT_ITERATIONS },
	{ "onset", required_argument, NULL, OPT_ONSET },
	{ "tensor", required_argument, NULL, OPT_TENSOR },
	{ "pipeline", required_argument, NULL, OPT_PIPELINE },
	{ "expert", required_argument, NULL, OPT_EXPERT },
	{ "host-workers", required_argument, NULL, OPT_HOST_WORKERS },
	{ "skew", required_argument, NULL, OPT_SKEW },
	{ "counters", required_argument, NULL, OPT_COUNTERS },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "format", required_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* "sm_active,pcie_tx", "none", "all". */
static int parse_counters(const char *text, uint32_t *ret)
{
	uint32_t mask = 0;

	if (strcmp(text, "all") == 0)
		mask = UINT32_MAX;
	while (mask != UINT32_MAX && strcmp(text, "none") != 0 && *text != '\0') {
		size_t len = strcspn(text, ",");
		unsigned int r = 0;

		while (r < RESOURCE_CNT &&
		       (strlen(resource_name((enum resource)r)) != len ||
			strncmp(resource_name((enum resource)r), text, len) != 0))
			r++;
		if (r == RESOURCE_CNT)
			return -EINVAL;
		mask |= 1u << r;
		text += text[len] == ',' ? len + 1 : len;
	}
	*ret = mask;
	return 0;
}

/* Options that are whole numbers. Returns -1 when handled, else an exit status. */
static int parse_number(struct command *o, int c)
{
	static const struct {
		int option;
		const char *name;
		int64_t low, high;
		size_t off;
	} numbers[] = {
#define NUMBER(option, name, low, high, field) \
	{ option, name, low, high, offsetof(struct simulate_options, field) }
		NUMBER(OPT_WORKERS, "workers", 1, 1 << 20, worker_cnt),
		NUMBER(OPT_ITERATIONS, "iterations", 1, 1000, iteration_cnt),
		NUMBER(OPT_ONSET, "onset", 0, 1000, onset),
		NUMBER(OPT_TENSOR, "tensor", 1, 1 << 20, tp),
		NUMBER(OPT_PIPELINE, "pipeline", 1, 64, pp),
		NUMBER(OPT_EXPERT, "expert", 1, 1 << 20, ep),
		NUMBER(OPT_HOST_WORKERS, "host-workers", 1, 64, host_gpus),
#undef NUMBER
	};
	int64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i].option != c)
			continue;
		if (cmd_parse_int(optarg, numbers[i].low, numbers[i].high, &number) < 0)
			return cmd_bad_value("simulate", numbers[i].name, "a number of them");
		*(int *)(void *)((char *)&o->simulate + numbers[i].off) = (int)number;
		return -1;
	}
	return cmd_usage_error("simulate", "unknown option");
}

static int parse_level(struct command *o)
{
	if (strcmp(optarg, "events") == 0)
		o->simulate.level = SIMULATE_EVENTS;
	else if (strcmp(optarg, "fingerprints") == 0)
		o->simulate.level = SIMULATE_FINGERPRINTS;
	else
		return cmd_bad_value("simulate", "level", "events or fingerprints");
	return -1;
}

/* Returns -1 to go on, else an exit status. */
static int parse_option(struct command *o, int c)
{
	int64_t number;

	switch (c) {
	case 's':
		o->simulate.scenario = optarg;
		return -1;
	case 'o':
		o->output = optarg;
		return -1;
	case 'f':
		o->json = strcmp(optarg, "json") == 0;
		return o->json || strcmp(optarg, "text") == 0
			       ? -1
			       : cmd_bad_value("simulate", "format", "text or json");
	case OPT_SEED:
		if (cmd_parse_int(optarg, 0, INT64_MAX, &number) < 0)
			return cmd_bad_value("simulate", "seed", "a number");
		o->simulate.seed = (uint64_t)number;
		return -1;
	case OPT_STRENGTH:
		if (cmd_parse_double(optarg, 0, 100, &o->simulate.strength) < 0)
			return cmd_bad_value("simulate", "strength", "a number in 0..100");
		return -1;
	case OPT_SKEW:
		if (cmd_parse_double(optarg, 0, 1e6, &o->simulate.skew_ms) < 0)
			return cmd_bad_value("simulate", "skew", "milliseconds");
		return -1;
	case OPT_LEVEL:
		return parse_level(o);
	case OPT_COUNTERS:
		if (parse_counters(optarg, &o->simulate.counters) < 0)
			return cmd_bad_value("simulate", "counters",
					     "names such as sm_active,pcie_tx");
		return -1;
	case OPT_LIST:
		o->list = true;
		return -1;
	case 'h':
		fputs(help, stdout);
		return EXIT_DONE;
	case '?':
		/* getopt has said what is wrong. */
		return cmd_try_help("simulate");
	default:
		return parse_number(o, c);
	}
}

static int print_list(bool json)
{
	struct str text = { 0 };
	struct err err = { "out of memory" };
	int status = EXIT_DONE;

	simulate_list(&text, json);
	if (str_error(&text) < 0 || output_text(&text, NULL, &err) < 0)
		status = cmd_fail("%s", err.text);
	str_done(&text);
	return status;
}

static int write_events(const struct simulation *sim, int rank, const char *path, struct err *err)
{
	struct str sidecar = { 0 };
	int error = simulate_trace(sim, rank, path, err);

	str_printf(&sidecar, "%s" SIDECAR_SUFFIX, path);
	if (error == 0 && str_error(&sidecar) < 0)
		error = err_set(err, ENOMEM, "out of memory");
	if (error == 0)
		error = simulate_sidecar(sim, rank, str_borrow(&sidecar), err);
	str_done(&sidecar);
	return error;
}

static int write_worker(const struct simulation *sim, enum simulate_level level, int rank,
			const char *path, struct err *err)
{
	struct fingerprint fp;
	int error;

	if (level == SIMULATE_EVENTS)
		return write_events(sim, rank, path, err);
	error = simulate_fingerprint(sim, rank, &fp);
	if (error < 0)
		return err_set(err, -error, "%s: out of memory", path);
	error = fingerprint_write(&fp, path, err);
	fingerprint_done(&fp);
	return error;
}

static int write_workers(const struct simulation *sim, const struct command *o, struct err *err)
{
	const char *suffix = o->simulate.level == SIMULATE_EVENTS ? "json.gz" : "ptfp";
	int error = 0;

	for (int rank = 0; rank < simulate_worker_cnt(sim) && error == 0; rank++) {
		struct str path = { 0 };

		if (!simulate_has_worker(sim, rank))
			continue;
		str_printf(&path, "%s/rank%d.%s", o->output, rank, suffix);
		error = str_error(&path);
		if (error == 0)
			error = write_worker(sim, o->simulate.level, rank, str_borrow(&path), err);
		str_done(&path);
	}
	return error;
}

static int write_truth(struct simulation *sim, const char *folder, struct err *err)
{
	struct str path = { 0 }, text = { 0 };
	int error = simulate_truth(sim, &text);

	str_printf(&path, "%s/truth.json", folder);
	if (error == 0)
		error = str_error(&path);
	if (error == 0)
		error = output_text(&text, str_borrow(&path), err);
	str_done(&path);
	str_done(&text);
	return error;
}

static int simulate(const struct command *o)
{
	struct simulation *sim;
	struct err err = { "out of memory" };
	int error;

	error = simulate_open(&o->simulate, &sim, &err);
	if (error == -ENOENT || error == -E2BIG || error == -EINVAL)
		return cmd_usage_error("simulate", "%s", err.text);
	if (error < 0)
		return cmd_fail("%s", err.text);
	if (mkdir(o->output, 0755) < 0 && errno != EEXIST)
		error = err_set(&err, errno, "%s: cannot make the folder: %s", o->output,
				strerror(errno));
	if (error == 0)
		error = write_workers(sim, o, &err);
	if (error == 0)
		error = write_truth(sim, o->output, &err);
	simulate_close(sim);
	return error < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

int cmd_simulate(int argc, char **argv)
{
	struct command o = { .simulate = simulate_defaults(NULL) };
	int c, status = -1;

	while (status < 0 && (c = getopt_long(argc, argv, "s:o:f:h", long_options, NULL)) != -1)
		status = parse_option(&o, c);
	if (status >= 0)
		return status;
	if (o.list)
		return print_list(o.json);
	if (optind < argc)
		return cmd_usage_error("simulate", "expected options only, found '%s'",
				       argv[optind]);
	if (o.simulate.scenario == NULL)
		return cmd_usage_error("simulate", "expected --scenario NAME; --list shows them");
	if (o.output == NULL)
		return cmd_usage_error("simulate", "expected -o DIR");
	return simulate(&o);
}
