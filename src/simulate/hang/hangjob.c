/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/hang/hangjob.h"

#include "simulate/hang/hangjob_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* STEPS: two before that of the fault, two behind it. */
enum { LAYERS = 3, MICROBATCHES = 3, STEPS = 5, FAULT_STEP = 2, WIDTH = 512 };

#define NOT_ENTERED "\"collective-not-entered\", \"elsewhere\", \"rank-behind\""

const struct hang_case hang_cases[KIND_CNT] = {
	[KIND_EXITED] = { "hang-exited", "a rank has ended and left no dump", "\"no-dump\"",
			  "\"no-dump\"", "", HANGS | HALTS },
	[KIND_BEHIND] = { "hang-behind", "a rank waits for a service before a collective",
			  NOT_ENTERED, NOT_ENTERED, "fetch_table", HANGS | HALTS },
	[KIND_LOADER] = { "hang-loader", "a rank waits for its loader", "\"loader-blocked\"",
			  NOT_ENTERED, "read_shard", HANGS | HALTS },
	[KIND_LOCK] = { "hang-lock", "a rank waits for a lock of one of its threads",
			"\"waits-for-lock\"", NOT_ENTERED, "look_up", HANGS | HALTS },
	[KIND_LOOP] = { "hang-loop", "a rank does not leave a loop", "\"endless-loop\"",
			NOT_ENTERED, "find_boundary", HANGS | HALTS },
	[KIND_OPERATION] = { "hang-operation", "a rank calls another collective than the others",
			     "\"collective-mismatch\"", "\"collective-mismatch\"", "", HANGS },
	[KIND_SIZE] = { "hang-size", "a rank calls a collective with another size",
			"\"collective-mismatch\"", "\"collective-mismatch\"", "", HANGS },
	[KIND_SKIPPED] = { "hang-skipped", "a rank leaves out a collective",
			   "\"collective-mismatch\", \"collective-not-entered\"",
			   "\"collective-mismatch\", \"collective-not-entered\"", "", HANGS },
	[KIND_KERNEL] = { "hang-gpu-kernel", "a kernel of one GPU does not end",
			  "\"gpu-work-not-ending\"", "\"gpu-work-not-ending\"", "", HANGS },
	[KIND_UNFINISHED] = { "hang-gpu-collective",
			      "one GPU does not end a collective that its peers have ended",
			      "\"gpu-work-not-ending\"", "\"gpu-work-not-ending\"", "", HANGS },
	[KIND_ALIKE] = { "hang-alike", "the members of a group are in one collective, none ends it",
			 "", "", "", HANGS },
	[KIND_CHECKPOINT] = { "pause-checkpoint", "no hang: rank 0 saves, the others wait", "", "",
			      "", HALTS },
	[KIND_COMPILE] = { "pause-compile", "no hang: a rank compiles, the others wait", "", "", "",
			   HALTS },
	[KIND_GOES_ON] = { "pause-none", "no hang: dumps of a job that goes on", "", "", "", 0 },
	[KIND_STOPPED] = { "hang-stopped", "a rank is stopped by a signal", "\"stopped-process\"",
			   NOT_ENTERED, "encode", HANGS | HALTS },
	[KIND_STAGE] = { "hang-pipeline",
			 "a stage of a pipeline waits for a service before it sends or receives",
			 NOT_ENTERED, NOT_ENTERED, "load_expert", HANGS | HALTS | PIPED },
	[KIND_TRANSFER] = { "hang-transfer",
			    "two stages of a pipeline are in one transfer, which does not end", "",
			    "", "", HANGS | PIPED },
	[KIND_FLOWS] = { "pause-pipeline", "no hang: dumps of a pipeline that goes on", "", "", "",
			 PIPED },
	[KIND_BATCH] = { "hang-pipeline-batch", "as hang-pipeline, by batch_isend_irecv",
			 NOT_ENTERED, NOT_ENTERED, "load_expert", HANGS | HALTS | PIPED | BATCHED },
};

