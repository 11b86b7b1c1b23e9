/* SPDX-License-Identifier: Apache-2.0 */
#include "sampled/sampledview.h"

#include "base/str.h"
#include "base/text/pythoncode.h"
#include "model/place/stacknaming.h"

#include <errno.h>
#include <string.h>

/* --- phases --- */

/* Native functions in which a thread waits for other ranks. It is blocked there: only of such
 * threads are native frames known. */
static const char *const WAITS_FOR_PEERS[] = { "4c10d",	      "c10d::",	   "4gloo",
					       "gloo::",      "ncclGroup", "ncclAllReduce",
					       "ncclComm",    "MPI_Wait",  "MPI_Allreduce",
					       "MPI_Barrier", NULL };

static bool has_part(const char *text, const char *const *parts)
{
	for (; text != NULL && *parts != NULL; parts++)
		if (strstr(text, *parts) != NULL)
			return true;
	return false;
}

static bool is_python(const struct stacks_frame *frame, const char *file, const char *function)
{
	const char *name = frame->function, *dot;

	if (frame->kind != STACKS_PYTHON || frame->file == NULL || name == NULL ||
	    strstr(frame->file, file) == NULL)
		return false;
	dot = strrchr(name, '.'); /* "Class.method" from 3.11 on */
	return function == NULL || strcmp(dot != NULL ? dot + 1 : name, function) == 0;
}

/* Calls of torch.distributed that only prepare a wait for others are not told from it. */
static bool waits_for_peers(const struct sampled_stack *stack)
{
	bool innermost = true;

	for (size_t i = 0; i < stack->frame_cnt; i++) {
		const struct stacks_frame *frame = &stack->frames[i];

		if (frame->kind == STACKS_NATIVE && !frame->interpreter &&
		    has_part(frame->function, WAITS_FOR_PEERS))
			return true;
		if (frame->kind != STACKS_PYTHON)
			continue;
		if (innermost && (is_python(frame, "torch/distributed/distributed_c10d.py", NULL) ||
				  is_python(frame, "torch/distributed/c10d_logger.py", NULL)))
			return true;
		innermost = false;
	}
	return false;
}

/* Ranks that send to each other, and stages of a pipeline, do different work. */
static bool is_of_stage(const struct sampled_stack *stack)
{
	static const char *const NATIVE[] = { "8RecvWork", "8SendWork", "MPI_Recv", NULL };
	static const char *const CALLS[] = { "recv", "send", "irecv", "isend",
					     "batch_isend_irecv" };

	for (size_t i = 0; i < stack->frame_cnt; i++) {
		const struct stacks_frame *frame = &stack->frames[i];

		if (frame->kind == STACKS_NATIVE && has_part(frame->function, NATIVE))
			return true;
		if (is_python(frame, "torch/distributed/pipelining/", NULL))
			return true;
		for (size_t j = 0; j < ARRAY_SIZE(CALLS); j++)
			if (is_python(frame, "torch/distributed/distributed_c10d.py", CALLS[j]))
				return true;
	}
	return false;
}

enum sampled_phase sampledview_phase(const struct sampled_stack *stack)
{
	enum sampled_phase ret = PHASE_OTHER;

	if (waits_for_peers(stack))
		return PHASE_PEERS;
	/* The outermost of these: a loader may be read inside of nothing else. */
	for (size_t i = 0; i < stack->frame_cnt; i++) {
		const struct stacks_frame *frame = &stack->frames[i];

		if (is_python(frame, "torch/utils/data/dataloader.py", "__next__"))
			ret = PHASE_LOADER;
		else if (is_python(frame, "torch/autograd/", "_engine_run_backward") ||
			 is_python(frame, "torch/autograd/__init__.py", "backward"))
			ret = PHASE_BACKWARD;
		else if (is_python(frame, "torch/optim/", NULL) &&
			 !is_python(frame, "torch/optim/", "zero_grad"))
			ret = PHASE_OPTIMIZER;
	}
	return ret;
}

/* --- the tree of calls --- */

static uint32_t name_id(struct sampledview *view, const struct stacks_frame *frame)
{
	struct str text = { 0 };
	uint32_t ret;

	str_printf(&text, "%s\n%s", frame->file != NULL ? frame->file : "",
		   frame->function != NULL ? frame->function : "?");
	ret = str_error(&text) == 0 ? strtab_intern(&view->names, str_borrow(&text), text.len)
				    : STRTAB_NONE;
	str_done(&text);
	return ret;
}

/* SAMPLED_NONE: out of memory. */
static uint32_t child_of(struct sampledview *view, uint32_t parent,
			 const struct stacks_frame *frame)
{
	const uint32_t name = name_id(view, frame);
	const uint64_t key = (uint64_t)parent << 32 | name;
	const uint32_t found = idmap_get(&view->by_edge, key);
	const uint32_t node = (uint32_t)view->nodes.cnt;

	if (name == STRTAB_NONE)
		return SAMPLED_NONE;
	if (found != IDMAP_NONE)
		return found;
	if (vec_push(&view->nodes,
		     ((struct sampledview_node){ .parent = parent,
						 .depth = view->nodes.data[parent].depth + 1,
						 .frame = frame })) < 0 ||
	    idmap_set(&view->by_edge, key, node) < 0)
		return SAMPLED_NONE;
	return node;
}

