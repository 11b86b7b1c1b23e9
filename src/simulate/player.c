/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/player.h"

#include "simulate/network.h"
#include "simulate/random.h"

#include <errno.h>

#define ENTER_NS 500	 /* a call, or a return, in Python */
#define OPERATOR_NS 1500 /* of an operator itself */
#define CALL_NS 6000	 /* cudaLaunchKernel */
#define GAP_NS 4000	 /* from launch to begin on an idle device */
#define WAIT_NS 8000	 /* from the device's end to the waiting thread's return */
#define PATH_MAX_DEPTH 8

#define KERNEL_JITTER 0.008
#define CHIP_JITTER 0.003 /* variation between chips */
#define HOST_JITTER 0.05
#define HICCUP_CHANCE 0.05 /* per iteration: another process ran on the host */
#define HICCUP_MS 1.5
#define SAVE_MS 120

/* One worker being simulated. With a record, wake is NULL. */
struct play {
	const struct simulation *sim;
	struct simulation *meets; /* the same, while ends are still unknown; else NULL */
	struct wake_list *wake;
	struct record *record;
	struct player *p;
	int rank;
	uint32_t open; /* innermost open frame */
	bool recording;
	uint32_t faults; /* bit per fault kind that ever affects this worker */
	int error;
};

void record_done(struct record *record)
{
	vec_done(&record->frames);
	vec_done(&record->leaves);
	vec_done(&record->spans);
	vec_done(&record->starts);
}

void record_clear(struct record *record)
{
	record->frames.cnt = record->leaves.cnt = record->spans.cnt = record->starts.cnt = 0;
}

static uint64_t bits_at(const struct play *y, enum random_use use, uint64_t salt)
{
	return random_at(y->sim->options.seed, use, (uint64_t)y->rank, y->p->iteration,
			 (uint64_t)y->p->pc << 8 | salt);
}

static double fault_here(const struct play *y, enum fault_kind kind)
{
	struct fault_place place = { .layout = &y->sim->layout,
				     .seed = y->sim->options.seed,
				     .rank = y->rank,
				     .iteration = y->p->iteration,
				     .time_ns = y->p->host_ns };

	if (!(y->faults & 1u << kind))
		return 0;
	return fault_size(y->sim->faults, y->sim->fault_cnt, kind, &place);
}

/* --- the thread --- */

static void keep(struct play *y, int error)
{
	if (y->error == 0)
		y->error = error;
}

static void pass(struct play *y, double ns, double cpu_frac, double delay_frac)
{
	int64_t start_ns = y->p->host_ns;

	y->p->host_ns += (int64_t)ns;
	if (!y->recording || y->p->host_ns == start_ns)
		return;
	keep(y, vec_push(&y->record->leaves, (struct leaf){ start_ns, y->p->host_ns, y->open,
							    (float)cpu_frac, (float)delay_frac }));
}

/* Work of the thread itself: a busy host prolongs the part that needs a CPU. */
static void compute(struct play *y, double ns, double cpu_frac)
{
	double delay = cpu_frac * fault_here(y, FAULT_STARVED), longer = 1 + delay;

	pass(y, ns * longer, cpu_frac / longer, delay / longer);
}

static void enter(struct play *y, uint16_t place)
{
	compute(y, ENTER_NS, 1);
	y->p->place = place;
	if (!y->recording)
		return;
	keep(y, vec_push(&y->record->frames,
			 (struct frame){ y->p->host_ns, y->p->host_ns, y->open, place }));
	y->open = (uint32_t)y->record->frames.cnt - 1;
}

static void leave(struct play *y)
{
	compute(y, ENTER_NS, 1);
	y->p->place = y->sim->places.data[y->p->place].parent;
	if (!y->recording || y->error < 0)
		return;
	y->record->frames.data[y->open].end_ns = y->p->host_ns;
	y->open = y->record->frames.data[y->open].parent;
}

static double hiccup_ns(const struct play *y)
{
	uint64_t bits = bits_at(y, RANDOM_HICCUP, 0);

	return random_uniform(bits) < HICCUP_CHANCE ? HICCUP_MS * 1e6 * (double)(bits & 255) / 255
						    : 0;
}

