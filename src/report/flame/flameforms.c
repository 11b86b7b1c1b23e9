/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flame/flameforms.h"

#include "model/rankset.h"
#include "report/flame/flamepicture.h"
#include "report/flame/flamescript.h"
#include "report/html/document.h"
#include "report/html/markup.h"
#include "report/html/style.h"
#include "report/jsonwriter.h"
#include "report/phrase.h"

#include <errno.h>
#include <stdlib.h>

#define NS_PER_MS 1e6
#define OUT_FACTOR 2   /* a rank stands out with more than this many times the others' mean */
#define OUT_FRAC 0.02  /* ... and this share of the whole of a rank more than it */
#define DEPTH_MAX 1024 /* of a folded line; the callers of what is deeper are left out */

/* --- ranks of a node --- */

static int by_number(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

void flameforms_append_ranks(struct str *out, const struct flameforms *f,
			     const struct flametree_node *node)
{
	_cleanup_free_ int *have = calloc(f->rank_cnt + 1, sizeof(*have));
	_cleanup_free_ int *lack = calloc(f->rank_cnt + 1, sizeof(*lack));
	size_t have_cnt = 0, lack_cnt = 0, next = 0;

	if (have == NULL || lack == NULL) {
		out->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < f->rank_cnt; i++) {
		if (next < node->members.cnt && node->members.data[next] == i) {
			have[have_cnt++] = f->ranks[i];
			next++;
		} else {
			lack[lack_cnt++] = f->ranks[i];
		}
	}
	qsort(have, have_cnt, sizeof(*have), by_number);
	qsort(lack, lack_cnt, sizeof(*lack), by_number);
	str_append(out, "@");
	rankset_format(out, have, have_cnt);
	if (lack_cnt > 0) {
		str_append(out, "|");
		rankset_format(out, lack, lack_cnt);
	}
}

/* --- folded lines --- */

/* Semicolons and line ends separate frames and stacks. */
static void append_label(struct str *out, const char *label)
{
	for (; *label != '\0'; label++)
		str_append_char(out, *label == ';' ? ':' : *label == '\n' ? ' ' : *label);
}

int flameforms_folded(const struct flameforms *f, struct str *out)
{
	const struct flametree *tree = f->tree;
	const size_t start = out->len;

	for (uint32_t at = FLAMETREE_ROOT; at != FLAMETREE_NONE; at = flametree_next(tree, at)) {
		const struct flametree_node *node = &tree->nodes.data[at];
		uint32_t path[DEPTH_MAX];
		size_t cnt = 0;

		if (node->self < 500) /* ns: zero microseconds */
			continue;
		for (uint32_t up = at; up != FLAMETREE_ROOT && cnt < DEPTH_MAX;
		     up = tree->nodes.data[up].parent)
			path[cnt++] = up;
		while (cnt-- > 0) {
			append_label(out, flametree_text(tree, path[cnt]));
			str_append(out, cnt > 0 ? ";" : " ");
		}
		str_printf(out, "%.0f\n", node->self / 1000);
	}
	return str_finish(out, start);
}

/* --- speedscope --- */

static json_t *speedscope_profile(struct json_writer *w, const struct flametree *tree)
{
	json_t *profile = json_object(), *samples = json_array(), *weights = json_array();
	double sum = 0;

	for (uint32_t at = FLAMETREE_ROOT; at != FLAMETREE_NONE; at = flametree_next(tree, at)) {
		const struct flametree_node *node = &tree->nodes.data[at];
		uint32_t path[DEPTH_MAX];
		size_t cnt = 0;
		json_t *stack;

		if (node->self <= 0)
			continue;
		for (uint32_t up = at; up != FLAMETREE_ROOT && cnt < DEPTH_MAX;
		     up = tree->nodes.data[up].parent)
			path[cnt++] = up;
		stack = json_array();
		while (cnt-- > 0)
			jsonwriter_push(w, stack, json_integer(tree->nodes.data[path[cnt]].label));
		jsonwriter_push(w, samples, stack);
		jsonwriter_push(w, weights, jsonwriter_number(node->self / NS_PER_MS));
		sum += node->self / NS_PER_MS;
	}
	jsonwriter_put_text(w, profile, "type", "sampled");
	jsonwriter_put_text(w, profile, "name", "all ranks");
	jsonwriter_put_text(w, profile, "unit", "milliseconds");
	jsonwriter_put(w, profile, "startValue", json_integer(0));
	jsonwriter_put(w, profile, "endValue", jsonwriter_number(sum));
	jsonwriter_put(w, profile, "samples", samples);
	jsonwriter_put(w, profile, "weights", weights);
	return profile;
}

int flameforms_speedscope(const struct flameforms *f, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *shared = json_object(), *frames = json_array();
	json_t *profiles = json_array();

	for (size_t i = 0; i < f->tree->labels.cnt; i++) {
		json_t *frame = json_object();

		jsonwriter_put(&w, frame, "name",
			       jsonwriter_text(strtab_text(&f->tree->labels, (uint32_t)i)));
		jsonwriter_push(&w, frames, frame);
	}
	jsonwriter_push(&w, profiles, speedscope_profile(&w, f->tree));
	jsonwriter_put_text(&w, root, "$schema",
			    "https://www.speedscope.app/file-format-schema.json");
	jsonwriter_put_text(&w, root, "name", f->what);
	jsonwriter_put_text(&w, root, "exporter", "perftracker " PT_VERSION);
	jsonwriter_put(&w, shared, "frames", frames);
	jsonwriter_put(&w, root, "shared", shared);
	jsonwriter_put(&w, root, "profiles", profiles);
	return jsonwriter_print(&w, root, out);
}

/* --- pictures --- */

/* What the ranks without the one that has the most have of a node on average. */
static double others_mean(const struct flameforms *f, const struct flametree_node *node)
{
	return f->rank_cnt > 1 ? (node->total - node->most) / (double)(f->rank_cnt - 1) : 0;
}

/* Whether one rank has much more of it than the others, and of the whole. */
static bool stands_out(const struct flameforms *f, const struct flametree_node *node)
{
	const double whole = f->tree->nodes.data[FLAMETREE_ROOT].total;

	return f->rank_cnt > 1 && node->most > OUT_FACTOR * others_mean(f, node) &&
	       node->most - others_mean(f, node) > OUT_FRAC * whole / (double)f->rank_cnt;
}

static const char *class_of(const struct flameforms *f, const struct flametree_node *node)
{
	if (stands_out(f, node))
		return "heat h6";
	if (node->members.cnt < f->rank_cnt)
		return "heat h2";
	switch ((enum flametree_kind)node->kind) {
	case FLAMETREE_DEVICE:
		return "compute on";
	case FLAMETREE_OPERATOR:
		return "less h1";
	case FLAMETREE_PYTHON:
	case FLAMETREE_OTHER:
	default:
		return "alike";
	}
}

static void append_tip(struct str *tip, const struct flameforms *f, uint32_t at)
{
	const struct flametree_node *node = &f->tree->nodes.data[at];
	const double total = f->tree->nodes.data[FLAMETREE_ROOT].total;

	str_printf(tip, "%s: ", flametree_text(f->tree, at));
	phrase_ms(tip, node->total / NS_PER_MS);
	str_append(tip, ", ");
	phrase_pct(tip, total > 0 ? 100 * node->total / total : 0);
	if (node->self > 0 && node->first_child != FLAMETREE_NONE) {
		str_append(tip, ", itself ");
		phrase_ms(tip, node->self / NS_PER_MS);
	}
	if (f->rank_cnt > 1) {
		str_append(tip, ", ");
		flameforms_append_ranks(tip, f, node);
		str_printf(tip, ", most on rank %d: ", f->ranks[node->most_member]);
		phrase_ms(tip, node->most / NS_PER_MS);
		str_append(tip, ", mean of the others ");
		phrase_ms(tip, others_mean(f, node) / NS_PER_MS);
	}
}

static bool is_dark(const struct flameforms *f, const struct flametree_node *node)
{
	return stands_out(f, node) ||
	       (node->kind == FLAMETREE_DEVICE && node->members.cnt >= f->rank_cnt);
}

struct boxes {
	struct flamebox *list;
	struct str *tips;
	size_t cnt;
};

static void boxes_done(struct boxes *boxes)
{
	for (size_t i = 0; i < boxes->cnt; i++)
		str_done(&boxes->tips[i]);
	free(boxes->list);
	free(boxes->tips);
}

/* Boxes in depth-first order, so that callers and heavier siblings come first. */
static int make_boxes(const struct flameforms *f, struct boxes *boxes)
{
	const size_t cnt = f->tree->nodes.cnt;
	const double least = f->tree->nodes.data[FLAMETREE_ROOT].total / 1e6;
	_cleanup_free_ uint32_t *box_of = calloc(cnt, sizeof(*box_of));
	uint32_t at = FLAMETREE_ROOT;

	boxes->list = calloc(cnt, sizeof(*boxes->list));
	boxes->tips = calloc(cnt, sizeof(*boxes->tips));
	if (box_of == NULL || boxes->list == NULL || boxes->tips == NULL)
		return -ENOMEM;
	while ((at = flametree_next(f->tree, at)) != FLAMETREE_NONE) {
		const struct flametree_node *node = &f->tree->nodes.data[at];
		const uint32_t parent = node->parent;
		struct str *tip = &boxes->tips[boxes->cnt];

		box_of[at] = FLAMEBOX_ROOT;
		if (node->total < least ||
		    (parent != FLAMETREE_ROOT && box_of[parent] == FLAMEBOX_ROOT))
			continue;
		append_tip(tip, f, at);
		box_of[at] = (uint32_t)boxes->cnt;
		boxes->list[boxes->cnt++] = (struct flamebox){
			.parent = parent == FLAMETREE_ROOT ? FLAMEBOX_ROOT : box_of[parent],
			.width = node->total,
			.label = flametree_text(f->tree, at),
			.tip = str_borrow(tip),
			.class = class_of(f, node),
			.on = is_dark(f, node),
		};
		if (str_error(tip) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int draw(const struct flameforms *f, bool scripted, struct str *out,
		struct flamepicture_left *left)
{
	struct boxes boxes = { 0 };
	int error = make_boxes(f, &boxes);

	if (error == 0) {
		const struct flamepicture picture = {
			.boxes = boxes.list,
			.cnt = boxes.cnt,
			.total = f->tree->nodes.data[FLAMETREE_ROOT].total,
			.id = "flame",
			.title = "Call stacks",
			.desc = "Boxes are functions, widths their time.",
			.scripted = scripted,
		};

		error = flamepicture_draw(&picture, out, left);
	}
	boxes_done(&boxes);
	return error;
}

int flameforms_svg(const struct flameforms *f, struct str *out)
{
	struct flamepicture_left left;
	struct str picture = { 0 };
	const size_t start = out->len;
	int error = draw(f, false, &picture, &left);

	if (error == 0) {
		const char *svg = str_borrow(&picture);

		/* The style is inside, so that the picture is a file of its own. */
		while (*svg != '\0' && *svg != '>')
			svg++;
		str_append_len(out, str_borrow(&picture), (size_t)(svg - str_borrow(&picture)));
		str_append(out, " xmlns=\"http://www.w3.org/2000/svg\"><style>");
		str_append(out, report_style);
		str_append(out, "</style>");
		str_append(out, *svg != '\0' ? svg + 1 : svg);
		error = str_finish(out, start);
	}
	str_done(&picture);
	return error;
}

static void append_legend(const struct flameforms *f, struct str *out)
{
	str_append(out, "<p>Widths are the ");
	str_append(out, f->what);
	str_append(out, "; callers are above what they call. ");
	if (f->rank_cnt > 1)
		str_append(out,
			   "Pale red: not all ranks have the frame; the tip has the ranks that do "
			   "and, behind the bar, those that do not. Red: one rank has more than "
			   "twice the mean of the others. ");
	str_append(out, "Click or Enter: zoom; Escape: back; arrows: move; /: search.</p>\n");
}

int flameforms_html(const struct flameforms *f, struct str *out)
{
	const struct document page = { .word = "FLAME",
				       .tone = "inconclusive",
				       .skip = "picture",
				       .script_hash = flamescript_hash };
	struct flamepicture_left left;
	struct str sentence = { 0 };
	const size_t start = out->len;
	int error;

	str_printf(&sentence, "%s, ", f->what);
	phrase_ms(&sentence, f->tree->nodes.data[FLAMETREE_ROOT].total / NS_PER_MS);
	str_printf(&sentence, ": %s", f->subject);
	document_open(out, &page, &sentence);
	str_append(out, "</header><main id=\"main\"><section><h2>Call stacks</h2><figure>\n");
	append_legend(f, out);
	flamescript_controls(out);
	error = draw(f, true, out, &left);
	if (error < 0) {
		out->error = error;
		return str_finish(out, start);
	}
	if (left.narrow > 0)
		str_printf(out, "<p>%zu box%s too narrow to be drawn.</p>\n", left.narrow,
			   left.narrow == 1 ? " is" : "es are");
	str_append(out, "</figure></section>\n");
	flamescript_append(out);
	document_close(out, "perftracker flame --format folded has all of it.");
	return str_finish(out, start);
}
