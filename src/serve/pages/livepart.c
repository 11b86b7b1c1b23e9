/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/livepart.h"

#include "report/html/markup.h"
#include "serve/jobwords.h"
#include "serve/pages/livecarpet.h"
#include "serve/pages/pageparts.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_int_t count_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* "71.2 ms"; "-": unknown. */
static void put_ms(struct str *out, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_number(value))
		str_printf(out, "%.1f ms", json_number_value(value));
	else
		str_append(out, "-");
}

/* --- facts --- */

static void put_coverage(struct str *out, const json_t *live)
{
	const json_t *coverage = json_object_get(live, "coverage");
	static const struct {
		const char *key, *words;
	} parts[] = { { "never_seen", "never seen" },
		      { "not_watched", "not watched: their hook is off" },
		      { "ended", "ended" } };
	struct str text = { 0 };

	if (count_of(coverage, "world_size") == 0) {
		pageparts_fact(out, "Coverage", "no rank has connected yet");
		return;
	}
	str_printf(&text, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " ranks watched",
		   count_of(coverage, "watched"), count_of(coverage, "world_size"));
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		json_int_t cnt = count_of(coverage, parts[i].key);

		if (cnt > 0)
			str_printf(&text, ", %" JSON_INTEGER_FORMAT " %s", cnt, parts[i].words);
	}
	pageparts_fact(out, "Coverage", str_borrow(&text));
	str_done(&text);
}

static void put_pace(struct str *out, const json_t *live)
{
	struct str text = { 0 };

	put_ms(&text, live, "iteration_ms");
	str_append(&text, ", baseline ");
	put_ms(&text, live, "baseline_ms");
	str_append(&text, ", at best ");
	put_ms(&text, live, "best_ms");
	if (json_is_integer(json_object_get(live, "slow_since_step")))
		str_printf(&text, ", slow since step %" JSON_INTEGER_FORMAT,
			   count_of(live, "slow_since_step"));
	pageparts_fact(out, "Iteration now", str_borrow(&text));
	str_done(&text);
}

/* "recording from step 120 (request): 1 recording, 3 of 4 in". */
static void put_order(struct str *out, const json_t *live)
{
	const json_t *order = json_object_get(live, "order");
	const char *state = text_of(order, "state");
	struct str text = { 0 };

	if (json_is_object(order)) {
		str_printf(&text, "%s%s %" JSON_INTEGER_FORMAT " (%s)", state,
			   strcmp(state, "waiting for the step") == 0 ? "" : " from step",
			   count_of(order, "first_step"), text_of(order, "why"));
		str_printf(&text,
			   ": %" JSON_INTEGER_FORMAT " recording, %" JSON_INTEGER_FORMAT
			   " of %" JSON_INTEGER_FORMAT " in",
			   count_of(order, "recording"), count_of(order, "in"),
			   count_of(order, "ranks"));
		if (count_of(order, "missed") > 0)
			str_printf(&text, ", %" JSON_INTEGER_FORMAT " missed",
				   count_of(order, "missed"));
	} else if (json_is_true(json_object_get(live, "asked"))) {
		str_append(&text, "asked for; waits for two iterations of known length");
	}
	pageparts_fact(out, "Profile under way", str_borrow(&text));
	str_done(&text);
}

/* The same as a bar: a person sees how far it is without reading. */
static void put_progress(struct str *out, const json_t *live)
{
	const json_t *order = json_object_get(live, "order");
	json_int_t ranks = count_of(order, "ranks"), in = count_of(order, "in");
	bool waits = strcmp(text_of(order, "state"), "waiting for the step") == 0;

	if (!json_is_object(order) || ranks <= 0)
		return;
	str_append(out, "<p class=\"progress\"><label for=\"bar\">");
	if (waits)
		str_printf(out,
			   "Profile: waiting for step %" JSON_INTEGER_FORMAT
			   ", now at %" JSON_INTEGER_FORMAT,
			   count_of(order, "first_step"), count_of(live, "step"));
	else
		str_printf(out,
			   "Profile: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
			   " ranks in, %" JSON_INTEGER_FORMAT " recording",
			   in, ranks, count_of(order, "recording"));
	str_append(out, "</label>");
	if (!waits)
		str_printf(out,
			   "<progress id=\"bar\" max=\"%" JSON_INTEGER_FORMAT
			   "\" value=\"%" JSON_INTEGER_FORMAT "\"></progress></p>\n",
			   ranks, in);
	else
		str_append(out, "<progress id=\"bar\"></progress></p>\n");
}

/* --- tables --- */

