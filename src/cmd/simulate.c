/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker simulate: writes the files of jobs whose faults are known. */
#include "simulate/simulate.h"

#include "base/file.h"
#include "cmd/cmd.h"
#include "format/sidecar/sidecar_file.h"
#include "simulate/hang/hangjob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct simulate_args {
	struct simulate_options simulate;
	const char *output;
	uint32_t dumps; /* enum hangjob_dump */
	bool list;
	enum output_format format; /* of --list: text or JSON */
};

/* Setter of --counters: "sm_active,pcie_tx", "none", "all". */
static int set_counters(void *ret, const char *text, struct err *err)
{
	uint32_t mask = 0;

	(void)err; /* the row says what is expected */
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
	*(uint32_t *)ret = mask;
	return 0;
}

static const struct dump_word {
	const char *word;
	uint32_t dump;
	const char *prefix, *suffix; /* of its files */
	void (*write)(const struct hangjob *job, int rank, struct str *out);
} dump_words[] = {
	{ "recorder", HANGJOB_RECORDER, "nccl_trace_rank_", "", hangjob_recorder },
	{ "stacks", HANGJOB_STACKS, "stacks-rank", ".json", hangjob_stacks },
	{ "py-spy", HANGJOB_PYSPY, "py-spy-rank", ".json", hangjob_pyspy },
};

/* Setter of --dumps: "recorder,stacks". */
static int set_dumps(void *ret, const char *text, struct err *err)
{
	uint32_t mask = 0;

	(void)err; /* the row says what is expected */
	while (*text != '\0') {
		const size_t len = strcspn(text, ",");
		size_t i = 0;

		while (i < ARRAY_SIZE(dump_words) && (strlen(dump_words[i].word) != len ||
						      strncmp(dump_words[i].word, text, len) != 0))
			i++;
		if (i == ARRAY_SIZE(dump_words))
			return -EINVAL;
		mask |= dump_words[i].dump;
		text += len + (text[len] == ',');
	}
	*(uint32_t *)ret = mask;
	return mask != 0 ? 0 : -EINVAL;
}

#define FIELD(field) OPTION_FIELD(struct simulate_args, field)

/* In the order of enum simulate_level. */
#define LEVELS "events|fingerprints"

static const struct option_row rows[] = {
	{ .name = "scenario",
	  .letter = 's',
	  .argument = "NAME",
	  FIELD(simulate.scenario),
	  .help = "scenario to play, or several joined by `+`; --list prints their names",
	  .more = "The first scenario gives the layout of the job, each adds its faults." },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "DIR",
	  FIELD(output),
	  .help = "folder to write to; created if needed" },
	{ .name = "workers",
	  .argument = "N",
	  FIELD(simulate.worker_cnt),
	  .low = 1,
	  .high = 1 << 20,
	  .help = "number of ranks",
	  .preset = "that of the scenario, for traces at most 32" },
	{ .name = "seed",
	  .argument = "N",
	  FIELD(simulate.seed),
	  .help = "seed of all random numbers",
	  .preset = "1" },
	{ .name = "strength",
	  .argument = "X",
	  FIELD(simulate.strength),
	  .high = 100,
	  .help = "factor of the faults: 0 is a healthy job, 1 is as published",
	  .preset = "1" },
	{ .name = "level",
	  .words = LEVELS,
	  FIELD(simulate.level),
	  .help = "what to write: traces (64 ranks at most) or fingerprints",
	  .preset = "events",
	  .more = "`perftracker analyze` reads traces, `perftracker localize` fingerprints." },
	{ .name = "iterations",
	  .argument = "N",
	  FIELD(simulate.iteration_cnt),
	  .low = 1,
	  .high = 1000,
	  .help = "iterations in the window",
	  .preset = "5" },
	{ .name = "onset",
	  .argument = "N",
	  FIELD(simulate.onset),
	  .high = 1000,
	  .help = "first iteration with the faults",
	  .preset = "0" },
	{ .name = "tensor",
	  .argument = "N",
	  FIELD(simulate.tp),
	  .low = 1,
	  .high = 1 << 20,
	  .help = "ranks of a tensor-parallel group",
	  .more = "A width that does not divide the ranks is lowered to the next one that does." },
	{ .name = "pipeline",
	  .argument = "N",
	  FIELD(simulate.pp),
	  .low = 1,
	  .high = 64,
	  .help = "pipeline stages" },
	{ .name = "expert",
	  .argument = "N",
	  FIELD(simulate.ep),
	  .low = 1,
	  .high = 1 << 20,
	  .help = "ranks of an expert-parallel group" },
	{ .name = "host-workers",
	  .argument = "N",
	  FIELD(simulate.host_gpus),
	  .low = 1,
	  .high = 64,
	  .help = "ranks of a host",
	  .preset = "8 from 32 ranks on, else a quarter of the ranks" },
	{ .name = "skew",
	  .argument = "MS",
	  FIELD(simulate.skew_ms),
	  .high = 1e6,
	  .expected = "milliseconds",
	  .help = "standard deviation of the hosts' clocks",
	  .preset = "15" },
	{ .name = "counters",
	  .argument = "LIST",
	  FIELD(simulate.counters),
	  .set = set_counters,
	  .expected = "names such as sm_active,pcie_tx",
	  .help = "counters in the traces, for example sm_active,pcie_tx; none; all",
	  .preset = "all",
	  .more = "The names are sm_active, dram, nvlink_tx, pcie_tx, pcie_rx, cpu_thread and "
		  "run_delay." },
	{ .name = "dumps",
	  .argument = "LIST",
	  FIELD(dumps),
	  .set = set_dumps,
	  .expected = "words of recorder,stacks,py-spy",
	  .help = "what a job that hangs leaves: recorder,stacks,py-spy",
	  .preset = "recorder,stacks",
	  .more = "recorder: the flight recorder of torch; stacks: two samples by `perftracker "
		  "stacks`; py-spy: its JSON. Of these jobs only --workers (2 to 1024), --tensor and "
		  "--seed count, too." },
	{ .name = "list", FIELD(list), .help = "print the scenarios and exit" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "format of --list",
	  .preset = "text" },
};

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

