/* SPDX-License-Identifier: Apache-2.0 */
/* Tools about parts of a report: ranks compared, the call tree, and stacks of a job that hangs. */
#include "base/stats.h"
#include "mcp/mcp_parts.h"
#include "model/rankset.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FAR_MADS 5.0
#define FAR_FRAC 0.02 /* of the median, at least */
#define TOP_MAX 10u
#define HOSTS_MAX 8u
#define CALLERS_MAX 12u

/* --- rank_table --- */

struct measured {
	int rank;
	const char *host;
	double value;
};
typedef VEC(struct measured) measured_vec;

static double mean_of(const json_t *list)
{
	size_t cnt = 0, i;
	double sum = 0;
	json_t *one;

	json_array_foreach(list, i, one)
	{
		if (!json_is_number(one))
			continue;
		sum += json_number_value(one);
		cnt++;
	}
	return cnt > 0 ? sum / (double)cnt : (double)NAN;
}

static double member_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double measure(const json_t *worker, const char *name)
{
	const json_t *gpu = json_object_get(worker, "gpu");
	double iteration = mean_of(json_object_get(worker, "iteration_ms"));
	char class[16];

	if (strcmp(name, "iteration_ms") == 0)
		return iteration;
	if (strcmp(name, "late_ms") == 0)
		return mean_of(json_object_get(worker, "late_ms"));
	if (strcmp(name, "gpu_busy_pct") == 0)
		return 100 * member_number(gpu, "busy_frac");
	if (strcmp(name, "gpu_starved_pct") == 0)
		return 100 * member_number(gpu, "starved_frac");
	if (strcmp(name, "launch_delay_us") == 0)
		return member_number(gpu, "launch_delay_us");
	(void)snprintf(class, sizeof(class), "%.*s", (int)strcspn(name, "_"), name);
	return iteration * member_number(json_object_get(worker, "class_frac"), class);
}

