/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stacks of one rank: widths are its critical time, colors the difference to its peers.
 * Callers are above what they call.
 */
#include "base/text/clean.h"
#include "report/flame/flamepicture.h"
#include "report/flame/flamescript.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/phrase.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 28u

/* In which order nodes are placed: callers first, of siblings the longest first. */
struct order {
	size_t node, depth;
	bool leaf;
	double ms;
};

struct flame {
	const struct report_flame *of;
	double iteration_ms;
	size_t *child_cnt, *only_child;
	bool *joined; /* drawn as a part of its caller */
	struct order *order;
	struct flamebox *boxes;
	struct str *tips, *labels; /* by box */
	uint32_t *box_of;	   /* by node */
	size_t box_cnt;
	bool cut, scripted;
};

static void flame_done(struct flame *f)
{
	for (size_t i = 0; i < f->box_cnt; i++) {
		str_done(&f->tips[i]);
		str_done(&f->labels[i]);
	}
	free(f->child_cnt);
	free(f->only_child);
	free(f->joined);
	free(f->order);
	free(f->boxes);
	free(f->tips);
	free(f->labels);
	free(f->box_of);
}

static int flame_init(struct flame *f)
{
	size_t cnt = f->of->node_cnt + 1;

	f->child_cnt = calloc(cnt, sizeof(*f->child_cnt));
	f->only_child = calloc(cnt, sizeof(*f->only_child));
	f->joined = calloc(cnt, sizeof(*f->joined));
	f->order = calloc(cnt, sizeof(*f->order));
	f->boxes = calloc(cnt, sizeof(*f->boxes));
	f->tips = calloc(cnt, sizeof(*f->tips));
	f->labels = calloc(cnt, sizeof(*f->labels));
	f->box_of = calloc(cnt, sizeof(*f->box_of));
	return f->child_cnt == NULL || f->only_child == NULL || f->joined == NULL ||
			       f->order == NULL || f->boxes == NULL || f->tips == NULL ||
			       f->labels == NULL || f->box_of == NULL
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
	if (node->rank_cnt > 0) {
		str_append(tip, "; seen on ranks ");
		phrase_rank_list(tip, node->ranks, node->rank_cnt, 60);
		str_append(tip, " of ");
		phrase_rank_list(tip, f->of->compared, f->of->compared_cnt, 60);
	}
}

static const char *const more[] = { "heat h0", "heat h1", "heat h2", "heat h3", "heat h4",
				    "heat h5", "heat h6", "heat h7", "heat h8", "heat h9" };
static const char *const less[] = { "less h0", "less h1", "less h2", "less h3", "less h4",
				    "less h5", "less h6", "less h7", "less h8", "less h9" };

/* More than the peers is red, less is blue; without peers the class decides. */
static const char *color_of(const struct flame *f, size_t i, bool *ret_dark)
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
	return diff > 0 ? more[level] : less[level];
}

/* The box of node i, unless its caller's box has it, too. Callers come before. */
static void add_box(struct flame *f, size_t i)
{
	const struct report_flame_node *node = &f->of->nodes[i];
	const bool child = is_parent(node->parent, i);
	const size_t last = chain_end(f, i), idx = f->box_cnt;
	struct flamebox *box = &f->boxes[idx];

	if (f->joined[i]) {
		f->box_of[i] = f->box_of[node->parent];
		return;
	}
	append_tip(&f->tips[idx], f, i, last);
	if (last != i)
		str_append(&f->labels[idx], "\xe2\x80\xa6 ");
	str_append(&f->labels[idx], f->of->nodes[last].name);
	*box = (struct flamebox){ .parent = child ? f->box_of[node->parent] : FLAMEBOX_ROOT,
				  .width = node->ms,
				  .tip = str_borrow(&f->tips[idx]),
				  .label = str_borrow(&f->labels[idx]) };
	box->class = color_of(f, i, &box->on);
	f->box_of[i] = (uint32_t)f->box_cnt++;
}

static void append_note(struct str *note, const struct flame *f)
{
	str_append(note, f->of->sampled ? "Widths are shares of the samples of the training thread"
					: "Widths are time on the critical path per iteration");
	str_append(note, "; callers are above what they call. ");
	if (f->of->peer_cnt > 0)
		str_printf(note,
			   "Red: longer than the mean of %zu peer%s, blue: shorter, gray: alike. ",
			   f->of->peer_cnt, plural((double)f->of->peer_cnt));
	if (f->of->compared_cnt > 1)
		str_append(
			note,
			"Where not all of them have a function, its box says on which ranks it was "
			"seen: under 0.1 % of a window it is not. ");
	if (f->cut)
		str_printf(note, "Deeper than %u calls is not shown. ", DEPTH_MAX);
	str_append(note, "\xe2\x80\xa6 stands for callers that do nothing but call the function.");
}

static void draw(struct flame *f, double total_ms, struct str *out)
{
	struct flamepicture picture = {
		.boxes = f->boxes,
		.total = total_ms,
		.id = "flame",
		.title = "Call stacks of one rank",
		.desc = "Boxes are functions, widths their time.",
		.scripted = f->scripted,
		.depth_max = DEPTH_MAX,
	};
	struct flamepicture_left left = { 0 };

	for (size_t i = 0; i < f->of->node_cnt; i++)
		add_box(f, f->order[i].node);
	picture.cnt = f->box_cnt;
	for (size_t i = 0; i < f->box_cnt; i++) {
		if (str_error(&f->tips[i]) < 0 || str_error(&f->labels[i]) < 0)
			out->error = -ENOMEM;
	}
	if (flamepicture_draw(&picture, out, &left) < 0)
		out->error = -ENOMEM;
	f->cut = left.deep > 0;
}

/* What the whole width stands for; 0: nothing can be drawn. */
static double total_of(const struct report_flame *flame)
{
	double sum = 0.0;

	for (size_t i = 0; i < flame->node_cnt; i++) {
		if (flame->nodes[i].parent < 0 && flame->nodes[i].ms > 0)
			sum += flame->nodes[i].ms;
	}
	sum = MAX(sum, flame->iteration_ms);
	return isfinite(sum) && sum > 0.0 ? sum : 0.0;
}

static void put_flame(const struct report *report, bool scripted, struct str *out)
{
	struct flame f = { .of = &report->flame,
			   .iteration_ms = report->flame.iteration_ms,
			   .scripted = scripted };
	_cleanup_(str_done) struct str title = { 0 }, note = { 0 };
	const double total_ms = total_of(&report->flame);

	if (f.of->node_cnt < 2 || total_ms <= 0.0)
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
		if (scripted)
			flamescript_fields(out);
		draw(&f, total_ms, out);
		append_note(&note, &f);
		figure_close(out, markup_borrow(out, &note));
	}
	flame_done(&f);
}

void chart_flame(const struct report *report, struct str *out)
{
	put_flame(report, false, out);
}

void chart_flame_scripted(const struct report *report, struct str *out)
{
	put_flame(report, true, out);
}
