/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/collectives/collectives.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

/* The previous collective of a group. */
struct group_state {
	uint64_t group;
	int64_t start_ns, end_ns, launch_ns;
};

/*
 * A kernel that begins within this time after its launch was held up only by the launch. The two
 * times are of different clocks: kernels have been seen to begin 0.1 ms before their launch.
 */
#define GATE_NS 300000

#define SEARCHED 256u /* events before a call, among which its operator is */

struct finder {
	const struct trace *trace;
	const struct window *window;
	const stretches *path, *host;
	VEC(struct group_state) groups;
	VEC(struct fp_share) scratch;
	bool *lane_communicates; /* by lane */
	size_t next_work;	 /* next event that may be work without arguments */
	size_t next_comms;	 /* next record_param_comms event to join */
	struct idmap operations; /* (name, collective) of strings: index in out->operations + 1 */
	struct collectives *out;
};

uint32_t function_index_get(const struct function_index *index, uint32_t node, uint8_t class)
{
	uint32_t idx = nodemap_get(&index->map, node, class);

	return idx == NODEMAP_NONE ? FRAME_NONE : idx;
}

int stretches_add(stretches *line, uint32_t function, int64_t start_ns, int64_t end_ns)
{
	if (line->cnt > 0 && line->data[line->cnt - 1].function == function) {
		line->data[line->cnt - 1].end_ns = end_ns;
		return 0;
	}
	return vec_push(line, (struct stretch){ start_ns, end_ns, function });
}

void collectives_done(struct collectives *collectives)
{
	vec_done(&collectives->list);
	vec_done(&collectives->shares);
	vec_done(&collectives->operations);
}

static bool begins(const char *name, const char *word)
{
	return strncmp(name, word, strlen(word)) == 0;
}

/*
 * Whether a call was made in an operator or annotation that sends or receives, one of the latest
 * that began before it.
 */
static bool is_called_to_send(const struct trace *trace, uint32_t call)
{
	const struct event *called = &trace->events[call];
	uint32_t last = call > SEARCHED ? call - SEARCHED : 0;

	for (uint32_t i = call; i-- > last;) {
		const struct event *e = &trace->events[i];
		const char *name = event_name(trace, e);

		if (e->lane == called->lane && event_end_ns(e) >= event_end_ns(called) &&
		    (begins(name, "c10d::send") || begins(name, "c10d::recv") ||
		     begins(name, "nccl:send") || begins(name, "nccl:recv")))
			return true;
	}
	return false;
}

bool collective_is_message(const struct trace *trace, const struct event *event,
			   const struct event_args *args)
{
	const char *name = args != NULL ? strtab_text(&trace->strings, args->collective) : "";

	/* Kernels of some writers have no arguments, and an exchange among all has this name, too. */
	if (name[0] == '\0' || strcmp(name, "sendrecv") == 0)
		return event->kind == KIND_KERNEL && event->parent != EVENT_NONE &&
		       is_called_to_send(trace, event->parent);
	return strcmp(name, "send") == 0 || strcmp(name, "recv") == 0 ||
	       strcmp(name, "send_recv") == 0 || begins(name, "recvAny");
}

/* The arguments of the first unused record_param_comms operator that began before start_ns. */
static const struct event_args *take_comms(struct finder *f, int64_t start_ns)
{
	const struct trace *t = f->trace;

	for (; f->next_comms < t->event_cnt; f->next_comms++) {
		const struct event *op = &t->events[f->next_comms];
		const struct event_args *args;

		if (op->start_ns > start_ns)
			return NULL;
		args = op->kind == KIND_OPERATOR ? event_args_borrow(t, op) : NULL;
		if (args == NULL || args->collective == 0 ||
		    strcmp(event_name(t, op), "record_param_comms") != 0)
			continue;
		f->next_comms++;
		return args;
	}
	return NULL;
}

static bool lacks_args(const struct trace *trace, const struct event *event)
{
	return event->kind != KIND_KERNEL && event_args_borrow(trace, event) == NULL;
}

/*
 * Work that a CPU back end runs on its own threads carries no arguments; the operator that queued
 * it does. Queues keep their order, so work and operators are paired from the start of the trace,
 * including those outside the window.
 */
static const struct event_args *join_args(struct finder *f, uint32_t idx)
{
	const struct trace *t = f->trace;

	if (!lacks_args(t, &t->events[idx]))
		return event_args_borrow(t, &t->events[idx]);
	for (; f->next_work < idx; f->next_work++) {
		const struct event *work = &t->events[f->next_work];

		if (lacks_args(t, work) &&
		    classify_is_collective((enum event_kind)work->kind, event_name(t, work)))
			(void)take_comms(f, work->start_ns);
	}
	f->next_work = (size_t)idx + 1;
	return take_comms(f, t->events[idx].start_ns);
}

