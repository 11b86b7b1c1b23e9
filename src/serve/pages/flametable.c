/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/flametable.h"

#include "base/vec.h"
#include "model/rankset.h"
#include "report/html/markup.h"
#include "report/phrase.h"
#include "serve/pages/pageparts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 40u
#define RELATED_MAX 15u
#define NAME_CELLS 200
#define NODES_MAX 2000u /* a report has 400; more would take long */

/* One name, over all places. */
struct line {
	const char *name;
	double self_ms, total_ms, peers_ms,
		peers_self_ms; /* total: without recursion counted twice */
	/* On which ranks it was seen at any place. */
	bool on_all;
	rankset_vec ranks;
};

struct lines {
	VEC(struct line) list;
};

static void lines_done(struct lines *lines)
{
	vec_foreach(line, &lines->list)
		vec_done(&line->ranks);
	vec_done(&lines->list);
}

static bool has_rank(const struct line *line, int rank)
{
	vec_foreach(known, &line->ranks) {
		if (*known == rank)
			return true;
	}
	return false;
}

/* Adds the ranks of one place; what memory does not suffice for is not known. */
static void add_ranks(struct line *line, const struct report_flame_node *node)
{
	line->on_all |= node->rank_cnt == 0;
	for (size_t i = 0; i < node->rank_cnt && !line->on_all; i++) {
		if (!has_rank(line, node->ranks[i]) && vec_push(&line->ranks, node->ranks[i]) < 0)
			line->on_all = true;
	}
}

static double ms_of(double ms)
{
	return isfinite(ms) && ms > 0 ? ms : 0.0;
}

static bool has_parent(const struct report_flame *flame, size_t i)
{
	return flame->nodes[i].parent >= 0 && (size_t)flame->nodes[i].parent < i;
}

/* Whether a caller of the node has its name: the caller's time has the node's in it. */
static bool is_recursive(const struct report_flame *flame, size_t i)
{
	size_t at = i;

	while (has_parent(flame, at)) {
		at = (size_t)flame->nodes[at].parent;
		if (strcmp(flame->nodes[at].name, flame->nodes[i].name) == 0)
			return true;
	}
	return false;
}

static struct line *find_line(struct lines *lines, const char *name)
{
	vec_foreach(line, &lines->list) {
		if (strcmp(line->name, name) == 0)
			return line;
	}
	if (vec_push(&lines->list, (struct line){ .name = name }) < 0)
		return NULL;
	return &lines->list.data[lines->list.cnt - 1];
}

static void add_node(struct lines *lines, const struct report_flame *flame, size_t i,
		     const double *own, const double *own_peers)
{
	const struct report_flame_node *node = &flame->nodes[i];
	struct line *line = find_line(lines, node->name);

	if (line == NULL)
		return;
	line->self_ms += ms_of(own[i]);
	line->peers_self_ms += ms_of(own_peers[i]);
	if (!is_recursive(flame, i)) {
		line->total_ms += ms_of(node->ms);
		line->peers_ms += ms_of(node->peers_ms);
	}
	add_ranks(line, node);
}

