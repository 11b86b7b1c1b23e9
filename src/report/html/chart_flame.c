/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stacks of one rank: widths are its critical time, colors the difference to its peers.
 * Callers are above what they call.
 */
#include "base/text/clean.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/phrase.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 1040.0
#define ROW_HEIGHT 20.0
#define CELL_WIDTH 6.7 /* of a letter */
#define DEPTH_MAX 28u
#define LEAST_WIDTH 1.5

/* In which order nodes are placed: callers first, of siblings the longest first. */
struct order {
	size_t node, depth;
	bool leaf;
	double ms;
};

struct flame {
	const struct report_flame *of;
	struct str *out;
	double ms_width, iteration_ms; /* units per millisecond */
	size_t deepest;
	bool cut;
	double *at; /* by node: where its next child begins */
	size_t *child_cnt, *only_child;
	size_t *depth; /* by node; 0 for roots */
	bool *joined;  /* drawn as a part of its caller */
	struct order *order;
};

static void flame_done(struct flame *f)
{
	free(f->at);
	free(f->child_cnt);
	free(f->only_child);
	free(f->depth);
	free(f->joined);
	free(f->order);
}

static int flame_init(struct flame *f)
{
	size_t cnt = f->of->node_cnt + 1;

	f->at = calloc(cnt, sizeof(*f->at));
	f->child_cnt = calloc(cnt, sizeof(*f->child_cnt));
	f->only_child = calloc(cnt, sizeof(*f->only_child));
	f->depth = calloc(cnt, sizeof(*f->depth));
	f->joined = calloc(cnt, sizeof(*f->joined));
	f->order = calloc(cnt, sizeof(*f->order));
	return f->at == NULL || f->child_cnt == NULL || f->only_child == NULL || f->depth == NULL ||
			       f->joined == NULL || f->order == NULL
		       ? -ENOMEM
		       : 0;
}

static bool is_parent(int parent, size_t before)
{
	return parent >= 0 && (size_t)parent < before;
}

