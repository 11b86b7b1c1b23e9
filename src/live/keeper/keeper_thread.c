/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "live/keeper/keeper_parts.h"
#include "store/storelist.h"
#include "store/storeprune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A commit waits for the disk: so often, and at once for a report. */
#define WRITE_S 10
#define BRIEF_WRITE_S 1 /* for a page, without a disk */
#define RETRY_NS (30 * NSEC_PER_SEC)
#define PRUNE_NS (3600 * NSEC_PER_SEC)
#define FILE_BYTES_MAX (64u << 20)
#define BRIEF_BYTES_MAX (64ll << 20)

/* What one round writes: taken from the queue, under the lock. */
struct batch {
	struct keeper_item *head, **tail;
	size_t cnt;
	bool has_job, closing;
	struct store_job job;
	char state[64], verdict[24], reason[400];
};

static void wait_for_work(struct keeper *keeper)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += keeper->brief ? BRIEF_WRITE_S : WRITE_S;
	while (!keeper->urgent && !keeper->closing) {
		if (pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until) == ETIMEDOUT)
			break;
	}
	while (keeper->open && !keeper->closing)
		(void)pthread_cond_wait(&keeper->wake, &keeper->lock);
	keeper->urgent = false;
}

static void fill_job(const struct keeper *keeper, struct batch *batch)
{
	const struct keeper_state *state = &keeper->state;

	memcpy(batch->state, keeper->state_text, sizeof(batch->state));
	memcpy(batch->verdict, keeper->verdict, sizeof(batch->verdict));
	memcpy(batch->reason, keeper->reason, sizeof(batch->reason));
	batch->has_job = keeper->has_state;
	batch->job = (struct store_job){
		.key = keeper->key,
		.name = keeper->name,
		.host = keeper->host,
		.owner = keeper->owner,
		.folder = keeper->folder,
		.command = keeper->command,
		.started_ns = keeper->started_ns,
		.seen_ns = keeper->seen_ns,
		.ended_ns = state->ended ? keeper->seen_ns : 0,
		.exit_status = state->exit_status,
		.signal = state->signal,
		.state = batch->state,
		.verdict = batch->verdict[0] != '\0' ? batch->verdict : NULL,
		.reason = batch->verdict[0] != '\0' ? batch->reason : NULL,
		.workers = state->workers,
		.restarts = state->restarts,
		.step = state->step,
		.now_ns = state->now_ns,
		.best_ns = state->best_ns,
		.lost = keeper->lost_cnt,
	};
}

static void take_batch(struct keeper *keeper, struct batch *ret)
{
	(void)pthread_mutex_lock(&keeper->lock);
	wait_for_work(keeper);
	*ret = (struct batch){ .head = keeper->head,
			       .tail = keeper->head != NULL ? keeper->tail : &ret->head,
			       .cnt = keeper->queued_cnt,
			       .closing = keeper->closing };
	keeper->head = NULL;
	keeper->tail = &keeper->head;
	keeper->queued_cnt = 0;
	fill_job(keeper, ret);
	(void)pthread_mutex_unlock(&keeper->lock);
}

/* The store was busy or away: the items wait for the next round, before those that came since. */
static void return_batch(struct keeper *keeper, struct batch *batch)
{
	if (batch->head == NULL)
		return;
	(void)pthread_mutex_lock(&keeper->lock);
	*batch->tail = keeper->head;
	if (keeper->head == NULL)
		keeper->tail = batch->tail;
	keeper->head = batch->head;
	keeper->queued_cnt += batch->cnt;
	(void)pthread_mutex_unlock(&keeper->lock);
	batch->head = NULL;
}

static void drop_batch(struct keeper *keeper, struct batch *batch, bool lost)
{
	if (lost) {
		(void)pthread_mutex_lock(&keeper->lock);
		keeper->lost_cnt += batch->cnt;
		(void)pthread_mutex_unlock(&keeper->lock);
	}
	while (batch->head != NULL) {
		struct keeper_item *next = batch->head->next;

		(void)keeper_item_free(batch->head);
		batch->head = next;
	}
}

/* --- writing --- */

static int read_file(const char *path, char **ret, size_t *ret_len)
{
	struct err ignored;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = file_read_whole(path, fd, FILE_BYTES_MAX, ret, ret_len, &ignored);
	(void)close(fd);
	return r;
}