static int write_workers(const struct simulation *sim, const struct simulate_args *o,
			 struct err *err)
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

static int simulate(const struct simulate_args *o)
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

/* --- jobs that hang --- */

static int write_dump(const struct hangjob *job, const struct dump_word *word, int rank,
		      const char *folder, struct err *err)
{
	const int64_t written_ns = hangjob_written_ns(job);
	const struct timespec at = { .tv_sec = written_ns / NSEC_PER_SEC,
				     .tv_nsec = written_ns % NSEC_PER_SEC };
	const struct timespec written[2] = { at, at };
	struct str path = { 0 }, text = { 0 };
	int error;

	word->write(job, rank, &text);
	str_printf(&path, "%s/%s%d%s", folder, word->prefix, rank, word->suffix);
	error = str_error(&text) < 0 || str_error(&path) < 0
			? err_set(err, ENOMEM, "out of memory")
			: output_text(&text, str_borrow(&path), err);
	if (error == 0 && utimensat(AT_FDCWD, str_borrow(&path), written, 0) < 0)
		error = err_set(err, errno, "%s: cannot set its time: %s", str_borrow(&path),
				strerror(errno));
	str_done(&path);
	str_done(&text);
	return error;
}

static int write_dumps(const struct hangjob *job, const struct simulate_args *o, struct err *err)
{
	struct str path = { 0 }, truth = { 0 };
	int error = 0;

	for (int rank = 0; rank < hangjob_worker_cnt(job); rank++)
		for (size_t i = 0; i < ARRAY_SIZE(dump_words) && error == 0; i++)
			if (hangjob_has_worker(job, rank) && (o->dumps & dump_words[i].dump) != 0)
				error = write_dump(job, &dump_words[i], rank, o->output, err);
	hangjob_truth(job, &truth);
	str_printf(&path, "%s/truth.json", o->output);
	if (error == 0)
		error = str_error(&truth) < 0 || str_error(&path) < 0
				? err_set(err, ENOMEM, "out of memory")
				: output_text(&truth, str_borrow(&path), err);
	str_done(&path);
	str_done(&truth);
	return error;
}

static int simulate_hang(const struct simulate_args *o)
{
	const struct hangjob_options options = { .scenario = o->simulate.scenario,
						 .worker_cnt = o->simulate.worker_cnt,
						 .tp = o->simulate.tp,
						 .seed = o->simulate.seed,
						 .dumps = o->dumps };
	struct hangjob *job;
	struct err err = { "out of memory" };
	int error = hangjob_open(&options, &job, &err);

	if (error == -EINVAL)
		return cmd_usage_error("simulate", "%s", err.text);
	if (error < 0)
		return cmd_fail("%s", err.text);
	if (mkdir(o->output, 0755) < 0 && errno != EEXIST)
		error = err_set(&err, errno, "%s: cannot make the folder: %s", o->output,
				strerror(errno));
	if (error == 0)
		error = write_dumps(job, o, &err);
	hangjob_close(job);
	return error < 0 ? cmd_fail("%s", err.text) : EXIT_DONE;
}

static int simulate_main(const struct command *command, int argc, char **argv)
{
	struct simulate_args o = { .simulate = simulate_defaults(NULL),
				   .dumps = HANGJOB_RECORDER | HANGJOB_STACKS };
	int first, status = optiontable_parse(command, argc, argv, &o, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (o.list)
		return print_list(o.format == OUTPUT_JSON);
	if (first < argc)
		return cmd_usage_error(command->name, "expected options only, found '%s'",
				       argv[first]);
	if (o.simulate.scenario == NULL)
		return cmd_usage_error(command->name,
				       "expected --scenario NAME; --list prints names");
	if (o.output == NULL)
		return cmd_usage_error(command->name, "expected -o DIR");
	return hangjob_is(o.simulate.scenario) ? simulate_hang(&o) : simulate(&o);
}

const struct command cmd_simulate = {
	.name = "simulate",
	.summary = "make the files of a job with known faults",
	.usage = "--scenario NAME [OPTION]... -o DIR\n"
		 "--list [--format json]\n",
	.about =
		"Writes the traces or fingerprints of a job that never ran, one file per rank, with "
		"chosen faults, and DIR/truth.json with the findings that a report should have.\n",
	OPTION_ROWS(rows),
	.notes = "The same options give the same bytes.\n",
	.examples =
		"perftracker simulate --scenario nic-bond -o job && perftracker analyze job\n"
		"perftracker simulate -s C1 --level fingerprints -o job && perftracker localize job\n",
	.run = simulate_main,
};
