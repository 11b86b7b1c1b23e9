/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/hubui.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "live/fleet/jobkey.h"
#include "live/run/options.h"
#include "live/ui/uiserver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIVE_BYTES_MAX ((size_t)1 << 20)
#define STALE_NS (15 * NSEC_PER_SEC) /* a leader says its job once a second */

struct hubui {
	const struct site *site;
	struct tokens *tokens; /* NULL: none */
	struct uiasks *asks;
	struct uiserver *server;
	struct routes_live live;
};

/* The last two parts of the path, "uUSER/JOB". */
static const char *user_and_job(const char *folder)
{
	const char *job = strrchr(folder, '/');

	if (job == NULL || job == folder)
		return NULL;
	do
		job--;
	while (job > folder && *job != '/');
	return *job == '/' ? job + 1 : job;
}

int hubui_socket(const struct site *site, const char *folder, char *ret, size_t size)
{
	const char *place = user_and_job(folder), *id = NULL;
	char key[JOBKEY_MAX], digest[17];
	unsigned uid = 0;

	if (place == NULL ||
	    (size_t)snprintf(key, sizeof(key), "%s/%s", site->values.cluster, place) >=
		    sizeof(key) ||
	    !jobkey_split(key, site->values.cluster, &uid, &id))
		return -ENOENT;
	jobkey_digest(key, digest);
	/* As hubjobs.c names them. */
	if ((size_t)snprintf(ret, size, "%.80s/%s.sock", site->values.hub_run, digest) >= size)
		return -ENOENT;
	return 0;
}

/* The latest that the leader said of this job; NULL: nothing, or it says no more. */
static json_t *read_file(const char *socket, const char *job)
{
	_cleanup_free_ char *text = NULL;
	char path[160];
	size_t len = 0;
	json_error_t wrong;
	json_t *ret = NULL;
	const char *of;
	int fd, error;

	(void)snprintf(path, sizeof(path), "%s" FLEET_LIVE_END, socket);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	error = file_read_whole(path, fd, LIVE_BYTES_MAX, &text, &len, NULL);
	(void)close(fd);
	if (error == 0)
		ret = json_loadb(text, len, 0, &wrong);
	of = json_string_value(json_object_get(ret, "job"));
	if (of != NULL && strcmp(of, job) == 0 &&
	    json_integer_value(json_object_get(ret, "at_ms")) * NSEC_PER_MSEC >
		    clock_wall_ns() - STALE_NS)
		return ret;
	json_decref(ret);
	return NULL;
}

static int read_live(void *arg, const char *job, const char *folder, struct str *ret)
{
	struct hubui *ui = arg;
	struct json_writer w = { 0 };
	char socket[108];
	json_t *root = NULL;

	if (hubui_socket(ui->site, folder, socket, sizeof(socket)) == 0)
		root = read_file(socket, job);
	if (root == NULL)
		return -ENOENT;
	uiasks_put(ui->asks, job, &w, root);
	return jsonwriter_print(&w, root, ret);
}

/* A folder may be that of an earlier job of this name: the leader has to say that it is this one. */
static int ask_profile(void *arg, const struct routes_wish *wish, struct err *err)
{
	struct hubui *ui = arg;
	char socket[108];
	json_t *root = NULL;

	if (hubui_socket(ui->site, wish->folder, socket, sizeof(socket)) == 0)
		root = read_file(socket, wish->job);
	if (root == NULL)
		return -ENOENT;
	json_decref(root);
	return uiasks_send(ui->asks, socket, wish, err);
}

static void page_off(const struct err *err)
{
	log_line(LOG_WARNING, "event=page-off why=\"%s\"", err->text);
}

static struct uiserver *start(struct hubui *ui, const struct netaddress *address)
{
	const struct site_values *site = &ui->site->values;
	struct str later = { 0 };
	struct uiserver_setup setup = { .address = *address,
					.tokens = ui->tokens,
					.host = site->hub_ui_host,
					.place = site->hub_store,
					.live = &ui->live,
					.asks = ui->asks };
	struct uiserver *ret;

	str_printf(&later, "perftracker serve --store %s", site->hub_store);
	setup.later = str_borrow(&later);
	ret = uiserver_start(&setup);
	str_done(&later);
	return ret;
}

static int open_parts(struct hubui *ui, struct err *err)
{
	const struct site_values *site = &ui->site->values;
	struct netaddress address;
	int ret = netaddress_parse_any(site->hub_ui, &address, err);

	if (ret == 0 && site->hub_ui_token_file[0] != '\0')
		ret = tokens_read(site->hub_ui_token_file, &ui->tokens, err);
	if (ret < 0)
		return ret;
	ui->live = (struct routes_live){ .read = read_live, .profile = ask_profile, .arg = ui };
	ui->asks = uiasks_new();
	if (ui->asks == NULL)
		return err_set(err, ENOMEM, "out of memory");
	ui->server = start(ui, &address);
	return 0;
}

struct hubui *hubui_open(const struct site *site)
{
	struct err err = { "out of memory" };
	struct hubui *ui;

	if (site->values.hub_ui[0] == '\0')
		return NULL;
	ui = calloc(1, sizeof(*ui));
	if (ui != NULL) {
		ui->site = site;
		if (open_parts(ui, &err) == 0)
			return ui;
	}
	page_off(&err);
	return hubui_close(ui);
}

struct hubui *hubui_close(struct hubui *ui)
{
	if (ui == NULL)
		return NULL;
	ui->server = uiserver_close(ui->server);
	ui->asks = uiasks_free(ui->asks);
	ui->tokens = tokens_free(ui->tokens);
	free(ui);
	return NULL;
}
