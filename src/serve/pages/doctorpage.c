/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What works on the server's host, as `perftracker doctor` says, and the settings of `perftracker run` with where
 * each comes from. Both are asked for by a click: they start a Python and open the drivers' libraries. Of
 * other hosts nothing is known here.
 */
#include "report/html/markup.h"
#include "serve/pages/pageparts.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <string.h>
#include <unistd.h>

#define REFRESH_S 1u
#define HOSTS_MAX 40u
#define JOBS_MAX 100u
#define SETTINGS_BYTES_MAX 65536u
#define SOURCE_COLUMN 42u /* of `run --show-settings`, where the value is short */

static const struct childtext_question doctor_question = {
	.words = { "doctor", "--format", "json" },
	.what = "doctor",
	.as_is = true,
	.instead = "`perftracker doctor` on the command line has no limit",
};
static const struct childtext_question settings_question = {
	.words = { "run", "--show-settings" },
	.what = "the list of settings",
	.as_is = true,
	.instead = "`perftracker run --show-settings` prints it",
};

static int ask(struct call *call, const struct childtext_question *question, struct str *body,
	       struct str *why)
{
	int state;

	if (call->routes->childtext == NULL)
		return err_set(call->err, ENOSYS, "this server starts no other commands");
	state = childtext_ask(call->routes->childtext, question, body, why);
	if (state == -EBUSY)
		return err_set(call->err, EBUSY, "other work waits here: try again in a minute");
	return state < 0 ? err_set(call->err, -state, "%s can't be started: %s", question->what,
				   strerror(-state))
			 : state;
}

/* --- doctor --- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static const char *tone_of(const json_t *check)
{
	const char *state = text_of(check, "state");
	bool needed = json_is_true(json_object_get(check, "needed"));

	if (strcmp(state, "ok") == 0)
		return "healthy";
	if (strcmp(state, "failed") == 0 || (needed && strcmp(state, "absent") == 0))
		return "failed";
	return strcmp(state, "limited") == 0 ? "incomplete" : "open";
}

static void put_check(struct str *out, const json_t *check)
{
	str_printf(out, "<tr class=\"%s\" id=\"check-", tone_of(check));
	markup_text_short(out, text_of(check, "id"), 40);
	str_append(out, "\"><td class=\"name\">");
	markup_text_short(out, text_of(check, "id"), 40);
	str_append(out,
		   json_is_true(json_object_get(check, "needed")) ? " <small>needed</small>" : "");
	str_append(out, "</td><td data-name=\"State\" class=\"state\">");
	markup_text_short(out, text_of(check, "state"), 20);
	str_append(out, "</td><td data-name=\"Found\"><div>");
	markup_text_short(out, text_of(check, "found"), 600);
	if (text_of(check, "costs")[0] != '\0') {
		str_append(out, "<br><small>Costs: ");
		markup_text_short(out, text_of(check, "costs"), 400);
		str_append(out, "</small>");
	}
	if (text_of(check, "action")[0] != '\0') {
		str_append(out, "<br><small>To do: ");
		markup_text_short(out, text_of(check, "action"), 400);
		str_append(out, "</small>");
	}
	str_append(out, "</div></td></tr>\n");
}

static void put_area(struct str *out, const json_t *checks, const char *area)
{
	str_append(out, "<h2>");
	markup_text_short(out, area, 60);
	str_append(out,
		   "</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
	markup_text_short(out, area, 60);
	str_append(out,
		   "\"><table class=\"findings checks\"><thead><tr><th scope=\"col\">Check</th><th "
		   "scope=\"col\">State</th><th scope=\"col\">Found</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *check = json_array_get(checks, i);

		if (strcmp(text_of(check, "area"), area) == 0)
			put_check(out, check);
	}
	str_append(out, "</tbody></table></div>\n");
}

static void put_checks(struct str *out, const json_t *doctor, const char *host)
{
	const json_t *checks = json_object_get(doctor, "checks");
	bool fit = json_is_true(json_object_get(doctor, "fit"));
	struct str sentence = { 0 };
	const char *last = "";

	str_printf(&sentence, "%s on %s",
		   fit ? "what `perftracker run` needs works"
		       : "something that `perftracker run` needs is missing or fails",
		   host);
	pageparts_card(out, fit ? "healthy" : "failed", "Doctor", str_borrow(&sentence));
	str_done(&sentence);
	/* Checks of an area follow each other. */
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const char *area = text_of(json_array_get(checks, i), "area");

		if (strcmp(area, last) != 0)
			put_area(out, checks, area);
		last = area;
	}
	str_append(out,
		   "<p class=\"note\">As this server's process sees its host: a job has another "
		   "environment, and in a container or with a Python of its own other answers. "
		   "An answer is kept for five minutes.</p>\n");
}