/* Time that faults add to a piece of work, in healthy iterations. */
static double added_by_faults(const struct play *y, const struct op *op)
{
	static const enum fault_kind kinds[] = { [WORK_BATCH] = FAULT_STORAGE,
						 [WORK_PINNED] = FAULT_PINNED,
						 [WORK_PYTHON] = FAULT_PYTHON,
						 [WORK_RANDOM] = FAULT_GC,
						 [WORK_PAUSE] = FAULT_PAUSE };
	double size;

	if (op->work == WORK_PLAIN || op->work == WORK_SAVE)
		return 0;
	size = fault_here(y, kinds[op->work]);
	if (op->work == WORK_RANDOM && size > 0) {
		/* A collection happens once an iteration, in a random function that allocates. */
		uint64_t where = random_at(y->sim->options.seed, RANDOM_WHEN, (uint64_t)y->rank,
					   y->p->iteration, 77);

		if (where % RANDOM_PLACES != op->slot)
			return 0;
	}
	return size;
}

static bool is_first_of_kind(const struct play *y, const struct op *op)
{
	const struct program *program = &y->sim->programs[layout_stage(&y->sim->layout, y->rank)];

	for (uint32_t i = 0; i < y->p->pc; i++) {
		const struct op *other = &program->ops.data[i];

		if (other->kind == OP_WORK && other->work == op->work && other->slot == op->slot)
			return false;
	}
	return true;
}

static void play_work(struct play *y, const struct op *op)
{
	double jitter = 1 + HOST_JITTER * random_gauss(bits_at(y, RANDOM_HOST, 0));
	double cpu_frac = y->sim->places.data[y->p->place].cpu_frac, added = added_by_faults(y, op);

	compute(y, op->ms * 1e6 * jitter, cpu_frac);
	if (op->work == WORK_BATCH)
		pass(y, hiccup_ns(y), 0.2, 0);
	if (op->work == WORK_SAVE && y->sim->scenario.saves &&
	    y->p->iteration == y->sim->iteration_cnt / 2)
		pass(y, SAVE_MS * 1e6 * jitter, cpu_frac, 0);
	/* A collection is once per iteration; a slow function is slow at each call, in parts. */
	if (added > 0 && (op->work != WORK_RANDOM || is_first_of_kind(y, op)))
		pass(y, added * y->sim->healthy_ns * jitter, cpu_frac, 0);
}

/* Enters the frames from the current one to the runtime call of a launch; returns their number. */
static size_t enter_path(struct play *y, uint16_t place)
{
	uint16_t path[PATH_MAX_DEPTH];
	size_t depth = 0;

	for (; place != y->p->place && place != PLACE_NONE && depth < PATH_MAX_DEPTH;
	     place = y->sim->places.data[place].parent)
		path[depth++] = place;
	for (size_t i = depth; i > 0; i--) {
		enter(y, path[i - 1]);
		if (i > 1)
			compute(y, OPERATOR_NS, 1);
	}
	return depth;
}

/* The thread's part of a launch. Returns the earliest start on the device. */
static int64_t launch(struct play *y, const struct op *op, struct span *span)
{
	size_t depth = enter_path(y, op->place);
	int64_t ready_ns;

	*span = (struct span){
		.launch_ns = y->p->host_ns,
		.frame = y->open,
		.iteration = y->p->iteration,
		.slot = op->slot,
		.kernel = op->kernel,
		.group = GROUP_KIND_CNT,
		.stream = STREAM_COMPUTE,
		.size_frac = 1,
		.ms = op->ms,
	};
	ready_ns = MAX(y->p->device_ns, y->p->host_ns + GAP_NS);
	compute(y, CALL_NS, 1);
	for (; depth > 0; depth--)
		leave(y);
	return ready_ns;
}

static void push_span(struct play *y, struct span span, int64_t start_ns, int64_t end_ns)
{
	if (!y->recording)
		return;
	span.start_ns = start_ns;
	span.end_ns = end_ns;
	keep(y, vec_push(&y->record->spans, span));
}

/* --- the device --- */

static void play_kernel(struct play *y, const struct op *op)
{
	struct span span;
	int64_t ready_ns = launch(y, op, &span);
	double chip =
		random_gauss(random_at(y->sim->options.seed, RANDOM_CHIP, (uint64_t)y->rank, 0, 0));
	double jitter = random_gauss(bits_at(y, RANDOM_KERNEL, 0));
	double ns = op->ms * 1e6 * (1 + CHIP_JITTER * chip) * (1 + KERNEL_JITTER * jitter);

	if (op->gradient)
		span.size_frac += fault_here(y, FAULT_IMBALANCE);
	ns *= span.size_frac;
	if (kernel_text((enum kernel)op->kernel)->class == CLASS_COMPUTE)
		ns *= 1 + fault_here(y, FAULT_GPU);
	y->p->device_ns = ready_ns + (int64_t)ns;
	push_span(y, span, ready_ns, y->p->device_ns);
}

struct meeting_id player_meeting(const struct simulation *sim, int rank, const struct span *span)
{
	enum group_kind kind = (enum group_kind)span->group;

