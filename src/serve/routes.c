/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/routes.h"

#include "report/jsonwriter.h"
#include "serve/pages/pageparts.h"
#include "serve/timelineask.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

static const char type_json[] = "application/json";

/* clang-format off */
#define PATH(named, text) { .name = (named), .in_path = true, .about = (text) }
#define TEXT(named, text) { .name = (named), .about = (text) }
#define NUMBER(named, most, text) { .name = (named), .number = true, .high = (most), .about = (text) }
#define LIMIT NUMBER("limit", ROUTES_LIMIT_MAX, "At most so many; 0 or absent: 100.")
#define JOB PATH("job", "The key of a job or its beginning, or a name for the newest job of that name.")

static const struct route_param jobs_params[] = {
	TEXT("filter", "A part of name, key, host, owner, command, verdict or state, in any case."),
	TEXT("state", "The beginning of the state: running, slow, ended, failed, lost, ..."),
	LIMIT,
	TEXT("cursor", "next of the answer before."),
};
static const struct route_param job_params[] = { JOB };
static const struct route_param history_params[] = {
	JOB,
	NUMBER("tier", 3600, "The pace by 1, 60 or 3600 seconds; 0 or absent: as it fits."),
};
static const struct route_param reports_params[] = {
	TEXT("job", "Reports of this job of the store; absent: those in folders, the newest first."),
	LIMIT,
	NUMBER("cursor", 1000000, "next of the answer before."),
};
static const struct route_param report_params[] = {
	PATH("report", "An id that /api/v1/reports lists: KEY-NUMBER, KEY-end, or of a file."),
};
static const struct route_param events_params[] = {
	TEXT("last", "As the header Last-Event-ID: the events after this one come first."),
};
static const struct route_param exclude_params[] = {
	TEXT("form", "slurm (also if absent) or kubernetes."),
	NUMBER("jobs", 1000000, "Machines that were accused in so many jobs; absent: 3."),
};
static const struct route_param compare_params[] = {
	TEXT("a", "The id of the report before, as /api/v1/reports lists it."),
	TEXT("b", "The id of the report after."),
};
static const struct route_param timeline_params[] = {
	PATH("report", "An id that /api/v1/reports lists."),
	NUMBER("from", TIMELINE_US_MAX, "The part begins so many microseconds after the first record."),
	NUMBER("to", TIMELINE_US_MAX, "Its end; 0 or absent: the window of the report, else the last 10 s."),
	TEXT("ranks", "Only these, for example 0-3,7; absent: all, 64 at most are shown."),
};
#define METRICS_HELP "ask the server of `perftracker run --ui`, or set --metrics there"
#define PARAMS(list) .params = (list), .param_cnt = ARRAY_SIZE(list)