bool hangjob_has(const struct hangjob *job, enum hang_trait trait)
{
	return (hang_cases[job->kind].traits & trait) != 0;
}

static int kind_of(const char *name)
{
	for (int i = 0; i < KIND_CNT; i++)
		if (strcmp(hang_cases[i].name, name) == 0)
			return i;
	return -1;
}

bool hangjob_is(const char *scenario)
{
	return kind_of(scenario) >= 0;
}

const char *hangjob_name(size_t index, const char **ret_help)
{
	if (index >= KIND_CNT)
		return NULL;
	*ret_help = hang_cases[index].help;
	return hang_cases[index].name;
}

static int add_op(struct hangjob *job, enum group_kind group, const char *name, uint32_t elements,
		  const char *function, uint32_t line)
{
	if (hangplay_group_size(job, group) < 2)
		return 0;
	return vec_push(&job->ops, (struct hang_op){ .group = group,
						     .name = name,
						     .elements = elements,
						     .function = function,
						     .line = line });
}

static int add_transfer(struct hangjob *job, int from, int to)
{
	return vec_push(&job->ops,
			(struct hang_op){
				.group = GROUP_PP, .elements = 8 * WIDTH, .from = from, .to = to });
}

/* All microbatches forward, then all of them backward. */
static int list_transfers(struct hangjob *job)
{
	int error = 0;

	for (int i = 0; i < MICROBATCHES; i++)
		for (int stage = 0; stage + 1 < job->pp && error == 0; stage++)
			error = add_transfer(job, stage, stage + 1);
	for (int i = 0; i < MICROBATCHES; i++)
		for (int stage = job->pp - 1; stage > 0 && error == 0; stage--)
			error = add_transfer(job, stage, stage - 1);
	return error;
}

/* Forward and backward of each layer, its gradients, the norm of all gradients. */
static int list_ops(struct hangjob *job)
{
	const bool sharded = hangplay_random(job, 1, 2) == 0;
	/* what is scattered divides by the ranks */
	const uint32_t part = WIDTH * WIDTH / 8,
		       ranks = (uint32_t)hangplay_group_size(job, GROUP_DP);
	int error = list_transfers(job);

	for (uint32_t i = 0; i < LAYERS && error == 0; i++) {
		if (sharded)
			error = add_op(job, GROUP_DP, "_all_gather_base", part, "gather_weights",
				       61);
		if (error == 0)
			error = add_op(job, GROUP_TP, "all_reduce", 8 * WIDTH, "forward", 74);
	}
	for (uint32_t i = 0; i < LAYERS && error == 0; i++) {
		error = add_op(job, GROUP_TP, "all_reduce", 8 * WIDTH, "backward", 90);
		if (error == 0)
			error = add_op(job, GROUP_DP,
				       sharded ? "_reduce_scatter_base" : "all_reduce",
				       part * ranks * (1 + i % 2), "reduce_gradients", 97);
	}
	if (error == 0)
		error = add_op(job, GROUP_DEFAULT, "all_reduce", 1, "clip_gradients", 112);
	return error;
}

static int choose_tp(const struct hangjob *job)
{
	int tp = job->options.tp != 0 ? job->options.tp : 1 << hangplay_random(job, 2, 3);

	while (tp > 1 && (job->worker_cnt % tp != 0 || tp == job->worker_cnt))
		tp--;
	return tp;
}

static int choose_pp(const struct hangjob *job)
{
	int pp = job->options.tp != 0 ? job->options.tp : 2 << hangplay_random(job, 2, 3);

	pp = MAX(MIN(pp, job->worker_cnt), 2);
	while (job->worker_cnt % pp != 0)
		pp++;
	return pp;
}

static size_t count_transfers(const struct hangjob *job)
{
	size_t cnt = 0;

	for (size_t i = 0; i < job->ops.cnt; i++)
		cnt += job->ops.data[i].group == GROUP_PP;
	return cnt;
}

