/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/roofline/rooftext.h"

#include "model/rankset.h"
#include "report/jsonwriter.h"
#include "report/phrase.h"

#include <stdlib.h>

#define WAIT_SHARE_MIN 0.02 /* of an iteration: a shorter wait is not worth a name */
#define WAIT_FACTOR 2	    /* a rank that waits this much longer than the middle one is named */

static const char *const ceiling_words[] = { [CEILING_COST] = "cost",
					     [CEILING_NONE] = "no_measurable_cost",
					     [CEILING_UNCLEAR] = "unclear",
					     [CEILING_SLOWER] = "repeated_slower",
					     [CEILING_REFUSED] = "refused" };

static double pct_of(const struct ceiling *c, double ns)
{
	return c->real_ns > 0 ? 100 * ns / c->real_ns : 0;
}

static void append_headline(struct str *out, const struct ceiling *c)
{
	if (c->verdict == CEILING_REFUSED) {
		str_printf(out, "The cost of data loading is not known: %s.\n", c->why);
		return;
	}
	if (c->verdict == CEILING_COST) {
		str_append(out, "Data loading costs ");
		phrase_pct(out, pct_of(c, c->cost_ns));
		str_printf(out, " of an iteration (%.1f to %.1f %%): ", pct_of(c, c->low_ns),
			   MIN(pct_of(c, c->high_ns), 100));
		phrase_ms(out, c->real_ns / 1e6);
		str_append(out, ", without it ");
		phrase_ms(out, (c->real_ns - c->cost_ns) / 1e6);
		str_append(out, ".\n");
		return;
	}
	if (c->verdict == CEILING_UNCLEAR) {
		str_printf(
			out,
			"Data loading costs 0 to %.0f %% of an iteration: the noise is too large to "
			"say more; give more --iterations, or a quieter machine.\n",
			MIN(pct_of(c, c->high_ns), 100));
		return;
	}
	str_append(out,
		   c->verdict == CEILING_NONE
			   ? "Data loading has no measurable cost: an iteration takes "
			   : "Data loading has no measurable cost, but repeated batches are "
			     "slower than the loader's, for another reason: an iteration takes ");
	phrase_ms(out, c->real_ns / 1e6);
	str_append(out, ", with repeated batches ");
	phrase_ms(out, c->repeated_ns / 1e6);
	str_printf(out, " (a difference of %.1f to %.1f %%).\n", pct_of(c, c->low_ns),
		   pct_of(c, c->high_ns));
}

static void append_how(struct str *out, const struct ceiling *c)
{
	const struct rooflog *first = c->ranks[0].log;

	str_printf(
		out,
		"  measured  %llu iterations with the loader's batches, %llu with %s of its first "
		"%llu (%.1f MB per rank) given again; the median of %zu pairs of blocks, 95 %% "
		"interval\n",
		(unsigned long long)c->iterations, (unsigned long long)c->iterations,
		first->kept_cnt == 1 ? "the one" : "those", (unsigned long long)first->kept_cnt,
		(double)first->kept_bytes / 1e6, c->pair_cnt);
	if (first->copies)
		str_append(out,
			   "            the training changes its batches in place: it got copies, "
			   "whose making is left out\n");
	if (c->epochs > 0)
		str_printf(
			out,
			"            %llu epoch%s began inside the blocks; what runs between epochs, "
			"other than the loader's start, counts as training\n",
			(unsigned long long)c->epochs, plural((double)c->epochs));
}

