/* SPDX-License-Identifier: Apache-2.0 */
#include "live/webhook/webhook.h"

#include "base/clock.h"
#include "base/log.h"
#include "live/webhook/curllibrary.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One webhook, with its thread. */
struct sender {
	const struct webhookfile_hook *hook;
	const struct curllibrary *curl;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* under lock */
	char *queue[WEBHOOK_QUEUE_MAX]; /* bodies; the oldest first */
	size_t cnt;
	bool closing;
	/* of its thread, read after its end */
	unsigned sent_cnt, failed_cnt;
	/* of the hub's thread */
	unsigned dropped_cnt;
	_Atomic bool cut; /* written by the hub's thread at the end: a try is given up */
};

struct webhook {
	struct curllibrary curl;
	struct sender senders[WEBHOOKFILE_HOOKS_MAX];
	size_t cnt;
	char job[256], key[32], folder[4096], host[256];
};

/* --- one try --- */

static size_t discard(char *data _unused_, size_t size, size_t cnt, void *arg _unused_)
{
	return size * cnt;
}

static int is_cut(void *arg, int64_t a _unused_, int64_t b _unused_, int64_t c _unused_,
		  int64_t d _unused_)
{
	const struct sender *sender = arg;

	return atomic_load_explicit(&sender->cut, memory_order_relaxed) ? 1 : 0;
}

/* NULL: out of memory. */
static void *make_headers(const struct sender *sender)
{
	const struct curllibrary *curl = sender->curl;
	char line[WEBHOOKFILE_TOKEN_BYTES + 32];
	void *list = curl->slist_append(NULL, "Content-Type: application/json"), *more;

	/* Else curl asks a server that is slow to agree first, and waits a second for that. */
	more = list != NULL ? curl->slist_append(list, "Expect:") : NULL;
	if (more != NULL && sender->hook->token[0] != '\0') {
		(void)snprintf(line, sizeof(line), "Authorization: Bearer %s", sender->hook->token);
		more = curl->slist_append(more, line);
	}
	if (more == NULL)
		curl->slist_free_all(list);
	return more;
}

static void set_up(const struct sender *sender, void *handle, void *headers, const char *body,
		   char *error)
{
	const struct curllibrary *curl = sender->curl;

	(void)curl->easy_setopt(handle, CURL_URL, sender->hook->url);
	(void)curl->easy_setopt(handle, CURL_HTTPHEADER, headers);
	(void)curl->easy_setopt(handle, CURL_POSTFIELDS, body);
	(void)curl->easy_setopt(handle, CURL_POSTFIELDSIZE, (long)strlen(body));
	(void)curl->easy_setopt(handle, CURL_USERAGENT, "perftracker/" PT_VERSION);
	(void)curl->easy_setopt(handle, CURL_ERRORBUFFER, error);
	(void)curl->easy_setopt(handle, CURL_NOSIGNAL, 1L);
	(void)curl->easy_setopt(handle, CURL_FOLLOWLOCATION, 0L);
	(void)curl->easy_setopt(handle, CURL_PROTOCOLS, 3L);
	(void)curl->easy_setopt(handle, CURL_TIMEOUT_MS, (long)WEBHOOK_TIMEOUT_MS);
	(void)curl->easy_setopt(handle, CURL_CONNECTTIMEOUT_MS, (long)WEBHOOK_TIMEOUT_MS / 2);
	(void)curl->easy_setopt(handle, CURL_WRITEFUNCTION, discard);
	(void)curl->easy_setopt(handle, CURL_NOPROGRESS, 0L);
	(void)curl->easy_setopt(handle, CURL_XFERINFOFUNCTION, is_cut);
	(void)curl->easy_setopt(handle, CURL_XFERINFODATA, (void *)(uintptr_t)sender);
}

