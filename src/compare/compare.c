/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/compare.h"

#include "base/stats.h"
#include "compare/accounts.h"
#include "compare/judge.h"
#include "compare/pairing.h"
#include "compare/significance.h"
#include "format/fingerprint/funckey.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STACK_MAX 200	 /* maximum number of callers listed */
#define COMMON_LEAST 0.5 /* of the time: below it the runs are hardly of the same job */
#define NOTES_MAX 16

/* The state of one comparison. */
struct maker {
	const struct compare_options *options;
	struct run_tree before, after;
	struct accounts accounts;
	struct judge judge;
	struct comparison *out;
	struct change *changes; /* by account; later only those that are listed */
	const char *notes[NOTES_MAX];
	int error; /* of copies; checked once at the end */
};

static void maker_done(struct maker *m)
{
	judge_done(&m->judge);
	accounts_done(&m->accounts);
	run_tree_done(&m->before);
	run_tree_done(&m->after);
}

static const char *copy(struct maker *m, const char *text)
{
	const char *made = arena_strdup(&m->out->arena, text != NULL ? text : "");

	if (made == NULL)
		m->error = -ENOMEM;
	return made;
}

static void note(struct maker *m, const char *text)
{
	if (text == NULL)
		m->error = -ENOMEM;
	else if (m->out->note_cnt < NOTES_MAX)
		m->notes[m->out->note_cnt++] = text;
}

/* --- the two runs --- */

static double median_iterations(const struct run_tree *run)
{
	_cleanup_free_ double *counts = calloc(run->window_cnt, sizeof(*counts));

	for (size_t i = 0; i < run->window_cnt && counts != NULL; i++)
		counts[i] = run->windows[i].iterations;
	return counts != NULL ? stats_median(counts, run->window_cnt) : (double)NAN;
}

static void describe_run(struct maker *m, const struct compare_run *run,
			 const struct run_tree *tree, struct comparison_side *ret)
{
	*ret = (struct comparison_side){
		.label = copy(m, run->label),
		.job_id = copy(m, run->fps[0]->job_id),
		.device_name = copy(m, run->fps[0]->device_name),
		.worker_cnt = tree->rank_cnt,
		.window_cnt = tree->repeat_cnt,
		.iterations = median_iterations(tree),
		.iteration_ms = tree->iteration_ms,
		.iterations_known = true,
	};
	if (isnan(ret->iterations))
		m->error = -ENOMEM;
	for (size_t i = 0; i < tree->window_cnt; i++) {
		const struct run_window *w = &tree->windows[i];

		ret->iterations_known &= w->fp->iterations_known;
		for (int class = 0; class < CLASS_CNT; class ++)
			ret->class_ms[class] += (double)w->fp->class_ns[class] / 1e6 /
						w->iterations / (double)tree->window_cnt;
	}
}

/* --- changes --- */

/* Names from the root to the caller of node. */
static const char *const *copy_stack(struct maker *m, const struct run_tree *run, uint32_t node,
				     size_t *ret_cnt)
{
	const char **stack;
	size_t cnt = 0;

	for (uint32_t n = run->nodes.data[node].parent; n != NODE_NONE && n != NODE_ROOT;
	     n = run->nodes.data[n].parent)
		cnt++;
	*ret_cnt = cnt = MIN(cnt, (size_t)STACK_MAX);
	stack = arena_calloc(&m->out->arena, cnt + 1, sizeof(*stack));
	if (stack == NULL) {
		m->error = -ENOMEM;
		*ret_cnt = 0;
		return NULL;
	}
	for (uint32_t n = run->nodes.data[node].parent; cnt > 0; n = run->nodes.data[n].parent)
		stack[--cnt] = copy(m, run->nodes.data[n].name);
	return stack;
}

