/* SPDX-License-Identifier: Apache-2.0 */
/* The leaders of jobs, which the fleet's hub starts, starts again and reaps. */
#include "base/clock.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "live/fleet/hubservice_parts.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define HEARD_NS (30 * NSEC_PER_SEC) /* a host that has a job says so every 5 s */
#define AGAIN_NS (3 * NSEC_PER_SEC)  /* a job that is over, and is heard for longer, runs again */
#define BACKOFF_MAX_S 60
#define WORDS (8 + HUBJOB_SETS_MAX)

static struct hubjob *find(struct hubservice *hub, const char *key)
{
	vec_foreach(job, &hub->jobs) {
		if (strcmp((*job)->key, key) == 0)
			return *job;
	}
	return NULL;
}

static void note_full(struct hubservice *hub)
{
	hub->dropped++;
	if (!hub->full_logged)
		log_line(LOG_ERROR,
			 "event=jobs-refused why=\"%u jobs are watched, which is hub.max_jobs\" "
			 "effect=\"further jobs are watched by each of their hosts alone\"",
			 hub->setup.site->values.hub_max_jobs);
	hub->full_logged = true;
}

/* NULL: too many, or no memory. */
static struct hubjob *add(struct hubservice *hub, const char *key, unsigned uid, const char *id)
{
	const struct site_values *site = &hub->setup.site->values;
	struct hubjob *job;
	char digest[17];

	if (hub->jobs.cnt >= site->hub_max_jobs) {
		note_full(hub);
		return NULL;
	}
	job = calloc(1, sizeof(*job));
	if (job == NULL || vec_push(&hub->jobs, job) < 0) {
		free(job);
		hub->dropped++;
		return NULL;
	}
	job->hub = hub;
	job->child = (struct jobchild){ .control_fd = -1, .relay_fd = -1 };
	jobkey_digest(key, digest);
	(void)snprintf(job->key, sizeof(job->key), "%s", key);
	(void)snprintf(job->name, sizeof(job->name), "%.60s", id);
	(void)snprintf(job->out, sizeof(job->out), "%.450s/u%u/%s", site->hub_folder, uid, id);
	(void)snprintf(job->socket, sizeof(job->socket), "%.80s/%s.sock", site->hub_run, digest);
	return job;
}

void hubjobs_hear(struct hubservice *hub, const char *key, int64_t now_ns)
{
	struct hubjob *job;
	const char *id = NULL;
	unsigned uid = 0;

	if (!jobkey_split(key, hub->setup.site->values.cluster, &uid, &id)) {
		hub->unreadable++;
		return;
	}
	job = find(hub, key);
	if (job == NULL)
		job = add(hub, key, uid, id);
	if (job == NULL)
		return;
	job->heard_ns = now_ns;
}

/* --- the leader of one job --- */

static void control_closed(uv_handle_t *handle)
{
	struct hubjob *job = handle->data;

	jobchild_close(&job->child);
	job->polled = false;
	if (job->closing)
		free(job);
}

static void close_control(struct hubjob *job)
{
	if (job->polled && !uv_is_closing((uv_handle_t *)&job->control))
		uv_close((uv_handle_t *)&job->control, control_closed);
}

static void control_readable(uv_poll_t *poll, int status, int events)
{
	struct hubjob *job = poll->data;
	struct daemon_ready ready;
	int got = jobchild_take_ready(&job->child, &ready);

	(void)status;
	(void)events;
	if (got == 0)
		return;
	if (got < 0) {
		(void)uv_poll_stop(poll); /* SIGCHLD says how it ended */
	} else if (ready.status != 0) {
		log_line(LOG_ERROR, "event=job-not-started job=\"%s\" why=\"%s\"", job->key,
			 ready.text);
	} else {
		job->failures = 0;
		log_line(LOG_INFO, "event=job-started job=\"%s\" pid=%d reports=\"%s\"", job->key,
			 (int)job->child.pid, job->out);
	}
}