static int put_doctor(struct str *out, const struct str *text, const char *host, struct err *err)
{
	json_error_t wrong;
	json_t *root = json_loadb(str_borrow(text), text->len, 0, &wrong);

	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, EIO, "doctor: expected a JSON object, line %d: %s", wrong.line,
			       wrong.text);
	}
	put_checks(out, root, host);
	json_decref(root);
	return 0;
}

/* --- settings --- */

/* A URL of the store may have a password in it. */
static void put_masked(struct str *out, const char *text)
{
	static const char mark[] = "password=";
	struct str masked = { 0 };

	while (*text != '\0') {
		size_t word = strcspn(text, " \n\t"), at;
		const char *scheme = memmem(text, word, "://", 3);
		const char *login = scheme != NULL
					    ? memrchr(scheme, '@', word - (size_t)(scheme - text))
					    : NULL;
		const char *secret = memmem(text, word, mark, strlen(mark));

		if (login != NULL) {
			str_append_len(&masked, text, (size_t)(scheme - text) + 3);
			str_append(&masked, "***");
			at = (size_t)(login - text);
		} else if (secret != NULL) {
			at = (size_t)(secret - text) + strlen(mark);
			str_append_len(&masked, text, at);
			str_append(&masked, "***");
			at = word;
		} else {
			at = word + (text[word] != '\0');
			str_append_len(&masked, text, at);
		}
		text += at;
	}
	markup_text(out, markup_borrow(out, &masked));
	str_done(&masked);
}

/*
 * Where the source begins in "min-gap  33  PERFTRACKER_MIN_GAP": it is one word or "command line", or a file, whose
 * name may have blanks, in the third column.
 */
static size_t source_at(const char *line, size_t len)
{
	static const char command[] = " command line";
	const char *last = memrchr(line, ' ', len);
	size_t end = strlen(command), word = last != NULL ? (size_t)(last - line) + 1 : len;

	if (len > end && memcmp(line + len - end, command, end) == 0)
		return len - end + 1;
	if (strncmp(line + word, "default", 7) != 0 &&
	    strncmp(line + word, "PERFTRACKER_", 12) != 0 && len > SOURCE_COLUMN &&
	    line[SOURCE_COLUMN - 1] == ' ')
		return SOURCE_COLUMN;
	return word;
}

static void put_cell(struct str *out, const char *column, const char *text, size_t len)
{
	struct str cell = { 0 };

	while (len > 0 && *text == ' ') {
		text++;
		len--;
	}
	while (len > 0 && text[len - 1] == ' ')
		len--;
	str_append_len(&cell, text, len);
	str_printf(out, "<td%s>", column);
	put_masked(out, str_borrow(&cell));
	str_append(out, "</td>");
	str_done(&cell);
}

static void put_setting(struct str *out, const char *line, size_t len)
{
	size_t name = strcspn(line, " \n"), source = source_at(line, len);

	str_append(out, "<tr>");
	put_cell(out, " class=\"name\"", line, MIN(name, len));
	put_cell(out, " data-name=\"Value\"", line + MIN(name, len),
		 source > name ? source - name : 0);
	put_cell(out, " data-name=\"From\"", line + source, len - source);
	str_append(out, "</tr>\n");
}

static void put_settings(struct str *out, const struct str *text)
{
	const char *at = str_borrow(text);

	str_append(
		out,
		"<h2>Settings</h2>\n<p class=\"note\">What <code>perftracker run</code> takes where "
		"its command line says nothing, for this server's user and environment, with where "
		"each value comes from. A job that runs may have others.</p>\n<div class=\"scroll\" "
		"tabindex=\"0\" role=\"region\" aria-label=\"Settings\"><table "
		"class=\"findings\"><thead><tr><th scope=\"col\">Setting</th><th "
		"scope=\"col\">Value</th><th scope=\"col\">From</th></tr></thead><tbody>\n");
	at += strcspn(at, "\n"); /* the heading */
	at += *at == '\n';
	while (*at != '\0') {
		size_t len = strcspn(at, "\n");

		put_setting(out, at, len);
		at += len + (at[len] == '\n');
	}
	str_append(out, "</tbody></table></div>\n");
}

/* --- other hosts --- */

struct hosts {
	struct str *out;
	char seen[HOSTS_MAX][HOST_NAME_MAX + 1];
	size_t cnt;
	const char *own;
};

static int take_host(void *arg, const struct store_job *job)
{
	struct hosts *hosts = arg;
	const char *host = job->host != NULL ? job->host : "";

	if (host[0] == '\0' || strcmp(host, hosts->own) == 0 || hosts->cnt == HOSTS_MAX)
		return 0;
	for (size_t i = 0; i < hosts->cnt; i++) {
		if (strncmp(hosts->seen[i], host, HOST_NAME_MAX) == 0)
			return 0;
	}
	(void)snprintf(hosts->seen[hosts->cnt++], HOST_NAME_MAX + 1, "%s", host);
	str_append(hosts->out, hosts->cnt == 1 ? "<bdi>" : ", <bdi>");
	markup_text_short(hosts->out, host, 80);
	str_append(hosts->out, "</bdi>");
	return 0;
}

