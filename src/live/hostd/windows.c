/* SPDX-License-Identifier: Apache-2.0 */
/* The part of hostd that handles profiles: windows, sidecars, summaries. */
#include "base/clock.h"
#include "base/log.h"
#include "format/flightlog/flightlog.h"
#include "host/process/placement.h"
#include "live/hostd/hostd_parts.h"
#include "read/flight/others.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
		netwatch_close(&hostd->netwatch); /* out of memory: keep the samples so far */
}

static void sample_tick(uv_timer_t *timer)
{
	struct hostd *hostd = timer->data;
	struct contenders_worker workers[CONTENDERS_WORKER_MAX];
	size_t cnt = 0;

	vec_foreach(client, &hostd->clients) {
		struct worker *worker = &(*client)->worker;

		if (!(*client)->is_worker || !worker->window.sampling)
			continue;
		if (worker_sample(worker, clock_mono_ns()) < 0)
			/* out of memory: keep the samples so far */
			worker->window.sampling = false;
	}
	look_at_network(hostd);
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && (*client)->worker.window.open &&
		    cnt < ARRAY_SIZE(workers))
			workers[cnt++] = (struct contenders_worker){ (*client)->worker.pid,
								     (*client)->worker.tid };
	}
	if (cnt > 0) {
		(void)contenders_look(&hostd->contenders, workers, cnt, clock_mono_ns);
		return;
	}
	(void)uv_timer_stop(timer);
	contenders_close(&hostd->contenders);
	netwatch_close(&hostd->netwatch);
	gpuwatch_set_window(hostd->gpuwatch, false);
	hostd->sampling = false;
}

static int follow_window(struct client *client, uint64_t order_id);

void hostd_take_begun(struct client *client, const struct message *message)
{
	struct hostd *hostd = client->hostd;
	struct wire_answer answer = { .worker = client->worker.id,
				      .outcome = OUTCOME_BEGUN,
				      .order_id = message->order_id,
				      .step = message->step };

	if (worker_begin(&client->worker, message->order_id, clock_mono_ns()) < 0)
		return;
	if (strcmp(message->text, SOURCE_AGENT) == 0 &&
	    follow_window(client, message->order_id) < 0)
		log_line(LOG_WARNING, "event=no-summarizer worker=%u", client->worker.id);
	if (!hostd->sampling) {
		contenders_open(&hostd->contenders, "");
		netwatch_open(&hostd->netwatch, "");
		gpuwatch_set_window(hostd->gpuwatch, true);
		(void)uv_timer_start(&hostd->sample_timer, sample_tick, 0, SAMPLE_MS);
		hostd->sampling = true;
	}
	hostd->window_stops |= strcmp(message->text, SOURCE_TORCH) == 0;
	hostd_suspend(hostd);
	hostd->hub_heard_ns = clock_mono_ns();
	publish_answer(hostd, answer, message->text);
	hostd_publish_state(client);
}

static struct summary *find_follower(const struct client *client, uint64_t order_id)
{
	vec_foreach(summary, &client->hostd->summaries) {
		if ((*summary)->sidecar_fd >= 0 && (*summary)->order_id == order_id &&
		    (*summary)->worker == client->worker.id)
			return *summary;
	}
	return NULL;
}

/* Abandons the open window: kills its follower. */
static void drop_follower(struct client *client)
{
	struct summary *summary = find_follower(client, client->worker.window.order_id);

	if (summary != NULL && client->worker.window.open)
		pool_kill(client->hostd->pool, (uint64_t)(uintptr_t)summary);
}

void hostd_take_missed(struct client *client, const struct message *message)
{
	struct wire_answer answer = { .worker = client->worker.id,
				      .outcome = OUTCOME_MISSED,
				      .order_id = message->order_id,
				      .step = message->step };

	drop_follower(client);
	worker_abandon(&client->worker);
	publish_answer(client->hostd, answer, message->text);
	hostd_publish_state(client);
}