static int by_wait(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Whose loader makes the others wait. */
static void append_waits(struct str *out, const struct ceiling *c)
{
	_cleanup_free_ double *sorted = calloc(c->rank_cnt, sizeof(*sorted));
	_cleanup_free_ int *named = calloc(c->rank_cnt, sizeof(*named));
	double middle;
	size_t cnt = 0;

	if (sorted == NULL || named == NULL)
		return;
	for (size_t i = 0; i < c->rank_cnt; i++)
		sorted[i] = c->ranks[i].wait_ns;
	qsort(sorted, c->rank_cnt, sizeof(*sorted), by_wait);
	middle = sorted[(c->rank_cnt - 1) / 2];
	for (size_t i = 0; i < c->rank_cnt; i++) {
		if (c->ranks[i].wait_ns > WAIT_FACTOR * middle &&
		    c->ranks[i].wait_ns > WAIT_SHARE_MIN * c->real_ns && c->ranks[i].log->rank >= 0)
			named[cnt++] = c->ranks[i].log->rank;
	}
	str_append(out, "  waiting   ");
	if (cnt > 0 && c->rank_cnt > 1) {
		str_printf(out, "rank%s ", plural((double)cnt));
		rankset_format(out, named, cnt);
		str_printf(out, " wait%s up to ", cnt == 1 ? "s" : "");
		phrase_ms(out, sorted[c->rank_cnt - 1] / 1e6);
		str_append(out, " per iteration for the loader, the middle rank ");
		phrase_ms(out, middle / 1e6);
		str_append(out, "\n");
		return;
	}
	phrase_ms(out, sorted[0] / 1e6);
	if (c->rank_cnt > 1) {
		str_append(out, " to ");
		phrase_ms(out, sorted[c->rank_cnt - 1] / 1e6);
	}
	str_append(out, " per iteration for the loader's next batch");
	str_append(out, c->rank_cnt > 1 ? ", by rank\n" : "\n");
}

static void append_next(struct str *out, const struct ceiling *c)
{
	const struct rooflog *first = c->ranks[0].log;

	if (c->verdict != CEILING_COST)
		return;
	if (first->workers == 0)
		str_append(out,
			   "  next      the loader has no children (num_workers=0): the training "
			   "waits for each batch; try num_workers=2 or more\n");
	else
		str_printf(
			out,
			"  next      the loader has %d child%s (num_workers): try more, or make the "
			"dataset's __getitem__ and collate_fn faster\n",
			first->workers, first->workers == 1 ? "" : "ren");
}

static void append_absent(struct str *out, const struct ceiling *c, size_t left_out)
{
	if (c->world > 0 && (size_t)c->world > c->rank_cnt)
		str_printf(
			out,
			"  note      %zu of %d ranks were seen: loaders of the others, if they did "
			"not run under `perftracker roofline`, still hold up the repeated "
			"iterations, and the cost is a lower bound\n",
			c->rank_cnt, c->world);
	if (left_out > 0)
		str_printf(out, "  note      the files of %zu process%s could not be read\n",
			   left_out, left_out == 1 ? "" : "es");
}

void rooftext_append(struct str *out, const struct ceiling *c, size_t left_out)
{
	append_headline(out, c);
	if (c->verdict != CEILING_REFUSED) {
		append_how(out, c);
		append_waits(out, c);
		append_next(out, c);
	}
	append_absent(out, c, left_out);
}

static json_t *rank_json(struct json_writer *w, const struct ceiling_rank *rank, bool measured)
{
	json_t *object = json_object();

	if (rank->log->rank >= 0)
		jsonwriter_put(w, object, "rank", json_integer(rank->log->rank));
	jsonwriter_put(w, object, "pid", json_integer(rank->log->pid));
	jsonwriter_put(w, object, "host", jsonwriter_text(rank->log->host));
	jsonwriter_put(w, object, "wait_ms",
		       measured ? jsonwriter_number(rank->wait_ns / 1e6) : json_null());
	jsonwriter_put(w, object, "loader_workers", json_integer(rank->log->workers));
	jsonwriter_put(w, object, "kept_batches", json_integer((json_int_t)rank->log->kept_cnt));
	jsonwriter_put(w, object, "kept_bytes", json_integer(rank->log->kept_bytes));
	jsonwriter_put(w, object, "copies", json_boolean(rank->log->copies));
	return object;
}

static void put_numbers(struct json_writer *w, json_t *root, const struct ceiling *c)
{
	jsonwriter_put(w, root, "iteration_ms", jsonwriter_number(c->real_ns / 1e6));
	jsonwriter_put(w, root, "repeated_ms", jsonwriter_number(c->repeated_ns / 1e6));
	jsonwriter_put(w, root, "cost_ms", jsonwriter_number(c->cost_ns / 1e6));
	jsonwriter_put(w, root, "cost_low_ms", jsonwriter_number(c->low_ns / 1e6));
	jsonwriter_put(w, root, "cost_high_ms", jsonwriter_number(c->high_ns / 1e6));
	jsonwriter_put(w, root, "cost_pct", jsonwriter_number(pct_of(c, c->cost_ns)));
	jsonwriter_put(w, root, "iterations", json_integer((json_int_t)c->iterations));
	jsonwriter_put(w, root, "pairs", json_integer((json_int_t)c->pair_cnt));
	jsonwriter_put(w, root, "epochs", json_integer((json_int_t)c->epochs));
}

int rooftext_json(struct str *out, const struct ceiling *c, size_t left_out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *ranks = json_array();
	const bool measured = c->verdict != CEILING_REFUSED;

	jsonwriter_put(&w, root, "version", json_integer(1));
	jsonwriter_put_text(&w, root, "verdict", ceiling_words[c->verdict]);
	jsonwriter_put_text(&w, root, "why", measured ? NULL : c->why);
	if (measured)
		put_numbers(&w, root, c);
	jsonwriter_put(&w, root, "world", c->world > 0 ? json_integer(c->world) : json_null());
	for (size_t i = 0; i < c->rank_cnt; i++)
		jsonwriter_push(&w, ranks, rank_json(&w, &c->ranks[i], measured));
	jsonwriter_put(&w, root, "ranks", ranks);
	jsonwriter_put(&w, root, "unreadable", json_integer((json_int_t)left_out));
	return jsonwriter_print(&w, root, out);
}
