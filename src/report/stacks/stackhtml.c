/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/document.h"
#include "report/html/markup.h"
#include "report/stacks/stackformats.h"

#include <errno.h>
#include <stdio.h>

#define WIDTH 1040.0
#define ROW_HEIGHT 20.0
#define CELL_WIDTH 6.7 /* of a letter */
#define LEAST_WIDTH 1.5

#define NONE UINT32_MAX

/* Where a node is drawn: a share of its parent's width by its number of processes. */
struct flame {
	const struct stacktree *tree;
	struct str shapes;
	double *at; /* by node: where its next child begins */
	size_t deepest, hidden;
};

static const char *color_of(const struct stacktree *tree, const struct stacktree_node *node)
{
	if (node->kind != STACKTREE_FRAME)
		return "idle";
	return node->members.cnt == tree->cnt ? "alike" : "heat h2";
}

static void draw(struct flame *flame, const struct stacktree_node *node, double x, double width)
{
	const double y = ROW_HEIGHT * (double)(node->depth - 1);
	const size_t cells = width > 8 ? (size_t)((width - 8) / CELL_WIDTH) : 0;
	_cleanup_(str_done) struct str tip = { 0 }, label = { 0 };
	const char *text = strtab_text(&flame->tree->labels, node->label);

	str_printf(&tip, "%s  ", text);
	stacktree_append_members(&tip, flame->tree, node);
	svg_rect(&flame->shapes, color_of(flame->tree, node),
		 (struct svg_box){ x, y, width, ROW_HEIGHT - 2 },
		 markup_borrow(&flame->shapes, &tip));
	flame->deepest = MAX(flame->deepest, (size_t)node->depth);
	if (cells < 8)
		return;
	markup_text_short(&label, text, cells);
	str_printf(&flame->shapes, "<text class=\"cell\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 4,
		   y + 13, str_borrow(&label));
}

/* Of siblings the widths are in proportion to their processes, and fill at most the parent's. */
static double width_of(const struct stacktree *tree, const struct stacktree_node *node,
		       double parent_width)
{
	size_t sum = 0;

	for (uint32_t at = tree->nodes.data[node->parent].first_child; at != NONE;
	     at = tree->nodes.data[at].next)
		sum += tree->nodes.data[at].members.cnt;
	sum = MAX(sum, tree->nodes.data[node->parent].members.cnt);
	return sum > 0 ? parent_width * (double)node->members.cnt / (double)sum : 0.0;
}

static int draw_all(struct flame *flame)
{
	const struct stacktree *tree = flame->tree;
	const struct stacktree_node *nodes = tree->nodes.data;
	_cleanup_free_ double *widths = calloc(tree->nodes.cnt, sizeof(*widths));
	_cleanup_free_ double *begins = calloc(tree->nodes.cnt, sizeof(*begins));
	uint32_t at = nodes[0].first_child;

	if (widths == NULL || begins == NULL)
		return -ENOMEM;
	widths[0] = WIDTH;
	flame->at = begins;
	while (at != NONE && at != 0) {
		const struct stacktree_node *node = &nodes[at];
		const double x = begins[node->parent];

		widths[at] = width_of(tree, node, widths[node->parent]);
		begins[node->parent] += widths[at];
		begins[at] = x;
		if (widths[at] >= LEAST_WIDTH)
			draw(flame, node, x, widths[at]);
		else
			flame->hidden++;
		if (node->first_child != NONE && widths[at] >= LEAST_WIDTH) {
			at = node->first_child;
			continue;
		}
		while (at != 0 && nodes[at].next == NONE)
			at = nodes[at].parent;
		at = at != 0 ? nodes[at].next : NONE;
	}
	flame->at = NULL;
	return str_error(&flame->shapes);
}

static void page_head(struct str *out, const struct stacktree *tree)
{
	const struct document page = {
		.word = "STACKS",
		.tone = "inconclusive",
		.skip = "picture",
	};
	struct str sentence = { 0 };

	str_printf(&sentence, "%zu process%s, all threads at one moment", tree->cnt,
		   tree->cnt == 1 ? "" : "es");
	document_open(out, &page, &sentence);
	str_append(out, "</header>\n<main id=\"main\">\n");
}

static void page_errors(struct str *out, const struct stacktree *tree)
{
	for (size_t i = 0; i < tree->cnt; i++) {
		if (tree->processes[i]->error[0] == '\0')
			continue;
		str_append(out, "<p>");
		markup_text(out, tree->processes[i]->error);
		str_append(out, "</p>\n");
	}
}

int stackformat_html(const struct stacktree *tree, struct str *out)
{
	struct flame flame = { .tree = tree };
	const size_t start = out->len;
	int error = draw_all(&flame);

	page_head(out, tree);
	page_errors(out, tree);
	str_printf(
		out,
		"<section><h2>Stacks of all threads</h2><figure>\n<p>Widths are numbers of %s; "
		"callers are above what they call. Red: not all have the frame. The tip of a box "
		"has the %s that are there and, behind the bar, those that are not.</p>\n",
		stacktree_member_word(tree), stacktree_member_word(tree));
	svg_open(out, WIDTH, ROW_HEIGHT * (double)(flame.deepest + 1), "stacks", "Stacks",
		 "Boxes are functions, widths the processes that are in them.");
	str_append_len(out, str_borrow(&flame.shapes), flame.shapes.len);
	svg_close(out);
	if (flame.hidden > 0)
		str_printf(out, "<p>%zu boxes are too narrow to be drawn.</p>\n", flame.hidden);
	str_append(out, "</figure></section>\n");
	document_close(out, "perftracker stacks --format json has all of it.");
	str_done(&flame.shapes);
	if (error < 0)
		out->error = error;
	return str_finish(out, start);
}