static void put_other_hosts(struct call *call, struct str *out, const char *own)
{
	const struct archive_filter filter = { .after = { .started_ns = INT64_MAX },
					       .limit = JOBS_MAX };
	struct str names = { 0 };
	struct hosts *hosts = calloc(1, sizeof(*hosts));
	struct store_job_place last;
	struct err ignored = { "" };
	bool more;

	str_append(out,
		   "<h2>Other hosts</h2>\n<p class=\"note\">No host sends what its doctor says: "
		   "<code>perftracker doctor</code> there prints it, with <code>--format "
		   "json</code> for programs, and <code>srun -N4 perftracker doctor</code> on many "
		   "at once.");
	if (hosts != NULL) {
		hosts->out = &names;
		hosts->own = own;
		if (archive_list_jobs(&call->routes->archive, &filter, take_host, hosts, &more,
				      &last, &ignored) == 0 &&
		    hosts->cnt > 0) {
			str_append(out, " Hosts of the newest jobs here: ");
			str_append(out, str_borrow(&names));
			str_append(out, ".");
		}
	}
	str_append(out, "</p>\n");
	free(hosts);
	str_done(&names);
}

/* --- the page --- */

static void put_start(struct str *out, const char *host)
{
	struct str sentence = { 0 };

	str_printf(&sentence, "what works on %s?", host);
	pageparts_card(out, "open", "Doctor", str_borrow(&sentence));
	str_done(&sentence);
	str_append(
		out,
		"<form class=\"choice\" action=\"/doctor\" method=\"get\"><p><button name=\"now\" "
		"value=\"1\">Check this host</button></p></form>\n"
		"<p class=\"note\">It takes some seconds: a Python is started, which imports torch, "
		"and the drivers' libraries are opened, at the lowest priority. Nothing is "
		"changed.</p>\n");
}

static void put_wait(struct answer *ret)
{
	pageparts_card(&ret->body, "open", "Doctor",
		       "This host is being checked; this page asks again each second");
	ret->status = MHD_HTTP_ACCEPTED;
	ret->refresh_s = REFRESH_S;
}

static void put_trouble(struct answer *ret, const struct str *why)
{
	pageparts_card(&ret->body, "inconclusive", "Doctor", str_borrow(why));
	ret->status = MHD_HTTP_UNPROCESSABLE_CONTENT;
}

/* Returns a state of childtext_ask(), or -errno with a line in err. */
static int put_answers(struct call *call, const char *host, struct answer *ret)
{
	struct str doctor = { 0 }, settings = { 0 }, why = { 0 }, ignored = { 0 };
	int state = ask(call, &doctor_question, &doctor, &why), listed = CHILDTEXT_FAILED;

	if (state >= 0)
		listed = ask(call, &settings_question, &settings, &ignored);
	if (listed < 0)
		state = listed;
	else if (state == CHILDTEXT_WAITS || (state >= 0 && listed == CHILDTEXT_WAITS))
		put_wait(ret);
	else if (state == CHILDTEXT_FAILED)
		put_trouble(ret, &why);
	else if (state == CHILDTEXT_DONE)
		state = put_doctor(&ret->body, &doctor, host, call->err);
	if (state >= 0 && listed == CHILDTEXT_DONE && settings.len <= SETTINGS_BYTES_MAX)
		put_settings(&ret->body, &settings);
	str_done(&doctor);
	str_done(&settings);
	str_done(&why);
	str_done(&ignored);
	return state;
}

int page_doctor(struct call *call, struct answer *ret)
{
	const char *now = request_query(call->request, "now");
	char host[HOST_NAME_MAX + 1] = "this host";
	int state = 0;

	(void)gethostname(host, sizeof(host) - 1);
	pageparts_open(&ret->body, "Doctor");
	if (now != NULL && strcmp(now, "1") == 0)
		state = put_answers(call, host, ret);
	else
		put_start(&ret->body, host);
	put_other_hosts(call, &ret->body, host);
	pageparts_close(&ret->body);
	return state < 0 ? state : str_error(&ret->body);
}

int api_doctor(struct call *call, struct answer *ret)
{
	struct str why = { 0 };
	int state = ask(call, &doctor_question, &ret->body, &why);

	if (state == CHILDTEXT_WAITS) {
		str_append(&ret->body,
			   "{\"state\": \"checking\", \"help\": \"ask again in a second\"}\n");
		ret->status = MHD_HTTP_ACCEPTED;
		ret->refresh_s = REFRESH_S;
	}
	if (state == CHILDTEXT_FAILED)
		state = err_set(call->err, EBADMSG, "%.*s", (int)strcspn(str_borrow(&why), "\n"),
				str_borrow(&why));
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}
