/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/timelineask.h"

#include "base/clock.h"
#include "model/rankset.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RANKS_LEN_MAX 400u
#define REFRESH_S 1u

/* --- the report's place --- */

/* Words of the command: the report, and the folder of its run. */
struct place {
	struct str report, folder;
};

static void place_done(struct place *place)
{
	str_done(&place->report);
	str_done(&place->folder);
}

static int take_folder(void *arg, const struct store_job *job)
{
	str_append(arg, job->folder);
	return str_error(arg);
}

static int find_in_store(struct call *call, struct place *ret)
{
	struct archive *archive = &call->routes->archive;
	char key[STORE_KEY_BYTES];
	uint64_t number;
	int error;

	if (archive_parse_id(call->part, key, &number) < 0)
		return err_set(call->err, ENOENT, "no report %.60s: GET /api/v1/reports lists them",
			       call->part);
	error = archive_open_store(archive, call->err);
	if (error == 0)
		error = store_get_job(archive->store, key, take_folder, &ret->folder, call->err);
	if (error < 0 && error != -ENOENT)
		archive_drop_store(archive);
	if (number == 0)
		str_printf(&ret->report, "%s/end", key);
	else
		str_printf(&ret->report, "%s/%" PRIu64, key, number);
	return error;
}

static int find_place(struct call *call, struct place *ret)
{
	const struct catalog_report *report;
	struct stat st;
	int error = catalog_refresh(call->routes->archive.catalog, clock_mono_ns());

	if (error < 0)
		return err_set(call->err, -error, "out of memory");
	report = catalog_find(call->routes->archive.catalog, call->part);
	if (report != NULL) {
		str_append(&ret->report, report->path);
		str_append(&ret->folder, report->folder);
	} else {
		error = find_in_store(call, ret);
	}
	if (error == 0)
		error = str_error(&ret->folder) < 0 ? -ENOMEM : str_error(&ret->report);
	if (error == 0 && (stat(str_borrow(&ret->folder), &st) < 0 || !S_ISDIR(st.st_mode)))
		return err_set(call->err, ENODATA,
			       "the folder of this report's run, %.200s, is not on this machine: "
			       "its traces are there, if it kept some",
			       str_borrow(&ret->folder));
	return error;
}

/* --- questions --- */

int timelineask_read(struct call *call, struct timelineask *ret)
{
	const char *ranks = request_query(call->request, "ranks");
	rankset_vec set = { 0 };
	int error;

	*ret = (struct timelineask){ .ranks = ranks != NULL && ranks[0] != '\0' ? ranks : NULL };
	error = request_number(call->request, "from", TIMELINE_US_MAX, &ret->from_us, call->err);
	if (error == 0)
		error = request_number(call->request, "to", TIMELINE_US_MAX, &ret->to_us,
				       call->err);
	if (error == 0 && ret->to_us != 0 && ret->to_us <= ret->from_us)
		return err_set(call->err, EINVAL,
			       "to: expected a moment after from, in microseconds");
	if (error < 0 || ret->ranks == NULL)
		return error;
	if (strlen(ret->ranks) > RANKS_LEN_MAX || rankset_parse(ret->ranks, &set, NULL) < 0)
		return err_set(call->err, EINVAL,
			       "ranks: expected a set of ranks such as 0-3,7, found %.80s",
			       ret->ranks);
	vec_done(&set);
	return 0;
}

static int ask(struct call *call, struct childtext *childtext,
	       const struct childtext_question *question, struct str *body, struct str *why)
{
	int ret = childtext_ask(childtext, question, body, why);

	if (ret == -EBUSY)
		return err_set(call->err, EBUSY,
			       "other timelines wait here: try again in a minute");
	return ret < 0 ? err_set(call->err, -ret, "the timeline can't be made: %s", strerror(-ret))
		       : ret;
}

static const char instead[] = "`perftracker timeline` on the command line has no limit";

