/* SPDX-License-Identifier: Apache-2.0 */
/* Training processes that ask hostd for the daemon of their job. */
#include "base/clock.h"
#include "base/log.h"
#include "host/process/procfs.h"
#include "live/fleet/hostservice_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- one that asks --- */

static void ask_closed(uv_handle_t *handle)
{
	struct hostask *ask = handle->data;

	(void)close(ask->fd);
	free(ask);
}

static void close_ask(struct hostask *ask)
{
	struct hostservice *service = ask->service;

	if (ask->closing)
		return;
	ask->closing = true;
	for (size_t i = 0; i < service->asks.cnt; i++) {
		if (service->asks.data[i] == ask) {
			service->asks.data[i] = service->asks.data[--service->asks.cnt];
			break;
		}
	}
	uv_close((uv_handle_t *)&ask->poll, ask_closed);
}

/* An answer that finds no room is lost with the connection: the process is not watched. */
static void say(struct hostask *ask, const char *text, size_t len)
{
	(void)!send(ask->fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close_ask(ask);
}

static void refuse(struct hostask *ask, const char *why)
{
	char text[512];

	ask->service->refused++;
	say(ask, text, attachment_write_no(text, sizeof(text), why));
}

static void answer(struct hostask *ask, const struct hostjob *job)
{
	char text[ATTACHMENT_BYTES_MAX];

	if (job->state == HOSTJOB_FAILED) {
		refuse(ask, job->why);
		return;
	}
	ask->service->attached++;
	say(ask, text,
	    attachment_write_yes(text, sizeof(text), job->socket, job->trace_dir,
				 ask->service->agent));
}

/* --- whether it is watched --- */

static bool is_yes(const char *text)
{
	return strcmp(text, "1") == 0 || strcasecmp(text, "yes") == 0 ||
	       strcasecmp(text, "on") == 0 || strcasecmp(text, "true") == 0;
}

/* The process's own word counts, else the site's rule. */
static bool is_enabled(const struct hostask *ask, const struct attachment *request)
{
	const char *own = attachment_find(request, "PERFTRACKER");

	if (own != NULL)
		return is_yes(own);
	return ask->service->setup.site->values.jobs_enable == SITE_ENABLE_ALL;
}

/* "": it may be. */
static const char *why_not(const struct hostask *ask, const struct attachment *request)
{
	if (geteuid() != 0 && ask->uid != geteuid())
		return "hostd runs without root: it watches jobs of its own user only";
	if (!is_enabled(ask, request))
		return "the job is not enabled: PERFTRACKER=1 in its environment, or jobs.enable: "
		       "all";
	if (ask->service->end_ns != 0)
		return "hostd is ending";
	return "";
}

static int rank_of(const struct attachment *request)
{
	static const char *const names[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK" };
	int ret = -1;

	for (size_t i = 0; i < ARRAY_SIZE(names) && ret < 0; i++)
		ret = attachment_number(request, names[i]);
	return ret;
}

static void take_request(struct hostask *ask, const struct attachment *request)
{
	const char *no = why_not(ask, request);
	struct joborigin origin = { .pid = 0 };
	struct err err = { "" };
	struct jobkey key;
	char why[256];

	if (no[0] != '\0') {
		refuse(ask, no);
		return;
	}
	if (joborigin_find("", ask->pid, &origin) < 0)
		origin.pid = 0; /* in a container whose processes hostd does not see */
	if (jobkey_make(ask->service->setup.site->values.cluster, ask->uid, request, &origin,
			&key) < 0) {
		refuse(ask, "out of memory");
		return;
	}
	if (key.is_plain && origin.pid == 0) {
		refuse(ask, "no launcher named the job, and hostd does not see the process: set "
			    "PERFTRACKER_JOB");
		return;
	}
	ask->job = hostjob_find(ask->service, &key);
	if (ask->job == NULL &&
	    hostjob_start(ask->service, &key, ask, &origin, &ask->job, &err) < 0) {
		log_line(LOG_WARNING, "event=job-not-started job=\"%s\" why=\"%s\"", key.text,
			 err.text);
		refuse(ask, err.text);
		return;
	}
	if (!hostjob_admit(ask->job, ask, rank_of(request), &origin, why, sizeof(why)))
		refuse(ask, why);
	else if (ask->job->state != HOSTJOB_STARTING)
		answer(ask, ask->job);
}

static void ask_readable(uv_poll_t *poll, int status, int events)
{
	struct attachment request;
	struct hostask *ask = poll->data;
	char data[ATTACHMENT_BYTES_MAX];
	ssize_t len = recv(ask->fd, data, sizeof(data), MSG_DONTWAIT);
	int error;

	(void)status;
	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0 || ask->job != NULL) {
		close_ask(ask); /* it has ended, or asks twice */
		return;
	}
	error = attachment_parse(data, (size_t)len, &request);
	if (error == 0)
		take_request(ask, &request);
	else
		refuse(ask, error == -EPROTO
				    ? "expected a request of this version: install one version of "
				      "PerfTracker for jobs and hostd"
				    : "the request cannot be read");
}

/* --- all --- */

static bool is_full(const struct hostservice *service, uid_t uid)
{
	size_t own = 0;

	vec_foreach(ask, &service->asks)
		own += (*ask)->uid == uid;
	return service->asks.cnt >= HOSTASK_MAX || own >= HOSTASK_USER_MAX;
}

static int add_ask(struct hostservice *service, int fd)
{
	struct hostask *ask = calloc(1, sizeof(*ask));
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int ret = ask == NULL ? -ENOMEM : 0;

	if (ret == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		ret = -errno;
	if (ret == 0 && is_full(service, peer.uid))
		ret = -EMFILE;
	if (ret == 0)
		ret = vec_push(&service->asks, ask);
	if (ret < 0) {
		free(ask);
		return ret;
	}
	*ask = (struct hostask){ .service = service,
				 .fd = fd,
				 .uid = peer.uid,
				 .gid = peer.gid,
				 .pid = (uint32_t)peer.pid,
				 .until_ns = clock_mono_ns() + HOSTASK_NS };
	ask->poll.data = ask;
	(void)uv_poll_init(&service->service.loop, &ask->poll, fd);
	(void)uv_poll_start(&ask->poll, UV_READABLE | UV_DISCONNECT, ask_readable);
	return 0;
}

void hostask_accept(uv_poll_t *poll, int status, int events)
{
	struct hostservice *service = poll->data;

	(void)events;
	for (int i = 0; i < 64 && status == 0; i++) {
		int fd = accept4(service->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (add_ask(service, fd) < 0) {
			service->refused++;
			(void)close(fd);
		}
	}
}

void hostask_answer_waiting(struct hostservice *service, const struct hostjob *job)
{
	for (size_t i = 0; i < service->asks.cnt;) {
		struct hostask *ask = service->asks.data[i];

		if (ask->job == job)
			answer(ask, job); /* takes it out of the list */
		else
			i++;
	}
}

void hostask_tick(struct hostservice *service, int64_t now_ns)
{
	for (size_t i = 0; i < service->asks.cnt;) {
		struct hostask *ask = service->asks.data[i];

		if (now_ns > ask->until_ns)
			refuse(ask, "the daemon of the job did not start in time");
		else
			i++;
	}
}

void hostask_close_all(struct hostservice *service)
{
	while (service->asks.cnt > 0)
		close_ask(service->asks.data[0]);
	vec_done(&service->asks);
}