/* A file that is not there has no document: a quiet check-up has no text. */
static int put_documents(struct keeper *keeper, uint64_t number, struct err *err)
{
	static const char *const forms[][2] = { { "json", "json" },
						{ "text", "txt" },
						{ "html", "html" } };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms) && ret == 0; i++) {
		_cleanup_free_ char *data = NULL;
		char path[4300];
		size_t len;

		if (number == 0)
			(void)snprintf(path, sizeof(path), "%s/report.%s", keeper->folder,
				       forms[i][1]);
		else
			(void)snprintf(path, sizeof(path), "%s/report-%" PRIu64 ".%s",
				       keeper->folder, number, forms[i][1]);
		if (read_file(path, &data, &len) == 0)
			ret = store_put_document(keeper->store, keeper->key, number, forms[i][0],
						 data, len, err);
	}
	return ret;
}

static int put_report(struct keeper *keeper, const struct keeper_item *item, struct err *err)
{
	struct store_report report = item->report;
	int ret;

	report.job = keeper->key;
	ret = store_put_report(keeper->store, &report, item->findings, item->finding_cnt, err);
	return ret < 0 ? ret : put_documents(keeper, report.number, err);
}

static int put_fingerprint(struct keeper *keeper, const struct keeper_item *item, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;

	if (read_file(item->path, &data, &len) < 0)
		return 0; /* of a later window of that rank */
	return store_put_fingerprint(keeper->store, keeper->key, item->report.number, item->rank,
				     data, len, err);
}

static int put_item(struct keeper *keeper, const struct keeper_item *item, struct err *err)
{
	switch (item->kind) {
	case KEEPER_PACE:
		return store_add_pace(keeper->store, keeper->key, &item->pace, err);
	case KEEPER_REPORT:
		return put_report(keeper, item, err);
	case KEEPER_FINGERPRINT:
		return put_fingerprint(keeper, item, err);
	case KEEPER_EVENT:
	case KEEPER_WINDOW:
		return store_put_event(keeper->store, keeper->key, &item->event, err);
	}
	return 0;
}

static int put_batch(struct keeper *keeper, const struct batch *batch, struct err *err)
{
	int ret = store_begin(keeper->store, err);

	if (ret < 0)
		return ret;
	if (batch->has_job)
		ret = store_put_job(keeper->store, &batch->job, err);
	for (const struct keeper_item *item = batch->head; item != NULL && ret == 0;
	     item = item->next)
		ret = put_item(keeper, item, err);
	if (ret == 0)
		ret = store_commit(keeper->store, err);
	if (ret < 0)
		store_rollback(keeper->store);
	return ret;
}

/* --- the store --- */

/* Once, until it works again. */
static void tell(struct keeper *keeper, const struct err *err)
{
	if (!keeper->told)
		log_line(LOG_WARNING,
			 "event=store-fails store=\"%s\" why=\"%s\" next=\"tried "
			 "again; the job and its reports do not need it\"",
			 keeper->where, err->text);
	keeper->told = true;
}

static int open_store(struct keeper *keeper, bool closing, struct err *err)
{
	int64_t now_ns = clock_mono_ns();
	int ret;

	if (keeper->store != NULL)
		return 0;
	if (now_ns < keeper->retry_ns && !closing)
		return err_set(err, EAGAIN, "not tried yet");
	keeper->retry_ns = now_ns + RETRY_NS;
	ret = store_open(keeper->where, &keeper->store, err);
	if (ret == 0 && keeper->brief)
		ret = store_relax(keeper->store, err);
	if (ret < 0)
		tell(keeper, err);
	return ret;
}

/* --- windows --- */

/* Returns 0, -EBADMSG or -ENOMEM. */
static int parse_window(const char *text, struct keeper_window *ret)
{
	struct keeper_window window;
	char *end;

	window.epoch = strtoull(text, &end, 10);
	if (*end != '/')
		return -EBADMSG;
	window.number = strtoull(end + 1, &end, 10);
	if (*end != ' ')
		return -EBADMSG;
	window.ranks = strdup(end + 1);
	if (window.ranks == NULL)
		return -ENOMEM;
	*ret = window;
	return 0;
}

static int add_window(keeper_windows *windows, const char *text)
{
	struct keeper_window window;
	int ret = parse_window(text, &window);

	if (ret == 0)
		ret = vec_push(windows, window);
	else
		return ret == -EBADMSG ? 0 : ret;
	if (ret < 0)
		free(window.ranks);
	return ret;
}