/* A function that does nothing but call one other is drawn with it: stacks are deep. */
static void join_chains(struct flame *f)
{
	const struct report_flame_node *nodes = f->of->nodes;

	for (size_t i = 0; i < f->of->node_cnt; i++) {
		if (!is_parent(nodes[i].parent, i))
			continue;
		f->child_cnt[nodes[i].parent]++;
		f->only_child[nodes[i].parent] = i;
	}
	for (size_t i = 0; i < f->of->node_cnt; i++) {
		const struct report_flame_node *child = &nodes[f->only_child[i]];

		if (f->child_cnt[i] == 1 && child->ms >= 0.99 * nodes[i].ms &&
		    child->peers_ms >= 0.99 * nodes[i].peers_ms)
			f->joined[f->only_child[i]] = true;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->leaf != y->leaf)
		return x->leaf ? 1 : -1;
	if (x->ms != y->ms)
		return x->ms > y->ms ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Stacks come before functions without callers and callees, the kernels. */
static void sort_nodes(struct flame *f)
{
	for (size_t i = 0; i < f->of->node_cnt; i++) {
		const struct report_flame_node *node = &f->of->nodes[i];
		size_t depth = is_parent(node->parent, i) ? f->order[node->parent].depth + 1 : 0;

		f->order[i] = (struct order){ .node = i,
					      .depth = depth,
					      .leaf = f->child_cnt[i] == 0,
					      .ms = isfinite(node->ms) ? node->ms : 0.0 };
	}
	if (f->of->node_cnt > 1)
		qsort(f->order, f->of->node_cnt, sizeof(*f->order), by_place);
}

/* The last function of the chain that begins here. */
static size_t chain_end(const struct flame *f, size_t i)
{
	while (f->child_cnt[i] == 1 && f->joined[f->only_child[i]])
		i = f->only_child[i];
	return i;
}

static void append_tip(struct str *tip, const struct flame *f, size_t first, size_t last)
{
	const struct report_flame_node *node = &f->of->nodes[first];

	for (size_t i = first;; i = f->only_child[i]) {
		str_append(tip, i > first ? " \xe2\x80\xba " : "");
		clean_append_short(tip, f->of->nodes[i].name, 80);
		if (i == last || tip->len > 400)
			break;
	}
	str_append(tip, ": ");
	phrase_ms(tip, node->ms);
	if (f->of->peer_cnt > 0) {
		str_append(tip, ", peers ");
		phrase_ms(tip, node->peers_ms);
	}
}

/* More than the peers is red, less is blue; without peers the class decides. */
static const char *color_of(const struct flame *f, size_t i, char ret[static 24], bool *ret_dark)
{
	const struct report_flame_node *node = &f->of->nodes[i];
	double diff = node->ms - node->peers_ms;
	int level = chart_heat_level(fabs(diff), f->iteration_ms);

	*ret_dark = level > 4;
	if (f->of->peer_cnt == 0) {
		*ret_dark = node->class != CLASS_IDLE;
		return event_class_name(node->class);
	}
	if (level < 0)
		return "alike";
	(void)snprintf(ret, 24, "%s h%d", diff > 0 ? "heat" : "less", level);
	return ret;
}

static void draw_node(struct flame *f, size_t i, double x, double width)
{
	double y = ROW_HEIGHT * (double)f->depth[i];
	size_t last = chain_end(f, i), cells = (size_t)MAX((width - 8) / CELL_WIDTH, 0.0);
	_cleanup_(str_done) struct str tip = { 0 }, label = { 0 };
	char buffer[24];
	bool dark;
	const char *class = color_of(f, i, buffer, &dark);

	append_tip(&tip, f, i, last);
	svg_rect(f->out, class, (struct svg_box){ x, y, width, ROW_HEIGHT - 2 },
		 markup_borrow(f->out, &tip));
	if (cells < 8)
		return;
	str_append(&label, last != i ? "\xe2\x80\xa6 " : "");
	clean_append_short(&label, f->of->nodes[last].name,
			   cells - (last != i ? 2 : 0) >= 8 ? cells - (last != i ? 2 : 0) : 8);
	svg_text(f->out, dark ? "cell on" : "cell", x + 4, y + 13, SVG_START,
		 markup_borrow(f->out, &label));
}

/* Places node i below its caller, right of the siblings before it. */
static void place_node(struct flame *f, size_t i, double *root_at)
{
	const struct report_flame_node *node = &f->of->nodes[i];
	bool child = is_parent(node->parent, i);
	double *at = child ? &f->at[node->parent] : root_at;
	double x = *at, width = isfinite(node->ms) ? MAX(node->ms, 0.0) * f->ms_width : 0.0;

	width = MIN(width, WIDTH - x);
	*at = x + MAX(width, 0.0);
	f->at[i] = x;
	f->depth[i] = child ? f->depth[node->parent] + !f->joined[i] : 0;
	if (f->joined[i] || width < LEAST_WIDTH)
		return;
	if (f->depth[i] >= DEPTH_MAX) {
		f->cut = true;
		return;
	}
	f->deepest = MAX(f->deepest, f->depth[i]);
	draw_node(f, i, x, width);
}

static void append_note(struct str *note, const struct flame *f)
{
	str_append(note,
		   "Widths are time on the critical path per iteration; callers are above what "
		   "they call. ");
	if (f->of->peer_cnt > 0)
		str_printf(note,
			   "Red: longer than the mean of %zu peer%s, blue: shorter, gray: alike. ",
			   f->of->peer_cnt, plural((double)f->of->peer_cnt));
	if (f->cut)
		str_printf(note, "Deeper than %u calls is not shown. ", DEPTH_MAX);
	str_append(note, "\xe2\x80\xa6 stands for callers that do nothing but call the function.");
}

/* The height is known after the drawing, so that goes to a text of its own. */
static void draw(struct flame *f, struct str *out)
{
	struct str shapes = { 0 };
	double root_at = 0.0;

	f->out = &shapes;
	for (size_t i = 0; i < f->of->node_cnt; i++)
		place_node(f, f->order[i].node, &root_at);
	svg_open(out, WIDTH, ROW_HEIGHT * (double)(f->deepest + 1), "flame",
		 "Call stacks of one rank", "Boxes are functions, widths their time.");
	str_append_len(out, str_borrow(&shapes), shapes.len);
	svg_close(out);
	if (str_error(&shapes) < 0)
		out->error = str_error(&shapes);
	f->out = NULL;
	str_done(&shapes);
}

static double width_per_ms(const struct report_flame *flame)
{
	double sum = 0.0;

	for (size_t i = 0; i < flame->node_cnt; i++) {
		if (flame->nodes[i].parent < 0 && flame->nodes[i].ms > 0)
			sum += flame->nodes[i].ms;
	}
	sum = MAX(sum, flame->iteration_ms);
	return isfinite(sum) && sum > 0.0 ? WIDTH / sum : 0.0;
}

void chart_flame(const struct report *report, struct str *out)
{
	struct flame f = { .of = &report->flame, .iteration_ms = report->flame.iteration_ms };
	_cleanup_(str_done) struct str title = { 0 }, note = { 0 };

	f.ms_width = width_per_ms(&report->flame);
	if (f.of->node_cnt < 2 || f.ms_width <= 0.0)
		return;
	if (flame_init(&f) < 0) {
		out->error = -ENOMEM;
	} else {
		join_chains(&f);
		sort_nodes(&f);
		str_printf(&title, "Call stacks of rank %d%s", f.of->rank,
			   f.of->peer_cnt > 0 ? " against its peers" : "");
		figure_open(out, markup_borrow(out, &title));
		if (f.of->peer_cnt == 0)
			figure_legend(out);
		draw(&f, out);
		append_note(&note, &f);
		figure_close(out, markup_borrow(out, &note));
	}
	flame_done(&f);
}