static bool hangs_in_pipeline(const struct hangjob *job)
{
	return hangjob_has(job, PIPED) && hangjob_has(job, HANGS);
}

/* The operation at which the fault is, of the step's. */
static size_t choose_op(const struct hangjob *job)
{
	if (job->kind == KIND_LOADER || job->synchronizes)
		return 0;
	if (job->kind == KIND_CHECKPOINT)
		return job->ops.cnt - 1;
	if (hangs_in_pipeline(job))
		return hangplay_random(job, 3, count_transfers(job));
	return hangplay_random(job, 3, job->ops.cnt);
}

/* One of the two that the operation at which the fault is has, in one of the pipelines. */
static int choose_stage(const struct hangjob *job)
{
	const struct hang_op *op = &job->ops.data[job->fault_op % job->ops.cnt];
	const bool receives = hangplay_random(job, 11, 2) == 0;

	return hangplay_member(job, GROUP_PP, job->at, receives ? op->to : op->from);
}

static void choose(struct hangjob *job)
{
	static const char *const versions[] = { "2.4", "2.9", "2.10" };

	job->steps = 20 + (int64_t)hangplay_random(job, 4, 400);
	job->synchronizes = job->kind == KIND_STOPPED && hangplay_random(job, 12, 2) == 0;
	job->fault_op = FAULT_STEP * job->ops.cnt + choose_op(job);
	job->end = STEPS * job->ops.cnt;
	job->at = job->kind == KIND_CHECKPOINT
			  ? 0
			  : (int)hangplay_random(job, 5, (uint64_t)job->worker_cnt);
	if (hangs_in_pipeline(job))
		job->at = choose_stage(job);
	job->eager = hangplay_random(job, 13, 2) == 0;
	job->blocking = hangplay_random(job, 6, 3) == 0;
	job->timed = hangplay_random(job, 7, 2) == 0;
	job->only_active = hangplay_random(job, 8, 3) == 0;
	job->framed = hangplay_random(job, 9, 3) != 0;
	job->version = versions[hangplay_random(job, 10, ARRAY_SIZE(versions))];
}

static int fill(struct hangjob *job)
{
	int error;

	job->tp = hangjob_has(job, PIPED) ? 1 : choose_tp(job);
	job->pp = hangjob_has(job, PIPED) ? choose_pp(job) : 1;
	error = list_ops(job);
	if (error < 0)
		return error;
	choose(job);
	job->workers = calloc((size_t)job->worker_cnt, sizeof(*job->workers));
	if (job->workers == NULL)
		return -ENOMEM;
	for (int rank = 0; rank < job->worker_cnt; rank++)
		for (size_t i = 0; i < job->ops.cnt; i++)
			if (hangplay_takes_part(job, rank, &job->ops.data[i]))
				job->workers[rank].seq[job->ops.data[i].group] += job->steps;
	return hangplay_run(job);
}

int hangjob_open(const struct hangjob_options *options, struct hangjob **ret, struct err *err)
{
	struct hangjob *job;
	int error;

	if (!hangjob_is(options->scenario))
		return err_set(err, ENOENT, "expected a job that hangs, found '%s'",
			       options->scenario);
	if (options->worker_cnt == 1 || options->worker_cnt > HANGJOB_WORKERS_MAX)
		return err_set(err, EINVAL,
			       "expected 2 to %d workers of a job that hangs, found %d",
			       HANGJOB_WORKERS_MAX, options->worker_cnt);
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return err_set(err, ENOMEM, "out of memory");
	job->options = *options;
	job->kind = (enum hang_kind)kind_of(options->scenario);
	job->worker_cnt = options->worker_cnt > 0 ? options->worker_cnt : HANGJOB_WORKERS;
	error = fill(job);
	if (error < 0) {
		hangjob_close(job);
		return err_set(err, ENOMEM, "out of memory");
	}
	*ret = job;
	return 0;
}