static void set_words(const struct hubjob *job, char texts[WORDS][800], const char *ret[WORDS + 1])
{
	const struct hubservice_setup *setup = &job->hub->setup;
	size_t cnt = 0;

	(void)snprintf(texts[cnt++], 800, "role=leader");
	(void)snprintf(texts[cnt++], 800, "key=%s", job->key);
	(void)snprintf(texts[cnt++], 800, "name=%s", job->name);
	(void)snprintf(texts[cnt++], 800, "out=%s", job->out);
	(void)snprintf(texts[cnt++], 800, "socket=%s", job->socket);
	(void)snprintf(texts[cnt++], 800, "config=%s", setup->config);
	for (size_t i = 0; setup->sets[i] != NULL && cnt < WORDS; i++)
		(void)snprintf(texts[cnt++], 800, "set=%s", setup->sets[i]);
	for (size_t i = 0; i < cnt; i++)
		ret[i] = texts[i];
	ret[cnt] = NULL;
}

/* A leader that fails is started again, later each time. */
static void delay(struct hubjob *job, int64_t now_ns)
{
	int64_t seconds = MIN(1 << MIN(job->failures, 6u), BACKOFF_MAX_S);

	job->failures++;
	job->start_ns = now_ns + seconds * NSEC_PER_SEC;
}

static void start(struct hubjob *job, int64_t now_ns)
{
	char texts[WORDS][800];
	const char *words[WORDS + 1];
	const struct jobchild_setup setup = { .program = job->hub->setup.program, .words = words };
	struct err err = { "" };

	delay(job, now_ns);
	set_words(job, texts, words);
	if (jobchild_start(&setup, &job->child, &err) < 0) {
		log_line(LOG_ERROR, "event=job-not-started job=\"%s\" why=\"%s\"", job->key,
			 err.text);
		return;
	}
	job->polled = true;
	job->control.data = job;
	(void)uv_poll_init(&job->hub->service.loop, &job->control, job->child.control_fd);
	(void)uv_poll_start(&job->control, UV_READABLE | UV_DISCONNECT, control_readable);
}

static void forget(struct hubservice *hub, size_t at)
{
	struct hubjob *job = hub->jobs.data[at];

	hub->jobs.data[at] = hub->jobs.data[--hub->jobs.cnt];
	hub->full_logged = false;
	job->closing = true;
	if (job->polled)
		close_control(job);
	else
		free(job);
}

static void note_end(struct hubjob *job, int status, int64_t now_ns)
{
	close_control(job);
	job->over = status == 0;
	job->over_ns = now_ns;
	if (job->over)
		log_line(LOG_INFO, "event=job-ended job=\"%s\" reports=\"%s\"", job->key, job->out);
	else
		log_line(
			LOG_WARNING,
			"event=leader-ended job=\"%s\" status=%d effect=\"it is started again; see "
			"daemon.log in %s\"",
			job->key,
			WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
			job->out);
}

void hubjobs_reap(struct hubservice *hub)
{
	vec_foreach(job, &hub->jobs) {
		int status;

		if ((*job)->child.pid <= 0 || subprocess_reap((*job)->child.pid, &status) != 1)
			continue;
		(*job)->child.pid = 0;
		note_end(*job, status, clock_mono_ns());
	}
}

void hubjobs_tick(struct hubservice *hub, int64_t now_ns)
{
	for (size_t i = 0; i < hub->jobs.cnt;) {
		struct hubjob *job = hub->jobs.data[i];
		bool heard = now_ns - job->heard_ns < HEARD_NS;

		if (job->child.pid == 0 && !job->polled && !heard) {
			forget(hub, i);
			continue;
		}
		if (job->over && job->heard_ns - job->over_ns > AGAIN_NS)
			job->over = false; /* the same job again */
		if (job->child.pid == 0 && !job->polled && !job->over && now_ns >= job->start_ns)
			start(job, now_ns);
		i++;
	}
}

void hubjobs_drop_all(struct hubservice *hub)
{
	/* The end of its control is the end of its supervisor (run/daemon.c). */
	vec_foreach(job, &hub->jobs)
		close_control(*job);
}

void hubjobs_close_all(struct hubservice *hub)
{
	while (hub->jobs.cnt > 0) {
		jobchild_kill(&hub->jobs.data[0]->child);
		forget(hub, 0);
	}
	vec_done(&hub->jobs);
}