static int place_stack(struct sampledview *view, const struct sampled_stack *stack,
		       struct sampledview_stack *ret)
{
	*ret = (struct sampledview_stack){ .leaf = SAMPLEDVIEW_ROOT,
					   .phase = sampledview_phase(stack),
					   .stage = is_of_stage(stack) };
	for (size_t i = stack->frame_cnt; i > 0; i--) {
		const struct stacks_frame *frame = &stack->frames[i - 1];

		if (frame->kind != STACKS_PYTHON)
			continue;
		ret->leaf = child_of(view, ret->leaf, frame);
		if (ret->leaf == SAMPLED_NONE)
			return -ENOMEM;
		ret->place = (ret->place ^ ret->leaf) * 0x9e3779b97f4a7c15u + frame->line;
	}
	return 0;
}

/* The samples vote for the line of each function that they are in. */
static void vote(struct sampledview *view, uint32_t leaf, const struct sampled_stack *stack)
{
	uint32_t node = leaf;

	for (size_t i = 0; i < stack->frame_cnt && node != SAMPLEDVIEW_ROOT; i++) {
		struct sampledview_node *n = &view->nodes.data[node];

		if (stack->frames[i].kind != STACKS_PYTHON)
			continue;
		if (n->votes == 0)
			n->line = stack->frames[i].line;
		n->votes += n->line == stack->frames[i].line ? 1 : (uint32_t)-1;
		node = n->parent;
	}
}

static int place_rank(struct sampledview *view, size_t index)
{
	const struct sampled_job *job = view->job;
	const struct sampled_rank *rank = &job->ranks[index];
	const struct sampled_moment **grid =
		arena_calloc(view->arena, (size_t)job->round_cnt + 1, sizeof(*grid));
	int error = 0;

	view->stacks[index] =
		arena_calloc(view->arena, rank->stack_cnt + 1, sizeof(*view->stacks[index]));
	if (grid == NULL || view->stacks[index] == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < rank->stack_cnt && error == 0; i++)
		error = place_stack(view, &rank->stacks[i], &view->stacks[index][i]);
	for (size_t i = 0; i < rank->moment_cnt && error == 0; i++) {
		const struct sampled_moment *m = &rank->moments[i];

		if (m->round < job->round_cnt)
			grid[m->round] = m;
		if (m->stack != SAMPLED_NONE)
			vote(view, view->stacks[index][m->stack].leaf, &rank->stacks[m->stack]);
		if (m->child_stack != SAMPLED_NONE)
			vote(view, view->stacks[index][m->child_stack].leaf,
			     &rank->stacks[m->child_stack]);
	}
	view->grid[index] = grid;
	return error;
}

int sampledview_init(struct sampledview *view, const struct sampled_job *job, struct arena *arena)
{
	int error;

	*view = (struct sampledview){ .job = job, .arena = arena };
	error = strtab_init(&view->names);
	view->stacks = arena_calloc(arena, job->cnt + 1, sizeof(*view->stacks));
	view->grid = arena_calloc(arena, job->cnt + 1, sizeof(*view->grid));
	if (view->stacks == NULL || view->grid == NULL)
		return -ENOMEM;
	if (error == 0)
		error = vec_push(&view->nodes, (struct sampledview_node){ 0 });
	for (size_t i = 0; i < job->cnt && error == 0; i++)
		error = place_rank(view, i);
	return error;
}

void sampledview_done(struct sampledview *view)
{
	strtab_done(&view->names);
	vec_done(&view->nodes);
	idmap_done(&view->by_edge);
}

/* --- names --- */

static int append_name(const struct sampledview *view, uint32_t node, struct str *out)
{
	struct stacks_frame frame = *view->nodes.data[node].frame;

	frame.line = view->nodes.data[node].line;
	stacknaming_append(out, &frame);
	return str_error(out);
}

const char *sampledview_name(const struct sampledview *view, uint32_t node)
{
	struct str text = { 0 };
	const char *ret = NULL;

	if (node == SAMPLEDVIEW_ROOT)
		return "";
	if (append_name(view, node, &text) == 0)
		ret = arena_strdup(view->arena, str_borrow(&text));
	str_done(&text);
	return ret;
}

bool sampledview_is_users(const struct sampledview *view, uint32_t node)
{
	struct str text = { 0 };
	bool ret = node != SAMPLEDVIEW_ROOT && append_name(view, node, &text) == 0 &&
		   pythoncode_is_users(str_borrow(&text));

	str_done(&text);
	return ret;
}