static void put_rank(struct str *out, const json_t *rank)
{
	const json_t *number = json_object_get(rank, "rank");
	const char *state = text_of(rank, "state");

	str_append(out, "<tr><td class=\"n\" data-name=\"Rank\">");
	if (json_is_integer(number))
		str_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	else
		str_append(out, "?");
	str_append(out, "</td><td data-name=\"Host\">");
	markup_text_short(out, text_of(rank, "host"), 64);
	str_printf(out, "</td><td data-name=\"State\"><span class=\"state %s\">",
		   pageparts_tone(state));
	markup_text_short(out, state, 40);
	str_printf(out,
		   "</span></td><td class=\"n\" data-name=\"Step\">%" JSON_INTEGER_FORMAT
		   "</td><td class=\"n\" data-name=\"Now\">",
		   count_of(rank, "step"));
	put_ms(out, rank, "iteration_ms");
	str_append(out, "</td><td class=\"n\" data-name=\"Baseline\">");
	put_ms(out, rank, "baseline_ms");
	str_append(out, "</td></tr>\n");
}

static void open_table(struct str *out, const char *title, const char *columns)
{
	str_printf(
		out,
		"<h2>%s</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"%s\"><table class=\"findings\"><thead><tr>%s</tr></thead><tbody>\n",
		title, title, columns);
}

static void put_ranks(struct str *out, const json_t *live)
{
	const json_t *ranks = json_object_get(live, "ranks"), *rank;
	json_int_t more = count_of(live, "ranks_left_out");
	size_t i;

	if (json_array_size(ranks) == 0)
		return;
	open_table(out, "Ranks now",
		   "<th scope=\"col\" class=\"n\">Rank</th><th scope=\"col\">Host</th>"
		   "<th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Step</th>"
		   "<th scope=\"col\" class=\"n\">Now</th>"
		   "<th scope=\"col\" class=\"n\">Baseline</th>");
	json_array_foreach(ranks, i, rank) put_rank(out, rank);
	str_append(out, "</tbody></table></div>\n");
	if (more > 0)
		str_printf(out, "<p class=\"note\">%" JSON_INTEGER_FORMAT " more ranks</p>\n",
			   more);
}

/* A report's file as a link to its page here. */
static void put_outcome(struct str *out, const char *key, const char *text)
{
	const char *name = strrchr(text, '/');
	uint64_t number;

	if (name == NULL || sscanf(name, "/report-%" SCNu64 ".html", &number) != 1) {
		markup_text_short(out, text, 300);
		return;
	}
	str_printf(out, "<a href=\"/reports/%s-%" PRIu64 "\">report %" PRIu64 "</a>", key, number,
		   number);
}

static void put_request(struct str *out, const char *key, const json_t *request)
{
	char at[32];

	jobwords_time(count_of(request, "at_ms") * NSEC_PER_MSEC, at);
	str_printf(out, "<tr><td class=\"t\">%s</td><td data-name=\"Who\">", at);
	markup_text_short(out, text_of(request, "user"), 64);
	str_append(out, "</td><td data-name=\"Reason\">");
	markup_text_short(out, text_of(request, "reason"), 200);
	str_append(out, "</td><td data-name=\"State\">");
	markup_text_short(out, text_of(request, "state"), 20);
	str_append(out, "</td><td data-name=\"Outcome\">");
	put_outcome(out, key, text_of(request, "text"));
	str_append(out, "</td></tr>\n");
}

static void put_requests(struct str *out, const char *key, const json_t *live)
{
	const json_t *requests = json_object_get(live, "requests"), *request;
	size_t i;

	if (json_array_size(requests) == 0)
		return;
	open_table(out, "Profiles that were asked for here",
		   "<th scope=\"col\">At (UTC)</th><th scope=\"col\">Who</th>"
		   "<th scope=\"col\">Reason</th><th scope=\"col\">State</th>"
		   "<th scope=\"col\">Outcome</th>");
	json_array_foreach(requests, i, request) put_request(out, key, request);
	str_append(out, "</tbody></table></div>\n");
}

/* --- the form --- */

static void put_form(struct str *out, const char *key)
{
	str_printf(out,
		   "<form class=\"filter\" id=\"profile\" action=\"/jobs/%s/profile\" "
		   "method=\"post\"><label for=\"reason\">Profile now, because</label>"
		   "<input id=\"reason\" name=\"reason\" required maxlength=\"180\" "
		   "autocomplete=\"off\" placeholder=\"a reason, for the log\">"
		   "<button>Profile now</button></form>\n",
		   key);
}

json_t *livepart_read(struct call *call, const char *key, const char *folder)
{
	const struct routes_live *live = call->routes->live;
	struct str text = { 0 };
	json_error_t wrong;
	json_t *root = NULL;

	if (live != NULL && live->read(live->arg, key, folder, &text) == 0)
		root = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

void livepart_put_now(struct str *out, const json_t *live, const char *key)
{
	str_append(out, "<dl class=\"facts\" id=\"now\">\n");
	put_pace(out, live);
	put_order(out, live);
	put_coverage(out, live);
	pageparts_fact(out, "PerfTracker's own cost", text_of(live, "cost"));
	str_append(out, "</dl>\n");
	put_progress(out, live);
	put_form(out, key);
}

void livepart_put_ranks(struct str *out, const json_t *live, const char *key)
{
	livecarpet_put(out, live);
	put_requests(out, key, live);
	put_ranks(out, live);
}