static void name_change(struct maker *m, const struct account *account, struct change *c)
{
	bool gone = account->after.node == NODE_NONE;
	const struct run_tree *run = gone ? &m->before : &m->after;
	uint32_t node = gone ? account->before.node : account->after.node;
	const struct run_node *n = &run->nodes.data[node];
	char hex[33];

	funckey_hex(n->key, hex);
	c->key = copy(m, hex);
	c->name = copy(m, node == NODE_ROOT ? "nothing recorded" : n->name);
	if (n->launched_by != NULL)
		c->launched_by = copy(m, n->launched_by);
	c->stack = copy_stack(m, run, node, &c->stack_cnt);
	if (account->kind == CHANGE_RENAMED)
		c->old_name = copy(m, m->before.nodes.data[account->before.node].name);
	if (account->kind == CHANGE_MOVED)
		c->old_stack = copy_stack(m, &m->before, account->before.node, &c->old_stack_cnt);
}

static struct change_side sum_side(const struct run_tree *run, const struct account_side *side)
{
	struct change_side sum = { .thread_ms = side->thread_ms, .runs = side->runs };

	for (size_t i = 0; i < run->window_cnt; i++)
		sum.ms += side->ms[i] / (double)run->window_cnt;
	if (side->node != NODE_NONE)
		sum.tree_ms = run->nodes.data[side->node].tree_ms;
	return sum;
}

static enum event_class largest_class(const struct account *account)
{
	int largest = CLASS_IDLE;

	for (int class = 0; class < CLASS_CNT; class ++) {
		if (account->class_ms[class] > account->class_ms[largest])
			largest = class;
	}
	return (enum event_class)largest;
}

static struct change weigh_account(const struct maker *m, const struct account *account)
{
	struct judge_values values = { account->before.ms, account->before.spread,
				       account->after.ms, account->after.spread };
	struct change c = {
		.kind = account->kind,
		.class = largest_class(account),
		.function_cnt = account->function_cnt,
		.before = sum_side(&m->before, &account->before),
		.after = sum_side(&m->after, &account->after),
		.p = judge_chance(&m->judge, &values),
	};

	c.delta_ms = c.after.ms - c.before.ms;
	c.delta_pct = 100 * c.delta_ms / m->before.iteration_ms;
	if (c.kind == CHANGE_GREW && c.delta_ms < 0)
		c.kind = CHANGE_SHRANK;
	return c;
}

/* New or removed, and executed every iteration in its run: not a fluctuation. */
static bool is_structural(const struct change *c)
{
	return (c->kind == CHANGE_APPEARED && c->after.runs >= 1) ||
	       (c->kind == CHANGE_VANISHED && c->before.runs >= 1);
}