	return (struct meeting_id){ kind, layout_group(&sim->layout, kind, rank), span->iteration,
				    span->slot };
}

static struct meeting_id meeting_of(const struct play *y, const struct op *op)
{
	enum group_kind kind = (enum group_kind)op->group;

	return (struct meeting_id){ kind, layout_group(&y->sim->layout, kind, y->rank),
				    y->p->iteration, op->slot };
}

static bool is_over(const struct play *y, const struct meeting_id *id)
{
	const struct meetings *all = &y->sim->meetings[id->kind];

	return all->of[meeting_index(y->sim, id)].arrived == (uint32_t)all->size;
}

static int64_t end_of(const struct play *y, const struct meeting_id *id)
{
	return y->sim->meetings[id->kind].of[meeting_index(y->sim, id)].time_ns;
}

/*
 * The end of the previous collective on the same stream in the iteration; without one the
 * iteration's start.
 */
static int64_t before_ns(const struct play *y, const struct meeting_id *id)
{
	struct meeting_id before = *id;

	if (id->slot == 0)
		return INT64_MIN;
	before.slot--;
	return end_of(y, &before);
}

static void wake_group(struct play *y, const struct group *group)
{
	for (int i = 0; i < group->size; i++)
		keep(y, vec_push(&y->wake->ranks, group->first + i * group->stride));
}

/* Registers this worker's arrival; the last member to arrive computes the end. */
static void arrive(struct play *y, const struct op *op, const struct meeting_id *id,
		   int64_t ready_ns)
{
	struct meetings *all;
	struct meeting *m;
	size_t at = meeting_index(y->sim, id);
	int64_t *ready;

	if (y->meets == NULL)
		return;
	all = &y->meets->meetings[id->kind];
	m = &all->of[at];
	ready = all->ready_ns != NULL ? &all->ready_ns[at * (size_t)all->size] : NULL;
	m->time_ns = m->arrived == 0 ? ready_ns : MAX(m->time_ns, ready_ns);
	m->arrived++;
	if (ready != NULL)
		ready[(y->rank - id->group.first) / id->group.stride] = ready_ns;
	if (m->arrived < (uint32_t)all->size)
		return;
	/* One stream: a collective begins after the previous one. */
	m->time_ns = MAX(m->time_ns, before_ns(y, id));
	for (int i = 0; ready != NULL && i < all->size; i++)
		ready[i] = MAX(ready[i], before_ns(y, id));
	m->time_ns = network_end_ns(y->sim, id, op->ms, m->time_ns, ready,
				    &all->slow[at * (size_t)all->ring_cnt]);
	wake_group(y, &id->group);
}

/* Launch and arrival, done once even if the worker resumes several times. */
static void post_collective(struct play *y, const struct op *op, const struct meeting_id *id,
			    struct span *span)
{
	if (y->p->posted)
		return;
	y->p->ready_ns = launch(y, op, span);
	y->p->posted = true;
	span->group = op->group;
	span->stream = STREAM_GROUP(op->group);
	arrive(y, op, id, y->p->ready_ns);
}

static bool play_meet(struct play *y, const struct op *op)
{
	struct meeting_id id = meeting_of(y, op);
	struct span span = { 0 };

	post_collective(y, op, &id, &span);
	if (!is_over(y, &id))
		return false;
	push_span(y, span, MAX(y->p->ready_ns, before_ns(y, &id)), end_of(y, &id));
	y->p->device_ns = end_of(y, &id);
	return true;
}

static void play_launch(struct play *y, const struct op *op)
{
	struct meeting_id id = meeting_of(y, op);
	struct span span = { 0 };

	post_collective(y, op, &id, &span);
	if (y->recording)
		push_span(y, span, MAX(y->p->ready_ns, before_ns(y, &id)), end_of(y, &id));
}

static bool play_join(struct play *y, const struct op *op)
{
	struct meeting_id id = meeting_of(y, op);

	if (!is_over(y, &id))
		return false;
	y->p->device_ns = MAX(y->p->device_ns, end_of(y, &id));
	return true;
}

/* --- between stages --- */

static struct message *message_at(const struct play *y, int receiver, uint16_t slot)
{
	return &y->sim->messages[message_index(y->sim, receiver, y->p->iteration, slot)];
}

static int64_t message_end_ns(const struct message *m, const struct op *op)
{
	return MAX(m->sent_ns, m->posted_ns) + (int64_t)(op->ms * 1e6);
}

static struct span peer_span(struct span span, const struct op *op)
{
	span.stream = STREAM_PEER + 4 * (op->kind == OP_RECV) + 8 * (op->to_stage > 0);
	span.to_stage = op->to_stage;
	span.receives = op->kind == OP_RECV;
	return span;
}

