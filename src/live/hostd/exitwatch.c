/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/exitwatch.h"

#include "base/clock.h"
#include "host/process/exitstatus.h"
#include "live/hostd/hostd_parts.h"

#include <unistd.h>

struct exitwatch {
	struct hostd *hostd;
	struct client *client;	 /* NULL: its connection is over */
	struct wire_state state; /* as published when it was */
	uv_poll_t poll;
	int pidfd;
};

static void watch_closed(uv_handle_t *handle)
{
	struct exitwatch *watch = handle->data;
	struct hostd *hostd = watch->hostd;

	(void)close(watch->pidfd);
	free(watch);
	hostd_closed_one(hostd);
}

static void close_watch(struct exitwatch *watch)
{
	struct hostd *hostd = watch->hostd;

	if (watch->client != NULL)
		watch->client->exit = NULL;
	for (size_t i = 0; i < hostd->exits.cnt; i++) {
		if (hostd->exits.data[i] == watch) {
			hostd->exits.data[i] = hostd->exits.data[--hostd->exits.cnt];
			break;
		}
	}
	uv_close((uv_handle_t *)&watch->poll, watch_closed);
}

static void count_end(const struct hostd *hostd, int32_t rank, int wait_status)
{
	if (hostd->setup.metrics != NULL)
		metrics_host_ended(hostd->setup.metrics, rank, wait_status);
}

static void process_ended(uv_poll_t *poll, int status, int events)
{
	struct exitwatch *watch = poll->data;

	(void)status;
	(void)events;
	if (watch->client != NULL) {
		hostd_take_end(watch->client); /* calls exitwatch_detach() */
		return;
	}
	watch->state.exit_known =
		exitstatus_read("", watch->pidfd, watch->state.pid, &watch->state.exit_status) == 0;
	if (watch->state.exit_known) {
		count_end(watch->hostd, watch->state.rank, watch->state.exit_status);
		hostd_publish(watch->hostd, SUBJECT_STATE, &watch->state, sizeof(watch->state));
	}
	close_watch(watch);
}

void exitwatch_begin(struct client *client)
{
	struct hostd *hostd = client->hostd;
	struct exitwatch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return;
	*watch = (struct exitwatch){ .hostd = hostd,
				     .client = client,
				     .pidfd = exitstatus_open(client->pid) };
	if (watch->pidfd < 0 || vec_push(&hostd->exits, watch) < 0) {
		if (watch->pidfd >= 0)
			(void)close(watch->pidfd);
		free(watch);
		return;
	}
	client->exit = watch;
	watch->poll.data = watch;
	(void)uv_poll_init(hostd->setup.loop, &watch->poll, watch->pidfd);
	hostd->open_handles++;
	(void)uv_poll_start(&watch->poll, UV_READABLE, process_ended);
}

void exitwatch_detach(struct client *client)
{
	struct exitwatch *watch = client->exit;
	struct worker *worker = &client->worker;

	if (watch == NULL)
		return;
	if (exitstatus_has_ended(watch->pidfd)) {
		worker->exit_known =
			exitstatus_read("", watch->pidfd, worker->pid, &worker->exit_status) == 0;
		if (worker->exit_known)
			count_end(client->hostd, worker->rank, worker->exit_status);
		close_watch(watch);
		return;
	}
	worker_state(worker, clock_mono_ns(), &watch->state);
	watch->client = NULL;
	client->exit = NULL;
}

void exitwatch_close_all(struct hostd *hostd)
{
	while (hostd->exits.cnt > 0)
		close_watch(hostd->exits.data[0]);
}