static uint64_t text_hash(const char *text, uint64_t seed)
{
	return XXH3_64bits_withSeed(text, strlen(text), seed);
}

/*
 * A communicator has its own stream on every rank, and all ranks create their communicators in the
 * same order. Without names, the stream's index among the communicating streams identifies the
 * group.
 */
static uint64_t guess_group(struct finder *f, const struct event *event)
{
	const struct lane *lane = &f->trace->lanes[event->lane];
	uint64_t place = 0;

	if (lane->type != LANE_STREAM)
		return text_hash("thread", 0);
	for (size_t i = 0; i < f->trace->lane_cnt; i++)
		place += f->lane_communicates[i] && f->trace->lanes[i].tid < lane->tid;
	return text_hash("stream", place);
}

/* Adds the name of an operation, unless it is there. Returns its index + 1, 0: out of memory. */
static uint32_t intern_operation(struct finder *f, const char *name, const char *collective)
{
	struct collective_operation new = { "" };
	struct collective_words words;

	collective_words(name, collective, "", &words);
	memcpy(new.text, words.operation, sizeof(new.text));
	for (uint32_t i = 0; i < f->out->operations.cnt; i++) {
		if (strcmp(f->out->operations.data[i].text, new.text) == 0)
			return i + 1;
	}
	return vec_push(&f->out->operations, new) < 0 ? 0 : (uint32_t)f->out->operations.cnt;
}

/* Names repeat: each is parsed once. */
static int set_operation(struct finder *f, const struct event *event, const struct event_args *args,
			 struct fp_collective *c)
{
	uint32_t collective = args != NULL ? args->collective : 0;
	uint64_t key = (uint64_t)collective << 32 | event->name;
	uint32_t known = idmap_get(&f->operations, key);

	if (known == IDMAP_NONE) {
		known = intern_operation(f, event_name(f->trace, event),
					 strtab_text(&f->trace->strings, collective));
		if (known == 0 || idmap_set(&f->operations, key, known) < 0)
			return -ENOMEM;
	}
	c->operation = known;
	return 0;
}

static int set_identity(struct finder *f, const struct event *event, const struct event_args *args,
			struct fp_collective *c)
{
	const struct strtab *strings = &f->trace->strings;
	struct str canonical = { 0 };
	int error;

	funckey_canonical((enum event_kind)event->kind, event_name(f->trace, event), &canonical);
	c->name = text_hash(str_borrow(&canonical), 0);
	error = str_error(&canonical);
	str_done(&canonical);
	c->seq = -1;
	c->bytes = -1;
	if (args != NULL) {
		c->seq = args->seq;
		c->bytes = args->bytes;
		c->group_size = args->group_size > 0 ? args->group_size : 0;
		c->group_known = args->group_ranks != 0 || args->group != 0;
	}
	if (c->group_known)
		c->group = text_hash(strtab_text(strings, args->group_ranks),
				     text_hash(strtab_text(strings, args->group), 1));
	else
		c->group = guess_group(f, event);
	return error;
}

static struct group_state *group_state_of(struct finder *f, uint64_t group)
{
	vec_foreach(g, &f->groups) {
		if (g->group == group)
			return g;
	}
	if (vec_push(&f->groups, (struct group_state){ .group = group,
						       .start_ns = f->window->start_ns,
						       .end_ns = f->window->start_ns,
						       .launch_ns = f->window->start_ns }) < 0)
		return NULL;
	return &f->groups.data[f->groups.cnt - 1];
}

static int share_cmp(const void *a, const void *b)
{
	const struct fp_share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->function > y->function) - (x->function < y->function);
}

static int scratch_add(struct finder *f, uint32_t function, int64_t ns)
{
	vec_foreach(s, &f->scratch) {
		if (s->function == function) {
			s->ns += ns;
			return 0;
		}
	}
	return vec_push(&f->scratch, (struct fp_share){ function, ns });
}