/* Returns 0; -EAGAIN: another try may help; -EPROTO: none will; with a line in err. */
static int try_once(const struct sender *sender, const char *body, struct err *err)
{
	const struct curllibrary *curl = sender->curl;
	char error[CURL_ERROR_BYTES] = "";
	void *handle = curl->easy_init(), *headers = make_headers(sender);
	long status = 0;
	int code = -1;

	if (handle != NULL && headers != NULL) {
		set_up(sender, handle, headers, body, error);
		code = curl->easy_perform(handle);
		(void)curl->easy_getinfo(handle, CURL_INFO_RESPONSE_CODE, &status);
	}
	curl->slist_free_all(headers);
	if (handle != NULL)
		curl->easy_cleanup(handle);
	if (code != 0)
		return err_set(err, EAGAIN, "%.200s",
			       error[0] != '\0' ? error
			       : code > 0	? curl->easy_strerror(code)
						: "out of memory");
	if (status >= 200 && status < 300)
		return 0;
	return err_set(err, status >= 500 || status == 429 || status == 408 ? EAGAIN : EPROTO,
		       "the server answered %ld", status);
}

/* --- the thread --- */

/* Sleeps before the next try; false: there is no time for one. */
static bool wait_again(struct sender *sender, unsigned tries)
{
	struct timespec until;
	bool cut;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 1 << (tries - 1);
	(void)pthread_mutex_lock(&sender->lock);
	do
		cut = atomic_load_explicit(&sender->cut, memory_order_relaxed);
	while (!cut && pthread_cond_timedwait(&sender->wake, &sender->lock, &until) != ETIMEDOUT);
	(void)pthread_mutex_unlock(&sender->lock);
	return !cut;
}

static void send_body(struct sender *sender, const char *body)
{
	struct err err = { "" };
	unsigned tries = 0;
	int ret;

	do {
		ret = try_once(sender, body, &err);
		tries++;
	} while (ret == -EAGAIN && tries < WEBHOOK_TRIES_MAX && wait_again(sender, tries));
	if (ret == 0) {
		sender->sent_cnt++;
		return;
	}
	sender->failed_cnt++;
	log_line(LOG_WARNING, "event=webhook-fails to=\"%s\" tries=%u why=\"%s\"",
		 sender->hook->place, tries, err.text);
}

/* NULL: it is over. */
static char *take_body(struct sender *sender)
{
	char *ret = NULL;

	(void)pthread_mutex_lock(&sender->lock);
	while (sender->cnt == 0 && !sender->closing)
		(void)pthread_cond_wait(&sender->wake, &sender->lock);
	if (sender->cnt > 0) {
		ret = sender->queue[0];
		sender->cnt--;
		memmove(sender->queue, sender->queue + 1, sender->cnt * sizeof(*sender->queue));
	}
	(void)pthread_mutex_unlock(&sender->lock);
	return ret;
}

static void *sender_main(void *arg)
{
	struct sender *sender = arg;
	char *body;

	(void)pthread_setname_np(pthread_self(), "pt-webhook");
	while ((body = take_body(sender)) != NULL) {
		send_body(sender, body);
		free(body);
	}
	return NULL;
}

/* --- the hub's side --- */

