/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ui/uiasks.h"

#include "base/clock.h"
#include "live/run/ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct one {
	char job[STORE_KEY_BYTES], user[TOKEN_NAME_BYTES], reason[200], text[MESSAGE_TEXT];
	int64_t at_ns;
	int fd; /* -1: answered */
	bool done;
};

struct uiasks {
	pthread_mutex_t lock; /* of all */
	struct one list[UIASKS_KEPT_MAX];
	size_t cnt, next; /* of all so far: list is a ring */
};

struct uiasks *uiasks_new(void)
{
	struct uiasks *asks = calloc(1, sizeof(*asks));

	if (asks != NULL)
		(void)pthread_mutex_init(&asks->lock, NULL);
	return asks;
}

struct uiasks *uiasks_free(struct uiasks *asks)
{
	if (asks == NULL)
		return NULL;
	for (size_t i = 0; i < asks->cnt; i++) {
		if (asks->list[i].fd >= 0)
			(void)close(asks->list[i].fd);
	}
	(void)pthread_mutex_destroy(&asks->lock);
	free(asks);
	return NULL;
}

static size_t count_waiting(const struct uiasks *asks)
{
	size_t ret = 0;

	for (size_t i = 0; i < asks->cnt; i++)
		ret += asks->list[i].fd >= 0;
	return ret;
}

/* The oldest one that is answered makes room: fewer wait than there are places. */
static struct one *take_place(struct uiasks *asks)
{
	if (asks->cnt < UIASKS_KEPT_MAX)
		return &asks->list[asks->cnt++];
	for (size_t i = 0; i < UIASKS_KEPT_MAX; i++) {
		struct one *one = &asks->list[(asks->next + i) % UIASKS_KEPT_MAX];

		if (one->fd >= 0)
			continue;
		asks->next = (asks->next + i + 1) % UIASKS_KEPT_MAX;
		return one;
	}
	return NULL;
}

static void keep(struct uiasks *asks, const struct routes_wish *wish, int fd)
{
	struct one *one = take_place(asks);

	*one = (struct one){ .at_ns = clock_wall_ns(), .fd = fd };
	(void)snprintf(one->job, sizeof(one->job), "%s", wish->job);
	(void)snprintf(one->user, sizeof(one->user), "%s", wish->user);
	(void)snprintf(one->reason, sizeof(one->reason), "%s", wish->reason);
}

int uiasks_send(struct uiasks *asks, const char *socket, const struct routes_wish *wish,
		struct err *err)
{
	char text[MESSAGE_TEXT];
	bool full;
	int fd;

	(void)pthread_mutex_lock(&asks->lock);
	full = count_waiting(asks) >= UIASKS_WAITING_MAX;
	(void)pthread_mutex_unlock(&asks->lock);
	if (full)
		return err_set(err, EBUSY,
			       "%u requests wait for their reports already: see the job's page",
			       UIASKS_WAITING_MAX);
	(void)snprintf(text, sizeof(text), "%s\n%s", wish->user, wish->reason);
	fd = ask_open_text(socket, MSG_REQUEST, 0, text, err);
	if (fd == -ECONNREFUSED)
		return -ENOENT;
	if (fd < 0)
		return fd;
	(void)pthread_mutex_lock(&asks->lock);
	keep(asks, wish, fd); /* only the server's thread adds: there is room still */
	(void)pthread_mutex_unlock(&asks->lock);
	return 0;
}

static bool look_at(struct one *one)
{
	struct message answer = { .status = ECONNRESET };
	struct err err = { "" };
	int r = one->fd >= 0 ? ask_next(one->fd, 0, &answer, &err) : -ETIMEDOUT;

	if (r == -ETIMEDOUT)
		return false;
	one->done = r == 0 && answer.status == 0;
	(void)snprintf(one->text, sizeof(one->text), "%s", r == 0 ? answer.text : err.text);
	(void)close(one->fd);
	one->fd = -1;
	return true;
}

bool uiasks_look(struct uiasks *asks)
{
	bool ret = false;

	(void)pthread_mutex_lock(&asks->lock);
	for (size_t i = 0; i < asks->cnt; i++)
		ret |= look_at(&asks->list[i]);
	(void)pthread_mutex_unlock(&asks->lock);
	return ret;
}

static json_t *object_of(struct json_writer *w, const struct one *one)
{
	json_t *ret = json_object();

	jsonwriter_put(w, ret, "at_ms", json_integer(one->at_ns / NSEC_PER_MSEC));
	jsonwriter_put_text(w, ret, "user", one->user);
	jsonwriter_put_text(w, ret, "reason", one->reason);
	jsonwriter_put_text(w, ret, "state",
			    one->fd >= 0 ? "waiting"
			    : one->done	 ? "done"
					 : "failed");
	jsonwriter_put_text(w, ret, "text", one->text);
	return ret;
}

static int by_time(const void *a, const void *b)
{
	const struct one *x = *(const struct one *const *)a, *y = *(const struct one *const *)b;

	return (x->at_ns < y->at_ns) - (x->at_ns > y->at_ns);
}

void uiasks_put(struct uiasks *asks, const char *job, struct json_writer *w, json_t *to)
{
	const struct one *shown[UIASKS_KEPT_MAX];
	json_t *list = json_array();
	size_t cnt = 0;

	(void)pthread_mutex_lock(&asks->lock);
	for (size_t i = 0; i < asks->cnt; i++) {
		if (strcmp(asks->list[i].job, job) == 0)
			shown[cnt++] = &asks->list[i];
	}
	qsort(shown, cnt, sizeof(shown[0]), by_time);
	for (size_t i = 0; i < cnt; i++)
		jsonwriter_push(w, list, object_of(w, shown[i]));
	(void)pthread_mutex_unlock(&asks->lock);
	jsonwriter_put(w, to, "requests", list);
}
