/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker mcp: jobs and reports for an AI agent, by the Model Context Protocol on stdio. */
#include "mcp/mcp.h"

#include "base/file.h"
#include "base/text/clean.h"
#include "cmd/jobchoice.h"
#include "cmd/storechoice.h"
#include "mcp/rpc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REFUSAL_TIMEOUT_MS 3000 /* a job that will make a profile says so at its end only */

struct mcp_cmd_options {
	const char *store, *url;
	bool allow_profile;
};

#define FIELD(field) OPTION_FIELD(struct mcp_cmd_options, field)

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct mcp_cmd_options, store),
	{ .name = "url",
	  .argument = "URL",
	  FIELD(url),
	  .help = "of a running `perftracker serve`, for links in answers",
	  .preset = "links name resources of this server" },
	{ .name = "allow-profile",
	  FIELD(allow_profile),
	  .help = "let the agent ask running jobs of this user for a profile",
	  .more = "Adds the tool request_profile, the only one that does more than read. A profile "
		  "costs the job a little time, and standard error has a line for each." },
};

static void log_request(const char *job)
{
	struct str line = { 0 };

	str_append(&line, "perftracker mcp: asks for a profile of ");
	clean_append_short(&line, job != NULL ? job : "the newest job", 80);
	str_append(&line, "\n");
	(void)fputs(str_borrow(&line), stderr);
	str_done(&line);
}

/* The hub's own rules decide; it answers at once only to refuse. */
static int ask_profile(void *arg _unused_, const char *job, struct str *ret, struct err *err)
{
	const struct job_choice choice = { .job = job };
	struct message answer;
	char socket[128];
	int fd, r = job_choice_socket(&choice, socket, sizeof(socket), err);

	if (r < 0)
		return r;
	log_request(job);
	fd = ask_open(socket, MSG_REQUEST, 0, err);
	if (fd < 0)
		return fd;
	r = ask_next(fd, REFUSAL_TIMEOUT_MS, &answer, err);
	(void)close(fd);
	if (r == -ETIMEDOUT)
		str_append(ret, "begun: its report is listed with the job in about a minute");
	else if (r == 0 && answer.status != 0)
		return err_set(err, ECANCELED, "the job refuses: %s", answer.text);
	else if (r == 0)
		str_printf(ret, "done: %s", answer.text);
	return r == -ETIMEDOUT ? 0 : r;
}

/* A line of input, without what is beyond the limit. */
struct line {
	struct str text;
	bool too_long;
};

static int answer_line(struct mcp *mcp, struct line *line)
{
	_cleanup_(str_done) struct str out = { 0 };
	int r = 0;

	while (line->text.len > 0 && strchr(" \t\r", line->text.data[line->text.len - 1]) != NULL)
		line->text.len--;
	if (str_error(&line->text) != 0)
		r = -ENOMEM;
	else if (line->too_long)
		r = rpc_print_error(NULL, RPC_INVALID, "the message is longer than 1 MiB", NULL,
				    &out);
	else if (line->text.len > 0)
		r = mcp_answer(mcp, line->text.data, line->text.len, NULL, &out, NULL);
	line->text.len = 0;
	line->too_long = false;
	if (r < 0 || out.len == 0)
		return r;
	str_append_char(&out, '\n');
	return str_error(&out) == 0 ? file_write_all(STDOUT_FILENO, out.data, out.len) : -ENOMEM;
}

static int take_bytes(struct mcp *mcp, struct line *line, const char *data, size_t len)
{
	int r = 0;

	while (len > 0 && r == 0) {
		const char *end = memchr(data, '\n', len);
		size_t part = end != NULL ? (size_t)(end - data) : len;

		if (line->text.len + part > RPC_BYTES_MAX)
			line->too_long = true;
		else
			str_append_len(&line->text, data, part);
		if (end != NULL)
			r = answer_line(mcp, line);
		data += part + (end != NULL);
		len -= part + (end != NULL);
	}
	return r;
}

/* Until the client closes its end. */
static int talk(struct mcp *mcp)
{
	struct line line = { .too_long = false };
	char data[65536];
	ssize_t len;
	int r = 0;

	do {
		len = read(STDIN_FILENO, data, sizeof(data));
		if (len > 0)
			r = take_bytes(mcp, &line, data, (size_t)len);
		else if (len < 0 && errno != EINTR)
			r = -errno;
	} while (r == 0 && len != 0);
	if (r == 0)
		r = answer_line(mcp, &line); /* without a line end */
	str_done(&line.text);
	return r == -EPIPE ? 0 : r;
}

static int check_folders(const struct archive *archive, char **folders, int cnt, struct err *err)
{
	for (int i = 0; i < cnt; i++) {
		if (access(folders[i], R_OK | X_OK) < 0)
			return err_set(err, errno, "%s: %s", folders[i], strerror(errno));
	}
	if (cnt == 0 && archive->place[0] == '\0')
		return err_set(err, ENOENT,
			       "nothing to show: name a folder with reports, or a store with "
			       "--store");
	return 0;
}

static int mcp_main(const struct command *command, int argc, char **argv)
{
	struct mcp_cmd_options options = { .store = NULL };
	struct archive archive = { .store = NULL };
	struct mcp_options how = { .archive = &archive };
	struct err err = { "" };
	struct mcp *mcp = NULL;
	int first, r, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status != OPTIONS_PARSED)
		return status;
	how.url = options.url;
	how.profile = options.allow_profile ? ask_profile : NULL;
	store_place(options.store, archive.place, sizeof(archive.place));
	archive.catalog = catalog_new((const char *const *)argv + first, (size_t)(argc - first));
	r = check_folders(&archive, argv + first, argc - first, &err);
	if (r == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		mcp = archive.catalog != NULL ? mcp_new(&how) : NULL;
		r = mcp != NULL ? talk(mcp) : -ENOMEM;
	}
	(void)mcp_free(mcp);
	archive_done(&archive);
	return r == 0 ? EXIT_DONE : cmd_fail("%s", err.text[0] != '\0' ? err.text : strerror(-r));
}

const struct command cmd_mcp = {
	.name = "mcp",
	.summary = "answer an AI agent's questions about jobs and reports",
	.usage = "[OPTION]... [DIR]...\n",
	.about =
		"Speaks the Model Context Protocol on standard input and output, for an AI agent that "
		"starts it: jobs of the store, and reports in folders. It reads the store and files "
		"only, unless --allow-profile is given. Names of the job's functions are fenced as "
		"data. Nothing is sent anywhere but to the agent.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker mcp\n"
		    "perftracker mcp perftracker-out/\n"
		    "perftracker mcp --url http://127.0.0.1:8790\n",
	.run = mcp_main,
};