static int start(struct sender *sender)
{
	pthread_condattr_t attr;
	int ret;

	(void)pthread_mutex_init(&sender->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&sender->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	ret = -pthread_create(&sender->thread, NULL, sender_main, sender);
	sender->started = ret == 0;
	return ret;
}

int webhook_open(const struct webhook_setup *setup, struct webhook **ret, struct err *err)
{
	struct webhook *webhook = calloc(1, sizeof(*webhook));
	int r;

	if (webhook == NULL)
		return err_set(err, ENOMEM, "out of memory");
	(void)snprintf(webhook->job, sizeof(webhook->job), "%s", setup->job);
	(void)snprintf(webhook->key, sizeof(webhook->key), "%s", setup->key);
	(void)snprintf(webhook->folder, sizeof(webhook->folder), "%s", setup->folder);
	(void)gethostname(webhook->host, sizeof(webhook->host) - 1);
	r = curllibrary_open(&webhook->curl, err);
	for (size_t i = 0; r == 0 && i < setup->file->cnt; i++) {
		struct sender *sender = &webhook->senders[i];

		sender->hook = &setup->file->hooks[i];
		sender->curl = &webhook->curl;
		webhook->cnt++;
		r = start(sender);
		if (r < 0)
			(void)err_set(err, -r, "%s", strerror(-r));
	}
	if (r < 0) {
		(void)webhook_close(webhook);
		return r;
	}
	*ret = webhook;
	return 0;
}

/* Takes the body. */
static void push(struct sender *sender, char *body)
{
	bool taken = false;

	(void)pthread_mutex_lock(&sender->lock);
	if (body != NULL && sender->cnt < WEBHOOK_QUEUE_MAX) {
		sender->queue[sender->cnt++] = body;
		taken = true;
		(void)pthread_cond_signal(&sender->wake);
	}
	(void)pthread_mutex_unlock(&sender->lock);
	sender->dropped_cnt += !taken;
	if (!taken)
		free(body);
}

void webhook_report(struct webhook *webhook, const struct report *report, uint64_t number)
{
	if (webhook == NULL)
		return;
	for (size_t i = 0; i < webhook->cnt; i++) {
		struct sender *sender = &webhook->senders[i];
		const struct webhookbody_about about = { .job = webhook->job,
							 .key = webhook->key,
							 .host = webhook->host,
							 .folder = webhook->folder,
							 .number = number,
							 .made_ns = clock_wall_ns() };
		struct str body = { 0 };

		if (!sender->hook->all && !verdict_is_bad(report->verdict))
			continue;
		if (webhookbody_print(sender->hook->format, report, &about, &body) < 0)
			str_done(&body);
		push(sender, body.data); /* NULL: counted as dropped */
	}
}

/* Returns false when the thread goes on: it then keeps all that it uses. */
static bool stop(struct sender *sender, const struct timespec *until)
{
	struct timespec more;

	if (!sender->started)
		return true;
	if (pthread_timedjoin_np(sender->thread, NULL, until) == 0)
		return true;
	(void)pthread_mutex_lock(&sender->lock);
	atomic_store_explicit(&sender->cut, true, memory_order_relaxed);
	while (sender->cnt > 0) {
		free(sender->queue[--sender->cnt]);
		sender->dropped_cnt++;
	}
	(void)pthread_cond_signal(&sender->wake);
	(void)pthread_mutex_unlock(&sender->lock);
	/* curl asks is_cut() about once a second, but not while it resolves a name. */
	(void)clock_gettime(CLOCK_REALTIME, &more);
	more.tv_sec += 2;
	return pthread_timedjoin_np(sender->thread, NULL, &more) == 0;
}

struct webhook *webhook_close(struct webhook *webhook)
{
	struct timespec until;
	bool all = true;

	if (webhook == NULL)
		return NULL;
	for (size_t i = 0; i < webhook->cnt; i++) {
		struct sender *sender = &webhook->senders[i];

		(void)pthread_mutex_lock(&sender->lock);
		sender->closing = true;
		(void)pthread_cond_signal(&sender->wake);
		(void)pthread_mutex_unlock(&sender->lock);
	}
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WEBHOOK_CLOSE_S;
	for (size_t i = 0; i < webhook->cnt; i++) {
		struct sender *sender = &webhook->senders[i];
		bool ended = stop(sender, &until);

		all &= ended;
		if (sender->dropped_cnt > 0 || !ended)
			log_line(LOG_WARNING, "event=webhook-late to=\"%s\" not_sent=%u",
				 sender->hook->place, sender->dropped_cnt + !ended);
	}
	if (all)
		free(webhook);
	return NULL; /* else a thread still has it; the process ends */
}
