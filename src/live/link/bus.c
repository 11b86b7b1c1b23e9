/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/bus.h"

#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One message in the queue; the payload follows it. */
struct queued {
	struct queued *next;
	char subject[BUS_SUBJECT_MAX], reply[BUS_SUBJECT_MAX];
	size_t len;
	unsigned char data[];
};

struct bus_sub {
	char pattern[BUS_SUBJECT_MAX];
	bus_handler *handler;
	void *arg;
	bool dead; /* unsubscribed during bus_run(): freed after it */
};

struct request {
	uint64_t id;
	int64_t deadline_ns;
	bus_answer *answer;
	void *arg;
};

struct bus {
	VEC(struct bus_sub *) subs;
	VEC(struct request) requests;
	struct queued *head, **tail;
	struct bus_stats stats;
	uint64_t next_request;
	int running; /* depth of bus_run() */
	void (*wake)(void *arg);
	void *wake_arg;
};

#define INBOX "_INBOX."

static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* A subject, or with wildcard also a pattern. */
static bool subject_valid(const char *text, bool wildcard)
{
	size_t len = strlen(text);
	bool in_token = false;

	if (len == 0 || len >= BUS_SUBJECT_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (token_char(text[i])) {
			in_token = true;
		} else if (text[i] == '.' && in_token) {
			in_token = false;
		} else {
			return wildcard && text[i] == '>' && !in_token && i + 1 == len;
		}
	}
	return in_token;
}

static bool pattern_matches(const char *pattern, const char *subject)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] != '>')
		return strcmp(pattern, subject) == 0;
	return strncmp(pattern, subject, len - 1) == 0 && subject[len - 1] != '\0';
}

int bus_open(const char *url, void (*wake)(void *arg), void *wake_arg, struct bus **ret)
{
	struct bus *bus;

	if (strcmp(url, "inproc:") != 0)
		return -EPROTONOSUPPORT;
	bus = calloc(1, sizeof(*bus));
	if (bus == NULL)
		return -ENOMEM;
	bus->tail = &bus->head;
	bus->wake = wake;
	bus->wake_arg = wake_arg;
	*ret = bus;
	return 0;
}

struct bus *bus_close(struct bus *bus)
{
	if (bus == NULL)
		return NULL;
	while (bus->head != NULL) {
		struct queued *next = bus->head->next;

		free(bus->head);
		bus->head = next;
	}
	vec_foreach(sub, &bus->subs)
		free(*sub);
	vec_done(&bus->subs);
	vec_done(&bus->requests);
	free(bus);
	return NULL;
}

static int enqueue(struct bus *bus, const char *subject, const char *reply, const void *data,
		   size_t len)
{
	bool was_empty = bus->head == NULL;
	struct queued *item;

	if (!subject_valid(subject, false))
		return -EINVAL;
	if (len > BUS_MESSAGE_MAX)
		return -EMSGSIZE;
	item = bus->stats.pending_cnt < BUS_PENDING_CNT &&
			       bus->stats.pending_bytes + len <= BUS_PENDING_BYTES
		       ? calloc(1, sizeof(*item) + len)
		       : NULL;
	if (item == NULL) {
		bus->stats.dropped++;
		return -ENOBUFS;
	}
	(void)snprintf(item->subject, sizeof(item->subject), "%s", subject);
	(void)snprintf(item->reply, sizeof(item->reply), "%s", reply);
	item->len = len;
	if (len > 0)
		memcpy(item->data, data, len);
	*bus->tail = item;
	bus->tail = &item->next;
	bus->stats.sent++;
	bus->stats.pending_cnt++;
	bus->stats.pending_bytes += len;
	if (was_empty && bus->wake != NULL)
		bus->wake(bus->wake_arg);
	return 0;
}

int bus_pub(struct bus *bus, const char *subject, const void *data, size_t len)
{
	return enqueue(bus, subject, "", data, len);
}

int bus_sub(struct bus *bus, const char *pattern, bus_handler *handler, void *arg,
	    struct bus_sub **ret_sub)
{
	struct bus_sub *sub;

	if (!subject_valid(pattern, true))
		return -EINVAL;
	sub = calloc(1, sizeof(*sub));
	if (sub == NULL)
		return -ENOMEM;
	(void)snprintf(sub->pattern, sizeof(sub->pattern), "%s", pattern);
	sub->handler = handler;
	sub->arg = arg;
	if (vec_push(&bus->subs, sub) < 0) {
		free(sub);
		return -ENOMEM;
	}
	if (ret_sub != NULL)
		*ret_sub = sub;
	return 0;
}

