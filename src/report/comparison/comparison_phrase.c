/* SPDX-License-Identifier: Apache-2.0 */
#include "report/comparison/comparison_phrase.h"

#include "base/str.h"
#include "base/text/clean.h"
#include "report/phrase.h"

#include <math.h>

#define NAME_CELLS 120
#define CALLERS 4 /* the innermost, unless all are wanted */
#define HIDDEN_LEAST_MS 0.01

void phrase_delta_ms(struct str *out, double ms)
{
	if (!isfinite(ms) || ms == 0) {
		phrase_ms(out, ms);
		return;
	}
	str_append_char(out, ms > 0 ? '+' : '-');
	phrase_ms(out, fabs(ms));
}

void phrase_delta_pct(struct str *out, double pct)
{
	if (isfinite(pct) && pct != 0)
		str_append_char(out, pct > 0 ? '+' : '-');
	phrase_pct(out, fabs(pct));
}

const char *phrase_comparison_word(const struct comparison *comparison)
{
	return comparison_verdict_name(comparison->verdict);
}

void phrase_comparison(struct str *out, const struct comparison *c)
{
	bool whole = !c->before.iterations_known || !c->after.iterations_known;

	if (c->verdict == COMPARISON_SAME)
		str_append(out, "neither faster nor slower");
	else {
		phrase_pct(out, fabs(c->delta_pct));
		str_append(out, c->delta_ms > 0 ? " slower" : " faster");
	}
	if (c->verdict == COMPARISON_UNCERTAIN)
		str_append(out, isnan(c->p) ? ", but not tested" : ", which may be chance");
	str_append(out, ": ");
	phrase_ms(out, c->before.iteration_ms);
	str_append(out, " before, ");
	phrase_ms(out, c->after.iteration_ms);
	str_append(out, whole ? " after per window (" : " after per iteration (");
	phrase_delta_ms(out, c->delta_ms);
	str_append(out, ")");
}

void phrase_run(struct str *out, const struct comparison_side *side)
{
	str_printf(out, "%zu worker%s, ", side->worker_cnt, plural(side->worker_cnt));
	if (side->window_cnt > 1)
		str_printf(out, "%zu windows each, ", side->window_cnt);
	if (side->iterations_known)
		str_printf(out, "%g iteration%s of ", side->iterations, plural(side->iterations));
	else
		str_append(out, "a window without known iterations of ");
	phrase_ms(out, side->iteration_ms);
}

void phrase_chance(struct str *out, double p)
{
	if (isnan(p))
		str_append(out, "-");
	else if (p < 0.001)
		str_append(out, "<0.001");
	else
		str_printf(out, p < 0.0995 ? "%.3f" : "%.2f", p);
}

static void phrase_basis(struct str *out, unsigned int basis)
{
	static const struct {
		enum comparison_basis basis;
		const char *name;
	} names[] = { { BASIS_ITERATIONS, "iterations" },
		      { BASIS_RANKS, "ranks" },
		      { BASIS_WINDOWS, "windows" } };
	const char *before = " over ";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if ((basis & names[i].basis) == 0)
			continue;
		str_printf(out, "%s%s", before, names[i].name);
		before = " and ";
	}
}

void phrase_test(struct str *out, const struct comparison *c)
{
	if (isnan(c->p)) {
		str_append(out, "not tested; confidence low");
		return;
	}
	str_append(out, "p ");
	if (c->p >= 0.001)
		str_append(out, "= ");
	phrase_chance(out, c->p);
	phrase_basis(out, c->basis);
	str_printf(out, ", %ssignificant at %g; confidence %s", c->p <= c->level ? "" : "not ",
		   c->level, confidence_name(c->confidence));
}

void phrase_sum(struct str *out, const struct comparison *c)
{
	for (int kind = 0; kind < CHANGE_KIND_CNT; kind++) {
		double sum = 0;
		size_t cnt = 0;

		for (size_t i = 0; i < c->change_cnt; i++) {
			cnt += c->changes[i].kind == (enum change_kind)kind;
			sum += c->changes[i].kind == (enum change_kind)kind ? c->changes[i].delta_ms
									    : 0;
		}
		if (cnt == 0)
			continue;
		str_printf(out, "%zu %s ", cnt, change_kind_name((enum change_kind)kind));
		phrase_delta_ms(out, sum);
		str_append(out, ", ");
	}
	str_printf(out, "%zu smaller ", c->small_cnt);
	phrase_delta_ms(out, c->small_ms);
	str_append(out, ", too small for fingerprints ");
	phrase_delta_ms(out, c->rest_ms);
	str_append(out, "; together ");
	phrase_delta_ms(out, c->delta_ms);
}

static void phrase_stack(struct str *out, const char *const *stack, size_t cnt, bool all)
{
	size_t shown = all ? cnt : MIN(cnt, (size_t)CALLERS);

	if (shown < cnt)
		str_append(out, "... > ");
	for (size_t i = cnt - shown; i < cnt; i++) {
		str_append(out, i > cnt - shown ? " > " : "");
		clean_append_short(out, stack[i], NAME_CELLS);
	}
}

void phrase_place(struct str *out, const struct change *change, bool all)
{
	if (change->stack_cnt > 0) {
		str_append(out, "called by ");
		phrase_stack(out, change->stack, change->stack_cnt, all);
	} else if (change->launched_by != NULL) {
		str_append(out, "launched by ");
		clean_append_short(out, change->launched_by, 2 * NAME_CELLS);
	}
}

const char *phrase_kind(enum change_kind kind)
{
	static const char *const titles[CHANGE_KIND_CNT] = {
		[CHANGE_GREW] = "Grew",		[CHANGE_SHRANK] = "Shrank",
		[CHANGE_APPEARED] = "Appeared", [CHANGE_VANISHED] = "Vanished",
		[CHANGE_RENAMED] = "Renamed",	[CHANGE_MOVED] = "Moved to other callers",
	};

	return titles[kind];
}

void phrase_before(struct str *out, const struct change *change, bool all)
{
	if (change->kind == CHANGE_RENAMED) {
		str_append(out, "was ");
		clean_append_short(out, change->old_name, all ? 400 : NAME_CELLS);
	}
	if (change->kind == CHANGE_MOVED) {
		str_append(out, "was called by ");
		phrase_stack(out, change->old_stack, change->old_stack_cnt, all);
		if (change->old_stack_cnt == 0)
			str_append(out, "no function");
	}
}

static void phrase_pair(struct str *out, double before, double after)
{
	phrase_ms(out, before);
	str_append(out, " -> ");
	phrase_ms(out, after);
}

void phrase_extent(struct str *out, const struct change *c)
{
	bool tree = c->kind == CHANGE_RENAMED || c->kind == CHANGE_MOVED;
	size_t start = out->len;

	if (c->function_cnt > 1)
		str_printf(out, "with %zu function%s below", c->function_cnt - 1,
			   c->function_cnt == 2 ? "" : "s");
	if (tree && (c->before.tree_ms > c->before.ms + HIDDEN_LEAST_MS ||
		     c->after.tree_ms > c->after.ms + HIDDEN_LEAST_MS)) {
		str_append(out, out->len > start ? "; with all it calls " : "with all it calls ");
		phrase_pair(out, c->before.tree_ms, c->after.tree_ms);
	}
	if (fabs(c->after.thread_ms - c->before.thread_ms) >
	    fabs(c->delta_ms) * 1.1 + HIDDEN_LEAST_MS) {
		str_append(out, out->len > start ? "; on the training thread "
						 : "on the training thread ");
		phrase_pair(out, c->before.thread_ms, c->after.thread_ms);
	}
}