const struct route routes_table[] = {
	{ "/api/v1/jobs", type_json, api_jobs, "listJobs",
	  "Jobs of the store, the newest first.", "Jobs",
	  "GET /api/v1/openapi.json describes filter, state, limit and cursor", PARAMS(jobs_params) },
	{ "/api/v1/jobs/{job}", type_json, api_job, "getJob", "One job.", "Job",
	  "GET /api/v1/jobs lists the jobs", PARAMS(job_params) },
	{ "/api/v1/jobs/{job}/live", type_json, api_live, "getLive",
	  "A job that runs, as its daemon says: on servers of `run --ui` and `hub --ui` only.", "Live",
	  "`perftracker serve` shows what is written: ask the server of the job", PARAMS(job_params) },
	{ "/api/v1/jobs/{job}/profile", type_json, api_profile, "profileNow",
	  "Asks for a profile of a job that runs, now; by an operator. The report follows.", "Asked",
	  "`perftracker profile` on the job's host does the same", PARAMS(job_params),
	  .writes = true, .request_schema = "ProfileNow" },
	{ "/api/v1/jobs/{job}/history", type_json, api_history, "getHistory",
	  "A job with its reports, findings, events and pace.", "History",
	  "GET /api/v1/jobs lists the jobs", PARAMS(history_params) },
	{ "/api/v1/reports", type_json, api_reports, "listReports",
	  "Reports in the folders, or of one job.", "Reports",
	  "GET /api/v1/jobs lists the jobs", PARAMS(reports_params) },
	{ "/api/v1/reports/{report}", type_json, api_report, "getReport",
	  "A report as it was made: report-schema.json is its contract.", "Report",
	  "GET /api/v1/reports lists the reports", PARAMS(report_params) },
	{ "/api/v1/reports/{report}/timeline", type_json, api_timeline, "getTimeline",
	  "A part of the timeline of a report, as `perftracker timeline --format bins` says; 202 while it is made.",
	  "Timeline", "run the job with `perftracker run --keep-traces`", PARAMS(timeline_params) },
	{ "/api/v1/compare", type_json, api_compare, "compareReports",
	  "What changed from report a to report b, as `perftracker diff` says; 202 while it is compared.",
	  "Comparison", "/compare lists the reports that can be compared", PARAMS(compare_params) },
	{ "/api/v1/doctor", type_json, api_doctor, "checkHost",
	  "What works on the server's host, as `perftracker doctor` says; 202 while it looks.",
	  "Doctor", "`perftracker doctor` on the host says the same" },
	{ "/api/v1/hosts", type_json, api_hosts, "listHosts",
	  "Hosts that findings accused, by the number of jobs.", "Hosts",
	  "GET /api/v1/openapi.json describes the answer" },
	{ "/api/v1/hosts/exclude", type_json, api_exclude, "suggestExclusion",
	  "Hosts to keep out of the next jobs, as a scheduler takes them: a suggestion.", "Exclusion",
	  "form is slurm or kubernetes, jobs a number", PARAMS(exclude_params) },
	{ "/api/v1/events", "text/event-stream", api_events, "followEvents",
	  "Server-sent events: job, event and report, while jobs run; gap when some are lost.",
	  NULL, "GET /api/v1/openapi.json describes the answer", PARAMS(events_params) },
	{ "/api/v1/openapi.json", type_json, api_openapi, "getDescription",
	  "This description, OpenAPI 3.1.", "Description", "" },
	{ "/metrics", "text/plain; charset=utf-8", api_metrics, .help = METRICS_HELP },
	{ "/", NULL, page_jobs },
	{ "/jobs/{job}", NULL, page_job },
	{ "/jobs/{job}/profile", NULL, page_profile, .writes = true },
	{ "/reports/{report}", NULL, page_report },
	{ "/reports/{report}/flame", NULL, page_flame },
	{ "/reports/{report}/timeline", NULL, page_timeline },
	{ "/reports/{report}/timeline/trace", "application/gzip", file_trace },
	{ "/hosts", NULL, page_hosts },
	{ "/compare", NULL, page_compare },
	{ "/doctor", NULL, page_doctor },
	{ "/style.css", "text/css; charset=utf-8", file_style },
	{ "/favicon.ico", "image/svg+xml", file_icon },
	{ "/flame.js", "text/javascript; charset=utf-8", file_flame },
	{ "/timeline.js", "text/javascript; charset=utf-8", file_timeline },
	{ "/page.js", "text/javascript; charset=utf-8", file_script },
};
/* clang-format on */
const size_t routes_cnt = ARRAY_SIZE(routes_table);

/* --- failures --- */

static bool is_api(const struct request *request)
{
	return strncmp(request->path, "/api/", 5) == 0 || request->of_agent;
}

static void fail_json(unsigned status, const char *why, const char *help, struct answer *ret)
{
	struct json_writer w = { 0 };
	json_t *root = json_object();

	jsonwriter_put(&w, root, "status", json_integer((json_int_t)status));
	jsonwriter_put_text(&w, root, "error", why);
	jsonwriter_put_text(&w, root, "help", help);
	ret->type = type_json;
	if (jsonwriter_print(&w, root, &ret->body) < 0)
		ret->body.error = -ENOMEM;
}