static void sweep_subs(struct bus *bus)
{
	size_t kept = 0;

	for (size_t i = 0; i < bus->subs.cnt; i++) {
		if (bus->subs.data[i]->dead)
			free(bus->subs.data[i]);
		else
			bus->subs.data[kept++] = bus->subs.data[i];
	}
	bus->subs.cnt = kept;
}

struct bus_sub *bus_unsub(struct bus *bus, struct bus_sub *sub)
{
	if (sub == NULL)
		return NULL;
	sub->dead = true;
	if (bus->running == 0)
		sweep_subs(bus);
	return NULL;
}

int bus_req(struct bus *bus, const char *subject, const void *data, size_t len, int64_t deadline_ns,
	    bus_answer *answer, void *arg)
{
	struct request request = { bus->next_request + 1, deadline_ns, answer, arg };
	char reply[BUS_SUBJECT_MAX];
	int ret;

	if (bus->requests.cnt >= BUS_REQUEST_CNT) {
		bus->stats.dropped++;
		return -ENOBUFS;
	}
	if (vec_reserve(&bus->requests, bus->requests.cnt + 1) < 0)
		return -ENOMEM;
	(void)snprintf(reply, sizeof(reply), INBOX "%" PRIu64, request.id);
	ret = enqueue(bus, subject, reply, data, len);
	if (ret < 0)
		return ret;
	bus->requests.data[bus->requests.cnt++] = request;
	bus->next_request++;
	return 0;
}

int bus_reply(struct bus *bus, const struct bus_message *message, const void *data, size_t len)
{
	if (message->reply == NULL)
		return -EDESTADDRREQ;
	return enqueue(bus, message->reply, "", data, len);
}

/* Takes request idx out, so that its answer may make a new one. */
static void end_request(struct bus *bus, size_t idx, const struct bus_message *message)
{
	struct request request = bus->requests.data[idx];

	bus->requests.cnt--;
	memmove(&bus->requests.data[idx], &bus->requests.data[idx + 1],
		(bus->requests.cnt - idx) * sizeof(request));
	request.answer(request.arg, message);
}

static void deliver_answer(struct bus *bus, const struct bus_message *message)
{
	uint64_t id = strtoull(message->subject + strlen(INBOX), NULL, 10);

	for (size_t i = 0; i < bus->requests.cnt; i++) {
		if (bus->requests.data[i].id == id) {
			bus->stats.received++;
			end_request(bus, i, message);
			return;
		}
	}
	bus->stats.unheard++; /* too late */
}

static void deliver(struct bus *bus, const struct bus_message *message)
{
	size_t cnt = bus->subs.cnt; /* a handler's new subscription starts with the next message */
	bool heard = false;

	if (strncmp(message->subject, INBOX, strlen(INBOX)) == 0) {
		deliver_answer(bus, message);
		return;
	}
	for (size_t i = 0; i < cnt; i++) {
		struct bus_sub *sub = bus->subs.data[i];

		if (sub->dead || !pattern_matches(sub->pattern, message->subject))
			continue;
		heard = true;
		bus->stats.received++;
		sub->handler(sub->arg, message);
	}
	bus->stats.unheard += !heard;
}

static void run_timeouts(struct bus *bus, int64_t now_ns)
{
	for (size_t i = 0; i < bus->requests.cnt;) {
		if (bus->requests.data[i].deadline_ns > now_ns) {
			i++;
			continue;
		}
		bus->stats.timeouts++;
		end_request(bus, i, NULL);
	}
}

static struct queued *dequeue(struct bus *bus)
{
	struct queued *item = bus->head;

	bus->head = item->next;
	if (bus->head == NULL)
		bus->tail = &bus->head;
	bus->stats.pending_cnt--;
	bus->stats.pending_bytes -= item->len;
	return item;
}

size_t bus_run(struct bus *bus, int64_t now_ns)
{
	size_t cnt = bus->stats.pending_cnt;

	bus->running++;
	for (size_t i = 0; i < cnt && bus->head != NULL; i++) {
		struct queued *item = dequeue(bus);
		struct bus_message message = {
			.subject = item->subject,
			.reply = item->reply[0] != '\0' ? item->reply : NULL,
			.data = item->data,
			.len = item->len,
		};

		deliver(bus, &message);
		free(item);
	}
	run_timeouts(bus, now_ns);
	bus->running--;
	if (bus->running == 0)
		sweep_subs(bus);
	/* What handlers added found the queue empty before its first message was taken, or not. */
	if (bus->head != NULL && bus->wake != NULL)
		bus->wake(bus->wake_arg);
	return cnt;
}

struct bus_stats bus_stats(const struct bus *bus)
{
	return bus->stats;
}