static void play_send(struct play *y, const struct op *op)
{
	int stage = layout_stage(&y->sim->layout, y->rank);
	int receiver = layout_at_stage(&y->sim->layout, y->rank, stage + op->to_stage);
	struct message *m = message_at(y, receiver, op->slot);
	struct span span;
	int64_t ready_ns = launch(y, op, &span);

	if (y->meets != NULL) {
		m->sent_ns = ready_ns;
		keep(y, vec_push(&y->wake->ranks, receiver));
	}
	push_span(y, peer_span(span, op), ready_ns, message_end_ns(m, op));
}

static bool play_recv(struct play *y, const struct op *op)
{
	struct message *m = message_at(y, y->rank, op->slot);
	struct span span = { 0 };

	if (!y->p->posted) {
		y->p->ready_ns = launch(y, op, &span);
		y->p->posted = true;
		if (y->meets != NULL)
			m->posted_ns = y->p->ready_ns;
	}
	if (m->sent_ns == TIME_UNKNOWN)
		return false;
	y->p->device_ns = message_end_ns(m, op);
	push_span(y, peer_span(span, op), y->p->ready_ns, y->p->device_ns);
	return true;
}

/* --- the program --- */

static void play_wait(struct play *y)
{
	int64_t left_ns = y->p->device_ns + WAIT_NS - y->p->host_ns;

	pass(y, (double)MAX(left_ns, (int64_t)WAIT_NS), 1, 0); /* it spins */
}

/* False: the worker must wait for others. */
static bool play_op(struct play *y, const struct op *op)
{
	switch ((enum op_kind)op->kind) {
	case OP_ENTER:
		enter(y, op->place);
		return true;
	case OP_LEAVE:
		leave(y);
		return true;
	case OP_WORK:
		play_work(y, op);
		return true;
	case OP_KERNEL:
		play_kernel(y, op);
		return true;
	case OP_MEET:
		return play_meet(y, op);
	case OP_LAUNCH:
		play_launch(y, op);
		return true;
	case OP_JOIN:
		return play_join(y, op);
	case OP_SEND:
		play_send(y, op);
		return true;
	case OP_RECV:
		return play_recv(y, op);
	case OP_WAIT:
		play_wait(y);
		return true;
	}
	return true;
}

/* Recording begins with an iteration; the outermost function encloses all iterations. */
static void begin_iteration(struct play *y)
{
	if (y->record == NULL || y->p->iteration < y->record->first_iteration)
		return;
	if (!y->recording) {
		y->recording = true;
		y->open = 0;
		keep(y, vec_push(&y->record->frames, (struct frame){ .start_ns = y->p->host_ns,
								     .parent = FRAME_NONE }));
	}
	keep(y, vec_push(&y->record->starts, y->p->host_ns));
}

static bool play_iteration(struct play *y, const struct program *program)
{
	while (y->p->pc < program->ops.cnt && y->error == 0) {
		if (y->p->pc == 0 && !y->p->posted)
			begin_iteration(y);
		if (!play_op(y, &program->ops.data[y->p->pc]))
			return false;
		y->p->posted = false;
		y->p->pc++;
	}
	y->p->pc = 0;
	y->p->iteration++;
	return true;
}

static int play_all(struct play *y)
{
	const struct program *program = &y->sim->programs[layout_stage(&y->sim->layout, y->rank)];

	for (size_t i = 0; i < y->sim->fault_cnt; i++) {
		if (y->sim->faults[i].hits[y->rank])
			y->faults |= 1u << y->sim->faults[i].plan.kind;
	}
	while (y->p->iteration < y->sim->iteration_cnt && y->error == 0) {
		if (!play_iteration(y, program))
			return y->error < 0 ? y->error : PLAYER_BLOCKED;
	}
	y->p->finished = true;
	return y->error < 0 ? y->error : PLAYER_FINISHED;
}

int player_run(struct simulation *sim, int rank, struct player *player, struct wake_list *wake)
{
	struct play y = { .sim = sim, .meets = sim, .wake = wake, .p = player, .rank = rank };

	return play_all(&y);
}

static void end_record(struct play *y)
{
	keep(y, vec_push(&y->record->starts, y->p->host_ns));
	if (y->error == 0)
		y->record->frames.data[0].end_ns = y->p->host_ns;
}

int player_record(const struct simulation *sim, int rank, struct record *ret)
{
	struct player player = { 0 };
	struct play y = { .sim = sim, .record = ret, .p = &player, .rank = rank };
	int state;

	ret->first_iteration = simulation_first_iteration(sim, rank);
	state = play_all(&y);
	if (state == PLAYER_FINISHED)
		end_record(&y);
	return y.error;
}
