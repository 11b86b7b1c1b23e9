/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker serve: pages and an API of the store and of folders with reports. */
#include "base/clock.h"
#include "cmd/storechoice.h"
#include "mcp/mcp.h"
#include "serve/http/server.h"
#include "serve/routes.h"
#include "serve/timelineask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS 1000

struct serve_options {
	const char *store, *token_file, *host;
	struct netaddress listen;
	enum output_format format; /* text or JSON */
};

#define FIELD(field) OPTION_FIELD(struct serve_options, field)

static int set_listen(void *address, const char *text, struct err *err)
{
	return netaddress_parse_any(text, (struct netaddress *)address, err);
}

static const struct option_row rows[] = {
	{ .name = "listen",
	  .letter = 'l',
	  .argument = "[ADDR:]PORT",
	  FIELD(listen),
	  .set = set_listen,
	  .expected = "PORT, ADDR:PORT or unix:PATH",
	  .help = "listen there; PORT 0: any that is free; or unix:PATH",
	  .preset = "8790",
	  .more = "On 127.0.0.1 and on a Unix socket only processes of the same user are answered. "
		  "Any other address needs --token-file." },
	STORE_CHOICE_ROW(struct serve_options, store),
	{ .name = "token-file",
	  .argument = "FILE",
	  FIELD(token_file),
	  .help = "who may ask: lines \"viewer TOKEN\" or \"operator TOKEN\"",
	  .more = "The file must be readable by its owner only. Programs send Authorization: Bearer "
		  "TOKEN; a browser asks for a name and a password, which is the token. Put a proxy "
		  "with TLS in front: the server itself speaks plain HTTP." },
	{ .name = "host",
	  .argument = "NAME",
	  FIELD(host),
	  .help = "a further name of the server, for instance that of a proxy",
	  .more = "Requests whose Host header is neither a number, localhost, this machine's name "
		  "nor NAME are refused." },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "of the line with the address",
	  .preset = "text" },
};

/* One line, which a program can wait for. */
static void print_address(const struct serve_options *options, const char *address)
{
	bool is_unix = strncmp(address, "unix:", 5) == 0;
	struct json_writer w = { 0 };
	struct str url = { 0 }, out = { 0 };
	json_t *root;

	str_printf(&url, is_unix ? "%s" : "http://%s/", address);
	if (options->format == OUTPUT_JSON) {
		root = json_object();
		jsonwriter_put_text(&w, root, "url", str_borrow(&url));
		jsonwriter_put_text(&w, root, "listen", address);
		jsonwriter_put(&w, root, "pid", json_integer(getpid()));
		str_done(&url);
		url.data = json_dumps(root, JSON_COMPACT);
		url.len = url.data != NULL ? strlen(url.data) : 0;
		json_decref(root);
	} else {
		str_append(&out, "PerfTracker: ");
	}
	str_append(&out, str_borrow(&url));
	(void)puts(str_borrow(&out));
	(void)fflush(stdout);
	str_done(&out);
	str_done(&url);
}

/* Until SIGTERM, SIGINT or SIGHUP. */
static void serve_until_signal(struct server *server, struct feed *feed, int signals)
{
	struct pollfd wait = { .fd = signals, .events = POLLIN };
	int64_t beat_ns = clock_mono_ns();

	while (poll(&wait, 1, TICK_MS) <= 0) {
		int64_t now_ns = clock_mono_ns();

		server_tick(server, now_ns);
		if (feed_look(feed, clock_wall_ns()) || now_ns - beat_ns >= SERVER_HEARTBEAT_NS) {
			server_wake(server);
			beat_ns = now_ns;
		}
	}
}

/* Blocked before the server's thread starts, so that it has them blocked, too. */
static int block_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* A message of an agent: its answer is JSON, or nothing. */
static void answer_agent(void *arg, const struct request *request, struct answer *ret)
{
	const struct mcp_headers headers = { request->headers[HEADER_MCP_VERSION],
					     request->headers[HEADER_MCP_METHOD],
					     request->headers[HEADER_MCP_NAME],
					     request->headers[HEADER_HOST] };

	ret->type = "application/json";
	if (mcp_answer(arg, request->body, request->body_len, &headers, &ret->body, &ret->status) <
	    0)
		ret->body.error = -ENOMEM;
}

