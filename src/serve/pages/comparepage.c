/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that compares two reports: what `perftracker diff` says of their fingerprints, with links to both;
 * or a form to choose them. Also the same for programs, as JSON.
 */
#include "report/html/markup.h"
#include "serve/pages/comparechoice.h"
#include "serve/pages/pageparts.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>

#define REFRESH_S 1u

static void put_select(struct str *out, const char *name, const char *label,
		       const struct str *options)
{
	str_printf(out, "<p><label for=\"%s\">%s</label> <select id=\"%s\" name=\"%s\">\n", name,
		   label, name, name);
	str_append(out, str_borrow(options));
	str_append(out, "</select></p>\n");
}

static int put_form(struct call *call, struct str *out)
{
	static const char *const labels[] = { "Before", "After" };
	static const char *const names[] = { "a", "b" };
	struct comparechoice_pick picks[2] = {
		{ .chosen = request_query(call->request, "a") },
		{ .chosen = request_query(call->request, "b") },
	};
	struct comparechoice_cnt cnt = { 0 };
	struct str form = { 0 };
	int error = 0;

	for (size_t i = 0; i < 2 && error == 0; i++) {
		struct str options = { 0 };

		picks[i].avoid = i == 0 ? picks[1].chosen : picks[0].picked;
		error = comparechoice_put(call->routes, &picks[i], &options, &cnt, call->err);
		put_select(&form, names[i], labels[i], &options);
		str_done(&options);
	}
	pageparts_card(out, "open", "Compare",
		       cnt.listed >= 2
			       ? "Choose two reports: what changed from the first to the second?"
			       : "There are no two reports here that can be compared");
	if (cnt.listed >= 2) {
		str_append(out, "<form class=\"choice\" action=\"/compare\" method=\"get\">\n");
		str_append(out, str_borrow(&form));
		str_append(out, "<p><button>Compare</button></p></form>\n");
	}
	if (cnt.left_out > 0)
		str_printf(out,
			   "<p class=\"note\">%zu other report%s: no fingerprints are kept, which "
			   "a comparison needs. The store keeps those of profiles for 90 days, a "
			   "run's folder has them in fingerprints/N.</p>\n",
			   cnt.left_out, plural((double)cnt.left_out));
	str_append(out, "<p class=\"note\">Listed are reports in the folders, and of the newest 20 "
			"jobs of the store. For others, set the ids in the address: "
			"/compare?a=ID&amp;b=ID.</p>\n");
	str_done(&form);
	return error;
}

static int choose(struct call *call, struct answer *ret)
{
	int error;

	pageparts_open(&ret->body, "Compare");
	error = put_form(call, &ret->body);
	pageparts_close(&ret->body);
	return error < 0 ? error : str_error(&ret->body);
}

/* --- two reports --- */

struct pair {
	const char *ids[2];
	struct str inputs[2];
};

static void put_link(struct str *out, const char *id, const char *words)
{
	str_append(out, " <a href=\"/reports/");
	pageparts_url(out, id);
	str_printf(out, "\">%s</a>", words);
}

static void put_nav(struct str *out, const struct pair *pair)
{
	str_append(out,
		   "<nav class=\"parts\" aria-label=\"Comparison\"><a href=\"/\">All jobs</a>");
	put_link(out, pair->ids[0], "Report before");
	put_link(out, pair->ids[1], "Report after");
	str_append(out, " <a href=\"/compare?a=");
	pageparts_url(out, pair->ids[1]);
	str_append(out, "&amp;b=");
	pageparts_url(out, pair->ids[0]);
	str_append(out,
		   "\">The other way round</a> <a href=\"/compare\">Choose others</a></nav>\n");
}

static void put_done(const struct pair *pair, const struct str *page, const struct str *why,
		     struct answer *ret)
{
	struct str nav = { 0 };

	put_nav(&nav, pair);
	if (why->len > 0) {
		str_append(&nav, "<section class=\"parts\" aria-label=\"Left out\">\n");
		pageparts_lines(&nav, why);
		str_append(&nav, "</section>\n");
	}
	pageparts_document(&ret->body, page, &nav);
	ret->policy = pageparts_document_policy;
	str_done(&nav);
}

static void put_waiting(const struct pair *pair, struct answer *ret)
{
	pageparts_open(&ret->body, "Comparing");
	put_nav(&ret->body, pair);
	pageparts_card(&ret->body, "open", "Comparing",
		       "The two reports are being compared; this page asks again each second");
	pageparts_close(&ret->body);
	ret->status = MHD_HTTP_ACCEPTED;
	ret->refresh_s = REFRESH_S;
}