void hangjob_close(struct hangjob *job)
{
	if (job == NULL)
		return;
	for (int rank = 0; job->workers != NULL && rank < job->worker_cnt; rank++)
		vec_done(&job->workers[rank].launches);
	free(job->workers);
	vec_done(&job->ops);
	free(job);
}

int hangjob_worker_cnt(const struct hangjob *job)
{
	return job->worker_cnt;
}

bool hangjob_has_worker(const struct hangjob *job, int rank)
{
	return job->kind != KIND_EXITED || rank != job->at;
}

/* --- the truth --- */

/* Whether two ranks alone differ in what they call: nothing tells which of them is wrong. */
static bool is_pair(const struct hangjob *job)
{
	const struct hang_op *op = &job->ops.data[job->fault_op % job->ops.cnt];
	const bool calls =
		job->kind == KIND_OPERATION || job->kind == KIND_SIZE || job->kind == KIND_SKIPPED;

	return calls && hangplay_group_size(job, op->group) == 2;
}

/* Whether the dumps have what tells the rank from the others. */
static bool is_knowable(const struct hangjob *job)
{
	const uint32_t dumps = job->options.dumps;

	switch (job->kind) {
	case KIND_EXITED:
		return (dumps & HANGJOB_RECORDER) != 0; /* the others say how many there are */
	case KIND_BEHIND:
	case KIND_LOADER:
	case KIND_LOCK:
	case KIND_LOOP:
	case KIND_STAGE:
		return true;
	case KIND_BATCH: /* its recorder does not say which transfers are over */
		return (dumps & (HANGJOB_STACKS | HANGJOB_PYSPY)) != 0;
	case KIND_STOPPED: /* py-spy shows no such state */
		return (dumps & (HANGJOB_RECORDER | HANGJOB_STACKS)) != 0 || !job->synchronizes;
	case KIND_OPERATION:
	case KIND_SIZE:
	case KIND_SKIPPED:
		return (dumps & HANGJOB_RECORDER) != 0 && !is_pair(job);
	case KIND_UNFINISHED:
		return (dumps & HANGJOB_RECORDER) != 0;
	case KIND_KERNEL:
		return (dumps & HANGJOB_RECORDER) != 0 && job->timed;
	case KIND_ALIKE:
	case KIND_CHECKPOINT:
	case KIND_COMPILE:
	case KIND_GOES_ON:
	case KIND_TRANSFER:
	case KIND_FLOWS:
	case KIND_CNT:
	default:
		return false;
	}
}

void hangjob_truth(const struct hangjob *job, struct str *out)
{
	const struct hang_case *of = &hang_cases[job->kind];
	const uint32_t dumps = job->options.dumps;
	/* py-spy does not show the processes of a loader */
	const bool seen = (dumps & HANGJOB_STACKS) != 0 ||
			  ((dumps & HANGJOB_PYSPY) != 0 && job->kind != KIND_LOADER);
	const bool named = of->causes[0] != '\0';
	const bool stacks = (dumps & HANGJOB_STACKS) != 0 ||
			    (job->kind == KIND_LOADER && (dumps & HANGJOB_PYSPY) != 0);

	str_printf(out,
		   "{\n \"scenario\": \"%s\",\n \"seed\": %llu,\n \"workers\": %d,\n"
		   " \"tensor\": %d,\n \"stages\": %d,\n \"hangs\": %s,\n",
		   of->name, (unsigned long long)job->options.seed, job->worker_cnt, job->tp,
		   job->pp, hangjob_has(job, HANGS) ? "true" : "false");
	if (named)
		str_printf(out, " \"rank\": %d,\n", job->at);
	else
		str_append(out, " \"rank\": null,\n");
	str_printf(out,
		   " \"knowable\": %s,\n \"pair\": %s,\n \"causes_accepted\": [%s],\n"
		   " \"function\": \"%s\"\n}\n",
		   is_knowable(job) ? "true" : "false", named && is_pair(job) ? "true" : "false",
		   stacks ? of->causes : of->bare_causes,
		   !seen	       ? ""
		   : job->synchronizes ? "log_loss"
				       : of->function);
}