static size_t first_after(const stretches *line, int64_t time_ns)
{
	size_t low = 0, high = line->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (line->data[mid].end_ns > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/*
 * Adds the shares of functions in [start, end) of a timeline: the largest individually, the others
 * as one sum.
 */
static int add_shares(struct finder *f, const stretches *line, int64_t start_ns, int64_t end_ns,
		      uint32_t *ret_first, uint32_t *ret_cnt)
{
	int64_t rest = 0;

	*ret_first = (uint32_t)f->out->shares.cnt;
	f->scratch.cnt = 0;
	*ret_cnt = 0;
	/* Launches may be in another order than their kernels: an interval may be negative. */
	if (end_ns <= start_ns)
		return 0;
	for (size_t i = first_after(line, start_ns);
	     i < line->cnt && line->data[i].start_ns < end_ns; i++) {
		const struct stretch *s = &line->data[i];
		int64_t ns = MIN(s->end_ns, end_ns) - MAX(s->start_ns, start_ns);

		if (scratch_add(f, s->function, ns) < 0)
			return -ENOMEM;
	}
	if (f->scratch.cnt > 0)
		qsort(f->scratch.data, f->scratch.cnt, sizeof(*f->scratch.data), share_cmp);
	for (size_t i = 0; i < f->scratch.cnt; i++) {
		if (i >= LEAD_SHARES_MAX || f->scratch.data[i].function == FRAME_NONE)
			rest += f->scratch.data[i].ns;
		else if (vec_push(&f->out->shares, f->scratch.data[i]) < 0)
			return -ENOMEM;
	}
	if (rest > 0 && vec_push(&f->out->shares, (struct fp_share){ FRAME_NONE, rest }) < 0)
		return -ENOMEM;
	*ret_cnt = (uint32_t)f->out->shares.cnt - *ret_first;
	return 0;
}

/*
 * Adds the functions that preceded a collective, on the critical path and on the launching thread.
 */
static int add_leads(struct finder *f, const struct event *event, struct group_state *group,
		     struct fp_collective *c)
{
	/*
	 * While the group's previous collective still runs, the lead begins at its start, not at
	 * its end.
	 */
	int64_t lead = group->end_ns <= event->start_ns ? group->end_ns : group->start_ns;
	int64_t launch = event->start_ns;
	int error;

	if (event->kind == KIND_KERNEL && event->parent != EVENT_NONE)
		launch = f->trace->events[event->parent].start_ns;
	c->host_gated = event->kind == KIND_KERNEL && event->parent != EVENT_NONE &&
			event->start_ns - launch < GATE_NS;
	c->lead_ns = MAX(event->start_ns - lead, (int64_t)0);
	c->host_ns = MAX(launch - group->launch_ns, (int64_t)0);
	error = add_shares(f, f->path, lead, event->start_ns, &c->lead_first, &c->lead_cnt);
	if (error == 0 && event->kind == KIND_KERNEL)
		error = add_shares(f, f->host, group->launch_ns, launch, &c->host_first,
				   &c->host_cnt);
	group->start_ns = MAX(event->start_ns, f->window->start_ns);
	group->end_ns = MAX(group->end_ns, event_end_ns(event));
	group->launch_ns = MAX(group->launch_ns, launch);
	return error;
}

static int add_collective(struct finder *f, const struct crit_exec *exec)
{
	const struct event *event = &f->trace->events[exec->event];
	const struct event_args *args = join_args(f, exec->event);
	struct fp_collective c = {
		.start_ns = event->start_ns - f->window->start_ns,
		.dur_ns = event->dur_ns,
		.critical_ns = exec->critical_ns,
	};
	struct group_state *group;
	int error;

	if (collective_is_message(f->trace, event, args))
		return 0;
	error = set_identity(f, event, args, &c);
	if (error < 0)
		return error;
	if (c.group_size == 1)
		return 0;
	error = set_operation(f, event, args, &c);
	if (error < 0)
		return error;
	group = group_state_of(f, c.group);
	if (group == NULL)
		return -ENOMEM;
	error = add_leads(f, event, group, &c);
	return error < 0 ? error : vec_push(&f->out->list, c);
}

int collectives_find(const struct trace *trace, const struct window *window,
		     const struct crit_exec *execs, size_t exec_cnt, const stretches *path,
		     const stretches *host, struct collectives *ret)
{
	struct collectives out = { 0 };
	struct finder f = {
		.trace = trace, .window = window, .path = path, .host = host, .out = &out
	};
	_cleanup_free_ bool *lane_communicates = calloc(trace->lane_cnt + 1, sizeof(bool));
	size_t comm_cnt = 0, skip;
	int error = 0;

	if (lane_communicates == NULL)
		return -ENOMEM;
	f.lane_communicates = lane_communicates;
	for (size_t i = 0; i < exec_cnt; i++) {
		if (execs[i].class == CLASS_COMM) {
			const struct event *e = &trace->events[execs[i].event];

			comm_cnt++;
			lane_communicates[e->lane] |=
				!collective_is_message(trace, e, event_args_borrow(trace, e));
		}
	}
	skip = comm_cnt > COLLECTIVES_MAX ? comm_cnt - COLLECTIVES_MAX : 0;
	out.dropped = skip;
	for (size_t i = 0; i < exec_cnt && error == 0; i++) {
		if (execs[i].class != CLASS_COMM)
			continue;
		if (skip > 0)
			skip--;
		else
			error = add_collective(&f, &execs[i]);
	}
	vec_done(&f.groups);
	vec_done(&f.scratch);
	idmap_done(&f.operations);
	if (error < 0) {
		collectives_done(&out);
		return error;
	}
	*ret = out;
	return 0;
}