/* The path comes from the worker: it must be a regular file in PERFTRACKER_DIR. */
static bool trace_path_valid(const struct hostd *hostd, const char *path)
{
	size_t len = strlen(hostd->setup.trace_dir);
	struct stat st;

	return strncmp(path, hostd->setup.trace_dir, len) == 0 && path[len] == '/' &&
	       strchr(path + len + 1, '/') == NULL && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* NULL: out of memory. */
static struct summary *new_summary(const struct client *client, uint64_t order_id)
{
	struct summary *summary = calloc(1, sizeof(*summary));
	const char *out_dir = client->hostd->setup.options->out_dir;

	if (summary == NULL)
		return NULL;
	summary->worker = client->worker.id;
	summary->order_id = order_id;
	summary->sidecar_fd = -1;
	(void)snprintf(summary->fingerprint, sizeof(summary->fingerprint),
		       "%s/fingerprints/%" PRIu64, out_dir, order_id);
	(void)mkdir(summary->fingerprint,
		    0755); /* EEXIST is fine; summarize reports other errors */
	(void)snprintf(summary->fingerprint, sizeof(summary->fingerprint),
		       "%s/fingerprints/%" PRIu64 "/rank%d.ptfp", out_dir, order_id,
		       client->worker.rank);
	return summary;
}

bool hostd_is_idle(const struct hostd *hostd)
{
	return hostd->summaries.cnt == 0;
}

void hostd_free_summary(struct summary *summary)
{
	if (summary->sidecar_fd >= 0)
		(void)close(summary->sidecar_fd);
	free(summary);
}

static int start_summary(struct client *client, const struct message *message)
{
	struct hostd *hostd = client->hostd;
	struct summary *summary = new_summary(client, message->order_id);
	char sidecar[sizeof(summary->trace) + sizeof(SIDECAR_SUFFIX)], rank[16];
	const char *argv[] = {
		hostd->setup.options->program,
		"summarize",
		"--skip-first", /* the first iteration includes the profiler's start */
		NULL,
		"--sidecar",
		sidecar,
		"--rank",
		rank,
		"-o",
		NULL,
		NULL
	};
	int ret;

	if (summary == NULL)
		return -ENOMEM;
	(void)snprintf(summary->trace, sizeof(summary->trace), "%s", message->text);
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
		hostd_free_summary(summary);
	return ret;
}

/* The follower's descriptor 3 is the recorder, 4 the sidecar's memory. */
static int start_follower(struct client *client, struct summary *summary)
{
	struct hostd *hostd = client->hostd;
	int fds[2] = { client->worker.block.fd, summary->sidecar_fd };
	char rank[16], keep[sizeof(summary->trace) + 64];
	const char *argv[] = { hostd->setup.options->program,
			       "summarize",
			       "--flight-fd",
			       "3",
			       "--sidecar-fd",
			       "4",
			       "--rank",
			       rank,
			       "-o",
			       summary->fingerprint,
			       hostd->setup.options->keep_traces ? "--keep" : NULL,
			       keep,
			       NULL };

	(void)snprintf(rank, sizeof(rank), "%d", client->worker.rank);
	(void)snprintf(keep, sizeof(keep), "%s/%d-%" PRIu64 FLIGHT_SUFFIX, hostd->setup.trace_dir,
		       client->worker.rank, summary->order_id);
	return pool_follow(hostd->pool, (uint64_t)(uintptr_t)summary, argv, fds);
}

/* Starts a summarizer that reads the window's records while they are written. */
static int follow_window(struct client *client, uint64_t order_id)
{
	struct hostd *hostd = client->hostd;
	struct summary *summary = new_summary(client, order_id);
	int ret = -ENOMEM;

	if (summary == NULL)
		return ret;
	summary->sidecar_fd = memfd_create("perftracker-sidecar", MFD_CLOEXEC);
	ret = summary->sidecar_fd < 0 ? -errno : vec_push(&hostd->summaries, summary);
	if (ret == 0) {
		ret = start_follower(client, summary);
		hostd->summaries.cnt -= ret < 0;
	}
	if (ret < 0)
		hostd_free_summary(summary);
	return ret;
}

static size_t list_workers(const struct hostd *hostd, struct contenders_worker *ret, size_t cap,
			   const struct client *self, size_t *ret_self)
{
	size_t cnt = 0;

	vec_foreach(client, &hostd->clients) {
		if (!(*client)->is_worker || cnt == cap)
			continue;
		if (*client == self)
			*ret_self = cnt;
		ret[cnt++] =
			(struct contenders_worker){ (*client)->worker.pid, (*client)->worker.tid };
	}
	return cnt;
}

static int take_gpus(struct client *client)
{
	struct worker *worker = &client->worker;
	const struct gpuwatch_worker mine = { worker->pid, worker->local_rank,
					      worker->window.side.header.start_ns };

	return gpuwatch_take(client->hostd->gpuwatch, &mine, &worker->window.side);
}

/*
 * Adds the ranks on this host: a group of only these does not use the network. Duplicates are
 * allowed.
 */
static int list_ranks(struct client *client)
{
	struct worker *worker = &client->worker;
	const struct placement placed = placement_read("", worker->pid, worker->rank);
	struct sidecar_rank rank = { .host_cnt = (uint32_t)placed.rank_cnt };
	struct sidecar *side = &worker->window.side;

	vec_foreach(other, &client->hostd->clients) {
		rank.rank = (*other)->worker.rank;
		if ((*other)->is_worker && !(*other)->worker.gone && rank.rank >= 0 &&
		    vec_push(&side->ranks, rank) < 0)
			return -ENOMEM;
	}
	for (int32_t i = 0; placed.has_first && i < placed.rank_cnt; i++) {
		rank.rank = placed.first + i;
		if (vec_push(&side->ranks, rank) < 0)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Adds what those did in the window that the training thread waited for, which is in the recorder
 * whatever the source of the window is. O(the recorder's size), some ms. Returns 0 or -ENOMEM.
 */
static int look_at_awaited(struct client *client, int64_t now_ns)
{
	struct worker *worker = &client->worker;
	struct flight_place found = { 0 };
	struct sidecar_awaited awaited = { 0 };
	struct flightlog log;
	int ret;

	flightlog_init(&log);
	ret = flightlog_take(&log, worker->block.flight, false);
	if (ret == 0)
		ret = flight_awaited(&log, worker->window.side.header.start_ns, now_ns, &found);
	flightlog_done(&log);
	if (ret < 0 || found.sample_cnt == 0)
		return ret;
	awaited.by = found.by;
	awaited.frac = found.frac;
	awaited.sample_cnt = found.sample_cnt;
	(void)snprintf(awaited.place, sizeof(awaited.place), "%s", found.place);
	return vec_push(&worker->window.side.awaited, awaited);
}

static int finish_window(struct client *client, const struct message *message, struct err *err)
{
	struct hostd *hostd = client->hostd;
	struct contenders_worker workers[HOSTD_CLIENT_MAX];
	struct summary *summary;
	struct contenders_query query = { .workers = workers,
					  .job_pid = hostd->setup.job_pid,
					  .self_pid = (uint32_t)getpid() };
	struct worker_finish finish = {
		.trace_path = message->text,
		.sidecar_fd = -1,
		.mono_ns = clock_mono_ns(),
		.wall_ns = clock_wall_ns(),
		.window_ns = message->window_ns,
		/* A trace in a file is reported later; its own annotations count then. */
		.last_step = message->text[0] == '\0' ? message->step : 0,
		.contenders = hostd->sampling ? &hostd->contenders : NULL,
		.query = &query,
	};

	if (!client->worker.window.open || client->worker.window.order_id != message->order_id)
		return err_set(err, EINVAL, "a trace of order %" PRIu64 " that had not begun",
			       message->order_id);
	if (message->text[0] == '\0') {
		summary = find_follower(client, message->order_id);
		if (summary == NULL)
			return err_set(err, ESRCH, "its summarizer ended before the window");
		finish.sidecar_fd = summary->sidecar_fd;
	} else if (!trace_path_valid(hostd, message->text)) {
		return err_set(err, EINVAL, "%s: expected a trace in %s", message->text,
			       hostd->setup.trace_dir);
	}
	if (netwatch_finish(&hostd->netwatch, client->worker.pid, &client->worker.window.side) <
		    0 ||
	    take_gpus(client) < 0 || list_ranks(client) < 0 ||
	    look_at_awaited(client, finish.mono_ns) < 0)
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
	struct summary *follower = find_follower(client, message->order_id);
	int ret = finish_window(client, message, &err);

	if (ret == 0 && follower != NULL)
		pool_release(client->hostd->pool, (uint64_t)(uintptr_t)follower);
	else if (ret == 0)
		ret = start_summary(client, message);
	if (ret < 0) {
		answer.outcome = OUTCOME_MISSED;
		drop_follower(client);
		worker_abandon(&client->worker);
	}
	publish_answer(client->hostd, answer, ret < 0 ? err.text : message->text);
	hostd_publish_state(client);
}

void hostd_take_death(struct client *client)
{
	const struct worker_window *window = &client->worker.window;
	struct summary *follower = find_follower(client, window->order_id);
	struct message last_word = {
		.order_id = window->order_id,
		.step = client->worker.step,
		.window_ns = (uint64_t)(clock_mono_ns() - window->side.header.start_ns),
	};

	if (!window->open || follower == NULL)
		return; /* PHASE_GONE informs the hub */
	follower->cut_short = true;
	hostd_take_done(client, &last_word);
}

/* Acknowledges the window to the worker, which may then free its memory. */
static void mark_taken(struct hostd *hostd, const struct summary *summary)
{
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && (*client)->worker.id == summary->worker)
			atomic_store(&(*client)->worker.block.block->taken_id, summary->order_id);
	}
}

/* A fingerprint of a partial window is reported with its path, but not compared. */
static void publish_summary(struct hostd *hostd, const struct summary *summary, int status,
			    const char *text)
{
	struct wire_answer answer = { .worker = summary->worker,
				      .outcome = status == 0 && !summary->cut_short
							 ? OUTCOME_SUMMARIZED
							 : OUTCOME_MISSED,
				      .order_id = summary->order_id };
	const char *died = summary->cut_short ? "its process ended during the profile; " : "";
	char why[WIRE_TEXT];

	if (answer.outcome == OUTCOME_SUMMARIZED)
		(void)snprintf(why, sizeof(why), "%.*s", WIRE_TEXT - 1, summary->fingerprint);
	else if (status == 0)
		(void)snprintf(why, sizeof(why), "%swhat it had recorded is in %.400s", died,
			       summary->fingerprint);
	else
		(void)snprintf(why, sizeof(why),
			       "%sits trace could not be summarized (status %d): %.400s", died,
			       status, text);
	publish_answer(hostd, answer, why);
}

void hostd_summary_done(void *arg, uint64_t id, int status, const char *text)
{
	struct hostd *hostd = arg;
	struct summary *summary = NULL;
	char sidecar[MESSAGE_TEXT + sizeof(SIDECAR_SUFFIX)];

	for (size_t i = 0; i < hostd->summaries.cnt; i++) {
		if ((uint64_t)(uintptr_t)hostd->summaries.data[i] == id) {
			summary = hostd->summaries.data[i];
			hostd->summaries.data[i] = hostd->summaries.data[--hostd->summaries.cnt];
			break;
		}
	}
	if (summary == NULL)
		return;
	publish_summary(hostd, summary, status, text);
	if (summary->sidecar_fd >= 0) {
		mark_taken(hostd, summary);
	} else if (!hostd->setup.options->keep_traces) {
		(void)snprintf(sidecar, sizeof(sidecar), "%s" SIDECAR_SUFFIX, summary->trace);
		(void)unlink(summary->trace);
		(void)unlink(sidecar);
	}
	hostd_free_summary(summary);
}
