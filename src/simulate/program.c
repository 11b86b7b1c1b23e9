/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/program.h"

#include <errno.h>
#include <string.h>

#define DEPTH_MAX 16

struct builder {
	struct program *program;
	place_list *places;
	const struct program_options *options;
	int stage;
	uint16_t stack[DEPTH_MAX];
	size_t depth;
	int error; /* the first error sticks; later calls do nothing */
};

void program_done(struct program *program)
{
	vec_done(&program->ops);
}

void places_done(place_list *places)
{
	vec_foreach(p, places)
		free(p->name);
	vec_done(places);
}

uint16_t place_under(place_list *places, uint16_t parent, enum event_kind kind, double cpu_frac,
		     const char *name)
{
	struct place place = { .parent = parent, .kind = (uint8_t)kind, .cpu_frac = cpu_frac };

	for (size_t i = 0; i < places->cnt; i++) {
		const struct place *p = &places->data[i];

		if (p->parent == parent && p->kind == kind && strcmp(p->name, name) == 0)
			return (uint16_t)i;
	}
	/* The autograd engine's callees run on a thread of their own. */
	if (parent != PLACE_NONE)
		place.autograd = places->data[parent].autograd ||
				 strstr(places->data[parent].name, "run_backward of") != NULL;
	place.name = strdup(name);
	if (place.name == NULL || places->cnt >= PLACE_NONE || vec_push(places, place) < 0) {
		free(place.name);
		return PLACE_NONE;
	}
	return (uint16_t)(places->cnt - 1);
}

static uint16_t here(const struct builder *b)
{
	return b->depth > 0 ? b->stack[b->depth - 1] : PLACE_NONE;
}

static void add(struct builder *b, struct op op)
{
	if (b->error == 0)
		b->error = vec_push(&b->program->ops, op);
}

static uint16_t place(struct builder *b, uint16_t parent, enum event_kind kind, double cpu_frac,
		      const char *name)
{
	uint16_t id = PLACE_NONE;

	if (b->error == 0)
		id = place_under(b->places, parent, kind, cpu_frac, name);
	if (id == PLACE_NONE && b->error == 0)
		b->error = -ENOMEM;
	return id;
}

static void enter(struct builder *b, enum event_kind kind, double cpu_frac, const char *name)
{
	uint16_t id = place(b, here(b), kind, cpu_frac, name);

	if (b->error < 0 || b->depth == DEPTH_MAX)
		return;
	b->stack[b->depth++] = id;
	add(b, (struct op){ .kind = OP_ENTER, .place = id });
}

static void leave(struct builder *b)
{
	if (b->error < 0)
		return;
	b->depth--;
	add(b, (struct op){ .kind = OP_LEAVE });
}

static void leave_all(struct builder *b, size_t depth)
{
	while (b->error == 0 && b->depth > depth)
		leave(b);
}

static void work(struct builder *b, enum work_kind what, uint16_t slot, double ms)
{
	add(b, (struct op){ .kind = OP_WORK, .work = (uint8_t)what, .slot = slot, .ms = ms });
}

/* Nested Python frames; the innermost works. */
static void work_in(struct builder *b, enum work_kind what, uint16_t slot, double ms,
		    double cpu_frac, const char *name)
{
	enter(b, KIND_PYTHON, cpu_frac, name);
	work(b, what, slot, ms);
	leave(b);
}

/* The runtime call inside the operator that launches a kernel. */
static uint16_t launch_place(struct builder *b, enum kernel kernel)
{
	const struct kernel_text *text = kernel_text(kernel);
	const char *call = "cudaLaunchKernel";
	uint16_t id = place(b, here(b), KIND_OPERATOR, 1, text->op);

	if (text->class == CLASS_COMM) {
		id = place(b, id, KIND_OPERATOR, 1, "record_param_comms");
		call = "cudaLaunchKernelExC";
	} else if (text->class == CLASS_MEMORY) {
		call = "cudaMemcpyAsync";
	}
	return place(b, id, KIND_RUNTIME, 1, call);
}

static void kernel(struct builder *b, enum kernel what, double ms)
{
	add(b, (struct op){ .kind = OP_KERNEL,
			    .kernel = (uint8_t)what,
			    .place = launch_place(b, what),
			    .ms = ms,
			    .gradient = what != KERNEL_ADAM && what != KERNEL_CHUNK_CAT });
}

/* A collective; nothing if the group has one member. */
static void collective(struct builder *b, enum op_kind kind, enum group_kind group,
		       enum kernel what, double ms)
{
	if (layout_group_size(b->options->layout, group) < 2)
		return;
	add(b, (struct op){ .kind = (uint8_t)kind,
			    .kernel = (uint8_t)what,
			    .group = (uint8_t)group,
			    .place = launch_place(b, what),
			    .slot = b->program->slot_cnt[group]++,
			    .ms = ms });
}

