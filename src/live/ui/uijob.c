/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/uijob.h"

#include "base/clock.h"
#include "base/log.h"
#include "live/ui/pagestore.h"
#include "live/ui/uiserver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct uijob {
	char socket[128], place[160];
	struct keeper *keeper;
	struct uiserver *server;
	struct uiasks *asks;
	struct routes_live live;
	struct metrics *metrics; /* NULL: none */
	pthread_mutex_t lock;	 /* of text */
	struct str text;	 /* the latest from the hub */
};

/* On the daemon's loop: while the page copies the text, this second is left out. */
static void take_live(void *arg, const struct str *live)
{
	struct uijob *job = arg;

	if (pthread_mutex_trylock(&job->lock) != 0)
		return;
	str_done(&job->text);
	job->text = (struct str){ 0 };
	str_append_len(&job->text, str_borrow(live), live->len);
	(void)pthread_mutex_unlock(&job->lock);
}

static int read_live(void *arg, const char *key, const char *folder _unused_, struct str *ret)
{
	struct uijob *job = arg;
	struct str text = { 0 };
	struct json_writer w = { 0 };
	json_error_t wrong;
	json_t *root;

	if (strcmp(key, keeper_borrow_key(job->keeper)) != 0)
		return -ENOENT;
	(void)pthread_mutex_lock(&job->lock);
	str_append_len(&text, str_borrow(&job->text), job->text.len);
	(void)pthread_mutex_unlock(&job->lock);
	root = json_loadb(str_borrow(&text), text.len, 0, &wrong);
	str_done(&text);
	if (root == NULL)
		return -ENOENT; /* it has said nothing yet */
	uiasks_put(job->asks, key, &w, root);
	return jsonwriter_print(&w, root, ret);
}

static int ask_profile(void *arg, const struct routes_wish *wish, struct err *err)
{
	struct uijob *job = arg;

	if (strcmp(wish->job, keeper_borrow_key(job->keeper)) != 0)
		return -ENOENT;
	return uiasks_send(job->asks, job->socket, wish, err);
}

static int read_metrics(void *arg, const char *accept, struct str *ret, const char **ret_type)
{
	const struct uijob *job = arg;
	enum exposition_format format = exposition_choose(accept);

	*ret_type = exposition_content_type(format);
	return metrics_render(job->metrics, format, ret);
}

/* Of a process that had this number, and of others that were killed. */
static void remove_left(const struct uijob *job)
{
	char folder[sizeof(job->place)];
	char *slash;

	pagestore_remove(job->place);
	(void)snprintf(folder, sizeof(folder), "%s", job->place);
	slash = strrchr(folder, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	pagestore_remove_stale(folder, clock_wall_ns());
}

static int open_keeper(struct uijob *job, const struct run_options *options,
		       const struct keeper *twin)
{
	const struct keeper_setup setup = { .where = job->place,
					    .name = options->job_name,
					    .folder = options->out_dir,
					    .command = options->command,
					    .twin = twin,
					    .brief = true };
	struct err err = { "" };
	int ret;

	remove_left(job);
	ret = keeper_open(&setup, &job->keeper, &err);
	if (ret < 0)
		log_line(LOG_WARNING, "event=page-off why=\"%s\"", err.text);
	return ret;
}

static struct uiserver *start_server(struct uijob *job, const struct run_options *options)
{
	struct str later = { 0 };
	struct uiserver_setup setup = { .address = options->ui,
					.tokens = options->ui_tokens,
					.host = options->ui_host,
					.place = job->place,
					.live = &job->live,
					.asks = job->asks };
	struct uiserver *ret;

	str_printf(&later, "perftracker serve %s", options->out_dir);
	setup.later = str_borrow(&later);
	ret = uiserver_start(&setup);
	str_done(&later);
	return ret;
}

struct uijob *uijob_open(const struct run_options *options, const char *socket, struct keeper *twin,
			 struct hub *hub, struct metrics *metrics)
{
	struct uijob *job = calloc(1, sizeof(*job));
	struct hub_show show = { .say = take_live, .arg = job };

	if (job == NULL) {
		log_line(LOG_WARNING, "event=page-off why=\"out of memory\"");
		return NULL;
	}
	(void)pthread_mutex_init(&job->lock, NULL);
	(void)snprintf(job->socket, sizeof(job->socket), "%s", socket);
	(void)snprintf(job->place, sizeof(job->place), "%s" PAGESTORE_END, socket);
	job->metrics = metrics;
	job->live = (struct routes_live){ .read = read_live,
					  .profile = ask_profile,
					  .metrics = metrics != NULL ? read_metrics : NULL,
					  .arg = job };
	job->asks = uiasks_new();
	if (job->asks == NULL || open_keeper(job, options, twin) < 0)
		return uijob_close(job);
	job->server = start_server(job, options);
	if (job->server == NULL)
		return uijob_close(job);
	show.page = job->keeper;
	hub_show(hub, &show);
	if (twin != NULL)
		keeper_also(twin, job->keeper);
	return job;
}

struct keeper *uijob_keeper(const struct uijob *job)
{
	return job != NULL ? job->keeper : NULL;
}

struct uijob *uijob_close(struct uijob *job)
{
	if (job == NULL)
		return NULL;
	job->server = uiserver_close(job->server);
	job->keeper = keeper_close(job->keeper);
	job->asks = uiasks_free(job->asks);
	pagestore_remove(job->place);
	(void)pthread_mutex_destroy(&job->lock);
	str_done(&job->text);
	free(job);
	return NULL;
}