static int open_server(const struct serve_options *options, struct routes *routes,
		       const struct tokens *tokens, struct server **ret, struct err *err)
{
	struct server_options how = { .address = options->listen,
				      .tokens = tokens,
				      .name = options->host,
				      .post_path = ROUTES_POST_PATH,
				      .answer = routes_answer,
				      .refuse = routes_refuse,
				      .arg = routes };
	int r = server_open(&how, ret, err);

	if (r == -EADDRINUSE) {
		struct err why = *err;

		return err_set(
			err, EADDRINUSE,
			"%s: choose another one with --listen PORT, or --listen 0 for any that "
			"is free",
			why.text);
	}
	return r;
}

/* Checks what the user named; a store may come later. */
static int check_inputs(const struct archive *archive, char **folders, int cnt, struct err *err)
{
	for (int i = 0; i < cnt; i++) {
		if (access(folders[i], R_OK | X_OK) < 0)
			return err_set(err, errno, "%s: %s", folders[i], strerror(errno));
	}
	if (cnt == 0 && archive->place[0] == '\0')
		return err_set(err, ENOENT,
			       "nothing to serve: name a folder with reports, or a store "
			       "with --store");
	return 0;
}

static int serve(const struct serve_options *options, char **folders, int cnt, struct err *err)
{
	struct routes routes = { .archive = { .store = NULL }, .post = answer_agent };
	const struct mcp_options how = { .archive = &routes.archive };
	struct mcp *mcp = mcp_new(&how);
	struct tokens *tokens = NULL;
	struct server *server = NULL;
	int signals = block_signals();
	int ret = signals < 0 ? err_set(err, errno, "signalfd: %s", strerror(errno)) : 0;

	store_place(options->store, routes.archive.place, sizeof(routes.archive.place));
	routes.archive.catalog = catalog_new((const char *const *)folders, (size_t)cnt);
	routes.feed = feed_new(routes.archive.place, clock_wall_ns());
	routes.childtext =
		childtext_new(&(struct childtext_options){ .place = routes.archive.place });
	routes.traces =
		childtext_new(&(struct childtext_options){ .place = routes.archive.place,
							   .bytes_max = TIMELINE_TRACE_BYTES_MAX,
							   .entry_max = TIMELINE_TRACE_ENTRIES });
	routes.post_arg = mcp;
	if (ret == 0 && (routes.archive.catalog == NULL || routes.feed == NULL || mcp == NULL ||
			 routes.childtext == NULL || routes.traces == NULL))
		ret = err_set(err, ENOMEM, "out of memory");
	if (ret == 0)
		ret = check_inputs(&routes.archive, folders, cnt, err);
	if (ret == 0 && options->token_file != NULL)
		ret = tokens_read(options->token_file, &tokens, err);
	if (ret == 0)
		ret = open_server(options, &routes, tokens, &server, err);
	if (ret == 0) {
		print_address(options, server_borrow_address(server));
		serve_until_signal(server, routes.feed, signals);
	}
	(void)server_close(server);
	(void)childtext_free(routes.childtext);
	(void)childtext_free(routes.traces);
	(void)tokens_free(tokens);
	(void)feed_free(routes.feed);
	(void)mcp_free(mcp);
	archive_done(&routes.archive);
	if (signals >= 0)
		(void)close(signals);
	return ret;
}

static int serve_main(const struct command *command, int argc, char **argv)
{
	struct serve_options options = { .listen = { .host = "127.0.0.1", .port = 8790 } };
	struct err err = { "" };
	int first, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	if (serve(&options, argv + first, argc - first, &err) < 0)
		return cmd_fail("%s", err.text);
	return EXIT_DONE;
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "serve pages and an API of jobs and reports",
	.usage = "[OPTION]... [DIR]...\n",
	.about =
		"Serves the jobs of the store, and the reports in folders, as pages for a browser and "
		"as JSON under /api/v1, and to AI agents at /mcp, until it is ended by SIGTERM or Ctrl-C. It needs no daemon and "
		"reads files only, so it shows what is left of a job that was killed. The first line "
		"on standard output is the address.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker serve\n"
		    "perftracker serve perftracker-out/ --listen 0\n"
		    "perftracker serve --listen 0.0.0.0:8790 --token-file tokens\n"
		    "curl --unix-socket /run/user/1000/pt http://localhost/api/v1/jobs\n",
	.run = serve_main,
};