static int adjust_chances(struct maker *m, size_t cnt)
{
	_cleanup_free_ double *p = calloc(cnt + 1, sizeof(*p)), *q = calloc(cnt + 1, sizeof(*q));
	_cleanup_free_ size_t *order = calloc(cnt + 1, sizeof(*order));

	if (p == NULL || q == NULL || order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		p[i] = m->changes[i].p;
	significance_adjust(p, cnt, order, q);
	for (size_t i = 0; i < cnt; i++) {
		struct change *c = &m->changes[i];

		c->q = q[i];
		c->significant = q[i] <= m->options->level;
		c->confidence = judge_confidence(&m->judge, c->significant, is_structural(c));
	}
	return 0;
}

/*
 * Whether a change is worth a line: it changes the iteration, or the training thread while the
 * device hides it, or a considerable part of the job has another name or place.
 */
static bool is_listed(const struct maker *m, const struct change *c)
{
	double least = m->options->min_change_pct / 100 * m->before.iteration_ms;

	if (fabs(c->delta_ms) >= least && c->delta_ms != 0)
		return true;
	if (c->kind == CHANGE_GREW || c->kind == CHANGE_SHRANK)
		return false;
	if (c->kind == CHANGE_RENAMED || c->kind == CHANGE_MOVED)
		return MAX(c->before.tree_ms, c->after.tree_ms) >= MAX(least, 1e-6);
	return c->class != CLASS_IDLE &&
	       fabs(c->after.thread_ms - c->before.thread_ms) >= MAX(least, 1e-6);
}

static int change_cmp(const void *p, const void *q)
{
	const struct change *x = p, *y = q;
	double of_x = fabs(x->delta_ms), of_y = fabs(y->delta_ms);

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return strcmp(x->key, y->key) != 0 ? strcmp(x->key, y->key)
					   : (x->class > y->class) - (x->class < y->class);
}

static int list_changes(struct maker *m)
{
	size_t cnt = m->accounts.list.cnt, kept = 0;

	m->changes = arena_calloc(&m->out->arena, cnt + 1, sizeof(*m->changes));
	if (m->changes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		m->changes[i] = weigh_account(m, &m->accounts.list.data[i]);
	if (adjust_chances(m, cnt) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		struct change c = m->changes[i];

		if (!is_listed(m, &c)) {
			m->out->small_cnt++;
			m->out->small_ms += c.delta_ms;
			continue;
		}
		name_change(m, &m->accounts.list.data[i], &c);
		m->changes[kept++] = c;
	}
	if (m->error == 0 && kept > 0)
		qsort(m->changes, kept, sizeof(*m->changes), change_cmp);
	m->out->changes = m->changes;
	m->out->change_cnt = kept;
	return m->error;
}

/* --- the whole --- */

static int judge_iteration(struct maker *m)
{
	struct comparison *out = m->out;
	double *values[4];
	bool significant;

	for (int i = 0; i < 4; i++) {
		const struct run_tree *run = i < 2 ? &m->before : &m->after;

		values[i] = arena_calloc(&out->arena, run->window_cnt, sizeof(double));
		if (values[i] == NULL)
			return -ENOMEM;
		for (size_t k = 0; k < run->window_cnt; k++)
			values[i][k] = i % 2 == 0 ? run->windows[k].iteration_ms
						  : run->windows[k].deviation_ms;
	}
	out->delta_ms = m->after.iteration_ms - m->before.iteration_ms;
	out->delta_pct = 100 * out->delta_ms / m->before.iteration_ms;
	out->p = judge_chance(&m->judge,
			      &(struct judge_values){ values[0], values[1], values[2], values[3] });
	significant = out->p <= out->level;
	out->confidence = judge_confidence(&m->judge, significant, false);
	if (fabs(out->delta_pct) < out->min_change_pct || out->delta_ms == 0)
		out->verdict = COMPARISON_SAME;
	else if (!significant)
		out->verdict = COMPARISON_UNCERTAIN;
	else
		out->verdict = out->delta_ms > 0 ? COMPARISON_SLOWER : COMPARISON_FASTER;
	return 0;
}

/* Share of both runs' time in functions of one identity. */
static double common_share(const struct maker *m)
{
	double common = 0, all = 0;

	for (int side = 0; side < 2; side++) {
		const struct run_tree *run = side == 0 ? &m->before : &m->after;

		vec_foreach(n, &run->nodes) {
			all += n->self_ms;
			common += n->match == MATCH_SAME ? n->self_ms : 0;
		}
	}
	return all > 0 ? common / all : 1;
}

static void note_unlike_jobs(struct maker *m, const struct compare_run *a,
			     const struct compare_run *b)
{
	struct comparison *out = m->out;

	if (out->common_frac < COMMON_LEAST)
		note(m,
		     arena_printf(&out->arena,
				  "only %.0f %% of the time is in functions that both runs have: "
				  "are these two runs of one job?",
				  out->common_frac * 100));
	if (a->fps[0]->has_stacks != b->fps[0]->has_stacks)
		note(m,
		     arena_printf(
			     &out->arena,
			     "only the run %s was recorded with Python stacks: host functions can "
			     "be matched only if both runs have stacks",
			     a->fps[0]->has_stacks ? "before" : "after"));
	if (a->fps[0]->has_device != b->fps[0]->has_device)
		note(m, arena_printf(&out->arena, "only the run %s used a device",
				     a->fps[0]->has_device ? "before" : "after"));
	if (strcmp(out->before.device_name, out->after.device_name) != 0)
		note(m,
		     arena_printf(&out->arena, "different devices: %s before, %s after",
				  out->before.device_name[0] ? out->before.device_name : "unknown",
				  out->after.device_name[0] ? out->after.device_name : "unknown"));
	if (m->before.rank_cnt != m->after.rank_cnt)
		note(m, arena_printf(&out->arena,
				     "%zu workers before, %zu after: times are means over the "
				     "workers, and collectives differ because of their number",
				     m->before.rank_cnt, m->after.rank_cnt));
}

static void note_doubts(struct maker *m)
{
	struct comparison *out = m->out;

	if (!out->before.iterations_known || !out->after.iterations_known)
		note(m, arena_printf(&out->arena,
				     "no iterations were found in the run %s: whole windows are "
				     "compared, so they should hold the same work",
				     out->before.iterations_known ? "after" : "before"));
	if (out->basis == 0)
		note(m, "significance cannot be tested: give several iterations, ranks or windows "
			"of each run");
	else if ((out->basis & BASIS_WINDOWS) == 0)
		note(m, "one window of each run: the variation between runs is unknown; "
			"give several windows of each for more confidence");
	if (isnan(out->p) && out->basis != 0)
		note(m, "the iterations could not be tested: they did not vary at all");
}

/* Means over the workers show the waiting of most ranks, not the work of a single slow rank. */
static void note_waiting(struct maker *m)
{
	const struct comparison *out = m->out;

	if (out->change_cnt > 0 && out->changes[0].class == CLASS_COMM &&
	    out->changes[0].delta_ms > 0 && m->after.rank_cnt > 1)
		note(m, "most of it is time in a collective, which may be waiting for one worker: "
			"'perftracker analyze' of the run after shows which one");
}

static int finish(struct maker *m)
{
	struct comparison *out = m->out;
	const char **notes = arena_calloc(&out->arena, out->note_cnt + 1, sizeof(*notes));

	if (notes == NULL || m->error < 0)
		return -ENOMEM;
	for (size_t i = 0; i < out->note_cnt; i++)
		notes[i] = m->notes[i];
	out->notes = notes;
	for (size_t i = 0; i < out->note_cnt; i++)
		notes[i] = copy(m, m->notes[i]);
	return m->error;
}

static int make(struct maker *m, const struct compare_run *before, const struct compare_run *after)
{
	int error = run_tree_build(before->fps, before->cnt, &m->before);

	if (error == 0)
		error = run_tree_build(after->fps, after->cnt, &m->after);
	if (error == 0)
		error = pairing_find(&m->before, &m->after);
	if (error == 0)
		error = accounts_fill(&m->before, &m->after, &m->accounts);
	if (error == 0)
		error = judge_init(&m->judge, &m->before, &m->after);
	if (error < 0)
		return error;
	describe_run(m, before, &m->before, &m->out->before);
	describe_run(m, after, &m->after, &m->out->after);
	m->out->basis = m->judge.basis;
	m->out->rest_ms = m->after.rest_ms - m->before.rest_ms;
	m->out->common_frac = common_share(m);
	if (m->error == 0)
		error = judge_iteration(m);
	if (error == 0 && m->error == 0)
		error = list_changes(m);
	if (error < 0 || m->error < 0)
		return -ENOMEM;
	note_unlike_jobs(m, before, after);
	note_doubts(m);
	note_waiting(m);
	return finish(m);
}

int compare_runs(const struct compare_run *before, const struct compare_run *after,
		 const struct compare_options *options, struct comparison *ret, struct err *err)
{
	struct comparison out = { .level = options->level,
				  .min_change_pct = options->min_change_pct };
	struct maker m = { .options = options, .out = &out };
	int error;

	if (before->cnt == 0 || after->cnt == 0)
		return err_set(err, ENODATA, "%s: no fingerprint to compare",
			       before->cnt == 0 ? before->label : after->label);
	arena_init(&out.arena);
	error = make(&m, before, after);
	maker_done(&m);
	if (error < 0) {
		comparison_done(&out);
		return err_set(err, -error,
			       "out of memory while comparing %zu with %zu fingerprints",
			       before->cnt, after->cnt);
	}
	*ret = out;
	return 0;
}
