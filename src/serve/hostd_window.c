/* SPDX-License-Identifier: Apache-2.0 */
/* The half of hostd that deals with profiles: windows, sidecars, summaries. */
#include "base/clock.h"
#include "serve/hostd_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_MS 10

static void publish_answer(struct hostd *hostd, struct wire_answer answer, const char *text)
{
	(void)snprintf(answer.text, sizeof(answer.text), "%.*s", (int)sizeof(answer.text) - 1,
		       text);
	hostd_publish(hostd, SUBJECT_ANSWER, &answer, sizeof(answer));
}

static void look_at_network(struct hostd *hostd)
{
	struct netwatch_worker workers[HOSTD_CLIENT_MAX];
	size_t cnt = 0;

	vec_foreach(client, &hostd->clients) {
		struct worker *worker = &(*client)->worker;

		if ((*client)->is_worker && worker->window.sampling && cnt < ARRAY_SIZE(workers))
			workers[cnt++] =
				(struct netwatch_worker){ worker->pid, &worker->window.side };
	}
	if (netwatch_look(&hostd->netwatch, workers, cnt, clock_mono_ns) < 0)
		netwatch_close(&hostd->netwatch); /* out of memory: keep what there is */
}

static void sample_tick(uv_timer_t *timer)
{
	struct hostd *hostd = timer->data;
	struct neighbour_worker workers[NEIGHBOURS_WORKER_MAX];
	size_t cnt = 0;

	vec_foreach(client, &hostd->clients) {
		struct worker *worker = &(*client)->worker;

		if (!(*client)->is_worker || !worker->window.sampling)
			continue;
		if (worker_sample(worker, clock_mono_ns()) < 0)
			worker->window.sampling = false; /* out of memory: keep what there is */
	}
	look_at_network(hostd);
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && (*client)->worker.window.open &&
		    cnt < ARRAY_SIZE(workers))
			workers[cnt++] = (struct neighbour_worker){ (*client)->worker.pid,
								    (*client)->worker.tid };
	}
	if (cnt > 0) {
		(void)neighbours_look(&hostd->neighbours, workers, cnt, clock_mono_ns);
		return;
	}
	(void)uv_timer_stop(timer);
	neighbours_close(&hostd->neighbours);
	netwatch_close(&hostd->netwatch);
	hostd->sampling = false;
}

void hostd_suspend(struct hostd *hostd, bool suspended)
{
	hostd->suspended = suspended;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker)
			worker_suspend(&(*client)->worker, suspended, clock_mono_ns());
	}
}

void hostd_take_begun(struct client *client, const struct message *message)
{
	struct hostd *hostd = client->hostd;
	struct wire_answer answer = { .worker = client->worker.id,
				      .outcome = OUTCOME_BEGUN,
				      .order_id = message->order_id,
				      .step = message->step };

	if (worker_begin(&client->worker, message->order_id, clock_mono_ns()) < 0)
		return;
	if (!hostd->sampling) {
		neighbours_open(&hostd->neighbours, "");
		netwatch_open(&hostd->netwatch, "");
		(void)uv_timer_start(&hostd->sample_timer, sample_tick, 0, SAMPLE_MS);
		hostd->sampling = true;
	}
	hostd_suspend(hostd, true);
	publish_answer(hostd, answer, "");
	hostd_publish_state(client);
}

void hostd_take_missed(struct client *client, const struct message *message)
{
	struct wire_answer answer = { .worker = client->worker.id,
				      .outcome = OUTCOME_MISSED,
				      .order_id = message->order_id,
				      .step = message->step };

	worker_abandon(&client->worker);
	publish_answer(client->hostd, answer, message->text);
	hostd_publish_state(client);
}

