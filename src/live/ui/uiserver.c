/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/uiserver.h"

#include "base/clock.h"
#include "base/log.h"
#include "serve/http/server.h"
#include "serve/timelineask.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS 1000

struct uiserver {
	struct uiserver_setup setup;
	char place[4200], later[4300], host[256];
	pthread_t thread;
	int stop_fd;
};

bool uiserver_is_wanted(const struct netaddress *address)
{
	return address->host[0] != '\0' || address->path[0] != '\0';
}

int uiserver_check(const struct netaddress *address, const char *token_file, struct err *err)
{
	if (!uiserver_is_wanted(address) || netaddress_is_local(address) ||
	    (token_file != NULL && token_file[0] != '\0'))
		return 0;
	return err_set(err, EPERM,
		       "%s is open to other machines: name a token file, or serve on 127.0.0.1 and "
		       "come in by `ssh -L`",
		       address->host);
}

static void say_address(const struct uiserver *ui, const struct server *server)
{
	const char *address = server_borrow_address(server);
	bool is_unix = strncmp(address, "unix:", 5) == 0;

	log_line(LOG_INFO, "event=page url=\"%s%s%s\" later=\"%s\"", is_unix ? "" : "http://",
		 address, is_unix ? "" : "/", ui->later);
}

static void serve(const struct uiserver *ui, struct server *server, struct feed *feed)
{
	struct pollfd wait = { .fd = ui->stop_fd, .events = POLLIN };
	int64_t beat_ns = clock_mono_ns();

	while (poll(&wait, 1, TICK_MS) <= 0) {
		int64_t now_ns = clock_mono_ns();
		bool news = uiasks_look(ui->setup.asks);

		server_tick(server, now_ns);
		news |= feed_look(feed, clock_wall_ns());
		if (news || now_ns - beat_ns >= SERVER_HEARTBEAT_NS) {
			server_wake(server);
			beat_ns = now_ns;
		}
	}
}

static int open_parts(const struct uiserver *ui, struct routes *routes, struct server **ret,
		      struct err *err)
{
	const struct uiserver_setup *setup = &ui->setup;
	const struct server_options how = { .address = setup->address,
					    .tokens = setup->tokens,
					    .name = setup->host,
					    .answer = routes_answer,
					    .refuse = routes_refuse,
					    .arg = routes };

	(void)snprintf(routes->archive.place, sizeof(routes->archive.place), "%s", ui->place);
	routes->live = setup->live;
	routes->archive.catalog = catalog_new(NULL, 0);
	routes->feed = feed_new(ui->place, clock_wall_ns());
	routes->childtext = childtext_new(&(struct childtext_options){ .place = ui->place });
	routes->traces =
		childtext_new(&(struct childtext_options){ .place = ui->place,
							   .bytes_max = TIMELINE_TRACE_BYTES_MAX,
							   .entry_max = TIMELINE_TRACE_ENTRIES });
	if (routes->archive.catalog == NULL || routes->feed == NULL || routes->childtext == NULL ||
	    routes->traces == NULL)
		return err_set(err, ENOMEM, "out of memory");
	return server_open(&how, ret, err);
}

static void *ui_main(void *arg)
{
	const struct uiserver *ui = arg;
	struct routes routes = { .archive = { .store = NULL } };
	struct server *server = NULL;
	struct err err = { "" };

	(void)pthread_setname_np(pthread_self(), "pt-page"); /* host/process/ownthreads.c */
	if (open_parts(ui, &routes, &server, &err) < 0) {
		log_line(LOG_WARNING, "event=page-off why=\"%s\"", err.text);
	} else {
		say_address(ui, server);
		serve(ui, server, routes.feed);
	}
	(void)server_close(server);
	(void)childtext_free(routes.childtext);
	(void)childtext_free(routes.traces);
	(void)feed_free(routes.feed);
	archive_done(&routes.archive);
	return NULL;
}

struct uiserver *uiserver_start(const struct uiserver_setup *setup)
{
	struct uiserver *ui = calloc(1, sizeof(*ui));
	int error = ENOMEM;

	json_object_seed(0); /* before two threads make the first objects */
	if (ui != NULL) {
		ui->setup = *setup;
		(void)snprintf(ui->place, sizeof(ui->place), "%s", setup->place);
		(void)snprintf(ui->later, sizeof(ui->later), "%s", setup->later);
		(void)snprintf(ui->host, sizeof(ui->host), "%s",
			       setup->host != NULL ? setup->host : "");
		ui->setup.host = ui->host[0] != '\0' ? ui->host : NULL;
		ui->stop_fd = eventfd(0, EFD_CLOEXEC);
		error = ui->stop_fd < 0 ? errno : pthread_create(&ui->thread, NULL, ui_main, ui);
	}
	if (error == 0)
		return ui;
	if (ui != NULL && ui->stop_fd >= 0)
		(void)close(ui->stop_fd);
	free(ui);
	log_line(LOG_WARNING, "event=page-off why=\"%s\"", strerror(error));
	return NULL;
}

struct uiserver *uiserver_close(struct uiserver *ui)
{
	static const uint64_t one = 1;

	if (ui == NULL)
		return NULL;
	(void)!write(ui->stop_fd, &one, sizeof(one));
	(void)pthread_join(ui->thread, NULL);
	(void)close(ui->stop_fd);
	free(ui);
	return NULL;
}