static void put_failure(const struct pair *pair, const struct str *why, struct answer *ret)
{
	pageparts_open(&ret->body, "Not compared");
	put_nav(&ret->body, pair);
	pageparts_card(&ret->body, "inconclusive", "Not compared",
		       "The two reports could not be compared");
	pageparts_lines(&ret->body, why);
	pageparts_close(&ret->body);
	ret->status = MHD_HTTP_UNPROCESSABLE_CONTENT;
}

/* Asks for the comparison in this format. Returns its state, or -errno with a line in err. */
static int ask(struct call *call, const struct pair *pair, const char *format, struct str *body,
	       struct str *why)
{
	const struct childtext_question question = {
		{ "diff", "--format", format, "--jobs", "1", "--", str_borrow(&pair->inputs[0]),
		  str_borrow(&pair->inputs[1]) },
		"the comparison",
		"`perftracker diff` on the command line compares them without a limit",
	};
	int state = childtext_ask(call->routes->childtext, &question, body, why);

	if (state == -EBUSY)
		return err_set(call->err, EBUSY,
			       "%u other comparisons wait here: try again in a minute",
			       CHILDTEXT_ENTRIES);
	return state < 0 ? err_set(call->err, -state, "the comparison can't be started: %s",
				   strerror(-state))
			 : state;
}

static int answer_page(struct call *call, const struct pair *pair, struct answer *ret)
{
	struct str page = { 0 }, why = { 0 };
	int state = ask(call, pair, "html", &page, &why);

	if (state == CHILDTEXT_DONE)
		put_done(pair, &page, &why, ret);
	else if (state == CHILDTEXT_FAILED)
		put_failure(pair, &why, ret);
	else if (state == CHILDTEXT_WAITS)
		put_waiting(pair, ret);
	str_done(&page);
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}

/* Finds both inputs; a and b are in the query. Returns 0 or -errno with a line in err. */
static int find_pair(struct call *call, struct pair *pair)
{
	int error = 0;

	if (call->routes->childtext == NULL)
		return err_set(call->err, ENOSYS, "this server compares no reports");
	if (strcmp(pair->ids[0], pair->ids[1]) == 0)
		return err_set(
			call->err, EINVAL,
			"a and b are the same report: choose two different ones at /compare");
	for (size_t i = 0; i < 2 && error == 0; i++)
		error = comparechoice_input(call->routes, pair->ids[i], &pair->inputs[i],
					    call->err);
	return error;
}

static struct pair pair_of(const struct call *call)
{
	return (struct pair){ { request_query(call->request, "a"),
				request_query(call->request, "b") },
			      { { 0 }, { 0 } } };
}

static void pair_done(struct pair *pair)
{
	str_done(&pair->inputs[0]);
	str_done(&pair->inputs[1]);
}

int page_compare(struct call *call, struct answer *ret)
{
	struct pair pair = pair_of(call);
	int error;

	if (pair.ids[0] == NULL || pair.ids[1] == NULL)
		return choose(call, ret);
	error = find_pair(call, &pair);
	if (error == 0)
		error = answer_page(call, &pair, ret);
	pair_done(&pair);
	return error;
}

static int answer_json(struct call *call, const struct pair *pair, struct answer *ret)
{
	struct str why = { 0 };
	int state = ask(call, pair, "json", &ret->body, &why);

	if (state == CHILDTEXT_WAITS) {
		str_append(&ret->body,
			   "{\"state\": \"comparing\", \"help\": \"ask again in a second\"}\n");
		ret->status = MHD_HTTP_ACCEPTED;
		ret->refresh_s = REFRESH_S;
	}
	if (state == CHILDTEXT_FAILED)
		state = err_set(call->err, EBADMSG, "%.*s", (int)strcspn(str_borrow(&why), "\n"),
				str_borrow(&why));
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}

int api_compare(struct call *call, struct answer *ret)
{
	struct pair pair = pair_of(call);
	int error;

	if (pair.ids[0] == NULL || pair.ids[1] == NULL)
		return err_set(call->err, EINVAL,
			       "expected the ids of two reports, a before and b after");
	error = find_pair(call, &pair);
	if (error == 0)
		error = answer_json(call, &pair, ret);
	pair_done(&pair);
	return error;
}