/* A worker names the file, so it must be one of ours: below the directory we gave it. */
static bool trace_path_valid(const struct hostd *hostd, const char *path)
{
	size_t len = strlen(hostd->setup.trace_dir);
	struct stat st;

	return strncmp(path, hostd->setup.trace_dir, len) == 0 && path[len] == '/' &&
	       strchr(path + len + 1, '/') == NULL && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int start_summary(struct client *client, const struct message *message)
{
	struct hostd *hostd = client->hostd;
	struct summary *summary = calloc(1, sizeof(*summary));
	char sidecar[sizeof(summary->trace) + sizeof(SIDECAR_SUFFIX)], rank[16];
	const char *argv[] = { hostd->setup.options->program,
			       "summarize",
			       "--skip-first", /* it carries the start of the profiler */
			       NULL,
			       "--sidecar",
			       sidecar,
			       "--rank",
			       rank,
			       "-o",
			       NULL,
			       NULL };
	int ret;

	if (summary == NULL)
		return -ENOMEM;
	summary->worker = client->worker.id;
	summary->order_id = message->order_id;
	(void)snprintf(summary->trace, sizeof(summary->trace), "%s", message->text);
	(void)snprintf(summary->fingerprint, sizeof(summary->fingerprint),
		       "%s/fingerprints/%" PRIu64, hostd->setup.options->out_dir,
		       message->order_id);
	(void)mkdir(summary->fingerprint, 0755); /* it may be there; if not, summarize tells */
	(void)snprintf(summary->fingerprint, sizeof(summary->fingerprint),
		       "%s/fingerprints/%" PRIu64 "/rank%d.ptfp", hostd->setup.options->out_dir,
		       message->order_id, client->worker.rank);
	(void)snprintf(sidecar, sizeof(sidecar), "%s" SIDECAR_SUFFIX, summary->trace);
	(void)snprintf(rank, sizeof(rank), "%d", client->worker.rank);
	argv[3] = summary->trace;
	argv[9] = summary->fingerprint;
	ret = vec_push(&hostd->summaries, summary);
	if (ret == 0) {
		ret = pool_add(hostd->pool, (uint64_t)(uintptr_t)summary, argv);
		hostd->summaries.cnt -= ret < 0;
	}
	if (ret < 0)
		free(summary);
	return ret;
}

static size_t list_workers(const struct hostd *hostd, struct neighbour_worker *ret, size_t cap,
			   const struct client *self, size_t *ret_self)
{
	size_t cnt = 0;

	vec_foreach(client, &hostd->clients) {
		if (!(*client)->is_worker || cnt == cap)
			continue;
		if (*client == self)
			*ret_self = cnt;
		ret[cnt++] =
			(struct neighbour_worker){ (*client)->worker.pid, (*client)->worker.tid };
	}
	return cnt;
}

static int finish_window(struct client *client, const struct message *message, struct err *err)
{
	struct hostd *hostd = client->hostd;
	struct neighbour_worker workers[HOSTD_CLIENT_MAX];
	struct neighbours_query query = { .workers = workers,
					  .job_pid = hostd->setup.job_pid,
					  .self_pid = (uint32_t)getpid() };
	struct worker_finish finish = {
		.trace_path = message->text,
		.mono_ns = clock_mono_ns(),
		.wall_ns = clock_wall_ns(),
		.window_ns = message->window_ns,
		.neighbours = hostd->sampling ? &hostd->neighbours : NULL,
		.query = &query,
	};

	if (!client->worker.window.open || client->worker.window.order_id != message->order_id)
		return err_set(err, EINVAL, "a trace of order %" PRIu64 " that had not begun",
			       message->order_id);
	if (!trace_path_valid(hostd, message->text))
		return err_set(err, EINVAL, "%s: expected a trace in %s", message->text,
			       hostd->setup.trace_dir);
	if (netwatch_finish(&hostd->netwatch, &client->worker.window.side) < 0)
		return err_set(err, ENOMEM, "%s: out of memory", message->text);
	query.worker_cnt = list_workers(hostd, workers, ARRAY_SIZE(workers), client, &query.idx);
	return worker_finish(&client->worker, &finish, err);
}

void hostd_take_done(struct client *client, const struct message *message)
{
	struct wire_answer answer = { .worker = client->worker.id,
				      .outcome = OUTCOME_EXPORTED,
				      .order_id = message->order_id,
				      .step = message->step,
				      .window_ns = (int64_t)(message->window_ns & INT64_MAX),
				      .stall_ns = (int64_t)(message->stall_ns & INT64_MAX) };
	struct err err = { "out of memory" };
	int ret = finish_window(client, message, &err);

	if (ret == 0)
		ret = start_summary(client, message);
	if (ret < 0) {
		answer.outcome = OUTCOME_MISSED;
		worker_abandon(&client->worker);
	}
	publish_answer(client->hostd, answer, ret < 0 ? err.text : message->text);
	hostd_publish_state(client);
}

void hostd_summary_done(void *arg, uint64_t id, int status, const char *text)
{
	struct hostd *hostd = arg;
	struct summary *summary = NULL;
	struct wire_answer answer = { .outcome = OUTCOME_SUMMARIZED };
	char sidecar[MESSAGE_TEXT + sizeof(SIDECAR_SUFFIX)], why[WIRE_TEXT];

	for (size_t i = 0; i < hostd->summaries.cnt; i++) {
		if ((uint64_t)(uintptr_t)hostd->summaries.data[i] == id) {
			summary = hostd->summaries.data[i];
			hostd->summaries.data[i] = hostd->summaries.data[--hostd->summaries.cnt];
			break;
		}
	}
	if (summary == NULL)
		return;
	answer.worker = summary->worker;
	answer.order_id = summary->order_id;
	(void)snprintf(why, sizeof(why), "its trace could not be summarized (status %d): %.400s",
		       status, text);
	if (status != 0)
		answer.outcome = OUTCOME_MISSED;
	publish_answer(hostd, answer, status == 0 ? summary->fingerprint : why);
	if (!hostd->setup.options->keep_traces) {
		(void)snprintf(sidecar, sizeof(sidecar), "%s" SIDECAR_SUFFIX, summary->trace);
		(void)unlink(summary->trace);
		(void)unlink(sidecar);
	}
	free(summary);
}