static int measure_all(const json_t *root, const char *name, const rankset_vec *only,
		       measured_vec *ret)
{
	const json_t *workers = json_object_get(root, "workers");

	for (size_t i = 0; i < json_array_size(workers); i++) {
		const json_t *worker = json_array_get(workers, i);
		const char *host = json_string_value(json_object_get(worker, "host"));
		struct measured one = {
			.rank = (int)json_integer_value(json_object_get(worker, "rank")),
			.host = host != NULL ? host : "",
			.value = measure(worker, name),
		};
		bool wanted = only->cnt == 0;

		for (size_t k = 0; k < only->cnt && !wanted; k++)
			wanted = only->data[k] == one.rank;
		if (wanted && isfinite(one.value) && vec_push(ret, one) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int order_ranks(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int order_values(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return order_ranks(a, b);
}

static json_t *row(struct json_writer *w, const struct measured *of)
{
	json_t *ret = json_object();

	jsonwriter_put(w, ret, "rank", json_integer(of->rank));
	jsonwriter_put(w, ret, "value", jsonwriter_number(of->value));
	jsonwriter_put(w, ret, "host", toolanswer_text(of->host));
	return ret;
}

/* Ranks on one side of low..high as a set, with their hosts. values are in the order of ranks. */
static json_t *far_set(struct json_writer *w, const measured_vec *all, double low, double high,
		       size_t *ret_cnt)
{
	rankset_vec ranks = { 0 };
	struct str text = { 0 };
	json_t *ret = json_object(), *hosts = json_array();
	const char *last = NULL;

	vec_foreach(one, all) {
		if (one->value < low || one->value > high)
			continue;
		if (vec_push(&ranks, one->rank) < 0)
			w->error = -ENOMEM;
		if ((last == NULL || strcmp(last, one->host) != 0) &&
		    json_array_size(hosts) < HOSTS_MAX)
			jsonwriter_push(w, hosts, toolanswer_text(one->host));
		last = one->host;
	}
	rankset_format(&text, ranks.data, ranks.cnt);
	*ret_cnt = ranks.cnt;
	jsonwriter_put(w, ret, "count", json_integer((json_int_t)ranks.cnt));
	jsonwriter_put(w, ret, "ranks", toolanswer_ranks(str_borrow(&text)));
	jsonwriter_put(w, ret, "hosts", hosts);
	vec_done(&ranks);
	str_done(&text);
	return ret;
}

static json_t *quantiles(struct json_writer *w, double *values, size_t cnt)
{
	static const struct {
		const char *name;
		double at;
	} rows[] = { { "min", 0 },   { "p10", 0.1 },  { "median", 0.5 },
		     { "p90", 0.9 }, { "p99", 0.99 }, { "max", 1 } };
	json_t *ret = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		jsonwriter_put(w, ret, rows[i].name,
			       jsonwriter_number(stats_quantile(values, cnt, rows[i].at)));
	return ret;
}

static int compare_ranks(struct tool_call *call, measured_vec *all)
{
	struct json_writer *w = &call->answer->w;
	double *values = calloc(all->cnt + 1, sizeof(*values)), median, width;
	size_t above, below;

	if (values == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all->cnt; i++)
		values[i] = all->data[i].value;
	toolanswer_put(call->answer, "quantiles", quantiles(w, values, all->cnt));
	median = stats_median(values, all->cnt);
	width = fmax(FAR_MADS * stats_mad(values, all->cnt, median), FAR_FRAC * fabs(median));
	free(values);
	toolanswer_put(call->answer, "far_above",
		       far_set(w, all, nextafter(median + width, (double)INFINITY),
			       (double)INFINITY, &above));
	toolanswer_put(call->answer, "far_below",
		       far_set(w, all, -(double)INFINITY,
			       nextafter(median - width, -(double)INFINITY), &below));
	qsort(all->data, all->cnt, sizeof(*all->data), order_values);
	toolanswer_put(call->answer, "largest", json_array());
	for (size_t i = 0; i < MIN(all->cnt, (size_t)TOP_MAX); i++)
		(void)toolanswer_push(call->answer, "largest", row(w, &all->data[i]));
	str_printf(&call->answer->says,
		   "%zu ranks, median %.4g; %zu far above, %zu far below it (by more than %.3g).",
		   all->cnt, median, above, below, width);
	return 0;
}

static void list_ranks(struct tool_call *call, const measured_vec *all)
{
	size_t i = (size_t)tool_number(call, "cursor", 0);

	toolanswer_put(call->answer, "ranks", json_array());
	for (; i < all->cnt; i++) {
		if (!toolanswer_push(call->answer, "ranks", row(&call->answer->w, &all->data[i])))
			break;
	}
	toolanswer_put(call->answer, "cursor",
		       i < all->cnt ? json_integer((json_int_t)i) : json_null());
	str_printf(&call->answer->says, "%zu rank%s of those named are in the report.", all->cnt,
		   plural((double)all->cnt));
}

int tool_rank_table(struct tool_call *call)
{
	const char *name = tool_text(call, "measure"), *ranks = tool_text(call, "ranks");
	rankset_vec only = { 0 };
	measured_vec all = { 0 };
	const json_t *root;
	int r = tool_open_report(call, "report", &root);

	if (r == 0 && ranks != NULL)
		r = rankset_parse(ranks, &only, call->err);
	name = name != NULL ? name : "iteration_ms";
	if (r == 0)
		r = measure_all(root, name, &only, &all);
	if (r == 0)
		toolanswer_put(call->answer, "measure", jsonwriter_text(name));
	if (r == 0 && all.cnt > 0)
		qsort(all.data, all.cnt, sizeof(*all.data), order_ranks);
	if (r == 0 && ranks != NULL)
		list_ranks(call, &all);
	else if (r == 0 && all.cnt > 0)
		r = compare_ranks(call, &all);
	else if (r == 0)
		str_append(&call->answer->says, "The report does not have this measure.");
	vec_done(&only);
	vec_done(&all);
	return r;
}

/* --- call_tree --- */

static int64_t parent_of(const json_t *function)
{
	const json_t *parent = json_object_get(function, "parent");

	return json_is_integer(parent) ? json_integer_value(parent) : -1;
}

/* How many functions list has with this parent. */
static size_t count_children(const json_t *list, size_t node)
{
	size_t cnt = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		cnt += parent_of(json_array_get(list, i)) == (int64_t)node;
	return cnt;
}

static json_t *tree_row(struct json_writer *w, const json_t *list, size_t i)
{
	static const char *const keys[] = { "name", "class", "ms", "peers_ms", NULL };
	const json_t *function = json_array_get(list, i);
	double delta = member_number(function, "ms") - member_number(function, "peers_ms");
	json_t *ret = json_object();

	jsonwriter_put(w, ret, "node", json_integer((json_int_t)i));
	toolanswer_copy(w, ret, function, keys);
	jsonwriter_put(w, ret, "delta_ms", jsonwriter_number(delta));
	jsonwriter_put(w, ret, "calls", json_integer((json_int_t)count_children(list, i)));
	return ret;
}

struct weighed {
	size_t node;
	double weight;
};

static int order_weights(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Functions with this parent under key, those that differ most from the peers first. */
static int put_level(struct tool_call *call, const json_t *list, int64_t parent, const char *key,
		     size_t from)
{
	VEC(struct weighed) level = { 0 };
	size_t i = from;
	int r = 0;

	for (size_t k = 0; k < json_array_size(list) && r == 0; k++) {
		const json_t *function = json_array_get(list, k);
		double ms = member_number(function, "ms");
		double delta = ms - member_number(function, "peers_ms");
		struct weighed one = { k, isfinite(delta) ? fabs(delta) : ms };

		if (parent_of(function) == parent)
			r = vec_push(&level, one);
	}
	if (level.cnt > 0)
		qsort(level.data, level.cnt, sizeof(*level.data), order_weights);
	toolanswer_put(call->answer, key, json_array());
	for (; r == 0 && i < level.cnt; i++) {
		if (!toolanswer_push(call->answer, key,
				     tree_row(&call->answer->w, list, level.data[i].node)))
			break;
	}
	toolanswer_put(call->answer, "cursor",
		       i < level.cnt ? json_integer((json_int_t)i) : json_null());
	vec_done(&level);
	return r;
}

static void put_callers(struct tool_call *call, const json_t *list, size_t node)
{
	int64_t at = parent_of(json_array_get(list, node));

	toolanswer_put(call->answer, "callers", json_array());
	for (size_t i = 0; i < CALLERS_MAX && at >= 0 && (size_t)at < json_array_size(list); i++) {
		(void)toolanswer_push(call->answer, "callers",
				      tree_row(&call->answer->w, list, (size_t)at));
		at = parent_of(json_array_get(list, (size_t)at));
	}
}

/* The one with most time whose name has part in it; SIZE_MAX: none. */
static size_t find_function(const json_t *list, const char *part)
{
	size_t found = SIZE_MAX;
	double most = -1;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *function = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(function, "name"));
		double ms = member_number(function, "ms");

		if (archive_has_text(name, part) && !(ms <= most)) {
			found = i;
			most = ms;
		}
	}
	return found;
}

static int put_tree(struct tool_call *call, const json_t *list)
{
	const char *part = tool_text(call, "function");
	int64_t node = tool_number(call, "node", -1);
	size_t from = (size_t)tool_number(call, "cursor", 0);

	if (part != NULL) {
		node = (int64_t)find_function(list, part);
		if (node == (int64_t)SIZE_MAX)
			return err_set(call->err, ENOENT,
				       "no function in the tree has that in its name: call again "
				       "without function");
	}
	if (node >= 0 && (size_t)node >= json_array_size(list))
		return err_set(call->err, ENOENT, "node: the tree has %zu functions",
			       json_array_size(list));
	if (node >= 0) {
		toolanswer_put(call->answer, "function",
			       tree_row(&call->answer->w, list, (size_t)node));
		put_callers(call, list, (size_t)node);
	}
	return put_level(call, list, node, node >= 0 ? "callees" : "functions", from);
}

int tool_call_tree(struct tool_call *call)
{
	static const char *const keys[] = { "rank", "culprit", "peers", NULL };
	const json_t *root, *stacks, *list;
	json_t *of = json_object();
	int r = tool_open_report(call, "report", &root);

	stacks = r == 0 ? json_object_get(root, "stacks") : NULL;
	list = json_object_get(stacks, "functions");
	toolanswer_copy(&call->answer->w, of, stacks, keys);
	toolanswer_put(call->answer, "of", of);
	if (r == 0 && json_array_size(list) == 0) {
		str_append(&call->answer->says,
			   "The report has no call tree: no function in it has a caller. "
			   "get_report with part functions lists where the time went.");
		return 0;
	}
	if (r == 0)
		r = put_tree(call, list);
	str_append(&call->answer->says,
		   "Milliseconds per iteration on the critical path, with callees; peers_ms is the "
		   "mean of the peers. Call again with a node for what it calls.");
	return r;
}

/* --- stacks --- */

/* Indented labels with their ranks: "    main (train.py:31) @ 0-1|3". */
static json_t *stack_line(const json_t *tree, size_t i)
{
	const json_t *node = json_array_get(tree, i);
	const char *label = json_string_value(json_object_get(node, "label"));
	const char *ranks = json_string_value(json_object_get(node, "ranks"));
	struct str line = { 0 };
	int64_t at = (int64_t)i;
	int depth = -1;
	json_t *ret;

	for (int k = 0; k < 64 && at >= 0; k++, depth++) {
		int64_t parent = parent_of(json_array_get(tree, (size_t)at));

		at = parent < at ? parent : -1;
	}
	str_printf(&line, "%d: %s @ %s", depth, label != NULL ? label : "?",
		   ranks != NULL ? ranks : "?");
	ret = str_error(&line) == 0 ? toolanswer_text(str_borrow(&line)) : NULL;
	str_done(&line);
	return ret;
}

int tool_stacks(struct tool_call *call)
{
	const json_t *root, *stacks, *tree;
	size_t i = (size_t)tool_number(call, "cursor", 0);
	int r = tool_open_report(call, "report", &root);

	if (r < 0)
		return r;
	stacks = json_object_get(root, "hang_stacks");
	tree = json_object_get(stacks, "tree");
	toolanswer_put(call->answer, "lines", json_array());
	for (i = i > 0 ? i : 1; i < json_array_size(tree); i++) { /* 0: the root */
		if (!toolanswer_push(call->answer, "lines", stack_line(tree, i)))
			break;
	}
	toolanswer_put(call->answer, "cursor",
		       i < json_array_size(tree) ? json_integer((json_int_t)i) : json_null());
	str_append(
		&call->answer->says,
		json_array_size(tree) > 0
			? "Stacks of all threads, callers first: depth: function @ ranks that are "
			  "there|ranks that are not."
			: "The report has no stacks of processes: they are read when a job hangs. "
			  "call_tree has where the time went.");
	return 0;
}
