/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flame/flamepicture.h"
#include "report/flame/flamescript.h"
#include "report/html/document.h"
#include "report/html/markup.h"
#include "report/stacks/stackformats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* The boxes of a tree: a node has a share of its parent's width by its number of processes. */
struct boxes {
	const struct stacktree *tree;
	struct flamebox *list;
	struct str *tips;
	uint32_t *box_of; /* by node */
	double *widths;	  /* by node */
	size_t cnt;
};

static void boxes_done(struct boxes *boxes)
{
	for (size_t i = 0; i < boxes->cnt; i++)
		str_done(&boxes->tips[i]);
	free(boxes->list);
	free(boxes->tips);
	free(boxes->box_of);
	free(boxes->widths);
}

static const char *color_of(const struct stacktree *tree, const struct stacktree_node *node)
{
	if (node->kind != STACKTREE_FRAME)
		return "idle";
	return node->members.cnt == tree->cnt ? "alike" : "heat h2";
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

static int add_box(struct boxes *boxes, uint32_t at)
{
	const struct stacktree_node *node = &boxes->tree->nodes.data[at];
	const char *text = strtab_text(&boxes->tree->labels, node->label);
	struct str *tip = &boxes->tips[boxes->cnt];

	str_printf(tip, "%s  ", text);
	stacktree_append_members(tip, boxes->tree, node);
	boxes->widths[at] = width_of(boxes->tree, node, boxes->widths[node->parent]);
	boxes->box_of[at] = (uint32_t)boxes->cnt;
	boxes->list[boxes->cnt++] = (struct flamebox){
		.parent = node->parent == 0 ? FLAMEBOX_ROOT : boxes->box_of[node->parent],
		.width = boxes->widths[at],
		.label = text,
		.tip = str_borrow(tip),
		.class = color_of(boxes->tree, node),
	};
	return str_error(tip);
}

/* In depth-first order. */
static int make_boxes(struct boxes *boxes)
{
	const struct stacktree_node *nodes = boxes->tree->nodes.data;
	const size_t cnt = boxes->tree->nodes.cnt;
	uint32_t at = nodes[0].first_child;

	boxes->list = calloc(cnt, sizeof(*boxes->list));
	boxes->tips = calloc(cnt, sizeof(*boxes->tips));
	boxes->box_of = calloc(cnt, sizeof(*boxes->box_of));
	boxes->widths = calloc(cnt, sizeof(*boxes->widths));
	if (boxes->list == NULL || boxes->tips == NULL || boxes->box_of == NULL ||
	    boxes->widths == NULL)
		return -ENOMEM;
	boxes->widths[0] = 1;
	while (at != NONE && at != 0) {
		if (add_box(boxes, at) < 0)
			return -ENOMEM;
		if (nodes[at].first_child != NONE) {
			at = nodes[at].first_child;
			continue;
		}
		while (at != 0 && nodes[at].next == NONE)
			at = nodes[at].parent;
		at = at != 0 ? nodes[at].next : NONE;
	}
	return 0;
}

static int draw_all(const struct stacktree *tree, struct str *out, struct flamepicture_left *left)
{
	struct boxes boxes = { .tree = tree };
	int error = make_boxes(&boxes);

	if (error == 0) {
		const struct flamepicture picture = {
			.boxes = boxes.list,
			.cnt = boxes.cnt,
			.total = 1,
			.id = "stacks",
			.title = "Stacks",
			.desc = "Boxes are functions, widths the processes that are in them.",
			.scripted = true,
		};

		error = flamepicture_draw(&picture, out, left);
	}
	boxes_done(&boxes);
	return error;
}

static void page_head(struct str *out, const struct stacktree *tree)
{
	const struct document page = {
		.word = "STACKS",
		.tone = "inconclusive",
		.skip = "picture",
		.script_hash = flamescript_hash,
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
	const size_t start = out->len;
	struct flamepicture_left left = { 0 };
	int error;

	page_head(out, tree);
	page_errors(out, tree);
	str_printf(
		out,
		"<section><h2>Stacks of all threads</h2><figure>\n<p>Widths are numbers of %s; "
		"callers are above what they call. Red: not all have the frame. The tip of a box "
		"has the %s that are there and, behind the bar, those that are not. Click or Enter: "
		"zoom; Escape: back; arrows: move; /: search.</p>\n",
		stacktree_member_word(tree), stacktree_member_word(tree));
	flamescript_controls(out);
	error = draw_all(tree, out, &left);
	if (left.narrow > 0)
		str_printf(out, "<p>%zu boxes are too narrow to be drawn.</p>\n", left.narrow);
	str_append(out, "</figure></section>\n");
	flamescript_append(out);
	document_close(out, "perftracker stacks --format json has all of it.");
	if (error < 0)
		out->error = error;
	return str_finish(out, start);
}