static void fail(const struct request *request, unsigned status, const char *why, const char *help,
		 struct answer *ret)
{
	str_done(&ret->body);
	*ret = (struct answer){ .status = status };
	if (is_api(request))
		fail_json(status, why, help, ret);
	else
		pageparts_failure(&ret->body, why);
}

void routes_refuse(void *arg _unused_, const struct request *request, unsigned status,
		   const char *why, struct answer *ret)
{
	fail(request, status, why, "see `perftracker serve --help`", ret);
}

static unsigned status_of(int error)
{
	if (error == -ENOENT || error == -ENODATA)
		return MHD_HTTP_NOT_FOUND;
	if (error == -EBUSY || error == -EALREADY)
		return MHD_HTTP_CONFLICT;
	if (error == -ENOSYS)
		return MHD_HTTP_NOT_IMPLEMENTED;
	if (error == -EBADMSG)
		return MHD_HTTP_UNPROCESSABLE_CONTENT;
	return error == -EINVAL || error == -ENOTUNIQ ? MHD_HTTP_BAD_REQUEST
						      : MHD_HTTP_SERVICE_UNAVAILABLE;
}

void routes_answer(void *arg, const struct request *request, struct answer *ret)
{
	struct err err = { "" };
	const struct routes *routes = arg;
	struct call call = { .routes = arg, .request = request, .err = &err };

	if (request->of_agent && routes->post != NULL) {
		routes->post(routes->post_arg, request, ret);
		return;
	}
	for (size_t i = 0; i < routes_cnt; i++) {
		const struct route *route = &routes_table[i];
		int error;

		if (!request_path_fits(request->path, route->path, call.part, sizeof(call.part)))
			continue;
		if (request->writes != route->writes) {
			fail(request, MHD_HTTP_METHOD_NOT_ALLOWED,
			     route->writes ? "use POST here"
					   : "there is nothing to write here: use GET or HEAD",
			     "GET /api/v1/openapi.json lists the paths", ret);
			return;
		}
		ret->type = route->type;
		error = route->make(&call, ret);
		if (error < 0)
			fail(request, status_of(error),
			     err.text[0] != '\0' ? err.text : strerror(-error), route->help, ret);
		return;
	}
	fail(request, MHD_HTTP_NOT_FOUND, "there is nothing at this path",
	     "GET /api/v1/openapi.json lists the paths", ret);
}

/* --- what handlers share --- */

int routes_find_job(struct call *call, char ret[static STORE_KEY_BYTES])
{
	struct archive *archive = &call->routes->archive;
	int error = archive_open_store(archive, call->err);

	if (error < 0)
		return error;
	error = store_find_job(archive->store, call->part, ret, call->err);
	if (error < 0 && error != -ENOENT && error != -ENOTUNIQ)
		archive_drop_store(archive);
	return error;
}

int routes_read_filter(struct call *call, uint64_t preset, struct archive_filter *ret)
{
	const char *cursor = request_query(call->request, "cursor");
	const char *text = request_query(call->request, "filter");
	const char *state = request_query(call->request, "state");
	uint64_t limit = preset;
	int error = request_number(call->request, "limit", ROUTES_LIMIT_MAX, &limit, call->err);

	if (error < 0)
		return error;
	*ret = (struct archive_filter){
		.text = text != NULL && text[0] != '\0' ? text : NULL,
		.state = state != NULL && state[0] != '\0' ? state : NULL,
		.after = { .started_ns = INT64_MAX },
		.limit = limit > 0 ? (size_t)limit : (size_t)preset,
	};
	if (cursor != NULL && cursor[0] != '\0' && archive_parse_place(cursor, &ret->after) < 0)
		return err_set(call->err, EINVAL,
			       "cursor: expected next of the answer before, found %.80s", cursor);
	return 0;
}
