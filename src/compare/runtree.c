/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/runtree.h"

#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <math.h>

void run_tree_done(struct run_tree *tree)
{
	vec_done(&tree->nodes);
	vec_done(&tree->cells);
	free(tree->windows);
	idmap_done(&tree->node_of);
	*tree = (struct run_tree){ 0 };
}

uint32_t run_tree_find(const struct run_tree *tree, struct funckey key)
{
	uint32_t node = idmap_get(&tree->node_of, key.lo);

	if (node == IDMAP_NONE || !funckey_equal(tree->nodes.data[node].key, key))
		return NODE_NONE;
	return node;
}

static int hash_name(const struct fp_frame *frame, uint64_t *ret)
{
	_cleanup_(str_done) struct str part = { 0 };

	funckey_part((enum event_kind)frame->kind, frame->name, &part);
	*ret = funckey_under(NULL, str_borrow(&part)).lo;
	return str_error(&part);
}

static int add_node(struct run_tree *tree, uint32_t parent, const struct fp_frame *frame,
		    uint32_t *ret)
{
	uint32_t node = run_tree_find(tree, frame->key);
	uint64_t hash;

	if (node == NODE_NONE) {
		node = (uint32_t)tree->nodes.cnt;
		if (hash_name(frame, &hash) < 0 ||
		    vec_push(&tree->nodes, (struct run_node){ .key = frame->key,
							      .parent = parent,
							      .first_child = NODE_NONE,
							      .next_sibling = NODE_NONE,
							      .partner = NODE_NONE,
							      .name_hash = hash,
							      .kind = frame->kind,
							      .name = frame->name }) < 0 ||
		    idmap_set(&tree->node_of, frame->key.lo, node) < 0)
			return -ENOMEM;
		tree->nodes.data[node].next_sibling = tree->nodes.data[parent].first_child;
		tree->nodes.data[parent].first_child = node;
	}
	*ret = node;
	return 0;
}

/* Standard deviation of the iterations' lengths. */
static double iteration_deviation(const struct fingerprint *fp)
{
	double mean = 0, squares = 0;

	if (!fp->iterations_known || fp->iteration_cnt < 2)
		return (double)NAN;
	for (size_t i = 0; i < fp->iteration_cnt; i++)
		mean += (double)fp->iterations[i].dur_ns / 1e6 / (double)fp->iteration_cnt;
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		double off = (double)fp->iterations[i].dur_ns / 1e6 - mean;

		squares += off * off;
	}
	return sqrt(squares / (double)(fp->iteration_cnt - 1));
}

/* A function on the path has a deviation, however small, if it is known. */
static double function_deviation(const struct fp_function *f, double iterations)
{
	if (f->share_ns == 0)
		return 0;
	return iterations >= 2 && f->spread_ns > 0 ? f->spread_ns / 1e6 : (double)NAN;
}

static int add_function(struct run_tree *tree, uint32_t window, uint32_t node,
			const struct fp_function *f)
{
	double iterations = tree->windows[window].iterations;
	struct run_node *n = &tree->nodes.data[node];
	struct run_cell cell = {
		.node = node,
		.window = window,
		.class = f->class,
		.ms = (double)f->share_ns / 1e6 / iterations,
		.thread_ms = (double)f->thread_ns / 1e6 / iterations,
		.runs = (double)f->executions / iterations,
		.deviation_ms = function_deviation(f, iterations),
	};

	n->self_ms += cell.ms / (double)tree->window_cnt;
	n->tree_ms += cell.ms / (double)tree->window_cnt;
	n->tree_thread_ms += cell.thread_ms / (double)tree->window_cnt;
	n->runs += cell.runs / (double)tree->window_cnt;
	if (n->launched_by == NULL && f->launched_by != NULL && f->launched_by[0] != '\0')
		n->launched_by = f->launched_by;
	return vec_push(&tree->cells, cell);
}

static int add_window(struct run_tree *tree, uint32_t window)
{
	const struct fingerprint *fp = tree->windows[window].fp;
	_cleanup_free_ uint32_t *node_of = calloc(fp->frame_cnt + 1, sizeof(*node_of));
	int error = node_of != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < fp->frame_cnt && error == 0; i++) {
		uint32_t up = fp->frames[i].parent;

		error = add_node(tree, up == FRAME_NONE ? NODE_ROOT : node_of[up], &fp->frames[i],
				 &node_of[i]);
	}
	for (size_t i = 0; i < fp->function_cnt && error == 0; i++) {
		const struct fp_function *f = &fp->functions[i];

		error = add_function(tree, window,
				     f->frame == FRAME_NONE ? NODE_ROOT : node_of[f->frame], f);
	}
	return error;
}

static void number_windows(struct run_tree *tree)
{
	for (size_t i = 0; i < tree->window_cnt; i++) {
		struct run_window *w = &tree->windows[i];

		w->rank = UINT32_MAX;
		for (size_t k = 0; k < i; k++) {
			if (tree->windows[k].fp->rank != w->fp->rank)
				continue;
			w->rank = tree->windows[k].rank;
			w->repeat = tree->windows[k].repeat + 1;
		}
		if (w->rank == UINT32_MAX)
			w->rank = (uint32_t)tree->rank_cnt++;
		tree->repeat_cnt = MAX(tree->repeat_cnt, (size_t)w->repeat + 1);
	}
}

static int make_windows(struct run_tree *tree, const struct fingerprint *const *fps, size_t cnt)
{
	tree->windows = calloc(cnt + 1, sizeof(*tree->windows));
	if (tree->windows == NULL)
		return -ENOMEM;
	tree->window_cnt = cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct run_window *w = &tree->windows[i];

		w->fp = fps[i];
		w->iterations = (double)MAX(fps[i]->iteration_cnt, (size_t)1);
		w->iteration_ms = (double)fps[i]->window_ns / 1e6 / w->iterations;
		w->deviation_ms = iteration_deviation(fps[i]);
		tree->iteration_ms += w->iteration_ms / (double)cnt;
		tree->rest_ms += (double)fps[i]->rest_ns / 1e6 / w->iterations / (double)cnt;
	}
	number_windows(tree);
	return 0;
}

int run_tree_build(const struct fingerprint *const *fps, size_t cnt, struct run_tree *ret)
{
	int error;

	*ret = (struct run_tree){ 0 };
	error = make_windows(ret, fps, cnt);
	if (error == 0)
		error = vec_push(&ret->nodes, (struct run_node){ .parent = NODE_NONE,
								 .first_child = NODE_NONE,
								 .next_sibling = NODE_NONE,
								 .partner = NODE_NONE,
								 .kind = KIND_OTHER,
								 .name = "" });
	for (uint32_t i = 0; i < cnt && error == 0; i++)
		error = add_window(ret, i);
	for (size_t i = ret->nodes.cnt; error == 0 && i > 1; i--) {
		const struct run_node *n = &ret->nodes.data[i - 1];

		ret->nodes.data[n->parent].tree_ms += n->tree_ms;
		ret->nodes.data[n->parent].tree_thread_ms += n->tree_thread_ms;
	}
	return error;
}