static int by_difference(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	double dx = fabs(x->self_ms - x->peers_self_ms), dy = fabs(y->self_ms - y->peers_self_ms);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	if (x->self_ms != y->self_ms)
		return x->self_ms > y->self_ms ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* --- rows --- */

static void put_ms(struct str *out, const char *name, double ms)
{
	struct str text = { 0 };

	phrase_ms(&text, ms);
	str_printf(out, "<td class=\"n\" data-name=\"%s\">", name);
	markup_take(out, &text);
	str_append(out, "</td>");
}

static void put_name(struct str *out, const char *id, const char *name)
{
	str_append(out, "<tr><td class=\"name\"><a href=\"/reports/");
	pageparts_url(out, id);
	str_append(out, "/flame?function=");
	pageparts_url(out, name);
	str_append(out, "#function\"><bdi>");
	markup_text_short(out, name, NAME_CELLS);
	str_append(out, "</bdi></a></td>");
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void put_ranks(struct str *out, const struct report_flame *flame, const struct line *line)
{
	struct str text = { 0 };
	size_t cnt = line->ranks.cnt;

	if (cnt > 0)
		qsort(line->ranks.data, cnt, sizeof(int), by_number);
	str_append(out, "<td data-name=\"Seen on\">");
	if (flame->compared_cnt == 0)
		str_append(&text, "not known");
	else if (line->on_all || cnt >= flame->compared_cnt)
		str_append(&text, "all");
	else
		phrase_rank_list(&text, line->ranks.data, cnt, 60);
	markup_take(out, &text);
	str_append(out, "</td></tr>\n");
}

static void open_table(struct str *out, const char *label, const char *const columns[])
{
	str_printf(out,
		   "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table "
		   "class=\"findings\"><thead><tr><th scope=\"col\">Function</th>",
		   label);
	for (size_t i = 0; columns[i] != NULL; i++)
		str_printf(out, "<th scope=\"col\" class=\"n\">%s</th>", columns[i]);
	str_append(out, "<th scope=\"col\">Seen on ranks</th></tr></thead><tbody>\n");
}

static void close_table(struct str *out, size_t more)
{
	str_append(out, "</tbody></table></div>\n");
	if (more > 0)
		str_printf(out, "<p class=\"note\">%zu more</p>\n", more);
}

static void put_all(struct str *out, const struct report_flame *flame, const struct lines *lines,
		    const char *id)
{
	static const char *const columns[] = { "By itself", "Peers", "With what it calls", "Peers",
					       NULL };
	size_t cnt = lines->list.cnt, shown = MIN(cnt, (size_t)ROWS_MAX);

	str_append(out,
		   "<h2>Functions</h2>\n<p class=\"note\">Those that differ most from the peers "
		   "by themselves come first. A name leads to its callers and callees.</p>\n");
	open_table(out, "Functions", columns);
	for (size_t i = 0; i < shown; i++) {
		const struct line *line = &lines->list.data[i];

		put_name(out, id, line->name);
		put_ms(out, "By itself", line->self_ms);
		put_ms(out, "Peers by itself", line->peers_self_ms);
		put_ms(out, "With what it calls", line->total_ms);
		put_ms(out, "Peers with that", line->peers_ms);
		put_ranks(out, flame, line);
	}
	close_table(out, cnt - shown);
}

/* --- callers and callees --- */

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->total_ms != y->total_ms)
		return x->total_ms > y->total_ms ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Callers: the time that they spend in the function; callees: what they take of its time. */
static void put_related(struct str *out, const struct report_flame *flame, const char *id,
			const char *chosen, bool callers)
{
	static const char *const columns[] = { "Time", "Peers", NULL };
	struct lines lines = { { 0 } };
	size_t shown;

	for (size_t i = 0; i < flame->node_cnt; i++) {
		const struct report_flame_node *node = &flame->nodes[i];
		const struct report_flame_node *up =
			has_parent(flame, i) ? &flame->nodes[node->parent] : NULL;
		const struct report_flame_node *of = callers ? node : up,
					       *named = callers ? up : node;
		struct line *line;

		if (of == NULL || named == NULL || strcmp(of->name, chosen) != 0)
			continue;
		line = find_line(&lines, named->name);
		if (line == NULL)
			continue;
		line->total_ms += ms_of(node->ms);
		line->peers_ms += ms_of(node->peers_ms);
		add_ranks(line, node);
	}
	if (lines.list.cnt > 0)
		qsort(lines.list.data, lines.list.cnt, sizeof(*lines.list.data), by_time);
	shown = MIN(lines.list.cnt, (size_t)RELATED_MAX);
	str_printf(out, "<h3>%s</h3>\n", callers ? "Called by" : "Calls");
	if (shown == 0) {
		str_append(out, "<p class=\"note\">Nothing that was recorded.</p>\n");
	} else {
		open_table(out, callers ? "Callers" : "Callees", columns);
		for (size_t i = 0; i < shown; i++) {
			put_name(out, id, lines.list.data[i].name);
			put_ms(out, "Time", lines.list.data[i].total_ms);
			put_ms(out, "Peers", lines.list.data[i].peers_ms);
			put_ranks(out, flame, &lines.list.data[i]);
		}
		close_table(out, lines.list.cnt - shown);
	}
	lines_done(&lines);
}

static bool is_known(const struct report_flame *flame, const char *name)
{
	for (size_t i = 0; i < flame->node_cnt; i++) {
		if (strcmp(flame->nodes[i].name, name) == 0)
			return true;
	}
	return false;
}

static void put_chosen(struct str *out, const struct report_flame *flame, const char *id,
		       const char *chosen)
{
	str_append(out, "<section id=\"function\"><h2><bdi>");
	markup_text_short(out, chosen, NAME_CELLS);
	str_append(out, "</bdi></h2>\n");
	if (is_known(flame, chosen)) {
		put_related(out, flame, id, chosen, true);
		put_related(out, flame, id, chosen, false);
	} else {
		str_append(out,
			   "<p class=\"note\">No function of these stacks has this name.</p>\n");
	}
	str_append(out, "</section>\n");
}

void flametable_put(struct str *out, const struct report_flame *all, const char *id,
		    const char *chosen)
{
	struct report_flame part = *all;
	const struct report_flame *flame = &part;
	double *own = calloc(flame->node_cnt + 1, sizeof(*own));
	double *own_peers = calloc(flame->node_cnt + 1, sizeof(*own_peers));
	struct lines lines = { { 0 } };

	part.node_cnt = MIN(part.node_cnt, (size_t)NODES_MAX);
	for (size_t i = 0; own != NULL && own_peers != NULL && i < flame->node_cnt; i++) {
		own[i] += ms_of(flame->nodes[i].ms);
		own_peers[i] += ms_of(flame->nodes[i].peers_ms);
		if (!has_parent(flame, i))
			continue;
		own[flame->nodes[i].parent] -= ms_of(flame->nodes[i].ms);
		own_peers[flame->nodes[i].parent] -= ms_of(flame->nodes[i].peers_ms);
	}
	for (size_t i = 0; own != NULL && own_peers != NULL && i < flame->node_cnt; i++)
		add_node(&lines, flame, i, own, own_peers);
	if (lines.list.cnt > 0)
		qsort(lines.list.data, lines.list.cnt, sizeof(*lines.list.data), by_difference);
	if (chosen != NULL && chosen[0] != '\0')
		put_chosen(out, flame, id, chosen);
	put_all(out, flame, &lines, id);
	lines_done(&lines);
	free(own);
	free(own_peers);
}