static void join(struct builder *b, enum group_kind group)
{
	if (b->program->slot_cnt[group] > 0)
		add(b, (struct op){ .kind = OP_JOIN,
				    .group = (uint8_t)group,
				    .slot = (uint16_t)(b->program->slot_cnt[group] - 1) });
}

/* Activations go down the pipeline, gradients up. slot: of the receiver. */
static void message(struct builder *b, enum op_kind kind, int direction, int microbatch)
{
	int other = b->stage + (kind == OP_SEND ? direction : -direction);
	int slot = microbatch + (direction < 0 ? b->options->microbatches : 0);

	if (other < 0 || other >= b->options->layout->pp)
		return;
	add(b, (struct op){ .kind = (uint8_t)kind,
			    .kernel = KERNEL_PEER,
			    .place = launch_place(b, KERNEL_PEER),
			    .slot = (uint16_t)slot,
			    .ms = 1.0,
			    .to_stage = (int8_t)(other - b->stage) });
}

/* --- the parts of an iteration --- */

static void load_batch(struct builder *b)
{
	enter(b, KIND_PYTHON, 1, "torch/utils/data/dataloader.py(701): __next__");
	enter(b, KIND_ANNOTATION, 1,
	      "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
	enter(b, KIND_PYTHON, 1, "torch/utils/data/dataloader.py(1448): _next_data");
	work_in(b, WORK_BATCH, 0, 0.3, 0.05, "<method 'recv_into' of '_socket.socket' objects>");
	enter(b, KIND_PYTHON, 1, "torch/utils/data/_utils/pin_memory.py(64): pin_memory");
	enter(b, KIND_PYTHON, 1, "<method 'pin_memory' of 'torch._C.TensorBase' objects>");
	work(b, WORK_PINNED, 0, 0.15);
	leave_all(b, 1);
	kernel(b, KERNEL_COPY_IN, 0.8);
}

static void forward_layer(struct builder *b)
{
	kernel(b, KERNEL_NORM, 0.3);
	kernel(b, KERNEL_GEMM, 3.0);
	kernel(b, KERNEL_ATTENTION, 4.0);
	collective(b, OP_MEET, GROUP_TENSOR, KERNEL_TP_REDUCE, 1.6);
	kernel(b, KERNEL_NORM, 0.3);
	collective(b, OP_MEET, GROUP_EXPERT, KERNEL_EXCHANGE, 2.4);
	kernel(b, KERNEL_GEMM, 6.0);
	kernel(b, KERNEL_GELU, 0.6);
	collective(b, OP_MEET, GROUP_EXPERT, KERNEL_EXCHANGE, 2.4);
	collective(b, OP_MEET, GROUP_TENSOR, KERNEL_TP_REDUCE, 1.6);
}

/*
 * A healthy pipeline is cut evenly: a whole head beside as many layers as elsewhere would cost 7 % of an
 * iteration, and be a fault.
 */
static double head_size(const struct builder *b)
{
	return b->options->layout->pp > 1 ? 0.1 : 1;
}

static void forward(struct builder *b, int microbatch)
{
	bool last = b->stage == b->options->layout->pp - 1;

	message(b, OP_RECV, 1, microbatch);
	enter(b, KIND_PYTHON, 1, "model.py(143): forward");
	work(b, WORK_PYTHON, 0, 0.25);
	work_in(b, WORK_RANDOM, 0, 0.01, 1, "torch/autograd/grad_mode.py(184): __init__");
	if (b->stage == 0)
		kernel(b, KERNEL_EMBED, 0.9);
	for (int i = 0; i < b->options->layers; i++)
		forward_layer(b);
	work_in(b, WORK_RANDOM, 1, 0.01, 1, "torch/nn/modules/module.py(1918): __getattr__");
	if (last) {
		kernel(b, KERNEL_HEAD, 4.0 * head_size(b));
		kernel(b, KERNEL_LOSS, 1.2 * head_size(b));
	}
	leave(b);
	message(b, OP_SEND, 1, microbatch);
}

static void backward_layer(struct builder *b)
{
	collective(b, OP_MEET, GROUP_TENSOR, KERNEL_TP_REDUCE, 1.6);
	collective(b, OP_MEET, GROUP_EXPERT, KERNEL_EXCHANGE, 2.4);
	kernel(b, KERNEL_GELU_BACK, 0.8);
	kernel(b, KERNEL_GEMM_BACK, 12.0);
	collective(b, OP_MEET, GROUP_EXPERT, KERNEL_EXCHANGE, 2.4);
	collective(b, OP_MEET, GROUP_TENSOR, KERNEL_TP_REDUCE, 1.6);
	kernel(b, KERNEL_ATTENTION_BACK, 8.0);
	kernel(b, KERNEL_GEMM_BACK, 6.0);
}

/* Gradients of a layer: reduce-scattered if parameters are sharded, else all-reduced. */
static bool is_sharded(const struct builder *b)
{
	const struct layout *l = b->options->layout;

	return l->tp > 1 || l->shard < l->dp;
}

static void send_gradients(struct builder *b)
{
	if (!is_sharded(b)) {
		collective(b, OP_LAUNCH, GROUP_DATA, KERNEL_DP_REDUCE, 12.0);
		return;
	}
	kernel(b, KERNEL_CHUNK_CAT, 0.6);
	collective(b, OP_LAUNCH, GROUP_DATA, KERNEL_SCATTER, 8.0);
	collective(b, OP_LAUNCH, GROUP_REPLICA, KERNEL_DP_REDUCE, 1.5);
}

static void backward(struct builder *b, int microbatch)
{
	message(b, OP_RECV, -1, microbatch);
	enter(b, KIND_PYTHON, 1, "torch/_tensor.py(570): backward");
	enter(b, KIND_PYTHON, 1, "torch/autograd/graph.py(823): _engine_run_backward");
	/* The training thread waits here while autograd's thread works. */
	enter(b, KIND_PYTHON, 0.02,
	      "<built-in method run_backward of torch._C._EngineBase object at 0x7f3c5a1b2d40>");
	work_in(b, WORK_RANDOM, 2, 0.01, 1,
		"torch/distributed/fsdp/_flat_param.py(1861): _get_unflat_views_unaligned");
	if (b->stage == b->options->layout->pp - 1)
		kernel(b, KERNEL_GEMM_BACK, 8.0 * head_size(b));
	for (int i = 0; i < b->options->layers; i++) {
		backward_layer(b);
		if (microbatch == b->options->microbatches - 1)
			send_gradients(b);
	}
	leave_all(b, 1);
	message(b, OP_SEND, -1, microbatch);
}

static void optimize(struct builder *b)
{
	join(b, GROUP_DATA);
	join(b, GROUP_REPLICA);
	enter(b, KIND_ANNOTATION, 1, "Optimizer.step#AdamW.step");
	enter(b, KIND_PYTHON, 1, "torch/optim/adamw.py(220): step");
	work_in(b, WORK_RANDOM, 3, 0.01, 1, "torch/optim/optimizer.py(131): _use_grad");
	kernel(b, KERNEL_ADAM, 5.0);
	leave_all(b, 1);
	if (is_sharded(b))
		collective(b, OP_MEET, GROUP_DATA, KERNEL_GATHER, 10.0);
}

/* The loss is printed: the thread waits for the device once per iteration. */
static void finish(struct builder *b)
{
	enter(b, KIND_PYTHON, 1, "train.py(188): log_loss");
	enter(b, KIND_OPERATOR, 1, "aten::item");
	enter(b, KIND_RUNTIME, 1, "cudaStreamSynchronize");
	add(b, (struct op){ .kind = OP_WAIT });
	leave_all(b, 1);
	work_in(b, WORK_PAUSE, 0, 0.05, 1, "metrics.py(31): flush");
	enter(b, KIND_PYTHON, 1, "checkpoint.py(57): maybe_save");
	work_in(b, WORK_SAVE, 0, 0.01, 0.2, "<method 'write' of '_io.BufferedWriter' objects>");
	leave(b);
}

/* One forward, one backward (PipeDream-Flush, as in Megatron-LM). */
static void pipeline(struct builder *b)
{
	int cnt = b->options->microbatches;
	int ahead = MIN(b->options->layout->pp - 1 - b->stage, cnt);

	for (int i = 0; i < ahead; i++)
		forward(b, i);
	for (int i = 0; i + ahead < cnt; i++) {
		forward(b, i + ahead);
		backward(b, i);
	}
	for (int i = cnt - ahead; i < cnt; i++)
		backward(b, i);
}

int program_build(struct program *program, place_list *places,
		  const struct program_options *options, int stage)
{
	struct builder b = {
		.program = program, .places = places, .options = options, .stage = stage
	};

	*program = (struct program){ 0 };
	b.stack[b.depth++] = place(&b, PLACE_NONE, KIND_PYTHON, 1, "train.py(171): train");
	load_batch(&b);
	pipeline(&b);
	optimize(&b);
	finish(&b);
	if (options->layout->pp > 1)
		program->message_cnt = (uint16_t)(2 * options->microbatches);
	return b.error;
}