/* No memory: the hosts keep its results, and another hub finds it in the store. */
static void note_window(struct keeper *keeper, const char *text)
{
	struct keeper_window window;

	if (keeper->committed.cnt >= KEEPER_WINDOWS_MAX || add_window(&keeper->known, text) < 0 ||
	    keeper->known.cnt == 0)
		return;
	window = keeper->known.data[keeper->known.cnt - 1];
	window.ranks = NULL;
	(void)!vec_push(&keeper->committed, window);
}

static void note_committed(struct keeper *keeper, const struct batch *batch)
{
	(void)pthread_mutex_lock(&keeper->lock);
	for (const struct keeper_item *item = batch->head; item != NULL; item = item->next) {
		if (item->kind == KEEPER_WINDOW)
			note_window(keeper, item->event.text);
	}
	(void)pthread_mutex_unlock(&keeper->lock);
}

static int on_window(void *arg, const struct store_event *event)
{
	return add_window(arg, event->text);
}

/* Those of earlier hubs of this job. */
static void load_known(struct keeper *keeper, struct err *err)
{
	keeper_windows windows = { 0 };
	bool wanted;
	int ret;

	(void)pthread_mutex_lock(&keeper->lock);
	wanted = keeper->known_wanted && !keeper->known_loaded;
	(void)pthread_mutex_unlock(&keeper->lock);
	if (!wanted || open_store(keeper, false, err) < 0)
		return;
	ret = store_list_named_events(keeper->store, keeper->name, KEEPER_WINDOW_EVENT,
				      KEEPER_WINDOWS_MAX, on_window, &windows, err);
	if (ret < 0)
		tell(keeper, err);
	(void)pthread_mutex_lock(&keeper->lock);
	vec_foreach(window, &windows) {
		/* Those of this keeper may be there already: twice does no harm. */
		if (ret < 0 || vec_push(&keeper->known, *window) < 0)
			free(window->ranks);
	}
	keeper->known_loaded |= ret == 0;
	(void)pthread_mutex_unlock(&keeper->lock);
	vec_done(&windows);
}

static void prune(struct keeper *keeper)
{
	struct store_limits limits = store_default_limits;
	int64_t now_ns = clock_mono_ns();
	struct err err;

	if (keeper->store == NULL || now_ns < keeper->prune_ns)
		return;
	if (keeper->brief)
		limits.bytes_max = BRIEF_BYTES_MAX;
	keeper->prune_ns = now_ns + PRUNE_NS;
	if (store_prune(keeper->store, &limits, clock_wall_ns(), &err) < 0)
		tell(keeper, &err);
}

/* One whose cause another try may find gone. */
static bool passes(int error)
{
	return error == -EBUSY || error == -EAGAIN || error == -ECONNRESET ||
	       error == -ECONNREFUSED || error == -ENOSPC;
}

static void write_batch(struct keeper *keeper, struct batch *batch)
{
	struct err err = { "" };
	int ret = 0;

	/* A job of which the hub said nothing, as on hosts that another one leads, is not kept. */
	if (!batch->has_job) {
		if (!batch->closing)
			return_batch(keeper, batch);
		drop_batch(keeper, batch, false);
		return;
	}
	ret = open_store(keeper, batch->closing, &err);
	if (ret == 0) {
		ret = put_batch(keeper, batch, &err);
		if (ret < 0) {
			tell(keeper, &err);
		} else {
			keeper->told = false;
			note_committed(keeper, batch);
			keeper_memory_load(keeper);
		}
	}
	/* What a restarted server forgot of this connection is made anew. */
	if (ret == -ECONNRESET)
		keeper->store = store_close(keeper->store);
	if (ret < 0 && passes(ret) && !batch->closing)
		return_batch(keeper, batch);
	drop_batch(keeper, batch, ret < 0);
}

void *keeper_main(void *arg)
{
	struct keeper *keeper = arg;
	struct err err = { "" };
	bool closing = false;

	while (!closing) {
		struct batch batch;

		take_batch(keeper, &batch);
		closing = batch.closing;
		load_known(keeper, &err);
		write_batch(keeper, &batch);
		if (!closing)
			prune(keeper);
	}
	keeper->store = store_close(keeper->store);
	return NULL;
}
