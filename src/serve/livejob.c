/* SPDX-License-Identifier: Apache-2.0 */
/* What only the daemon of a job can answer: how the job is now, and a profile of it. */
#include "report/jsonwriter.h"
#include "serve/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REASON_BYTES 200u

struct found {
	char key[STORE_KEY_BYTES], folder[4096];
	bool ended;
};

static int take_job(void *arg, const struct store_job *job)
{
	struct found *found = arg;

	(void)snprintf(found->folder, sizeof(found->folder), "%s", job->folder);
	found->ended = job->ended_ns != 0;
	return 0;
}

/* The job of the path. Returns 0 or -errno; -ENOSYS: no daemon is here. */
static int find(struct call *call, struct found *ret)
{
	struct archive *archive = &call->routes->archive;
	int error;

	if (call->routes->live == NULL)
		return err_set(call->err, ENOSYS,
			       "this server has no daemon behind it, it shows what is written");
	error = routes_find_job(call, ret->key);
	if (error == 0)
		error = store_get_job(archive->store, ret->key, take_job, ret, call->err);
	if (error < 0 && error != -ENOENT && error != -ENOTUNIQ)
		archive_drop_store(archive);
	return error;
}

int api_live(struct call *call, struct answer *ret)
{
	struct found found = { .ended = false };
	const struct routes_live *live = call->routes->live;
	int error = find(call, &found);

	if (error == 0)
		error = live->read(live->arg, found.key, found.folder, &ret->body);
	if (error == -ENOENT && call->err->text[0] == '\0')
		return err_set(call->err, ENOENT, "job %s does not run here%s", found.key,
			       found.ended ? ": it has ended" : "");
	return error;
}

/* The reason of a body that is a form, or JSON. */
static int read_reason(struct call *call, char ret[static REASON_BYTES])
{
	const char *type = call->request->headers[HEADER_CONTENT_TYPE];
	json_error_t wrong = { .text = "" };
	json_t *root;
	const char *text;

	ret[0] = '\0';
	if (type != NULL && strncmp(type, "application/json", 16) == 0) {
		root = json_loads(call->request->body, 0, &wrong);
		text = json_string_value(json_object_get(root, "reason"));
		(void)snprintf(ret, REASON_BYTES, "%s", text != NULL ? text : "");
		json_decref(root);
	} else {
		(void)request_form(call->request->body, "reason", ret, REASON_BYTES);
	}
	if (ret[strspn(ret, " \t\r\n")] != '\0')
		return 0;
	return err_set(
		call->err, EINVAL,
		"expected a reason, which is logged with the order: reason=TEXT as a form, or "
		"{\"reason\": \"TEXT\"} as application/json%s%s",
		wrong.text[0] != '\0' ? ": " : "", wrong.text);
}

static int ask(struct call *call, struct found *found, char reason[static REASON_BYTES])
{
	const struct routes_live *live = call->routes->live;
	struct routes_wish wish = { .job = found->key,
				    .folder = found->folder,
				    .user = call->request->user,
				    .reason = reason };
	int error = find(call, found);

	if (error == 0)
		error = read_reason(call, reason);
	if (error < 0)
		return error;
	error = found->ended ? -ENOENT : live->profile(live->arg, &wish, call->err);
	if (error == -ENOENT)
		return err_set(call->err, EALREADY,
			       "job %s does not run here any more: nothing to profile", found->key);
	return error;
}

int api_profile(struct call *call, struct answer *ret)
{
	struct found found = { .ended = false };
	char reason[REASON_BYTES];
	struct json_writer w = { 0 };
	json_t *root;
	int error = ask(call, &found, reason);

	if (error < 0)
		return error;
	root = json_object();
	jsonwriter_put_text(&w, root, "schema", "perftracker.asked.v1");
	jsonwriter_put_text(&w, root, "job", found.key);
	jsonwriter_put_text(&w, root, "user", call->request->user);
	jsonwriter_put_text(&w, root, "reason", reason);
	ret->status = 202;
	return jsonwriter_print(&w, root, &ret->body);
}

/* The form of a job's page leads back to the page. */
int page_profile(struct call *call, struct answer *ret)
{
	struct found found = { .ended = false };
	char reason[REASON_BYTES];
	int error = ask(call, &found, reason);

	if (error < 0)
		return error;
	ret->status = 303;
	(void)snprintf(ret->location, sizeof(ret->location), "/jobs/%s", found.key);
	str_append(&ret->body, "Asked.\n");
	return str_error(&ret->body);
}

int api_metrics(struct call *call, struct answer *ret)
{
	const struct routes_live *live = call->routes->live;

	if (live == NULL || live->metrics == NULL)
		return err_set(
			call->err, ENOSYS,
			"this server has no metrics, it shows what is written: the server of "
			"`perftracker run --ui` has");
	return live->metrics(live->arg, call->request->headers[HEADER_ACCEPT], &ret->body,
			     &ret->type);
}