/* A daemon that serves its own job may ask it for its newest records; other servers change nothing. */
static int ask_part(struct call *call, const struct timelineask *asked, const char *columns,
		    const struct place *place, struct str *texts[2])
{
	struct childtext_question question = { .what = "the timeline", .instead = instead };
	const char *words[] = { "timeline", "--report", str_borrow(&place->report),
				"--format", "bins",	"--columns",
				columns,    "--output", "-" };
	char from[32], to[32];
	size_t cnt = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		question.words[cnt++] = words[i];
	if (call->routes->live == NULL)
		question.words[cnt++] = "--as-saved";
	if (asked->to_us > 0) {
		(void)snprintf(from, sizeof(from), "--from=%.6f", (double)asked->from_us / 1e6);
		(void)snprintf(to, sizeof(to), "--to=%.6f", (double)asked->to_us / 1e6);
		question.words[cnt++] = from;
		question.words[cnt++] = to;
	}
	if (asked->ranks != NULL) {
		question.words[cnt++] = "--ranks";
		question.words[cnt++] = asked->ranks;
	}
	question.words[cnt++] = "--";
	question.words[cnt++] = str_borrow(&place->folder);
	return ask(call, call->routes->childtext, &question, texts[0], texts[1]);
}

int timelineask_part(struct call *call, const struct timelineask *asked, const char *columns,
		     struct str *body, struct str *why)
{
	struct place place = { 0 };
	int ret = call->routes->childtext != NULL
			  ? find_place(call, &place)
			  : err_set(call->err, ENOSYS, "this server draws no timelines");

	if (ret == 0)
		ret = ask_part(call, asked, columns, &place, (struct str *[2]){ body, why });
	place_done(&place);
	return ret;
}

int timelineask_trace(struct call *call, struct str *body, struct str *why)
{
	struct place place = { 0 };
	int ret = call->routes->traces != NULL
			  ? find_place(call, &place)
			  : err_set(call->err, ENOSYS, "this server draws no timelines");

	if (ret == 0) {
		const struct childtext_question question = {
			{ "timeline", "--report", str_borrow(&place.report), "--format",
			  "chrome-gz", "--last", "0", "--as-saved", "--output", "-", "--",
			  str_borrow(&place.folder) },
			"the timeline",
			instead,
		};

		ret = ask(call, call->routes->traces, &question, body, why);
	}
	place_done(&place);
	return ret;
}

/* --- answers for programs --- */

static int refuse(struct call *call, const struct str *why)
{
	return err_set(call->err, EBADMSG, "%.*s", (int)strcspn(str_borrow(why), "\n"),
		       str_borrow(why));
}

int api_timeline(struct call *call, struct answer *ret)
{
	struct timelineask asked;
	struct str why = { 0 };
	int state = timelineask_read(call, &asked);

	if (state < 0)
		return state;
	state = timelineask_part(call, &asked, TIMELINE_COLUMNS_PRESET, &ret->body, &why);
	if (state == CHILDTEXT_WAITS) {
		str_append(&ret->body,
			   "{\"state\": \"drawing\", \"help\": \"ask again in a second\"}\n");
		ret->status = MHD_HTTP_ACCEPTED;
		ret->refresh_s = REFRESH_S;
	}
	if (state == CHILDTEXT_FAILED)
		state = refuse(call, &why);
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}

int file_trace(struct call *call, struct answer *ret)
{
	struct str why = { 0 };
	int state = timelineask_trace(call, &ret->body, &why);

	if (state == CHILDTEXT_WAITS) {
		str_append(&ret->body, "The trace is being written: it comes by itself.\n");
		ret->type = "text/plain; charset=utf-8";
		ret->status = MHD_HTTP_ACCEPTED;
		ret->refresh_s = REFRESH_S;
	} else if (state == CHILDTEXT_DONE) {
		(void)snprintf(ret->file_name, sizeof(ret->file_name), "timeline-%.40s.json.gz",
			       call->part);
	}
	if (state == CHILDTEXT_FAILED)
		state = refuse(call, &why);
	str_done(&why);
	return state < 0 ? state : str_error(&ret->body);
}
