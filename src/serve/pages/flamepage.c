/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stacks of a report as a page of their own: the picture of the report, with search, zoom
 * and keyboard, and tables of its functions. It is made from the report's JSON; without a script the picture and the
 * tables remain.
 */
#include "base/vec.h"
#include "model/rankset.h"
#include "report/flame/flamescript.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "serve/pages/flametable.h"
#include "serve/pages/pageparts.h"

#include <errno.h>
#include <string.h>

#define NODES_MAX 20000u
#define RANKS_MAX 30000u  /* of all sets: PerfTracker writes 400 nodes of 65 at most */
#define DEFAULT_MS 1000.0 /* a report without iterations counts time per second of the window */

static enum event_class class_of(const char *name)
{
	for (int i = 0; name != NULL && i < CLASS_CNT; i++) {
		if (strcmp(event_class_name((enum event_class)i), name) == 0)
			return (enum event_class)i;
	}
	return CLASS_IDLE;
}

/* Sets of ranks of a file, kept until the page is made. */
struct rank_sets {
	VEC(int *) list;
	size_t rank_cnt; /* of all */
};

static void rank_sets_done(struct rank_sets *sets)
{
	vec_foreach(set, &sets->list)
		free(*set);
	vec_done(&sets->list);
}

/* NULL and 0 for what is no set. */
static const int *take_ranks(struct rank_sets *sets, const json_t *text, size_t *ret_cnt)
{
	const char *ranks = json_string_value(text);
	rankset_vec set = { 0 };

	*ret_cnt = 0;
	if (ranks == NULL || sets->rank_cnt > RANKS_MAX || rankset_parse(ranks, &set, NULL) < 0)
		return NULL;
	sets->rank_cnt += set.cnt;
	if (set.cnt > RANKS_MAX || vec_push(&sets->list, set.data) < 0) {
		vec_done(&set);
		return NULL;
	}
	*ret_cnt = set.cnt;
	return set.data;
}

/* Of a file: parents come before their children, or a node is a root. */
static void take_node(const json_t *from, size_t place, struct report_flame_node *ret)
{
	const json_t *parent = json_object_get(from, "parent");
	const char *name = json_string_value(json_object_get(from, "name"));
	json_int_t up = json_is_integer(parent) ? json_integer_value(parent) : -1;

	*ret = (struct report_flame_node){
		.name = name != NULL ? name : "",
		.parent = up >= 0 && (size_t)up < place ? (int)up : -1,
		.class = class_of(json_string_value(json_object_get(from, "class"))),
		.ms = json_number_value(json_object_get(from, "ms")),
		.peers_ms = json_number_value(json_object_get(from, "peers_ms")),
	};
}

/* Names are borrowed from root. Returns the nodes for free(); NULL: out of memory. */
static struct report_flame_node *take_flame(const json_t *root, struct rank_sets *sets,
					    struct report_flame *ret)
{
	const json_t *flame = json_object_get(root, "stacks"),
		     *list = json_object_get(flame, "functions");
	size_t cnt = MIN(json_array_size(list), (size_t)NODES_MAX);
	struct report_flame_node *nodes = calloc(cnt + 1, sizeof(*nodes));
	double iteration_ms =
		json_number_value(json_object_get(json_object_get(root, "job"), "iteration_ms"));
	json_int_t peers = json_integer_value(json_object_get(flame, "peers"));

	for (size_t i = 0; nodes != NULL && i < cnt; i++) {
		const json_t *from = json_array_get(list, i);

		take_node(from, i, &nodes[i]);
		nodes[i].ranks =
			take_ranks(sets, json_object_get(from, "ranks"), &nodes[i].rank_cnt);
	}
	*ret = (struct report_flame){
		.nodes = nodes,
		.node_cnt = nodes != NULL ? cnt : 0,
		.rank = (int)json_integer_value(json_object_get(flame, "rank")),
		.culprit = json_is_true(json_object_get(flame, "culprit")),
		.sampled = !(iteration_ms > 0.0),
		.peer_cnt = peers > 0 ? (size_t)peers : 0,
		.iteration_ms = iteration_ms > 0.0 ? iteration_ms : DEFAULT_MS,
	};
	ret->compared = take_ranks(sets, json_object_get(flame, "compared"), &ret->compared_cnt);
	return nodes;
}

static void put_help(struct str *out)
{
	str_append(
		out,
		"<p class=\"note\">Click a box, or press Enter on it, to zoom; Escape shows all. "
		"Arrows move, / goes to the search, Enter there to the next hit.</p>\n");
}

static int put_page(struct call *call, const json_t *root, struct str *out)
{
	struct report *report = calloc(1, sizeof(*report));
	struct rank_sets sets = { { 0 } };
	struct report_flame_node *nodes;

	if (report == NULL)
		return err_set(call->err, ENOMEM, "out of memory");
	nodes = take_flame(root, &sets, &report->flame);
	if (nodes == NULL || report->flame.node_cnt < 2) {
		free(nodes);
		free(report);
		rank_sets_done(&sets);
		return err_set(call->err, nodes == NULL ? ENOMEM : ENOENT,
			       "report %.60s has no call stacks: its ranks recorded none",
			       call->part);
	}
	pageparts_open_with(out, "Call stacks", "/flame.js");
	pageparts_report_nav(out, call->part, root, "flame");
	pageparts_answer(out, root,
			 json_string_value(json_object_get(json_object_get(root, "job"), "id")),
			 NULL);
	str_append(out, "<section class=\"window flame\">\n");
	put_help(out);
	chart_flame_scripted(report, out);
	flametable_put(out, &report->flame, call->part, request_query(call->request, "function"));
	str_append(out, "</section>\n");
	pageparts_close(out);
	rank_sets_done(&sets);
	free(nodes);
	free(report);
	return str_error(out);
}

int page_flame(struct call *call, struct answer *ret)
{
	json_t *root = NULL;
	int error = pageparts_read_report(call, &root);

	if (error == 0)
		error = put_page(call, root, &ret->body);
	json_decref(root);
	return error;
}

int file_flame(struct call *call _unused_, struct answer *ret)
{
	str_append(&ret->body, flamescript_text);
	return str_error(&ret->body);
}
